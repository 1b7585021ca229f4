//! Taking a table back to before some offsets, and telling from where the source must be replayed.

use std::collections::BTreeMap;

use serde::Serialize;
use sluice_deadletter::{Entry, ErrorQueue, Settled};
use sluice_model::{Coordinate, Coverage, Deadline, PartitionKey, TableName};
use sluice_table::rewind::{LeftBehind, Positions, RewindOutcome, RewindPlan, Writer, commit_rewind};
use sluice_table::{TableError, TableVersion};

use crate::reopen::{reopen, taken_back};
use crate::{Mode, Redrive, RedriveError};

/// How often a plan is made anew because the table moved.
const MAX_TRIES: u32 = 5;

/// A position in a partition of the configured source: the first offset that is not to be in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

impl Position {
    /// Reads `topic:partition:offset`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, offset) = text.rsplit_once(':')?;
        let (topic, partition) = rest.rsplit_once(':')?;
        let (partition, offset) = (partition.parse().ok()?, offset.parse().ok()?);
        (!topic.is_empty() && partition >= 0 && offset >= 0).then(|| Self { topic: topic.to_owned(), partition, offset })
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRequest {
    /// The table.
    pub table: TableName,
    /// To where, at most; at least one.
    pub to: Vec<Position>,
    /// How far to go.
    pub mode: Mode,
}

/// How a rewind ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewindEnd {
    /// The table is not beyond the position.
    NothingToDo,
    /// It was only looked.
    Planned,
    /// The table is back there.
    Done,
}

/// From where a partition is to be replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayFrom {
    /// The source's name and epoch, and the partition.
    #[serde(flatten)]
    pub key: PartitionKey,
    /// The first offset that is decided no more.
    pub from: i64,
}

/// What a rewind answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RewindReply {
    /// The table.
    pub table: TableName,
    /// How it ended.
    pub end: RewindEnd,
    /// The snapshot that it stood at.
    pub from_snapshot: i64,
    /// The snapshot that it stands at, or would.
    pub to_snapshot: i64,
    /// Snapshots that are left behind.
    pub left_behind: usize,
    /// From where each partition is to be replayed, exactly; the others stay as they are.
    pub replay: Vec<ReplayFrom>,
    /// Refused records of the table from these offsets on: a replay does not apply them, redrive does.
    pub dead_letters: u64,
    /// Resolved refused records whose effect is gone: they are open again.
    pub reopened: u64,
    /// What else goes back or stays.
    pub warnings: Vec<String>,
}

impl Redrive {
    /// Takes a table back.
    ///
    /// # Errors
    /// [`RedriveError`]; a second run finds out what an unknown outcome came to, and does what is left.
    pub async fn rewind(&self, request: &RewindRequest, deadline: Deadline) -> Result<RewindReply, RedriveError> {
        let positions = self.positions(request)?;
        for _ in 0..MAX_TRIES {
            let operations = self.ingest.catalog.load(&request.table).await?;
            let operations = operations.ok_or_else(|| RedriveError::NoTable(request.table.clone()))?;
            let plan = plan(&operations.refresh().await?, (&request.table, &positions))?;
            let is_there = plan.from == plan.to;
            match request.mode {
                Mode::DryRun => {
                    return self.told(request, (&plan, if is_there { RewindEnd::NothingToDo } else { RewindEnd::Planned })).await;
                }
                Mode::Execute if is_there => {}
                Mode::Execute => match commit_rewind(operations.as_ref(), &plan, &self.ingest.commit_context(deadline)).await? {
                    RewindOutcome::Committed { .. } => {}
                    RewindOutcome::Stale { .. } => continue,
                },
            }
            let mut reply = self.told(request, (&plan, if is_there { RewindEnd::NothingToDo } else { RewindEnd::Done })).await?;
            reply.reopened = self.reopened(deadline).await?;
            return Ok(reply);
        }
        let (name, last) = (request.table.clone(), "the table keeps moving: pause what writes to it".to_owned());
        Err(TableError::OutOfAttempts { name, attempts: MAX_TRIES, last }.into())
    }

    fn positions(&self, request: &RewindRequest) -> Result<Positions, RedriveError> {
        let settings = &self.ingest.settings;
        if request.table == settings.errors.table {
            let what = format!("`{}` is the error table: taken back it would forget which records were refused", request.table);
            return Err(RedriveError::Request(what));
        }
        if request.to.is_empty() {
            return Err(RedriveError::Request("to: name at least one position, as topic:partition:offset".to_owned()));
        }
        let (source, epoch) = (&settings.source.id, settings.source.epoch);
        let key = |position: &Position| PartitionKey {
            source: source.clone(),
            epoch,
            topic: position.topic.as_str().into(),
            partition: position.partition,
        };
        let mut positions = Positions::new();
        for position in &request.to {
            let offset = positions.entry(key(position)).or_insert(position.offset);
            *offset = position.offset.min(*offset);
        }
        Ok(positions)
    }

    async fn entries(&self) -> Result<Option<(ErrorQueue, Vec<Entry>)>, RedriveError> {
        let settings = &self.ingest.settings;
        let failed = |source| RedriveError::ErrorTable { table: settings.errors.table.clone(), source };
        let queue = ErrorQueue::open(self.ingest.catalog.as_ref(), &settings.errors.table, &settings.source.id).await.map_err(failed)?;
        let Some(queue) = queue else { return Ok(None) };
        let entries = queue.entries().await.map_err(failed)?;
        Ok(Some((queue, entries)))
    }

    /// Opens the rows again whose effect is gone. After a run that died in between, the next rewind or redrive does it.
    async fn reopened(&self, deadline: Deadline) -> Result<u64, RedriveError> {
        let failed = |source| RedriveError::ErrorTable { table: self.ingest.settings.errors.table.clone(), source };
        let Some((mut queue, entries)) = self.entries().await? else { return Ok(0) };
        let gone = taken_back(&self.ingest, &queue, &entries).await.map_err(failed)?;
        reopen(&self.ingest, (&mut queue, &gone), deadline).await.map_err(failed)
    }

    async fn told(&self, request: &RewindRequest, (plan, end): (&RewindPlan, RewindEnd)) -> Result<RewindReply, RedriveError> {
        let found = self.entries().await?;
        let replay = plan.replay();
        let is_lane = |key: &PartitionKey| key.source.starts_with("redrive:");
        let mut reply = RewindReply {
            table: request.table.clone(),
            end,
            from_snapshot: plan.from,
            to_snapshot: plan.to,
            left_behind: plan.left_behind.len(),
            replay: replay
                .iter()
                .filter(|(key, _)| !is_lane(key))
                .map(|(key, from)| ReplayFrom { key: key.clone(), from: *from })
                .collect(),
            dead_letters: 0,
            reopened: 0,
            warnings: self.warnings((request, plan), &replay),
        };
        if let Some((queue, entries)) = &found {
            let lane = queue.lane();
            let own = entries.iter().filter(|entry| entry.target.as_deref() == Some(request.table.as_str()));
            for entry in own {
                let goes = |number| {
                    let at = Coordinate::record(number);
                    plan.before.coverage(&lane, at) == Coverage::Decided && plan.after.coverage(&lane, at) == Coverage::New
                };
                let is_open = entry.settled == Settled::Open;
                let is_reopened = !is_open && entry.redrive_offset.is_some_and(goes);
                reply.reopened += u64::from(is_reopened);
                let is_replayed = replay.get(&entry.id.key).is_some_and(|from| entry.id.coordinate.offset >= *from);
                reply.dead_letters += u64::from(is_replayed && (is_open || is_reopened));
            }
        }
        Ok(reply)
    }

    fn warnings(&self, (request, plan): (&RewindRequest, &RewindPlan), replay: &Positions) -> Vec<String> {
        let settings = &self.ingest.settings;
        let is_named = |key: &PartitionKey| {
            request.to.iter().any(|position| *key.topic == *position.topic && key.partition == position.partition)
                && key.source == settings.source.id
                && key.epoch == settings.source.epoch
        };
        let mut warnings = Vec::new();
        for (key, from) in replay.iter().filter(|(key, _)| !is_named(key)) {
            if key.source.starts_with("redrive:") {
                warnings.push("records that were redriven since go back too: they are open again in the error table".to_owned());
            } else if key.source == settings.source.id && key.epoch == settings.source.epoch {
                warnings.push(format!("{}-{} was not named and goes back to {from} too", key.topic, key.partition));
            } else {
                warnings.push(format!("{key}, which is not of this configuration's source, goes back to {from} too"));
            }
        }
        warnings.extend(of_others(&plan.left_behind));
        warnings
    }
}

fn plan(version: &TableVersion, (table, positions): (&TableName, &Positions)) -> Result<RewindPlan, RedriveError> {
    RewindPlan::of(&version.metadata, positions)?.map_err(|refusal| RedriveError::Refused { table: table.clone(), refusal })
}

/// Warnings about snapshots of other programs, and about branches and tags.
fn of_others(left_behind: &[LeftBehind]) -> Vec<String> {
    let mut by_operation: BTreeMap<&str, u64> = BTreeMap::new();
    let mut warnings = Vec::new();
    for left in left_behind {
        match left.writer {
            Writer::Other => *by_operation.entry(&left.operation).or_default() += 1,
            Writer::Sluice if left.operation == "replace" => *by_operation.entry("replace").or_default() += 1,
            Writer::Sluice => {}
        }
        warnings.extend(
            left.references.iter().map(|name| {
                format!("`{name}` still leads to snapshot {}, which is left behind: it keeps the rows that go", left.snapshot_id)
            }),
        );
    }
    let told = by_operation.into_iter().map(|(operation, count)| match operation {
        "replace" => format!("{count} snapshot(s) of compaction or of manifest rewriting are left behind: run it again"),
        other => format!(
            "{count} snapshot(s) of other programs ({other}) are left behind: what they changed is undone, and no replay brings it back"
        ),
    });
    warnings.extend(told);
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read() {
        let position = Position { topic: "cdc.erp".to_owned(), partition: 3, offset: 17 };
        assert_eq!(Position::parse("cdc.erp:3:17"), Some(position));
        for wrong in ["", "t:1", "t:x:1", "t:-1:1", "t:1:-1", ":1:1"] {
            assert_eq!(Position::parse(wrong), None, "{wrong}");
        }
    }
}
