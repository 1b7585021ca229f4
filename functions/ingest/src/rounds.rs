//! Resolve, dead letters, commit: round by round until every unit is decided.
//!
//! Dead letters first. A data table claims every offset of the batch, so when it is committed the refused records must be safe already. A
//! table whose version moved under its delta is resolved again in the next round, against the version that is there; what is refused only
//! then goes to the error table before that table is tried again.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use sluice_model::mutants::{self, Mutant};
use sluice_model::{Class, Deadline, ReasonCode, Rejection, Stage, TableName};
use sluice_pipeline::settings::OnUnavailable;
use sluice_table::{DeltaOutcome, TableError, commit_delta, prepare};
use tracing::{Instrument as _, info_span};

use crate::batch::{Batch, Decision, Decisions};
use crate::error::TableFailure;
use crate::receive::UnitKind;
use crate::refusals::{DeadLetters, Refusals};
use crate::reply::{CommitWork, Reply, SchemaReport, TableReport};
use crate::resolve::{Resolved, Trouble, Work, refuse_all, resolve};
use crate::{Ingest, IngestError};

/// Rounds of one invocation. A round is repeated when another writer was faster; each repetition also rests inside the commit loop.
const MAX_ROUNDS: usize = 32;
/// Tables that are loaded, written and committed at once.
const MAX_TABLES_AT_ONCE: usize = 16;

/// What is known of a table so far.
enum Progress {
    Pending,
    /// Its units are refused in the next round.
    Refused(Rejection),
    Done(Committed),
    Failed(TableFailure),
}

/// What a committed table reports.
#[derive(Clone, Copy)]
struct Committed {
    snapshot_id: Option<i64>,
    attempts: u32,
    schema: SchemaReport,
    work: CommitWork,
}

impl Committed {
    const NOTHING: Self = Self { snapshot_id: None, attempts: 0, schema: SchemaReport::Unchanged, work: CommitWork::NOTHING };
}

/// How a batch ended: what was decided, also when not all of it could be.
pub struct Ended {
    /// What became of each unit.
    pub decisions: Decisions,
    /// The answer.
    pub result: Result<Reply, IngestError>,
}

/// Applies a batch.
///
/// # Errors
/// [`IngestError`] when a table or the error table could not be written.
pub async fn run(ingest: &Ingest, batch: &Batch<'_>, deadline: Deadline) -> Result<Reply, IngestError> {
    let mut letters = DeadLetters::open(ingest).await?;
    run_with(ingest, batch, (&mut letters, deadline)).await.result
}

/// Applies a batch whose refused units are kept by `refusals`.
pub async fn run_with(ingest: &Ingest, batch: &Batch<'_>, (refusals, deadline): (&mut dyn Refusals, Deadline)) -> Ended {
    let mut rounds = Rounds::new(ingest, batch, (refusals, deadline));
    match rounds.go().await {
        Ok(()) => rounds.finish(),
        Err(error) => Ended { decisions: rounds.decisions, result: Err(error) },
    }
}

/// What would become of a batch now. Nothing is changed, so the batch must be one that is rehearsed. Units of a table in trouble that may pass stay open.
pub async fn rehearse(ingest: &Ingest, batch: &Batch<'_>, refusals: &mut dyn Refusals) -> Decisions {
    let mut rounds = Rounds::new(ingest, batch, (refusals, Deadline::NONE));
    let mut refused = rounds.refused_at_the_door();
    let works = rounds.resolve_all(&mut refused).await;
    for (unit, decision) in works.into_iter().flat_map(|(_, work)| work.outcomes) {
        rounds.decisions.set(unit, decision);
    }
    for (unit, rejection) in refused {
        rounds.decisions.set(unit, Decision::DeadLetter(rejection));
    }
    rounds.decisions
}

struct Rounds<'r, 'd> {
    ingest: &'r Ingest,
    batch: &'r Batch<'d>,
    deadline: Deadline,
    refusals: &'r mut dyn Refusals,
    decisions: Decisions,
    progress: BTreeMap<TableName, Progress>,
    /// How often another writer made a table's delta stale.
    stale: BTreeMap<TableName, u32>,
}

impl<'r, 'd> Rounds<'r, 'd> {
    fn new(ingest: &'r Ingest, batch: &'r Batch<'d>, (refusals, deadline): (&'r mut dyn Refusals, Deadline)) -> Self {
        let progress = batch.tables.keys().map(|table| (table.clone(), Progress::Pending)).collect();
        Self { ingest, batch, deadline, refusals, decisions: Decisions::of(batch), progress, stale: BTreeMap::new() }
    }

    async fn go(&mut self) -> Result<(), IngestError> {
        let mut refused = self.refused_at_the_door();
        for _ in 0..MAX_ROUNDS {
            self.check_deadline()?;
            let works = self.resolve_all(&mut refused).await;
            let letters = std::mem::take(&mut refused);
            if mutants::is(Mutant::DataBeforeLetters) {
                self.commit_all(works).await;
                self.write_letters(letters).await?;
            } else {
                self.write_letters(letters).await?;
                self.commit_all(works).await;
            }
            if !self.progress.values().any(|progress| matches!(progress, Progress::Pending | Progress::Refused(_))) {
                return Ok(());
            }
        }
        self.give_up();
        Ok(())
    }

    fn check_deadline(&self) -> Result<(), IngestError> {
        if self.deadline.has_passed(self.ingest.clock.now_ms()) {
            return Err(IngestError::Deadline { open: self.decisions.tally().unbalanced() });
        }
        Ok(())
    }

    /// The units that no table has to look at: they are refused before the first round.
    fn refused_at_the_door(&self) -> Vec<(usize, Rejection)> {
        let refused = self.batch.units.iter().enumerate().filter_map(|(index, unit)| match &unit.kind {
            UnitKind::Rejected(rejection) => Some((index, rejection.clone())),
            UnitKind::Change(..) | UnitKind::SchemaChange(..) | UnitKind::Control | UnitKind::Repeated => None,
        });
        refused.collect()
    }

    /// Resolves every table that is not done. What is refused is added to `refused`.
    async fn resolve_all(&mut self, refused: &mut Vec<(usize, Rejection)>) -> Vec<(TableName, Work)> {
        let mut pending = Vec::new();
        for (table, progress) in &mut self.progress {
            match progress {
                Progress::Pending => pending.push(table.clone()),
                Progress::Refused(rejection) => {
                    let units = self.batch.tables.get(table).map_or(&[][..], Vec::as_slice);
                    refused.extend(refuse_all(units, rejection).refused);
                    *progress = Progress::Done(Committed::NOTHING);
                }
                Progress::Done(_) | Progress::Failed(_) => {}
            }
        }
        let (ingest, batch, errors) = (self.ingest, self.batch, &*self.refusals);
        let resolving = pending.into_iter().map(|table| async move {
            let resolved = resolve(ingest, batch, &table, errors).await;
            (table, resolved)
        });
        let resolved: Vec<_> = futures::stream::iter(resolving).buffered(MAX_TABLES_AT_ONCE).collect().await;
        let mut works = Vec::new();
        for (table, resolved) in resolved {
            match resolved {
                Ok(resolved) => works.extend(self.take(&table, resolved, refused).map(|work| (table, work))),
                Err(trouble) => self.refuse_or_fail(&table, &trouble, refused),
            }
        }
        works
    }

    /// Notes what a table's resolution decided; gives back what is left to commit.
    fn take(&mut self, table: &TableName, resolved: Resolved, refused: &mut Vec<(usize, Rejection)>) -> Option<Work> {
        for (unit, decision) in resolved.decided {
            // What an earlier round refused is known as decided now: refused is what became of it.
            if !matches!(self.decisions.get(unit), Decision::DeadLetter(_)) {
                self.decisions.set(unit, decision);
            }
        }
        refused.extend(resolved.refused);
        if resolved.work.is_none() {
            self.progress.insert(table.clone(), Progress::Done(Committed::NOTHING));
        }
        resolved.work
    }

    /// A table in trouble before anything was written: fatal trouble refuses its records at once, other trouble fails it.
    fn refuse_or_fail(&mut self, table: &TableName, trouble: &Trouble, refused: &mut Vec<(usize, Rejection)>) {
        let progress = after_trouble(table, trouble);
        match progress {
            Progress::Refused(rejection) => {
                let units = self.batch.tables.get(table).map_or(&[][..], Vec::as_slice);
                refused.extend(refuse_all(units, &rejection).refused);
                self.progress.insert(table.clone(), Progress::Done(Committed::NOTHING));
            }
            Progress::Pending | Progress::Done(_) | Progress::Failed(_) => {
                self.progress.insert(table.clone(), progress);
            }
        }
    }

    /// Keeps the units that are refused and not decided yet.
    async fn write_letters(&mut self, refused: Vec<(usize, Rejection)>) -> Result<(), IngestError> {
        let mut refused: Vec<(usize, Rejection)> =
            refused.into_iter().filter(|(unit, _)| *self.decisions.get(*unit) == Decision::Open).collect();
        refused.sort_by_key(|(unit, _)| *unit);
        if refused.is_empty() {
            return Ok(());
        }
        let keeping = info_span!("dead_letters", letters = refused.len());
        let decided = self.refusals.keep(self.batch, refused, self.deadline).instrument(keeping).await?;
        decided.into_iter().for_each(|(unit, decision)| self.decisions.set(unit, decision));
        Ok(())
    }

    /// Writes and commits the deltas of this round.
    async fn commit_all(&mut self, works: Vec<(TableName, Work)>) {
        let (ingest, deadline) = (self.ingest, self.deadline);
        let committing = works.into_iter().map(|(table, work)| async move {
            let outcomes = work.outcomes.clone();
            let schema = work.schema;
            let result = commit(ingest, work, deadline).instrument(info_span!("table", %table)).await;
            (table, outcomes, schema, result)
        });
        let results: Vec<_> = futures::stream::iter(committing).buffered(MAX_TABLES_AT_ONCE).collect().await;
        for (table, outcomes, schema, result) in results {
            let progress = match result {
                Ok((DeltaOutcome::Committed { snapshot_id, attempts, .. }, work)) => {
                    outcomes.into_iter().for_each(|(unit, decision)| self.decisions.set(unit, decision));
                    Progress::Done(Committed { snapshot_id: Some(snapshot_id), attempts, schema, work })
                }
                Ok((DeltaOutcome::AlreadyCommitted { .. }, _)) => {
                    outcomes.into_iter().for_each(|(unit, _)| self.decisions.set(unit, Decision::Replayed));
                    Progress::Done(Committed::NOTHING)
                }
                Ok((DeltaOutcome::Stale { .. }, _)) => {
                    *self.stale.entry(table.clone()).or_default() += 1;
                    Progress::Pending
                }
                Err(error) => after_trouble(&table, &Trouble { on_unavailable: self.on_unavailable(&table), error }),
            };
            self.progress.insert(table, progress);
        }
    }

    fn on_unavailable(&self, table: &TableName) -> OnUnavailable {
        let settings = self.ingest.settings.table(table, &BTreeMap::new());
        settings.map_or(OnUnavailable::DeadLetter, |settings| settings.on_unavailable)
    }

    fn give_up(&mut self) {
        for (table, progress) in &mut self.progress {
            if matches!(progress, Progress::Pending | Progress::Refused(_)) {
                let message = format!("other writers were faster in {MAX_ROUNDS} rounds");
                *progress = Progress::Failed(TableFailure { table: table.clone(), class: Class::Conflict, message });
            }
        }
    }

    fn finish(self) -> Ended {
        let tally = self.decisions.tally();
        let mut failures = Vec::new();
        let mut tables = Vec::new();
        for (table, progress) in self.progress {
            let committed = match progress {
                Progress::Done(committed) => committed,
                Progress::Failed(failure) => {
                    failures.push(failure);
                    continue;
                }
                Progress::Pending | Progress::Refused(_) => Committed::NOTHING,
            };
            let units = self.batch.tables.get(&table).map_or(&[][..], Vec::as_slice);
            let tally = Decisions::tally_of(units.iter().map(|unit| self.decisions.get(*unit)));
            let Committed { snapshot_id, attempts, schema, work } = committed;
            let attempts = attempts + self.stale.get(&table).copied().unwrap_or_default();
            let added_files = work.data_files + work.delete_files;
            tables.push(TableReport { table, tally, snapshot_id, added_files, attempts, schema, work });
        }
        let error_topic = self.refusals.error_topic();
        let result = if failures.is_empty() {
            Ok(Reply { unbalanced: tally.unbalanced(), tally, tables, error_topic })
        } else {
            Err(IngestError::Tables { failures, tables, tally: Box::new(tally), error_topic })
        };
        Ended { decisions: self.decisions, result }
    }
}

/// Writes a table's files and commits them; tells what that took.
async fn commit(ingest: &Ingest, work: Work, deadline: Deadline) -> Result<(DeltaOutcome, CommitWork), TableError> {
    let started = ingest.clock.now_ms();
    let prepared = prepare(&work.version, work.delta, &ingest.write_options()).instrument(info_span!("write")).await?;
    let flushed = ingest.clock.now_ms();
    let data_file_bytes = prepared.data_file_bytes();
    let context = ingest.commit_context(deadline);
    let outcome = commit_delta(work.operations.as_ref(), prepared, &context).instrument(info_span!("commit")).await?;
    let commit_ms = ingest.clock.now_ms() - flushed;
    let took = match &outcome {
        DeltaOutcome::Committed { data_files, delete_files, gaps_closed, .. } => CommitWork {
            data_files: *data_files,
            delete_files: *delete_files,
            data_file_bytes,
            gaps_closed: *gaps_closed,
            flush_ms: flushed - started,
            commit_ms,
        },
        DeltaOutcome::AlreadyCommitted { .. } | DeltaOutcome::Stale { .. } => CommitWork::NOTHING,
    };
    Ok((outcome, took))
}

/// Fatal trouble refuses the table's records, unless the settings say that it blocks; any other trouble fails the invocation.
fn after_trouble(table: &TableName, trouble: &Trouble) -> Progress {
    let class = trouble.error.class();
    let message = trouble.error.to_string();
    match (class, trouble.on_unavailable) {
        (Class::Fatal, OnUnavailable::DeadLetter) => {
            let replaced = matches!(trouble.error, TableError::Replaced { .. });
            let code = if replaced { ReasonCode::TableReplaced } else { ReasonCode::TableUnavailable };
            Progress::Refused(Rejection::new(Stage::Table, code, message))
        }
        (Class::Fatal, OnUnavailable::Block) | (Class::Conflict | Class::Transient | Class::Unknown, _) => {
            Progress::Failed(TableFailure { table: table.clone(), class, message })
        }
    }
}
