//! What the mapping has done so far: for the terminal, the log and Prometheus.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sluice_model::TopicPartition;

use crate::event::Event;
use crate::function::{Account, Counts};

/// A partition that is being consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartitionProgress {
    /// The offset behind the last record that the function has applied here; `None` before the first.
    pub applied: Option<i64>,
    /// The position from which this process began.
    pub started: Option<i64>,
    /// The end of the partition, as far as the broker has told.
    pub end: Option<i64>,
    /// The offset that the client will fetch next.
    pub fetched: Option<i64>,
}

impl PartitionProgress {
    /// Offsets between what is applied and the end of the partition.
    #[must_use]
    pub fn lag(&self) -> Option<i64> {
        Some(self.end?.saturating_sub(self.applied.or(self.started)?).max(0))
    }
}

/// A copy of the numbers at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Records whose offsets are committed.
    pub records: u64,
    /// Events that the function has applied.
    pub events: u64,
    /// Bytes of these events.
    pub event_bytes: u64,
    /// Milliseconds in the function, all lanes together.
    pub function_ms: u64,
    /// Invocations that failed.
    pub failures: u64,
    /// The last of them, while it is not overcome.
    pub trouble: Option<String>,
    /// Offset commits that the broker refused; the records come again and are recognised.
    pub commits_refused: u64,
    /// How often partitions were given to this process or taken from it.
    pub rebalances: u64,
    /// Records that were skipped because the broker no longer has them.
    pub records_expired: u64,
    /// What became of all units.
    pub counts: Counts,
    /// What became of the units of each table.
    pub tables: BTreeMap<String, Counts>,
    /// The partitions that this process consumes.
    pub partitions: BTreeMap<TopicPartition, PartitionProgress>,
    /// When an event was last applied, in milliseconds since 1970.
    pub last_applied_ms: Option<i64>,
}

impl Snapshot {
    /// Offsets between what is applied and the ends of all partitions.
    #[must_use]
    pub fn lag(&self) -> i64 {
        self.partitions.values().filter_map(PartitionProgress::lag).sum()
    }
}

/// The numbers, shared by all parts of a mapping.
#[derive(Debug, Default)]
pub struct Progress {
    numbers: Mutex<Snapshot>,
}

impl Progress {
    /// The numbers now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.with(|numbers| numbers.clone())
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        change(&mut self.numbers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An event was applied.
    pub(crate) fn applied(&self, event: &Event, account: &Account, (started_ms, now_ms): (i64, i64)) {
        self.with(|numbers| {
            numbers.records += event.records as u64;
            numbers.events += 1;
            numbers.event_bytes += event.body.len() as u64;
            numbers.function_ms += now_ms.saturating_sub(started_ms).max(0).cast_unsigned();
            numbers.trouble = None;
            numbers.counts.add(&account.tally);
            numbers.last_applied_ms = Some(now_ms);
            for table in &account.tables {
                numbers.tables.entry(table.table.clone()).or_default().add(&table.tally);
            }
            for (partition, position) in &event.positions {
                if let Some(progress) = numbers.partitions.get_mut(partition) {
                    progress.applied = Some(*position);
                }
            }
        });
    }

    /// An invocation failed.
    pub(crate) fn failed(&self, why: &str) {
        self.with(|numbers| {
            numbers.failures += 1;
            numbers.trouble = Some(why.to_owned());
        });
    }
}
