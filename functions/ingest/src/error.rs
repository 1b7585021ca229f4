//! Why an invocation fails. Kafka then delivers the batch again.

use sluice_deadletter::TopicError;
use sluice_model::{BatchTally, Class, TableName};
use sluice_runtime::EventError;
use sluice_table::TableError;

use crate::TableReport;
use crate::reply::TopicTally;

/// A table that could not be written.
#[derive(Debug)]
pub struct TableFailure {
    /// The table.
    pub table: TableName,
    /// What to do about it.
    pub class: Class,
    /// What happened.
    pub message: String,
}

/// Why an invocation fails.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The event is none of a Kafka event-source mapping.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The error topic could not take the dead letters; nothing was committed.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The error table could not be read or written; no data table claimed what it does not hold.
    #[error("ERROR_TABLE_FAILED: `{table}`: {source}")]
    ErrorTable {
        /// The error table.
        table: TableName,
        /// What happened.
        source: TableError,
    },
    /// Some tables could not be written; the others are committed.
    #[error("TABLES_FAILED: {}", list(.failures))]
    Tables {
        /// The tables that failed.
        failures: Vec<TableFailure>,
        /// The others.
        tables: Vec<TableReport>,
        /// The account so far: what is not decided makes it unbalanced.
        tally: Box<BatchTally>,
        /// What the error topic took.
        error_topic: TopicTally,
    },
    /// The invocation's time was over before every table was written.
    #[error("DEADLINE: {open} units are not decided; the batch will be delivered again")]
    Deadline {
        /// Units without a decision.
        open: i64,
    },
}

fn list(failures: &[TableFailure]) -> String {
    let each = failures.iter().map(|failure| format!("`{}` ({:?}): {}", failure.table, failure.class, failure.message));
    each.collect::<Vec<_>>().join("; ")
}

impl IngestError {
    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Event(_) => Class::Fatal,
            Self::Topic(error) => error.class,
            Self::ErrorTable { source, .. } => source.class(),
            Self::Tables { failures, .. } => {
                let unknown = failures.iter().any(|failure| failure.class == Class::Unknown);
                let fatal = failures.iter().any(|failure| failure.class == Class::Fatal);
                match (unknown, fatal) {
                    (true, _) => Class::Unknown,
                    (false, true) => Class::Fatal,
                    (false, false) => Class::Transient,
                }
            }
            Self::Deadline { .. } => Class::Transient,
        }
    }
    /// What the error topic took before the invocation failed, as far as that is known.
    #[must_use]
    pub fn error_topic(&self) -> TopicTally {
        match self {
            Self::Tables { error_topic, .. } => *error_topic,
            Self::Topic(error) => TopicTally::of(error.published, 0),
            Self::Event(_) | Self::ErrorTable { .. } | Self::Deadline { .. } => TopicTally::default(),
        }
    }
}
