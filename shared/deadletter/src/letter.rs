//! One refused record.

use sluice_model::{Coordinate, Interval, Operation, PartitionKey, Rejection, TableName};

/// Bytes kept as they came, cut where they are too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawBytes {
    /// The bytes, as far as they are kept.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub full_length: usize,
}

impl RawBytes {
    /// At most `max` of `bytes`.
    #[must_use]
    pub fn cut(bytes: &[u8], max: usize) -> Self {
        Self { bytes: bytes[..bytes.len().min(max)].to_vec(), full_length: bytes.len() }
    }

    /// Whether something is missing.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.bytes.len() < self.full_length
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
