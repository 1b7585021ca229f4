//! One refused record.

use std::sync::Arc;

use sluice_model::{Coordinate, Interval, Operation, PartitionKey, Rejection, TableName};

/// The bytes of a record, all of them, and how many the error table keeps. Copies share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawBytes {
    all: Arc<[u8]>,
    kept: usize,
}

impl RawBytes {
    /// `bytes`, of which the error table keeps `max` at most.
    #[must_use]
    pub fn cut(bytes: &[u8], max: usize) -> Self {
        Self { all: bytes.into(), kept: bytes.len().min(max) }
    }

    /// All of them: what the error topic gets.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        &self.all
    }

    /// Those that the error table keeps.
    #[must_use]
    pub fn kept(&self) -> &[u8] {
        self.all.get(..self.kept).unwrap_or_default()
    }

    /// Whether the error table keeps less than there is.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.kept < self.all.len()
    }
}

/// Whether the error table may hold this record already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// It does not.
    First,
    /// Its coordinate is below the ledger's floor, where that can no longer be told: a double dead letter beats a lost one.
    Possible,
}

/// A refused unit of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    /// The partition it was read from.
    pub key: PartitionKey,
    /// Its offset and row.
    pub coordinate: Coordinate,
    /// What the error table claims for it: its row, or the whole record when all of it is refused as one unit.
    pub claim: Interval,
    /// Kafka's timestamp, in milliseconds.
    pub record_timestamp_ms: Option<i64>,
    /// Why it is refused.
    pub rejection: Rejection,
    /// The table it was for, where that is known.
    pub target: Option<TableName>,
    /// What it asked for, where that is known.
    pub operation: Option<Operation>,
    /// The key's bytes.
    pub raw_key: Option<RawBytes>,
    /// The value's bytes; the whole record's JSON when the record itself could not be read.
    pub raw_value: Option<RawBytes>,
    /// The headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The schema id of the value, where the event names one.
    pub schema_id: Option<String>,
    /// Whether the table may hold it already.
    pub repetition: Repetition,
}
