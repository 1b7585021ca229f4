//! Why a redrive or a rewind did not do its work.

use sluice_model::{Class, TableName};
use sluice_table::TableError;
use sluice_table::rewind::RewindRefusal;

use crate::Reply;

/// Why a redrive or a rewind did not do its work. Whatever was begun is finished by the next run.
#[derive(Debug, thiserror::Error)]
pub enum RedriveError {
    /// The request is wrong.
    #[error("REQUEST_INVALID: {0}")]
    Request(String),
    /// The error table could not be read or written.
    #[error("ERROR_TABLE_FAILED: `{table}`: {source}")]
    ErrorTable {
        /// The error table.
        table: TableName,
        /// What happened.
        source: TableError,
    },
    /// Some batches are not finished; the next run goes on with them.
    #[error("REDRIVE_UNFINISHED: {}", .0.failures.join("; "))]
    Unfinished(Box<Reply>),
    /// There is no such table.
    #[error("TABLE_UNKNOWN: there is no table `{0}`")]
    NoTable(TableName),
    /// The table cannot be taken back so far.
    #[error("REWIND_REFUSED: `{table}`: {refusal}")]
    Refused {
        /// The table.
        table: TableName,
        /// Why.
        refusal: RewindRefusal,
    },
    /// The table could not be read or changed.
    #[error("REWIND_FAILED: {0}")]
    Table(#[from] TableError),
}

impl RedriveError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Request(_) | Self::NoTable(_) | Self::Refused { .. } => Class::Fatal,
            Self::ErrorTable { source, .. } | Self::Table(source) => source.class(),
            Self::Unfinished(_) => Class::Transient,
        }
    }
}
