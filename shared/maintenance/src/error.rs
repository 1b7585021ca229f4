//! What can go wrong with maintenance, and what to do about it.

use sluice_model::{Class, TableName};
use sluice_storage::StorageError;
use sluice_table::TableError;

/// Why a job did not do its work on a table. Whatever was not done is done by the next run.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The table could not be read or changed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The storage did not do what it was asked.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It would not be safe. The text says why, and what would make it safe.
    #[error("`{table}`: refused: {reason}")]
    Refused {
        /// The table.
        table: TableName,
        /// Why.
        reason: String,
    },
    /// Another run has taken the table over: this one may neither commit nor delete.
    #[error("`{table}`: another run holds the lease now ({holder})")]
    LeaseLost {
        /// The table.
        table: TableName,
        /// Who has it.
        holder: String,
    },
    /// The plan was made for something else, or is no plan.
    #[error("{0}")]
    BadPlan(String),
}

impl MaintenanceError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Table(error) => error.class(),
            Self::Storage(error) => error.class,
            Self::Refused { .. } | Self::BadPlan(_) => Class::Fatal,
            Self::LeaseLost { .. } => Class::Conflict,
        }
    }
}
