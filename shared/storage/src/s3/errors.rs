//! What an answer of AWS means: by its kind and status, never by its text.

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use sluice_model::Class;

use crate::StorageError;

/// Codes of requests that were turned away before they did anything.
const TURNED_AWAY: [&str; 9] = [
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "RequestTimeTooSkewed",
    "ServiceUnavailable",
    "ExpiredToken",
];

/// The class of an error of a request that may have changed something.
pub fn class_of_write<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Class {
    match error {
        // Not sent: the request could not be made.
        SdkError::ConstructionFailure(_) => Class::Fatal,
        // Connecting failed, so that nothing was sent; or a connection broke, and then nobody knows.
        SdkError::DispatchFailure(failure) if failure.is_user() => Class::Fatal,
        SdkError::DispatchFailure(_) | SdkError::TimeoutError(_) | SdkError::ResponseError(_) => Class::Unknown,
        SdkError::ServiceError(answer) => class_of_answer(answer.err().code(), answer.raw().status().as_u16()),
        // The SDK's own list may grow; of what we do not know, we do not know what it did.
        _ => Class::Unknown,
    }
}

fn class_of_answer(code: Option<&str>, status: u16) -> Class {
    match (code, status) {
        (Some(code), _) if TURNED_AWAY.contains(&code) => Class::Transient,
        (_, 429 | 503) => Class::Transient,
        // In S3 Tables a table that is dropped takes its bucket along: another look at the catalog tells.
        (Some("NoSuchBucket"), _) => Class::Transient,
        (_, 409 | 412) => Class::Conflict,
        // S3 cuts off a body that came too slowly.
        (Some("RequestTimeout"), 400) | (_, 408) => Class::Transient,
        // Trouble of the server, or a success whose body cannot be read: it may have been done.
        (_, 500.. | ..300) => Class::Unknown,
        (_, _) => Class::Fatal,
    }
}

/// The class of an error of a request that only reads: it may always be sent again, unless it was refused.
pub fn class_of_read<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Class {
    match class_of_write(error) {
        Class::Fatal => Class::Fatal,
        Class::Conflict | Class::Transient | Class::Unknown => Class::Transient,
    }
}

/// What to do about it.
fn help<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> &'static str {
    match error {
        SdkError::ServiceError(answer) => match (answer.err().code(), answer.raw().status().as_u16()) {
            (Some("NoSuchBucket"), _) => "; is the bucket's name right?",
            (Some("AccessDeniedException"), _) | (_, 401 | 403) => {
                "; allow this action to the role or user of these credentials, if they are the right ones"
            }
            (_, 301 | 307 | 308) => "; the bucket is in another region: set catalog.storage.region",
            (_, _) => "",
        },
        SdkError::DispatchFailure(_) => "; are there credentials (environment, profile, role), and can the endpoint be reached?",
        _ => "",
    }
}

/// Causes of causes that are told.
const DEEPEST: usize = 6;

/// What happened, with all causes and, where it helps, what to do.
pub fn told<E>(what: &str, error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let help = help(error);
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    for _ in 0..DEEPEST {
        let Some(deeper) = source else { break };
        why = format!("{why}: {deeper}");
        source = deeper.source();
    }
    format!("{what}: {why}{help}")
}

/// An error of a request of S3 that may have changed something.
pub(crate) fn writing<E>(what: String) -> impl FnOnce(SdkError<E, HttpResponse>) -> StorageError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    move |error| StorageError { class: class_of_write(&error), what: told(&what, &error), source: Some(Box::new(error)) }
}

/// An error of a request of S3 that only reads.
pub(crate) fn reading<E>(what: String) -> impl FnOnce(SdkError<E, HttpResponse>) -> StorageError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    move |error| StorageError { class: class_of_read(&error), what: told(&what, &error), source: Some(Box::new(error)) }
}

/// Whether there is no such object. That there is no such bucket is another matter.
pub(crate) fn is_absent<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        SdkError::ServiceError(answer) => answer.raw().status().as_u16() == 404 && answer.err().code() != Some("NoSuchBucket"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_decides_and_a_few_codes() {
        assert_eq!(class_of_answer(Some("AccessDenied"), 403), Class::Fatal);
        assert_eq!(class_of_answer(Some("SlowDown"), 503), Class::Transient);
        assert_eq!(class_of_answer(Some("ThrottlingException"), 400), Class::Transient);
        assert_eq!(class_of_answer(Some("InternalError"), 500), Class::Unknown);
        assert_eq!(class_of_answer(None, 504), Class::Unknown);
        assert_eq!(class_of_answer(None, 200), Class::Unknown);
        assert_eq!(class_of_answer(Some("PreconditionFailed"), 412), Class::Conflict);
        assert_eq!(class_of_answer(Some("ConditionalRequestConflict"), 409), Class::Conflict);
    }
}
