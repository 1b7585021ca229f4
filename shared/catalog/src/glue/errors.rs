//! What an answer of Glue means: by the types and codes of its errors, never by their text.

use aws_sdk_glue::config::http::HttpResponse;
use aws_sdk_glue::error::{ProvideErrorMetadata, SdkError};
use sluice_model::Class;
use sluice_storage::s3::{class_of_write as class_by_status, told};
use sluice_table::{CommitError, TableError};

/// What Glue says with the status 400 although it is its own trouble.
const SERVER_TROUBLE: [&str; 3] = ["InternalServiceException", "OperationTimeoutException", "InternalFailure"];
/// What may pass.
const PASSING: [&str; 3] = ["ResourceNotReadyException", "FederationSourceRetryableException", "FederatedResourceAlreadyLocked"];

/// The class of an error of a request that may have changed something.
pub(super) fn class_of_write<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Class {
    let code = match error {
        SdkError::ServiceError(answer) => answer.err().code(),
        _ => None,
    };
    match code {
        Some("ConcurrentModificationException") => Class::Conflict,
        Some(code) if SERVER_TROUBLE.contains(&code) => Class::Unknown,
        Some(code) if PASSING.contains(&code) => Class::Transient,
        Some(_) | None => class_by_status(error),
    }
}

/// An error of a request that only reads.
pub(super) fn reading<E>(what: &str) -> impl FnOnce(SdkError<E, HttpResponse>) -> TableError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = format!("Glue, {what}");
    move |error| {
        let class = match class_of_write(&error) {
            Class::Fatal => Class::Fatal,
            Class::Conflict | Class::Transient | Class::Unknown => Class::Transient,
        };
        TableError::Catalog { class, what: told(&what, &error), source: Some(Box::new(error)) }
    }
}

/// An error of a request that changes something.
pub(super) fn writing<E>(what: &str) -> impl FnOnce(SdkError<E, HttpResponse>) -> TableError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = format!("Glue, {what}");
    move |error| TableError::Catalog { class: class_of_write(&error), what: told(&what, &error), source: Some(Box::new(error)) }
}

/// An error of the request that swaps a pointer. It was sent once only, so a conflict is none of our own making.
pub(super) fn swapping<E>(error: SdkError<E, HttpResponse>) -> CommitError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = told("Glue, UpdateTable", &error);
    match class_of_write(&error) {
        Class::Conflict => CommitError::Conflict,
        Class::Transient => CommitError::Transient { what, source: Some(Box::new(error)) },
        Class::Unknown => CommitError::Unknown { what, source: Some(Box::new(error)) },
        Class::Fatal => CommitError::Fatal { what, source: Some(Box::new(error)) },
    }
}
