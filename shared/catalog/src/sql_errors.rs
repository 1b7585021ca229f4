//! What a database's error means: decided by its kind and code, never by its text.

use sluice_model::Class;
use sluice_table::{CommitError, TableError};

/// `SQLITE_BUSY` and `SQLITE_LOCKED` with their extended codes; serialization failure, deadlock, lock timeout, and the refusals of PostgreSQL to
/// take a connection. In all of them the statement has changed nothing.
const NOTHING_DONE: [&str; 12] = ["5", "6", "261", "262", "517", "518", "773", "40001", "40P01", "55P03", "53300", "57P03"];

/// The class of an error of a statement that may have changed something.
pub(crate) fn class_of_write(error: &sqlx::Error) -> Class {
    match error {
        sqlx::Error::Database(database) => match database.code() {
            Some(code) if NOTHING_DONE.contains(&code.as_ref()) => Class::Transient,
            // The server went away while it worked.
            Some(code) if code.starts_with("57P") || code.starts_with("08") => Class::Unknown,
            Some(_) | None => Class::Fatal,
        },
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Class::Transient,
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed => Class::Unknown,
        // sqlx's own list may grow; what is left speaks of a wrong statement or configuration.
        _ => Class::Fatal,
    }
}

/// An error of a statement that only reads.
pub(crate) fn reading(what: impl Into<String>) -> impl FnOnce(sqlx::Error) -> TableError {
    let what = what.into();
    move |error| {
        let class = match class_of_write(&error) {
            Class::Fatal => Class::Fatal,
            Class::Conflict | Class::Transient | Class::Unknown => Class::Transient,
        };
        catalog_error(class, &what, error)
    }
}

/// An error of a statement that changes something.
pub(crate) fn writing(what: impl Into<String>) -> impl FnOnce(sqlx::Error) -> TableError {
    let what = what.into();
    move |error| catalog_error(class_of_write(&error), &what, error)
}

fn catalog_error(class: Class, what: &str, error: sqlx::Error) -> TableError {
    TableError::Catalog { class, what: format!("the SQL catalog, {what}: {error}"), source: Some(Box::new(error)) }
}

/// An error of the statement that swaps a pointer.
pub(crate) fn swapping(error: sqlx::Error) -> CommitError {
    let what = format!("the SQL catalog, swapping the pointer: {error}");
    match class_of_write(&error) {
        Class::Conflict => CommitError::Conflict,
        Class::Transient => CommitError::Transient { what, source: Some(Box::new(error)) },
        Class::Unknown => CommitError::Unknown { what, source: Some(Box::new(error)) },
        Class::Fatal => CommitError::Fatal { what, source: Some(Box::new(error)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_unknown_for_a_write_and_transient_for_a_read() {
        let lost = || sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(class_of_write(&lost()), Class::Unknown);
        assert_eq!(reading("x")(lost()).class(), Class::Transient);
        assert_eq!(class_of_write(&sqlx::Error::PoolTimedOut), Class::Transient);
        assert_eq!(class_of_write(&sqlx::Error::RowNotFound), Class::Fatal);
    }
}
