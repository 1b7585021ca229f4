//! What an invocation answers: an explicit account, in JSON.

use serde::Serialize;
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
    /// Commit attempts.
    pub attempts: u32,
    /// Whether the table's schema was changed.
    pub schema: SchemaReport,
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
}
