//! Rows of the error table with what became of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use sluice_model::{Operation, Rejection, TableName};
use sluice_table::TableError;

use crate::entry::{DOOR, Rows};

/// How a refused record was done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resolution {
    /// Its row or delete is in its table.
    Applied,
    /// Its table has a newer version of the row: nothing was to be done.
    Stale,
    /// It is no row.
    Control,
    /// A redrive that was interrupted had decided it.
    Decided,
    /// The same record stands in another row of the error table.
    Duplicate,
}

impl Resolution {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Stale => "stale",
            Self::Control => "control",
            Self::Decided => "decided",
            Self::Duplicate => "duplicate",
        }
    }
}

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It is being redriven under this number.
    Queued(i64),
    /// It is refused again.
    Refused {
        /// Why.
        rejection: Rejection,
        /// The table it is for, where that is known now.
        target: Option<TableName>,
        /// What it asks for, where that is known now.
        operation: Option<Operation>,
    },
    /// It is done with. Its number stays, to tell whether its table still has it.
    Resolved {
        /// How.
        resolution: Resolution,
        /// When, in milliseconds since 1970.
        at_ms: i64,
        /// The table that has it.
        target: Option<TableName>,
    },
    /// What was done has been taken back.
    Reopened,
}

/// What becomes of one of some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The row's place among them.
    pub row: usize,
    /// What becomes of it.
    pub state: State,
}

/// The code of records that lay below their table's ledger: the table may hold them. They keep it until they are resolved.
pub const BELOW_LEDGER: &str = "OFFSET_BELOW_LEDGER";

/// The rows `kept` of some, with the changes.
pub(crate) fn rewritten(rows: &RecordBatch, (kept, changes): (&[usize], &[Change])) -> Result<RecordBatch, TableError> {
    let states: HashMap<usize, &State> = changes.iter().map(|change| (change.row, &change.state)).collect();
    let read = Rewriting { rows: Rows(rows), kept, states: &states };
    let new = read.columns()?;
    let picked = arrow_array::UInt64Array::from_iter_values(kept.iter().map(|row| *row as u64));
    let columns = rows.schema_ref().fields().iter().zip(rows.columns()).map(|(field, old)| match new.get(field.name().as_str()) {
        Some(column) => Ok(Arc::clone(column)),
        None => arrow_select::take::take(old, &picked, None).map_err(TableError::arrow("picking rows of the error table")),
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, TableError>>()?;
    RecordBatch::try_new(rows.schema(), columns).map_err(TableError::arrow("the error table's rows"))
}

struct Rewriting<'r> {
    rows: Rows<'r>,
    kept: &'r [usize],
    states: &'r HashMap<usize, &'r State>,
}

impl Rewriting<'_> {
    fn columns(&self) -> Result<HashMap<&'static str, ArrayRef>, TableError> {
        let mut columns: HashMap<&'static str, ArrayRef> = HashMap::new();
        for name in ["stage", "code", "field", "detail", "target_table", "operation", "sluice_version", "resolution"] {
            let cells = self.kept.iter().map(|row| self.text(name, *row)).collect::<Result<StringArray, _>>()?;
            columns.insert(name, Arc::new(cells));
        }
        let resolved = self.kept.iter().map(|row| self.resolved_at(*row)).collect::<Result<TimestampMicrosecondArray, _>>()?;
        columns.insert("resolved_at", Arc::new(resolved.with_timezone("+00:00")));
        columns
            .insert("redrive_offset", Arc::new(self.kept.iter().map(|row| self.redrive_offset(*row)).collect::<Result<Int64Array, _>>()?));
        columns.insert("attempts", Arc::new(self.kept.iter().map(|row| self.attempts(*row)).collect::<Result<Int32Array, _>>()?));
        Ok(columns)
    }

    fn text(&self, name: &'static str, row: usize) -> Result<Option<String>, TableError> {
        let old = || self.rows.text(name, row).map(|text| text.map(str::to_owned));
        match self.states.get(&row) {
            None | Some(State::Queued(_)) => old(),
            Some(State::Refused { rejection, target, operation }) => match name {
                "stage" | "code" | "field" | "detail" => self.reason((name, row), rejection),
                "target_table" => target.as_ref().map_or_else(old, |target| Ok(Some(target.to_string()))),
                "operation" => operation.map_or_else(old, |operation| Ok(Some(operation.as_str().to_owned()))),
                "sluice_version" => Ok(Some(env!("CARGO_PKG_VERSION").to_owned())),
                _ => old(),
            },
            Some(State::Resolved { resolution, target, .. }) => match (name, target) {
                ("resolution", _) => Ok(Some(resolution.as_str().to_owned())),
                ("target_table", Some(target)) => Ok(Some(target.to_string())),
                _ => old(),
            },
            Some(State::Reopened) => {
                if name == "resolution" {
                    Ok(None)
                } else {
                    old()
                }
            }
        }
    }

    /// A record that is known by its first reason keeps that, and the detail tells the new one.
    fn reason(&self, (name, row): (&'static str, usize), rejection: &Rejection) -> Result<Option<String>, TableError> {
        let is_below = self.rows.text("code", row)? == Some(BELOW_LEDGER);
        let keeps_stage = is_below || self.rows.text("stage", row)? == Some(DOOR);
        Ok(match name {
            "stage" if keeps_stage => self.rows.text("stage", row)?.map(str::to_owned),
            "code" if is_below => Some(BELOW_LEDGER.to_owned()),
            "detail" if is_below && rejection.code.as_str() != BELOW_LEDGER => {
                Some(format!("tried again: {}: {}", rejection.code, rejection.detail))
            }
            "stage" => Some(rejection.stage.as_str().to_owned()),
            "code" => Some(rejection.code.as_str().to_owned()),
            "field" => Some(rejection.field.clone()).filter(|field| !field.is_empty()),
            _ => Some(rejection.detail.clone()),
        })
    }

    fn resolved_at(&self, row: usize) -> Result<Option<i64>, TableError> {
        match self.states.get(&row) {
            Some(State::Resolved { at_ms, .. }) => Ok(Some(at_ms.saturating_mul(1_000))),
            Some(State::Reopened) => Ok(None),
            None | Some(State::Queued(_) | State::Refused { .. }) => self.rows.instant("resolved_at", row),
        }
    }

    fn redrive_offset(&self, row: usize) -> Result<Option<i64>, TableError> {
        match self.states.get(&row) {
            Some(State::Queued(number)) => Ok(Some(*number)),
            Some(State::Refused { .. } | State::Reopened) => Ok(None),
            None | Some(State::Resolved { .. }) => self.rows.long("redrive_offset", row),
        }
    }

    fn attempts(&self, row: usize) -> Result<Option<i32>, TableError> {
        let old = self.rows.int("attempts", row)?;
        match self.states.get(&row) {
            Some(State::Refused { .. }) => Ok(Some(old.unwrap_or(0).saturating_add(1))),
            None | Some(State::Queued(_) | State::Resolved { .. } | State::Reopened) => Ok(old),
        }
    }
}
