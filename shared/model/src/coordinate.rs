//! Where a unit stands in Kafka: topic, partition, offset, and its row inside the record.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A partition of a topic (Kafka's `TopicPartition`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number, 0 and up.
    pub partition: i32,
}

/// Records of a batch share their texts, and sorting asks for little else.
fn compare(one: &Arc<str>, other: &Arc<str>) -> Ordering {
    if Arc::ptr_eq(one, other) { Ordering::Equal } else { one.cmp(other) }
}

impl Ord for TopicPartition {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.topic, &other.topic).then(self.partition.cmp(&other.partition))
    }
}

impl PartialOrd for TopicPartition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// The key of one ledger entry: a partition of a topic of a source, in one life of that topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionKey {
    /// `source.id`: the stable name of the Kafka cluster.
    pub source: Arc<str>,
    /// `source.epoch`: raised when a topic is created anew, so that its offsets start again.
    pub epoch: u32,
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
}

impl Ord for PartitionKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let source = compare(&self.source, &other.source).then(self.epoch.cmp(&other.epoch));
        source.then_with(|| compare(&self.topic, &other.topic)).then(self.partition.cmp(&other.partition))
    }
}

impl PartialOrd for PartitionKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}-{}", self.source, self.epoch, self.topic, self.partition)
    }
}

/// A unit's place in its partition. `row` is 0 except in records that carry several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Coordinate {
    /// Kafka's offset.
    pub offset: i64,
    /// The index of the row inside the record.
    pub row: u32,
}

impl Coordinate {
    /// The first row of the record at `offset`.
    #[must_use]
    pub const fn record(offset: i64) -> Self {
        Self { offset, row: 0 }
    }

    /// The coordinate of row `row` of the record at `offset`.
    #[must_use]
    pub const fn row(offset: i64, row: u32) -> Self {
        Self { offset, row }
    }

    /// The coordinate just behind this one, in the same record.
    #[must_use]
    pub const fn next_row(self) -> Self {
        Self { offset: self.offset, row: self.row.saturating_add(1) }
    }

    /// The first coordinate of the next record.
    #[must_use]
    pub const fn next_record(self) -> Self {
        Self { offset: self.offset.saturating_add(1), row: 0 }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.row == 0 { write!(f, "{}", self.offset) } else { write!(f, "{}.{}", self.offset, self.row) }
    }
}

/// A half-open interval of coordinates: `start` is in it, `end` is not. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    start: Coordinate,
    end: Coordinate,
}

impl Interval {
    /// The interval from `start` up to `end`, or `None` when it would be empty.
    #[must_use]
    pub fn new(start: Coordinate, end: Coordinate) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// The interval of the whole record at `offset`, all its rows.
    #[must_use]
    pub const fn of_record(offset: i64) -> Self {
        let start = Coordinate::record(offset);
        Self { start, end: start.next_record() }
    }

    /// The interval of one row.
    #[must_use]
    pub const fn of_row(coordinate: Coordinate) -> Self {
        Self { start: coordinate, end: coordinate.next_row() }
    }

    /// The first coordinate.
    #[must_use]
    pub const fn start(&self) -> Coordinate {
        self.start
    }

    /// The first coordinate behind the interval.
    #[must_use]
    pub const fn end(&self) -> Coordinate {
        self.end
    }

    /// Whether `coordinate` is inside.
    #[must_use]
    pub fn contains(&self, coordinate: Coordinate) -> bool {
        self.start <= coordinate && coordinate < self.end
    }

    /// The hull of two intervals that touch or overlap, `None` when there is a gap between them.
    #[must_use]
    pub fn join(&self, other: &Self) -> Option<Self> {
        let touching = self.start <= other.end && other.start <= self.end;
        touching.then(|| Self { start: self.start.min(other.start), end: self.end.max(other.end) })
    }
}
