//! What can go wrong with a storage.

use sluice_model::Class;

/// Why a storage did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StorageError {
    /// What to do about it. Of a write, unknown means that the object may have been written.
    pub class: Class,
    /// What was being done, and what the storage said.
    pub what: String,
    /// The error underneath.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StorageError {
    /// An error that trying again does not mend.
    #[must_use]
    pub fn fatal(what: impl Into<String>) -> Self {
        Self { class: Class::Fatal, what: what.into(), source: None }
    }

    /// The error for iceberg, which knows only whether it may pass: what is of unknown outcome here is a file of a unique name, so it may be written again.
    #[must_use]
    pub fn into_iceberg(self) -> iceberg::Error {
        let kind = match self.class {
            Class::Conflict | Class::Transient | Class::Unknown => iceberg::ErrorKind::Unexpected,
            Class::Fatal => iceberg::ErrorKind::PreconditionFailed,
        };
        // The causes are told in it already.
        iceberg::Error::new(kind, self.what).with_retryable(self.class.may_pass_later())
    }
}
