//! What a status of the REST protocol means.

use sluice_model::Class;
use sluice_table::{CommitError, TableError};

use super::http::{Answer, Failure};

/// The class of an answer to a request that may have changed something and was sent once.
pub(super) const fn class_of(status: u16) -> Class {
    match status {
        409 => Class::Conflict,
        // Turned away before anything was done.
        429 => Class::Transient,
        // Any other trouble of the server, gateways included, may have come after the change.
        500.. => Class::Unknown,
        _ => Class::Fatal,
    }
}

const fn help(status: u16) -> &'static str {
    match status {
        401 | 419 => "; the credentials are refused: see catalog.rest.auth",
        403 => "; the credentials lack a permission on this table or namespace",
        404 => "; is catalog.uri right, with everything before /v1?",
        _ => "",
    }
}

fn told(what: &str, answer: &Answer) -> String {
    format!("the REST catalog, {what}: HTTP {} {}{}", answer.status, answer.text(), help(answer.status))
}

/// An answer to a request that only reads.
pub(super) fn of_read(what: &str, answer: &Answer) -> TableError {
    let class = match class_of(answer.status) {
        Class::Fatal => Class::Fatal,
        Class::Conflict | Class::Transient | Class::Unknown => Class::Transient,
    };
    TableError::Catalog { class, what: told(what, answer), source: None }
}

/// An answer to a request that changes something.
pub(super) fn of_write(what: &str, answer: &Answer) -> TableError {
    TableError::Catalog { class: class_of(answer.status), what: told(what, answer), source: None }
}

/// An answer to a commit.
pub(super) fn of_commit(answer: &Answer) -> CommitError {
    let what = told("committing", answer);
    match answer.status {
        // The table is gone, which the next look at it tells.
        404 => CommitError::Conflict,
        status => match class_of(status) {
            Class::Conflict => CommitError::Conflict,
            Class::Transient => CommitError::Transient { what, source: None },
            Class::Unknown => CommitError::Unknown { what, source: None },
            Class::Fatal => CommitError::Fatal { what, source: None },
        },
    }
}

/// A commit without an answer.
pub(super) fn of_failed_commit(failure: Failure) -> CommitError {
    match failure {
        Failure::NotSent(error) => CommitError::before(error),
        Failure::Broken(error) => CommitError::Unknown { what: error.to_string(), source: Some(Box::new(error)) },
    }
}

/// A change other than a commit, without an answer.
pub(super) fn of_failed_write(failure: Failure) -> TableError {
    match failure {
        Failure::NotSent(error) => error,
        Failure::Broken(error) => TableError::Catalog { class: Class::Unknown, what: error.to_string(), source: Some(Box::new(error)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_the_server_is_unknown() {
        for status in [500, 502, 503, 504] {
            assert_eq!(class_of(status), Class::Unknown);
        }
        assert_eq!([409, 429, 400, 403].map(class_of), [Class::Conflict, Class::Transient, Class::Fatal, Class::Fatal]);
    }
}
