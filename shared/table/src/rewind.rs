//! Taking a table back to where it was before some offsets: which snapshot that is, what goes with it, and the one commit that does it.
//!
//! `main` is set to an older snapshot of its ancestry and the ledger's properties to that snapshot's ledger, both in one commit. Schema, partitioning and other
//! properties stay as they are. What is left behind stays in the metadata until it expires.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use iceberg::TableRequirement;
use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};
use sluice_model::{Coordinate, OffsetLedger, PartitionKey, TableName};
use uuid::Uuid;

use crate::commit_loop::{Attempt, Change, Ended, commit};
use crate::expire::references;
use crate::ledger::property_change;
use crate::manifests::Base;
use crate::stage::staged;
use crate::{CommitContext, StagedChange, TableError, TableOperations, TableVersion};

/// Positions, as a consumer has them: the first offset that is not to be in the table.
pub type Positions = BTreeMap<PartitionKey, i64>;

/// A snapshot that a rewind takes out of `main`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// Its id.
    pub snapshot_id: i64,
    /// When it was committed, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// What it did: append, replace, overwrite or delete.
    pub operation: String,
    /// Whether Sluice's ledger is in it: other writers' snapshots have none.
    pub writer: Writer,
    /// Branches and tags that lead to it: they stay.
    pub references: Vec<String>,
}

/// Who made a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Sluice: the ledger is in it.
    Sluice,
    /// Another program.
    Other,
}

/// What a rewind does. Plain data, made of one version of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPlan {
    /// Which table.
    pub table_uuid: Uuid,
    /// The head of `main` that it was made for.
    pub from: i64,
    /// The snapshot that becomes the head. The same as `from` when there is nothing to do.
    pub to: i64,
    /// The ledger before.
    pub before: OffsetLedger,
    /// The ledger after.
    pub after: OffsetLedger,
    /// What is left behind, newest first.
    pub left_behind: Vec<LeftBehind>,
}

/// Why a table cannot be taken back so far.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewindRefusal {
    /// It has no snapshots.
    #[error("the table has no snapshots: there is nothing to take back")]
    Empty,
    /// Its ledger does not know a partition.
    #[error("the table's ledger knows nothing of {key}; it knows {known}")]
    UnknownPartition {
        /// The partition.
        key: PartitionKey,
        /// Those that it knows.
        known: String,
    },
    /// Snapshots that would be old enough are expired.
    #[error(
        "no snapshot that is left is old enough: the oldest, {oldest}, had come to {reached}. Take the table back to there at most, or load it anew: pause \
         the source, drop the table, and replay from the beginning (docs/operations.md)"
    )]
    Expired {
        /// The oldest one that is left.
        oldest: i64,
        /// How far it had come in the partitions that were named.
        reached: String,
    },
    /// The very first snapshot is beyond the position.
    #[error(
        "the table's first snapshot, {first}, had come to {reached} already: before it there is nothing. Drop the table and replay from the beginning instead \
         (docs/operations.md)"
    )]
    BeforeFirst {
        /// The first snapshot.
        first: i64,
        /// How far it had come in the partitions that were named.
        reached: String,
    },
    /// What was decided up to a snapshot cannot be told.
    #[error(
        "snapshot {snapshot} is old enough as far as can be told, but neither it nor an older one that is left has a ledger: what was decided up to it is not \
         known. Take the table back to a later position, or load it anew (docs/operations.md)"
    )]
    NoLedger {
        /// The snapshot.
        snapshot: i64,
    },
}

impl RewindPlan {
    /// Looks for the newest snapshot of `main` whose ledger is not beyond any of the positions.
    ///
    /// # Errors
    /// [`TableError`] when a stored ledger is none or the snapshots' parents run in a circle. The inner error is the refusal.
    pub fn of(metadata: &TableMetadata, positions: &Positions) -> Result<Result<Self, RewindRefusal>, TableError> {
        let Some(from) = metadata.current_snapshot_id() else { return Ok(Err(RewindRefusal::Empty)) };
        let before = crate::ledger::read(metadata)?;
        if let Some(key) = positions.keys().find(|key| end_of(&before, key).is_none()) {
            // Of other sources are the numbers under which refused records were tried again.
            let same_source = before.entries().filter(|(own, _)| own.source == key.source);
            let known = same_source.map(|(key, _)| key.to_string()).collect::<Vec<_>>().join(", ");
            return Ok(Err(RewindRefusal::UnknownPartition { key: key.clone(), known }));
        }
        let ancestry = ledgers(metadata)?;
        let fits = |ledger: &OffsetLedger| {
            positions.iter().all(|(key, offset)| end_of(ledger, key).is_none_or(|end| end <= Coordinate::record(*offset)))
        };
        let mut left_behind = Vec::new();
        for (snapshot_id, ledger) in &ancestry {
            match ledger {
                Some(ledger) if fits(ledger) => {
                    return Ok(Ok(Self {
                        table_uuid: metadata.uuid(),
                        from,
                        to: *snapshot_id,
                        before,
                        after: ledger.clone(),
                        left_behind,
                    }));
                }
                Some(_) => left_behind.extend(left(metadata, *snapshot_id)),
                None => return Ok(Err(RewindRefusal::NoLedger { snapshot: *snapshot_id })),
            }
        }
        Ok(Err(too_far(metadata, (&ancestry, positions))))
    }

    /// From which offset each partition must be replayed: the first that was decided and is not any more. Partitions whose ledger stays are not named.
    #[must_use]
    pub fn replay(&self) -> Positions {
        let mut positions = Positions::new();
        for (key, entry) in self.before.entries() {
            let after = self.after.entries().find(|(own, _)| *own == key).map(|(_, entry)| entry.intervals()).unwrap_or_default();
            let lost = entry.intervals().iter().find_map(|interval| {
                let covering = after.iter().find(|kept| kept.contains(interval.start()));
                match covering {
                    None => Some(interval.start()),
                    Some(kept) if kept.end() < interval.end() => Some(kept.end()),
                    Some(_) => None,
                }
            });
            positions.extend(lost.map(|lost| (key.clone(), lost.offset)));
        }
        positions
    }
}

fn end_of(ledger: &OffsetLedger, key: &PartitionKey) -> Option<Coordinate> {
    ledger.entries().find(|(own, _)| *own == key).and_then(|(_, entry)| entry.end())
}

/// The ancestry of `main`, newest first, each with the ledger as of it; `None` where that is expired.
fn ledgers(metadata: &TableMetadata) -> Result<Vec<(i64, Option<OffsetLedger>)>, TableError> {
    let mut ancestry = Vec::new();
    let mut next = metadata.current_snapshot_id();
    while let Some(snapshot) = next.and_then(|id| metadata.snapshot_by_id(id)) {
        if ancestry.len() > metadata.snapshots().len() {
            return Err(TableError::Invalid("the snapshots' parents run in a circle".to_owned()));
        }
        ancestry.push(snapshot);
        next = snapshot.parent_snapshot_id();
    }
    // Before the first ledger of a whole ancestry nothing was decided.
    let mut held = if next.is_none() { Some(OffsetLedger::default()) } else { None };
    let mut found = Vec::with_capacity(ancestry.len());
    for snapshot in ancestry.into_iter().rev() {
        if let Some(text) = snapshot.summary().additional_properties.get(OffsetLedger::SUMMARY_KEY) {
            held = Some(OffsetLedger::parse(text)?);
        }
        found.push((snapshot.snapshot_id(), held.clone()));
    }
    found.reverse();
    Ok(found)
}

fn left(metadata: &TableMetadata, snapshot_id: i64) -> Option<LeftBehind> {
    let snapshot = metadata.snapshot_by_id(snapshot_id)?;
    let summary = snapshot.summary();
    let is_ours = summary.additional_properties.contains_key(OffsetLedger::SUMMARY_KEY);
    let leads_here = |(name, reference): (String, SnapshotReference)| (reference.snapshot_id == snapshot_id).then_some(name);
    Some(LeftBehind {
        snapshot_id,
        timestamp_ms: snapshot.timestamp_ms(),
        operation: summary.operation.as_str().to_owned(),
        writer: if is_ours { Writer::Sluice } else { Writer::Other },
        references: references(metadata).into_iter().filter_map(leads_here).filter(|name| name != MAIN_BRANCH).collect(),
    })
}

fn too_far(metadata: &TableMetadata, (ancestry, positions): (&[(i64, Option<OffsetLedger>)], &Positions)) -> RewindRefusal {
    let Some((oldest, ledger)) = ancestry.last() else { return RewindRefusal::Empty };
    let reached = positions.keys().filter_map(|key| Some(format!("{key}:{}", end_of(ledger.as_ref()?, key)?)));
    let reached = reached.collect::<Vec<_>>().join(", ");
    let is_first = metadata.snapshot_by_id(*oldest).is_some_and(|snapshot| snapshot.parent_snapshot_id().is_none());
    if is_first { RewindRefusal::BeforeFirst { first: *oldest, reached } } else { RewindRefusal::Expired { oldest: *oldest, reached } }
}

/// What became of a rewind.
#[derive(Debug, Clone)]
pub enum RewindOutcome {
    /// The table stands at the planned snapshot, or did.
    Committed {
        /// The table as the commit, or the look for it, found it.
        version: TableVersion,
        /// How often it was tried.
        attempts: u32,
    },
    /// `main` has moved since the plan was made. Plan again.
    Stale {
        /// The table as it is.
        version: TableVersion,
    },
}

/// Does what the plan says, if `main` is still where the plan found it.
///
/// # Errors
/// [`TableError`], of class conflict or transient when another run may pass, unknown when the commit may have happened: a second run then finds out.
pub async fn commit_rewind(ops: &dyn TableOperations, plan: &RewindPlan, context: &CommitContext<'_>) -> Result<RewindOutcome, TableError> {
    Ok(match commit(ops, &mut Rewind { plan }, (None, context)).await? {
        Ended::Landed { version, attempts } => RewindOutcome::Committed { version, attempts },
        Ended::Refused { version, refusal: Moved } => RewindOutcome::Stale { version },
    })
}

struct Rewind<'a> {
    plan: &'a RewindPlan,
}

struct Moved;

#[async_trait]
impl Change for Rewind<'_> {
    type Refusal = Moved;

    fn table_uuid(&self) -> Uuid {
        self.plan.table_uuid
    }

    /// Snapshots that were left behind come back into `main` by no commit of a writer, so it does not matter what was committed on top since.
    fn has_landed(&self, metadata: &TableMetadata) -> bool {
        let ancestors: BTreeSet<i64> =
            crate::markers::ancestry(metadata, metadata.current_snapshot_id()).map(|snapshot| snapshot.snapshot_id()).collect();
        ancestors.contains(&self.plan.to) && (self.plan.from == self.plan.to || !ancestors.contains(&self.plan.from))
    }

    fn unknown(&self, name: TableName, what: String) -> TableError {
        TableError::UnknownChange { name, what }
    }

    async fn judge(&mut self, base: &mut Base, _attempts: u32) -> Result<Option<Moved>, TableError> {
        Ok(if base.version.metadata.current_snapshot_id() == Some(self.plan.from) { None } else { Some(Moved) })
    }

    async fn stage(&mut self, base: &mut Base, attempt: Attempt) -> Result<StagedChange, TableError> {
        let wrong = || TableError::iceberg("building the table's next metadata");
        let metadata = &base.version.metadata;
        let ledger = property_change(metadata, &self.plan.after);
        let builder = metadata.as_ref().clone().into_builder(Some(base.version.metadata_location.clone()));
        let builder = builder.set_ref(MAIN_BRANCH, SnapshotReference::new(self.plan.to, retention(metadata))).map_err(wrong())?;
        let builder = builder.set_properties(ledger.set).and_then(|builder| builder.remove_properties(&ledger.removed)).map_err(wrong())?;
        let mut result = builder.build().map_err(wrong())?;
        result.metadata = logged_at(&result.metadata, attempt.now_ms.max(metadata.last_updated_ms()))?;
        let requirements = vec![
            TableRequirement::UuidMatch { uuid: metadata.uuid() },
            TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: metadata.current_snapshot_id() },
        ];
        Ok(staged(&base.version, result, (requirements, attempt.file_id)))
    }
}

/// The retention that `main` has.
fn retention(metadata: &TableMetadata) -> SnapshotRetention {
    let main = references(metadata).into_iter().find(|(name, _)| name == MAIN_BRANCH);
    main.map_or(SnapshotRetention::branch(None, None, None), |(_, reference)| reference.retention)
}

/// iceberg stamps the new entry of the snapshot log with the machine's clock; here time is given.
fn logged_at(metadata: &TableMetadata, now_ms: i64) -> Result<TableMetadata, TableError> {
    let wrong = |error: serde_json::Error| TableError::Invalid(format!("the table's metadata cannot be written: {error}"));
    let mut json = serde_json::to_value(metadata).map_err(wrong)?;
    if let Some(fields) = json.as_object_mut() {
        fields.insert("last-updated-ms".to_owned(), now_ms.into());
        let log = fields.get_mut("snapshot-log").and_then(serde_json::Value::as_array_mut);
        let newest = log.and_then(|log| log.last_mut()).and_then(serde_json::Value::as_object_mut);
        if let Some(newest) = newest {
            newest.insert("timestamp-ms".to_owned(), now_ms.into());
        }
    }
    serde_json::from_value(json).map_err(wrong)
}
