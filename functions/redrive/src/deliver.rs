//! One batch: queue its rows, apply it, settle its rows.

use std::collections::HashSet;

use async_trait::async_trait;
use sluice_deadletter::{Change, Entry, ErrorQueue, ErrorTableCommit, QueueRows, Resolution, Settled, State};
use sluice_ingest::batch::{Batch, Decision, Decisions, Effect, Past};
use sluice_ingest::receive::{self, Unit, UnitKind};
use sluice_ingest::refusals::Refusals;
use sluice_ingest::{Ingest, IngestError, rounds};
use sluice_model::{Coordinate, Coverage, Deadline, PartitionKey, Rejection, TableName, TapeBuffer};
use sluice_runtime::reopen;
use sluice_table::TableError;

use crate::again::{self, Draft};
use crate::reply::{Fate, Reply, Told};
use crate::select::Rows;
use crate::{Mode, Selection};

/// How often rows are read again because another run was faster.
const MAX_TRIES: usize = 16;

/// What delivering takes.
pub(crate) struct Delivery<'r> {
    pub(crate) ingest: &'r Ingest,
    pub(crate) queue: &'r mut ErrorQueue,
    pub(crate) selection: &'r Selection,
    pub(crate) deadline: Deadline,
    pub(crate) reply: &'r mut Reply,
}

/// A unit under its number.
struct Numbered<'d> {
    row: usize,
    number: i64,
    unit: Unit<'d>,
}

/// How a try ended.
enum Tried {
    Done,
    Moved,
}

impl Delivery<'_> {
    /// Delivers rows, those of an interrupted run or fresh ones.
    pub(crate) async fn deliver(&mut self, batch: &Rows) -> Result<(), TableError> {
        for _ in 0..MAX_TRIES {
            match self.attempt(batch).await? {
                Tried::Done => return Ok(()),
                Tried::Moved => {}
            }
        }
        self.reply.left += (batch.ids.len() + batch.duplicates.len()) as u64;
        self.reply.failures.push("other runs keep taking these records first".to_owned());
        Ok(())
    }

    async fn attempt(&mut self, batch: &Rows) -> Result<Tried, TableError> {
        let ids: Vec<_> = batch.ids.iter().chain(&batch.duplicates).cloned().collect();
        let found = self.queue.rows(&ids).await?;
        let (tried, doubles) = parts(&found, batch);
        let texts = again::door_texts(&found, &tried);
        let (door, refused) = reopen(&texts.texts);
        let (records, of_row) = again::records(&found, &tried, (&texts, &door, &refused));
        let mut tokens = TapeBuffer::default();
        let read = receive::read_all(&records, &self.ingest.settings, &mut tokens);
        let units = receive::each(&records, &read, &self.ingest.settings);
        let drafts = again::drafts(&found, (units, &of_row), (&texts, &refused));
        // What is gone, or was settled by another run meanwhile.
        let missed = ids.len().saturating_sub(tried.len() + doubles.len()) as u64;
        let done = self.queue_and_apply(&found, (drafts, &doubles)).await?;
        if matches!(done, Tried::Done) {
            self.reply.left += missed;
        }
        Ok(done)
    }

    async fn queue_and_apply(&mut self, found: &QueueRows, (drafts, doubles): (Vec<Draft<'_>>, &[usize])) -> Result<Tried, TableError> {
        let numbers = self.queue.numbers(self.ingest.clock.now_ms());
        let lane = self.queue.lane();
        let (numbered, mut changes) = numbered(found, drafts, (numbers.first, &lane, self.ingest.clock.now_ms()));
        let at_ms = self.ingest.clock.now_ms();
        changes.extend(doubles.iter().map(|row| Change { row: *row, state: resolved(Resolution::Duplicate, at_ms, None) }));
        match self.selection.mode {
            Mode::DryRun => {
                self.tell_changes(found, &changes);
                self.rehearse(found, numbered).await;
                Ok(Tried::Done)
            }
            Mode::Execute if changes.is_empty() => self.apply(found, numbered).await.map(|()| Tried::Done),
            Mode::Execute => {
                let tools = (&self.ingest.write_options(), &self.ingest.commit_context(self.deadline));
                match self.queue.queue(found, (numbers, &changes), tools).await? {
                    ErrorTableCommit::Moved => Ok(Tried::Moved),
                    ErrorTableCommit::Done => {
                        self.tell_changes(found, &changes);
                        self.apply(&found.after(&changes)?, numbered).await.map(|()| Tried::Done)
                    }
                }
            }
        }
    }

    /// Tells of rows that are not delivered.
    fn tell_changes(&mut self, found: &QueueRows, changes: &[Change]) {
        for change in changes {
            let Some(entry) = found.entries.get(change.row) else { continue };
            let (fate, now) = match &change.state {
                State::Queued(_) | State::Reopened => continue,
                State::Refused { rejection, .. } => (Fate::Refused, Some(rejection)),
                State::Resolved { resolution, .. } => (fate_of(*resolution), None),
            };
            self.reply.tell(told(entry, None, (fate, now)));
        }
    }

    async fn rehearse(&mut self, found: &QueueRows, numbered: Vec<Numbered<'_>>) {
        let Some((batch, rows)) = batch(found, numbered, (self.selection, Effect::Rehearsed)) else { return };
        let decisions = rounds::rehearse(self.ingest, &batch, &mut Unkept).await;
        self.tell(found, (&batch, &rows), &decisions);
    }

    /// Applies a batch whose rows are queued, and settles them.
    async fn apply(&mut self, found: &QueueRows, numbered: Vec<Numbered<'_>>) -> Result<(), TableError> {
        let Some((batch, rows)) = batch(found, numbered, (self.selection, Effect::Applied)) else { return Ok(()) };
        let kept = HashSet::new();
        let mut settling = Settling { ingest: self.ingest, queue: self.queue, found, rows: &rows, kept };
        let ended = rounds::run_with(self.ingest, &batch, (&mut settling, self.deadline)).await;
        let at_ms = self.ingest.clock.now_ms();
        let changes = rows.iter().enumerate().filter_map(|(unit, row)| {
            let resolution = resolution_of(ended.decisions.get(unit))?;
            Some(Change { row: *row, state: resolved(resolution, at_ms, table_of(&batch.units[unit]).cloned()) })
        });
        let changes: Vec<Change> = changes.collect();
        settling.settle(changes, self.deadline).await?;
        self.tell(found, (&batch, &rows), &ended.decisions);
        match ended.result {
            Ok(_) => Ok(()),
            Err(IngestError::ErrorTable { source, .. }) => Err(source),
            Err(error) => {
                self.reply.failures.push(error.to_string());
                Ok(())
            }
        }
    }

    fn tell(&mut self, found: &QueueRows, (batch, rows): (&Batch<'_>, &[usize]), decisions: &Decisions) {
        for (unit, row) in rows.iter().enumerate() {
            let Some(entry) = found.entries.get(*row) else { continue };
            let told = match decisions.get(unit) {
                Decision::Open => (Fate::Unfinished, None),
                Decision::DeadLetter(rejection) => (Fate::Refused, Some(rejection)),
                decided => (resolution_of(decided).map_or(Fate::Unfinished, fate_of), None),
            };
            self.reply.tell(self::told(entry, batch.units.get(unit).and_then(table_of), told));
        }
    }
}

/// Which rows are tried, and which are other rows of the same records. What was settled, or queued, by another run is neither.
fn parts(found: &QueueRows, batch: &Rows) -> (Vec<usize>, Vec<usize>) {
    let (mut tried, mut doubles): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for (row, entry) in found.entries.iter().enumerate().filter(|(_, entry)| entry.settled == Settled::Open) {
        // Rows that not even the time tells apart: the last one is tried.
        let is_same = found.entries.get(row + 1).is_some_and(|next| next.id == entry.id && next.settled == Settled::Open);
        if batch.duplicates.contains(&entry.id) || is_same { doubles.push(row) } else { tried.push(row) }
    }
    (tried, doubles)
}

/// Numbers for the rows that have none, table by table, so that what a table claims is one interval. Rows that need no table are settled at once.
fn numbered<'d>(
    found: &QueueRows,
    drafts: Vec<Draft<'d>>,
    (first, lane, at_ms): (i64, &PartitionKey, i64),
) -> (Vec<Numbered<'d>>, Vec<Change>) {
    let (mut numbered, mut changes, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
    for draft in drafts {
        let held = found.entries.get(draft.row).and_then(|entry| entry.redrive_offset);
        match (held, &draft.unit.kind) {
            (Some(number), _) => numbered.push(Numbered { row: draft.row, number, unit: draft.unit }),
            (None, UnitKind::Change(..) | UnitKind::SchemaChange(..)) => fresh.push(draft),
            (None, UnitKind::Rejected(rejection)) => {
                let state = State::Refused { rejection: rejection.clone(), target: None, operation: None };
                changes.push(Change { row: draft.row, state });
            }
            (None, UnitKind::Control | UnitKind::Repeated) => {
                changes.push(Change { row: draft.row, state: resolved(Resolution::Control, at_ms, None) });
            }
        }
    }
    fresh.sort_by(|a, b| (a.table(), a.row).cmp(&(b.table(), b.row)));
    for (number, draft) in (first..).zip(fresh) {
        changes.push(Change { row: draft.row, state: State::Queued(number) });
        numbered.push(Numbered { row: draft.row, number, unit: draft.unit });
    }
    for one in &mut numbered {
        one.unit.key = lane.clone();
        one.unit.coordinate = Coordinate::record(one.number);
    }
    numbered.sort_by_key(|one| one.number);
    (numbered, changes)
}

/// The batch, and the row of each unit.
fn batch<'d>(found: &QueueRows, numbered: Vec<Numbered<'d>>, (selection, effect): (&Selection, Effect)) -> Option<(Batch<'d>, Vec<usize>)> {
    let first = found.entries.get(numbered.first()?.row)?;
    let rows: Vec<usize> = numbered.iter().map(|one| one.row).collect();
    let past = Past {
        partition: first.id.key.clone(),
        origins: rows.iter().filter_map(|row| found.entries.get(*row)).map(again::origin).collect(),
        order: selection.order,
        effect,
    };
    Some((Batch::again(numbered.into_iter().map(|one| one.unit).collect(), past), rows))
}

const fn table_of<'u>(unit: &'u Unit<'_>) -> Option<&'u TableName> {
    match &unit.kind {
        UnitKind::Change(table, _) | UnitKind::SchemaChange(table, _) => Some(table),
        UnitKind::Control | UnitKind::Repeated | UnitKind::Rejected(_) => None,
    }
}

const fn resolution_of(decision: &Decision) -> Option<Resolution> {
    match decision {
        Decision::Row | Decision::Delete => Some(Resolution::Applied),
        Decision::Control => Some(Resolution::Control),
        Decision::Stale => Some(Resolution::Stale),
        Decision::Replayed => Some(Resolution::Decided),
        Decision::Open | Decision::DeadLetter(_) => None,
    }
}

const fn fate_of(resolution: Resolution) -> Fate {
    match resolution {
        Resolution::Applied => Fate::Applied,
        Resolution::Stale => Fate::Stale,
        Resolution::Control => Fate::Control,
        Resolution::Decided => Fate::Decided,
        Resolution::Duplicate => Fate::Duplicate,
    }
}

const fn resolved(resolution: Resolution, at_ms: i64, target: Option<TableName>) -> State {
    State::Resolved { resolution, at_ms, target }
}

/// A row as the reply tells of it.
pub(crate) fn told(entry: &Entry, table: Option<&TableName>, (fate, now): (Fate, Option<&Rejection>)) -> Told {
    let (key, at) = (&entry.id.key, entry.id.coordinate);
    let row = if at.row == 0 { String::new() } else { format!(":{}", at.row) };
    Told {
        table: table.map(ToString::to_string).or_else(|| entry.target.clone()),
        code: entry.code.clone(),
        place: format!("{}:{}:{}{row}", key.topic, key.partition, at.offset),
        fate,
        now: now.map(|rejection| (rejection.code, rejection.detail.clone())),
    }
}

/// Refused units are settled with their new reasons before any table claims them.
struct Settling<'s> {
    ingest: &'s Ingest,
    queue: &'s mut ErrorQueue,
    found: &'s QueueRows,
    /// The row of each unit.
    rows: &'s [usize],
    /// Units that were refused in this run: they are decided, whatever a later round would make of them.
    kept: HashSet<Coordinate>,
}

impl Settling<'_> {
    /// Settles rows; gives those that another run has settled before.
    async fn settle(&mut self, mut changes: Vec<Change>, deadline: Deadline) -> Result<Vec<usize>, TableError> {
        let tools = (&self.ingest.write_options(), &self.ingest.commit_context(deadline));
        let (mut reread, mut lost): (Option<QueueRows>, Vec<usize>) = (None, Vec::new());
        for _ in 0..MAX_TRIES {
            if changes.is_empty() {
                return Ok(lost);
            }
            let held = reread.as_ref().unwrap_or(self.found);
            let placed = placed(held, (self.found, &changes));
            lost.extend(changes.iter().zip(&placed).filter(|(_, place)| place.is_none()).map(|(change, _)| change.row));
            let (kept, placed): (Vec<Change>, Vec<Change>) =
                changes.into_iter().zip(placed).filter_map(|(change, place)| Some((change, place?))).unzip();
            changes = kept;
            if changes.is_empty() {
                return Ok(lost);
            }
            match self.queue.settle(held, &placed, tools).await? {
                ErrorTableCommit::Done => return Ok(lost),
                ErrorTableCommit::Moved => {
                    let ids: Vec<_> =
                        changes.iter().filter_map(|change| self.found.entries.get(change.row)).map(|entry| entry.id.clone()).collect();
                    reread = Some(self.queue.rows(&ids).await?);
                }
            }
        }
        Err(TableError::OutOfAttempts {
            name: self.ingest.settings.errors.table.clone(),
            attempts: MAX_TRIES as u32,
            last: "other runs keep settling these records".to_owned(),
        })
    }
}

/// The changes where their rows stand among `held`; `None` for a row that is not queued under its number any more.
fn placed(held: &QueueRows, (found, changes): (&QueueRows, &[Change])) -> Vec<Option<Change>> {
    let place = |change: &Change| {
        let own = found.entries.get(change.row)?;
        let is_it = |entry: &Entry| entry.id == own.id && entry.is_queued() && entry.redrive_offset == own.redrive_offset;
        let row = held.entries.iter().position(is_it)?;
        Some(Change { row, state: change.state.clone() })
    };
    changes.iter().map(place).collect()
}

#[async_trait]
impl Refusals for Settling<'_> {
    fn coverage(&self, _key: &PartitionKey, coordinate: Coordinate) -> Coverage {
        if self.kept.contains(&coordinate) { Coverage::Decided } else { Coverage::New }
    }

    async fn keep(
        &mut self,
        batch: &Batch<'_>,
        refused: Vec<(usize, Rejection)>,
        deadline: Deadline,
    ) -> Result<Vec<(usize, Decision)>, IngestError> {
        let changes = refused.iter().filter_map(|(unit, rejection)| {
            let (target, operation) = match &batch.units.get(*unit)?.kind {
                UnitKind::Change(table, event) => (Some(table.clone()), Some(event.operation)),
                UnitKind::SchemaChange(table, _) => (Some(table.clone()), None),
                UnitKind::Control | UnitKind::Repeated | UnitKind::Rejected(_) => (None, None),
            };
            Some(Change { row: *self.rows.get(*unit)?, state: State::Refused { rejection: rejection.clone(), target, operation } })
        });
        let changes: Vec<Change> = changes.collect();
        let lost = self.settle(changes, deadline).await;
        let lost = lost.map_err(|source| IngestError::ErrorTable { table: self.ingest.settings.errors.table.clone(), source })?;
        self.kept.extend(refused.iter().filter_map(|(unit, _)| batch.units.get(*unit)).map(|unit| unit.coordinate));
        let decided = refused.into_iter().map(|(unit, rejection)| {
            let is_lost = self.rows.get(unit).is_some_and(|row| lost.contains(row));
            (unit, if is_lost { Decision::Replayed } else { Decision::DeadLetter(rejection) })
        });
        Ok(decided.collect())
    }
}

/// For a rehearsal, which refuses nothing for good.
struct Unkept;

#[async_trait]
impl Refusals for Unkept {
    fn coverage(&self, _key: &PartitionKey, _coordinate: Coordinate) -> Coverage {
        Coverage::New
    }

    async fn keep(
        &mut self,
        _batch: &Batch<'_>,
        _refused: Vec<(usize, Rejection)>,
        _deadline: Deadline,
    ) -> Result<Vec<(usize, Decision)>, IngestError> {
        Ok(Vec::new())
    }
}
