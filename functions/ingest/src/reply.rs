//! What an invocation answers: an explicit account, in JSON.

use serde::Serialize;
use sluice_deadletter::Published;
use sluice_model::{BatchTally, TableName};

/// What became of a table in this invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// The table.
    pub table: TableName,
    /// The account of the units that were routed to it.
    pub tally: BatchTally,
    /// The snapshot that was committed; `None` when nothing had to be.
    pub snapshot_id: Option<i64>,
    /// Files that the snapshot added.
    pub added_files: usize,
    /// Commit attempts, those included that another writer made stale.
    pub attempts: u32,
    /// Whether the table's schema was changed.
    pub schema: SchemaReport,
    /// What the commit took; for telemetry, no part of the answer.
    #[serde(skip)]
    pub work: CommitWork,
}

/// What a commit took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitWork {
    /// Data files added.
    pub data_files: usize,
    /// Delete files added.
    pub delete_files: usize,
    /// Bytes of the data files.
    pub data_file_bytes: u64,
    /// Gaps of the offset ledger that were closed.
    pub gaps_closed: usize,
    /// Milliseconds to write the files.
    pub flush_ms: i64,
    /// Milliseconds to commit them, attempts and rests included.
    pub commit_ms: i64,
}

impl CommitWork {
    /// Of a table that was not committed.
    pub const NOTHING: Self = Self { data_files: 0, delete_files: 0, data_file_bytes: 0, gaps_closed: 0, flush_ms: 0, commit_ms: 0 };
}

/// What happened to a table's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaReport {
    /// Nothing.
    Unchanged,
    /// Columns were added, widened, relaxed or renamed.
    Evolved,
    /// The table was created.
    Created,
}

/// The answer of a successful invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// The account of all units. Promise R1: it is balanced.
    pub tally: BatchTally,
    /// Received less decided; always 0.
    pub unbalanced: i64,
    /// The tables that had records in the batch, by name.
    pub tables: Vec<TableReport>,
    /// What the error topic took; not told where it had nothing to do.
    #[serde(skip_serializing_if = "TopicTally::is_empty")]
    pub error_topic: TopicTally,
}

/// What the error topic took of a batch's dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TopicTally {
    /// Letters that it acknowledged.
    pub published: usize,
    /// Of those: letters that were too large for it and went without their value.
    pub without_value: usize,
    /// Letters that it did not take, where `errors.on_failure` is `continue`: they are in the error table only.
    pub failed: usize,
}

impl TopicTally {
    /// Whether there was nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Letters that it took, and letters that it did not.
    #[must_use]
    pub const fn of(published: Published, failed: usize) -> Self {
        Self { published: published.letters, without_value: published.without_value, failed }
    }

    /// Adds another round's.
    pub const fn add(&mut self, other: Self) {
        self.published += other.published;
        self.without_value += other.without_value;
        self.failed += other.failed;
    }
}
