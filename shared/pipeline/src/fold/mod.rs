//! Folds a batch by key: what is left of its changes, in order, as rows to write and keys to delete.
//!
//! A data file is never touched by the equality deletes of its own commit, so a key that changes twice in a batch must be written once.

mod output;
mod standing;
mod state;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Fields;
use sluice_model::{ReasonCode, Rejection, Stage};

use crate::arrow_types::relaxed_field;
use crate::convert::ColumnError;
use crate::converted::Converted;
use crate::keys::Keys;
use crate::plan::Mode;
use crate::reshape::align;
use crate::settings::OnStale;
use crate::unit::{Action, KeyAt, Row, Unit};
use crate::version::{Version, is_stale};

pub use standing::{Standing, Touch, Touches};

use output::write_rows;
use state::{Current, KeyStates, RowState, Sources};

/// What became of an accepted event.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A row was written, also when a later event of the batch replaced it.
    Row,
    /// A row was deleted, also when there was none.
    Delete,
    /// Nothing was to be done.
    Control,
    /// A newer version was there already.
    Stale,
    /// It cannot be applied to the rows as they stand.
    Rejected(Rejection),
}

/// Whether the table is emptied before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truncate {
    /// No.
    No,
    /// Yes; what the batch wrote before the truncate is gone already.
    First,
}

/// A folded batch.
#[derive(Debug)]
pub struct Folded {
    /// The rows to write, in the table's schema.
    pub rows: RecordBatch,
    /// The keys whose older rows are to be deleted, each once; `None` when there are none.
    pub delete_keys: Option<RecordBatch>,
    /// Whether the table is emptied first.
    pub truncate: Truncate,
    /// What became of each accepted event, by its index in the batch.
    pub outcomes: Vec<(usize, Outcome)>,
}

/// Folds the batch. `stored` holds the rows that [`Converted::lookup_keys`] asked for, found by field id, or by name without one.
///
/// # Errors
/// [`ColumnError`] when Arrow refuses a column, which no input should bring about.
pub fn fold(converted: &Converted, stored: Option<&RecordBatch>) -> Result<Folded, ColumnError> {
    let fields: Fields = converted.schema.columns.iter().map(relaxed_field).collect();
    let stored = stored.map(|batch| align(batch, &fields)).transpose()?;
    match converted.plan.mode {
        Mode::Upsert => Upsert::new(converted, stored)?.run(),
        Mode::Append | Mode::Changelog | Mode::NoKey => append(converted),
    }
}

/// Every row is written; a truncate drops those before it.
fn append(converted: &Converted) -> Result<Folded, ColumnError> {
    let mut rows: Vec<RowState> = Vec::with_capacity(converted.units.len());
    let mut truncate = Truncate::No;
    let mut outcomes = Vec::with_capacity(converted.units.len());
    for unit in &converted.units {
        let outcome = match unit.action {
            Action::Append(Row::After(row)) | Action::Upsert { row, .. } => {
                rows.push(RowState::of_batch(row));
                Outcome::Row
            }
            Action::Append(Row::Deleted(row)) => {
                rows.push(RowState::of_batch(row));
                Outcome::Delete
            }
            Action::Truncate => {
                rows.clear();
                truncate = Truncate::First;
                Outcome::Delete
            }
            Action::Delete { .. } => Outcome::Delete,
            Action::Control => Outcome::Control,
        };
        outcomes.push((unit.event, outcome));
    }
    let rows = write_rows(converted, &Sources { stored: None }, &rows.iter().collect::<Vec<_>>())?;
    Ok(Folded { rows, delete_keys: None, truncate, outcomes })
}

struct Upsert<'c> {
    converted: &'c Converted,
    keys: Keys,
    sources: Sources,
}

impl Folded {
    /// The events that were refused although they asked for a change of the schema: with these in
    /// [`TableContext::refused`](crate::TableContext::refused) the batch is to be converted anew. Mostly none.
    #[must_use]
    pub fn refused_changes(&self, converted: &Converted) -> Vec<(usize, Rejection)> {
        let refused = self.outcomes.iter().filter_map(|(event, outcome)| match outcome {
            Outcome::Rejected(rejection) if converted.asked_for_change(*event) => Some((*event, rejection.clone())),
            Outcome::Rejected(_) | Outcome::Row | Outcome::Delete | Outcome::Control | Outcome::Stale => None,
        });
        refused.collect()
    }
}

impl<'c> Upsert<'c> {
    fn new(converted: &'c Converted, stored: Option<Vec<ArrayRef>>) -> Result<Self, ColumnError> {
        let keys = Keys::new(&converted.tables, &converted.plan, stored.as_deref())?;
        Ok(Self { converted, keys, sources: Sources { stored } })
    }

    fn run(self) -> Result<Folded, ColumnError> {
        let mut states = KeyStates::new(&self.keys);
        let mut truncate = Truncate::No;
        let mut outcomes = Vec::with_capacity(self.converted.units.len());
        for unit in &self.converted.units {
            let outcome = match unit.action {
                Action::Upsert { row, old_key } => self.upsert(&mut states, unit, (row, old_key))?,
                Action::Delete { key } => self.delete(&mut states, unit, key),
                Action::Truncate => {
                    states.truncate();
                    truncate = Truncate::First;
                    Outcome::Delete
                }
                Action::Append(_) => Outcome::Row,
                Action::Control => Outcome::Control,
            };
            outcomes.push((unit.event, outcome));
        }
        let rows = write_rows(self.converted, &self.sources, &states.rows())?;
        let deleted = states.deleted_keys();
        let delete_keys = if deleted.is_empty() { None } else { Some(self.converted.key_batch(&deleted)?) };
        Ok(Folded { rows, delete_keys, truncate, outcomes })
    }

    fn upsert(&self, states: &mut KeyStates<'_>, unit: &Unit, (row, old_key): (usize, Option<usize>)) -> Result<Outcome, ColumnError> {
        let key = KeyAt::Row(row);
        let old_key = old_key.map(KeyAt::Key).filter(|old| self.keys.bytes(*old) != self.keys.bytes(key));
        let version = self.version(unit, key);
        if is_stale(version.as_ref(), self.current_version(states, key).as_ref()) {
            return Ok(self.stale());
        }
        let origin = old_key.unwrap_or(key);
        let state = match self.merged(states.current(origin), (row, &unit.unchanged)) {
            Ok(state) => state,
            Err(rejection) => return Ok(Outcome::Rejected(rejection)),
        };
        if !unit.unchanged.is_empty()
            && let Some(broken) = self.broken_rule(&state)?
        {
            return Ok(Outcome::Rejected(broken));
        }
        if let Some(old) = old_key
            && !is_stale(version.as_ref(), self.current_version(states, old).as_ref())
        {
            self.remove(states, old);
            states.set_version(old, version.clone());
        }
        states.write(key, state);
        let keeps_older = version.is_none() && self.converted.plan.version.is_none();
        if !keeps_older {
            states.set_version(key, version);
        }
        Ok(Outcome::Row)
    }

    /// The first rule that a merged row breaks.
    fn broken_rule(&self, row: &RowState) -> Result<Option<Rejection>, ColumnError> {
        let (checks, missing) = &self.converted.checks;
        if checks.is_empty() {
            return Ok(None);
        }
        let whole = write_rows(self.converted, &self.sources, &[row])?;
        let columns = (self.converted.schema.columns.as_slice(), whole.columns());
        let failure = checks.iter().find_map(|check| check.evaluate(columns, *missing).failure(0));
        Ok(failure.map(|detail| Rejection::new(Stage::Check, ReasonCode::CheckFailed, detail)))
    }

    fn delete(&self, states: &mut KeyStates<'_>, unit: &Unit, key: usize) -> Outcome {
        let key = KeyAt::Key(key);
        let version = self.version(unit, key);
        let current = self.current_version(states, key);
        if is_stale(version.as_ref(), current.as_ref()) {
            return self.stale();
        }
        self.remove(states, key);
        states.set_version(key, version.or(current));
        Outcome::Delete
    }

    /// Deletes the row of a key, or marks it where rows are only marked.
    fn remove(&self, states: &mut KeyStates<'_>, key: KeyAt) {
        let Some(column) = self.converted.plan.soft_delete else { return states.remove(key) };
        let marked = match states.current(key) {
            Current::Row(row) => Some(row.marked(column)),
            Current::Stored(row) => Some(RowState::of_stored(*row).marked(column)),
            Current::Absent => None,
        };
        if let Some(state) = marked {
            states.write(key, state);
        }
    }

    /// The row with the values that the event did not send, taken from the row as it stands.
    fn merged(&self, current: &Current, (row, unchanged): (usize, &[usize])) -> Result<RowState, Rejection> {
        let mut state = RowState::of_batch(row);
        for column in unchanged {
            let cell = match current {
                Current::Row(before) => before.cell(*column),
                Current::Stored(stored) => RowState::of_stored(*stored).cell(*column),
                Current::Absent => {
                    return Err(self.refused(
                        *column,
                        "the source did not send this value because it did not change, and there is no row to take it from",
                    ));
                }
            };
            let required = self.converted.schema.columns.get(*column).is_some_and(|column| column.required);
            if required && self.sources.is_null(&self.converted.tables, *column, cell) {
                return Err(self.refused(*column, "the source did not send this required value, and the row that stands has none"));
            }
            state.take(*column, cell);
        }
        Ok(state)
    }

    fn refused(&self, column: usize, detail: &str) -> Rejection {
        let name = self.converted.schema.columns.get(column).map_or("", |column| column.name.as_str());
        Rejection::of_field(Stage::Fold, ReasonCode::UnavailableValue, name, detail)
    }

    fn stale(&self) -> Outcome {
        match self.converted.on_stale {
            OnStale::Skip => Outcome::Stale,
            OnStale::DeadLetter => {
                let detail = "the row that stands has a newer version";
                Outcome::Rejected(Rejection::new(Stage::Fold, ReasonCode::StaleVersion, detail))
            }
        }
    }

    /// The version of a change: its own, or the one in its row or next to its key.
    fn version(&self, unit: &Unit, key: KeyAt) -> Option<Version> {
        let plan = &self.converted.plan;
        let Some(column) = plan.version else { return unit.version.clone() };
        let tables = &self.converted.tables;
        match key {
            KeyAt::Row(row) => Version::of_cell(tables.rows.get(column)?, row),
            KeyAt::Key(row) => {
                let place = plan.key.iter().position(|index| *index == column).unwrap_or(plan.key.len());
                Version::of_cell(tables.keys.get(place)?, row)
            }
        }
    }

    fn current_version(&self, states: &mut KeyStates<'_>, key: KeyAt) -> Option<Version> {
        if let Some(version) = states.version(key) {
            return version.clone();
        }
        let column = self.converted.plan.version?;
        match states.current(key) {
            Current::Stored(row) => Version::of_cell(self.sources.stored.as_ref()?.get(column)?, *row),
            Current::Row(_) | Current::Absent => None,
        }
    }
}
