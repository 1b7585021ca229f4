//! What became of a job on a table.

use serde::Serialize;
use sluice_model::TableName;
use sluice_table::TableVersion;

use crate::compact::Burden;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "why")]
pub enum Outcome {
    /// Nothing was due.
    NothingDue,
    /// Only planned.
    Planned,
    /// All of the plan is done.
    Done,
    /// A part of it is done; the next run does the rest.
    Partial(String),
    /// The job keeps off this table.
    StoodDown(String),
    /// It failed; nothing that is needed was deleted.
    Failed(String),
}

impl Outcome {
    /// Whether nobody needs to look at it.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        match self {
            Self::NothingDue | Self::Planned | Self::Done | Self::StoodDown(_) => true,
            Self::Partial(_) | Self::Failed(_) => false,
        }
    }
}

/// A table in numbers, from the summary of its current snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Measures {
    /// Live data files.
    pub data_files: u64,
    /// Live delete files.
    pub delete_files: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Snapshots in the metadata.
    pub snapshots: u64,
    /// When the current snapshot was committed, in milliseconds since 1970; `None` when there is none.
    pub committed_ms: Option<i64>,
}

impl Measures {
    /// Those of a version.
    #[must_use]
    pub fn of(version: &TableVersion) -> Self {
        let summary = version.metadata.current_snapshot().map(|snapshot| &snapshot.summary().additional_properties);
        let total = |key: &str| summary.and_then(|summary| summary.get(key)?.parse().ok()).unwrap_or(0);
        Self {
            data_files: total("total-data-files"),
            delete_files: total("total-delete-files"),
            bytes: total("total-files-size"),
            snapshots: version.metadata.snapshots().len() as u64,
            committed_ms: version.metadata.current_snapshot().map(|snapshot| snapshot.timestamp_ms()),
        }
    }
}

/// What a job did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Commits made.
    pub commits: u32,
    /// Commits, or groups of one, that a writer was faster than.
    pub conflicts: u32,
    /// Bytes of files read.
    pub bytes_read: u64,
    /// Bytes of files written.
    pub bytes_written: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows that deletes had taken away.
    pub rows_deleted: u64,
    /// Objects deleted from storage.
    pub objects_deleted: u64,
    /// Objects that could not be deleted.
    pub objects_not_deleted: u64,
    /// What else is worth saying.
    pub notes: Vec<String>,
    /// What is left for the next run; empty when all is done.
    pub left: String,
}

/// The report for one table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The job.
    pub job: &'static str,
    /// The table.
    pub table: TableName,
    /// How it ended.
    pub outcome: Outcome,
    /// The plan, as it was executed.
    pub plan: serde_json::Value,
    /// What the table's readers had to bear before, where the job looked at that.
    pub burden: Option<Burden>,
    /// Before.
    pub before: Measures,
    /// After.
    pub after: Measures,
    /// What was done.
    pub work: Work,
    /// How long it took, in milliseconds.
    pub duration_ms: i64,
}

impl Report {
    /// One of a table of which nothing else is known.
    #[must_use]
    pub fn of(job: &'static str, table: TableName, outcome: Outcome) -> Self {
        let (before, after, work) = (Measures::default(), Measures::default(), Work::default());
        Self { job, table, outcome, plan: serde_json::Value::Null, burden: None, before, after, work, duration_ms: 0 }
    }
}
