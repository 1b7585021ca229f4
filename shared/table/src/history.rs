//! What a table's snapshots tell of the order of its changes: how far into a partition each had come, which keys each changed, and which of them brought
//! records that were refused before.
//!
//! Keys are read from the files that a snapshot *added*, not from those that are live now: a compaction in between takes no evidence away, and as long as the
//! snapshot is there its files are.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{DataContentType, DataFile, ManifestStatus, Operation, SnapshotRef, TableMetadata};
use sluice_model::{Coordinate, Interval, LedgerEntry, OffsetLedger, PartitionKey};

use crate::manifests::manifests_of;
use crate::reader::KeySearch;
use crate::{TableError, TableVersion};

/// Key of the snapshot summary that says which coordinates' refused records a snapshot brought, in the form of a ledger.
pub const REDRIVEN_KEY: &str = "sluice.redriven";
/// So many snapshots are looked at, one request or more each; beyond, nothing is told.
pub const MAX_STEPS: usize = 1_000;
/// So many snapshots are read at a time.
const READS: usize = 8;

/// The entry of a snapshot's summary that says that it brings refused records from these coordinates of a partition.
#[must_use]
pub fn redriven(key: &PartitionKey, from: Coordinate, to: Coordinate) -> Option<(String, String)> {
    let mut entry = LedgerEntry::default();
    entry.claim(Interval::new(from, to.next_row())?);
    let mut ledger = OffsetLedger::default();
    ledger.set(key.clone(), entry);
    Some((REDRIVEN_KEY.to_owned(), ledger.to_text()))
}

/// One snapshot of the current one's ancestry.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its id.
    pub snapshot_id: i64,
    /// Its sequence number.
    pub sequence_number: i64,
    /// When it was committed, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The first coordinate of the partition that no commit up to this one had come to; `None` when none had come to any.
    pub reached: Reached,
    /// The last coordinate of the partition whose refused record it brought, when it brought such records and of no other partition.
    pub redriven: Option<Coordinate>,
    snapshot: SnapshotRef,
}

/// How far a table had come in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// To this coordinate, which is not in it.
    To(Coordinate),
    /// Nowhere.
    Nothing,
    /// What would tell is expired.
    Untold,
}

/// What is older than the oldest step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// Nothing.
    Whole,
    /// Snapshots that are expired.
    Cut,
}

/// The ancestry of the current snapshot as one partition sees it.
#[derive(Debug, Clone)]
pub struct History {
    /// Oldest first.
    pub steps: Vec<Step>,
    /// What is before them.
    pub beginning: Beginning,
}

/// Where in a history changes may be newer than a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Nowhere: nothing that could be newer was committed.
    Never,
    /// In the snapshots from this sequence number on.
    Sequence(i64),
    /// Perhaps in one that is expired.
    Untold,
}

impl History {
    /// Reads it from a table's metadata.
    ///
    /// # Errors
    /// [`TableError::Ledger`] when a stored ledger is none, [`TableError::Invalid`] when the snapshots' parents run in a circle.
    pub fn of(metadata: &TableMetadata, key: &PartitionKey) -> Result<Self, TableError> {
        let mut snapshots: Vec<&SnapshotRef> = Vec::new();
        let mut next = metadata.current_snapshot_id();
        while let Some(snapshot) = next.and_then(|id| metadata.snapshot_by_id(id)) {
            if snapshots.len() > metadata.snapshots().len() {
                return Err(TableError::Invalid("the snapshots' parents run in a circle".to_owned()));
            }
            snapshots.push(snapshot);
            next = snapshot.parent_snapshot_id();
        }
        let beginning = if next.is_none() { Beginning::Whole } else { Beginning::Cut };
        let mut reached = match beginning {
            Beginning::Whole => Reached::Nothing,
            Beginning::Cut => Reached::Untold,
        };
        let mut steps = Vec::with_capacity(snapshots.len());
        for snapshot in snapshots.into_iter().rev() {
            let summary = &snapshot.summary().additional_properties;
            if let Some(text) = summary.get(OffsetLedger::SUMMARY_KEY) {
                reached = end_in(&OffsetLedger::parse(text)?, key);
            }
            steps.push(Step {
                snapshot_id: snapshot.snapshot_id(),
                sequence_number: snapshot.sequence_number(),
                timestamp_ms: snapshot.timestamp_ms(),
                reached,
                redriven: summary.get(REDRIVEN_KEY).and_then(|text| redriven_of(text, key)),
                snapshot: snapshot.clone(),
            });
        }
        Ok(Self { steps, beginning })
    }

    /// Where changes may be newer than the record at `coordinate`, which was refused at `refused_at_ms`: from the first snapshot on that had come to it or
    /// beyond, or that was committed when it had been refused, whatever is earlier.
    #[must_use]
    pub fn since(&self, coordinate: Coordinate, refused_at_ms: i64) -> Since {
        let may_be_newer = |step: &Step| {
            let reaches = match step.reached {
                Reached::To(end) => end > coordinate,
                Reached::Nothing => false,
                Reached::Untold => true,
            };
            reaches || step.timestamp_ms >= refused_at_ms
        };
        match (self.steps.iter().position(may_be_newer), self.beginning) {
            (None, _) => Since::Never,
            (Some(0), Beginning::Cut) => Since::Untold,
            (Some(at), Beginning::Whole | Beginning::Cut) => {
                self.steps.get(at).map_or(Since::Untold, |step| Since::Sequence(step.sequence_number))
            }
        }
    }
}

fn end_in(ledger: &OffsetLedger, key: &PartitionKey) -> Reached {
    let entry = ledger.entries().find(|(own, _)| *own == key).and_then(|(_, entry)| entry.end());
    entry.map_or(Reached::Nothing, Reached::To)
}

/// A text that is no ledger, or is of several partitions, exempts nothing.
fn redriven_of(text: &str, key: &PartitionKey) -> Option<Coordinate> {
    let ledger = OffsetLedger::parse(text).ok()?;
    let mut entries = ledger.entries();
    let (own, entry) = entries.next()?;
    let last = entry.intervals().last()?.end();
    (own == key && entries.next().is_none()).then(|| Coordinate { offset: last.offset, row: last.row.saturating_sub(1) })
}

/// What the snapshots of a history changed, as far as some keys are concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChanges {
    /// By the key's row: the sequence numbers of the snapshots that wrote or deleted it.
    pub by_key: Vec<BTreeSet<i64>>,
    /// Snapshots that changed keys that cannot be told, and how.
    pub untold: BTreeMap<i64, String>,
    /// Snapshots that added rows.
    pub rows: BTreeSet<i64>,
}

/// What the snapshots from sequence number `since` on changed. `keys` has the columns `key_ids`, found by field id.
///
/// # Errors
/// What the storage said.
pub async fn key_changes(
    version: &TableVersion,
    (history, since): (&History, i64),
    (key_ids, keys): (&[i32], &RecordBatch),
) -> Result<KeyChanges, TableError> {
    let mut changes = KeyChanges { by_key: vec![BTreeSet::new(); keys.num_rows()], ..KeyChanges::default() };
    let steps: Vec<&Step> = history.steps.iter().filter(|step| step.sequence_number >= since).collect();
    if steps.len() > MAX_STEPS {
        let why = format!("{} snapshots are newer, and no more than {MAX_STEPS} are looked at", steps.len());
        changes.untold.insert(i64::MAX, why);
        return Ok(changes);
    }
    let search = KeySearch::new(&version.metadata, key_ids, keys)?;
    let reading = steps.iter().map(|step| async { changed_by(version, step, &search).await.map(|found| (step.sequence_number, found)) });
    let found: Vec<(i64, Changed)> = stream::iter(reading).buffered(READS).try_collect().await?;
    for (sequence_number, found) in found {
        for key in found.keys {
            if let Some(snapshots) = changes.by_key.get_mut(key) {
                snapshots.insert(sequence_number);
            }
        }
        changes.untold.extend(found.untold.map(|why| (sequence_number, why)));
        changes.rows.extend(found.adds_rows.then_some(sequence_number));
    }
    Ok(changes)
}

/// What one snapshot changed.
#[derive(Default)]
struct Changed {
    keys: BTreeSet<usize>,
    untold: Option<String>,
    adds_rows: bool,
}

impl Changed {
    /// Takes the keys of a file; of one that cannot be read they cannot be told.
    fn look(&mut self, found: Result<BTreeSet<usize>, TableError>) -> Result<(), TableError> {
        match found {
            Ok(keys) => self.keys.extend(keys),
            Err(TableError::Unsupported(why)) => self.untold = Some(why),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

async fn changed_by(version: &TableVersion, step: &Step, search: &KeySearch) -> Result<Changed, TableError> {
    let mut changed = Changed::default();
    // By the table spec a replacement changes files and no rows.
    if step.snapshot.summary().operation == Operation::Replace {
        return Ok(changed);
    }
    for manifest in manifests_of(version, &step.snapshot).await? {
        if manifest.added_snapshot_id != step.snapshot_id {
            continue;
        }
        let path = &manifest.manifest_path;
        let loaded = manifest.load_manifest(&version.file_io).await.map_err(TableError::iceberg(format!("reading {path}")))?;
        for entry in loaded.entries().iter().filter(|entry| entry.snapshot_id() == Some(step.snapshot_id)) {
            match entry.status() {
                ManifestStatus::Existing => {}
                ManifestStatus::Added => added(version, entry.data_file(), (search, &mut changed)).await?,
                ManifestStatus::Deleted => {
                    changed.untold = Some(format!("snapshot {} removed whole files", step.snapshot_id));
                }
            }
        }
    }
    Ok(changed)
}

async fn added(version: &TableVersion, file: &DataFile, (search, changed): (&KeySearch, &mut Changed)) -> Result<(), TableError> {
    match file.content_type() {
        DataContentType::Data => {
            changed.adds_rows = true;
            changed.look(search.in_file(version, file).await)?;
        }
        DataContentType::EqualityDeletes if search.is_by_these_keys(file) => changed.look(search.in_file(version, file).await)?,
        DataContentType::EqualityDeletes => {
            changed.untold = Some(format!("{} deletes by other columns than the key", file.file_path()));
        }
        DataContentType::PositionDeletes => {
            changed.untold = Some(format!("{} deletes by position", file.file_path()));
        }
    }
    Ok(())
}
