//! What can go wrong with a table, and what to do about it.

use iceberg::ErrorKind;
use sluice_model::{Class, LedgerError, TableName};

/// The error underneath.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a table could not be read, prepared or changed.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// Storage or metadata: iceberg's own error.
    #[error("{what}: {source}")]
    Iceberg {
        /// What was being done.
        what: String,
        /// iceberg's error.
        source: Box<iceberg::Error>,
    },
    /// A Parquet file could not be written or read.
    #[error("{what}: {source}")]
    Parquet {
        /// What was being done.
        what: String,
        /// The error underneath.
        source: parquet::errors::ParquetError,
    },
    /// Columns could not be computed.
    #[error("{what}: {source}")]
    Arrow {
        /// What was being done.
        what: String,
        /// The error underneath.
        source: arrow_schema::ArrowError,
    },
    /// The table uses something that Sluice does not do.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The caller, or the table's metadata, contradicts itself.
    #[error("{0}")]
    Invalid(String),
    /// The table's stored ledger cannot be read.
    #[error("the table's ledger cannot be read: {0}")]
    Ledger(#[from] LedgerError),
    /// Another table stands under the same name.
    #[error("TABLE_REPLACED: `{name}` had the uuid {expected} and has {found} now")]
    Replaced {
        /// The table's name.
        name: TableName,
        /// The uuid that the delta was made for.
        expected: String,
        /// The uuid that is there now.
        found: String,
    },
    /// The table is gone.
    #[error("the table `{0}` does not exist any more")]
    Missing(TableName),
    /// The catalog's answer, classified where it was seen.
    #[error("{what}")]
    Catalog {
        /// What to do about it.
        class: Class,
        /// What was being done.
        what: String,
        /// The error underneath.
        #[source]
        source: Option<BoxError>,
    },
    /// Other writers were faster in every attempt.
    #[error("`{name}` was not committed after {attempts} attempts: {last}")]
    OutOfAttempts {
        /// The table's name.
        name: TableName,
        /// How often a commit was tried.
        attempts: u32,
        /// What the last attempt failed with.
        last: String,
    },
    /// The invocation's time is over.
    #[error("`{name}` was not committed before the deadline, after {attempts} attempts")]
    Deadline {
        /// The table's name.
        name: TableName,
        /// How often a commit was tried.
        attempts: u32,
    },
    /// The commit may or may not have happened, and looking it up did not tell.
    #[error("`{name}`: it is unknown whether snapshot {snapshot_id} was committed: {what}")]
    UnknownOutcome {
        /// The table's name.
        name: TableName,
        /// The snapshot to look for.
        snapshot_id: i64,
        /// What was seen.
        what: String,
    },
    /// A change without a snapshot may or may not have been made, and looking at the table did not tell.
    #[error("`{name}`: it is unknown whether its metadata was changed: {what}")]
    UnknownChange {
        /// The table's name.
        name: TableName,
        /// What was seen.
        what: String,
    },
}

impl TableError {
    /// Wraps an error of iceberg.
    pub fn iceberg(what: impl Into<String>) -> impl FnOnce(iceberg::Error) -> Self {
        let what = what.into();
        move |source| Self::Iceberg { what, source: Box::new(source) }
    }

    /// Wraps an error of Arrow.
    pub fn arrow(what: impl Into<String>) -> impl FnOnce(arrow_schema::ArrowError) -> Self {
        let what = what.into();
        move |source| Self::Arrow { what, source }
    }

    /// Wraps an error of Parquet.
    pub fn parquet(what: impl Into<String>) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let what = what.into();
        move |source| Self::Parquet { what, source }
    }

    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Iceberg { source, .. } => class_of_iceberg(source),
            Self::Parquet { .. }
            | Self::Arrow { .. }
            | Self::Unsupported(_)
            | Self::Invalid(_)
            | Self::Ledger(_)
            | Self::Replaced { .. }
            | Self::Missing(_) => Class::Fatal,
            Self::Catalog { class, .. } => *class,
            Self::OutOfAttempts { .. } => Class::Conflict,
            Self::Deadline { .. } => Class::Transient,
            Self::UnknownOutcome { .. } | Self::UnknownChange { .. } => Class::Unknown,
        }
    }
}

/// iceberg gives what a storage says as `Unexpected`; everything that it finds wrong by itself has a kind of its own.
fn class_of_iceberg(error: &iceberg::Error) -> Class {
    if error.retryable() || error.kind() == ErrorKind::Unexpected { Class::Transient } else { Class::Fatal }
}

/// What a catalog says to a commit.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The base is not the current version any more; nothing was changed.
    #[error("another commit came first")]
    Conflict,
    /// Nothing was changed; the same commit may be tried again.
    #[error("{what}")]
    Transient {
        /// What happened.
        what: String,
        /// The error underneath.
        #[source]
        source: Option<BoxError>,
    },
    /// The table may or may not have been changed.
    #[error("{what}")]
    Unknown {
        /// What happened.
        what: String,
        /// The error underneath.
        #[source]
        source: Option<BoxError>,
    },
    /// Nothing was changed, and trying again cannot help.
    #[error("{what}")]
    Fatal {
        /// What happened.
        what: String,
        /// The error underneath.
        #[source]
        source: Option<BoxError>,
    },
}

impl CommitError {
    /// What to do about it.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Conflict => Class::Conflict,
            Self::Transient { .. } => Class::Transient,
            Self::Unknown { .. } => Class::Unknown,
            Self::Fatal { .. } => Class::Fatal,
        }
    }

    /// An error from before the commit's one decisive call: nothing can have been changed.
    #[must_use]
    pub fn before(error: TableError) -> Self {
        let what = error.to_string();
        match error.class() {
            Class::Conflict => Self::Conflict,
            Class::Transient | Class::Unknown => Self::Transient { what, source: Some(Box::new(error)) },
            Class::Fatal => Self::Fatal { what, source: Some(Box::new(error)) },
        }
    }
}
