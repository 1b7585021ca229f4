//! A converted batch: its schema, its refused records, and its accepted ones in columns.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema};
use sluice_model::{Rejection, TableSchema};

use crate::arrow_types::strict_field;
use crate::check::{Check, MissingColumn};
use crate::convert::ColumnError;
use crate::keys::{Keys, gather};
use crate::plan::{Mode, Plan};
use crate::settings::OnStale;
use crate::unit::{Action, KeyAt, Unit};

/// What the batch asks of the table's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaChange {
    /// The table has this schema already.
    Unchanged,
    /// The table's schema grows into this one.
    Evolved,
    /// The table is created with this schema.
    Create,
}

/// The columns of a pass: all rows, and the keys of deletes and the old keys of updates.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) rows: Vec<ArrayRef>,
    pub(crate) keys: Vec<ArrayRef>,
}

/// A batch of one table's events, converted.
#[derive(Debug)]
pub struct Converted {
    /// The schema that the rows have.
    pub schema: TableSchema,
    /// How it differs from the table's.
    pub change: SchemaChange,
    /// The refused records by their index in the batch, ascending.
    pub rejections: Vec<(usize, Rejection)>,
    pub(crate) units: Vec<Unit>,
    pub(crate) tables: Tables,
    pub(crate) plan: Plan,
    /// Events that asked for a change of the schema.
    pub(crate) changers: BTreeSet<usize>,
    pub(crate) on_stale: OnStale,
    /// The rules for rows that only the fold makes whole.
    pub(crate) checks: (Vec<Check>, MissingColumn),
    pub(crate) is_new: bool,
}

impl Converted {
    /// The accepted events by their index in the batch, ascending.
    pub fn accepted(&self) -> impl Iterator<Item = usize> {
        self.units.iter().map(|unit| unit.event)
    }

    /// Whether an event asked for a change of the schema. When the fold refuses such an event, the batch is to be converted anew with
    /// it in [`TableContext::refused`](crate::TableContext::refused): a refused record leaves no trace in the schema.
    #[must_use]
    pub fn asked_for_change(&self, event: usize) -> bool {
        self.changers.contains(&event)
    }

    /// Whether no record was accepted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Drops accepted events that were applied before.
    pub fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.units.retain(|unit| keep(unit.event));
    }

    /// The field ids of the key columns by which rows are deleted, in schema order; empty when rows are only added.
    #[must_use]
    pub fn key_ids(&self) -> Vec<i32> {
        match self.plan.mode {
            Mode::Upsert => self.plan.key.iter().filter_map(|index| self.schema.columns.get(*index)).map(|column| column.id).collect(),
            Mode::Append | Mode::Changelog | Mode::NoKey => Vec::new(),
        }
    }

    /// The keys whose stored rows [`fold`](crate::fold::fold) must see, each once; `None` when it needs none.
    ///
    /// # Errors
    /// [`ColumnError`] when Arrow refuses a column, which no input should bring about.
    pub fn lookup_keys(&self) -> Result<Option<RecordBatch>, ColumnError> {
        if self.is_new || self.plan.mode != Mode::Upsert {
            return Ok(None);
        }
        let wanted: Vec<KeyAt> = self.units.iter().flat_map(|unit| self.looked_up(unit)).flatten().collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let keys = Keys::new(&self.tables, &self.plan, None)?;
        let mut seen = HashSet::with_capacity(wanted.len());
        let distinct: Vec<KeyAt> = wanted.into_iter().filter(|key| seen.insert(keys.bytes(*key))).collect();
        self.key_batch(&distinct).map(Some)
    }

    fn looked_up(&self, unit: &Unit) -> [Option<KeyAt>; 2] {
        let versioned = self.plan.version.is_some();
        let soft = self.plan.soft_delete.is_some();
        match unit.action {
            Action::Upsert { row, old_key } => {
                let merges = !unit.unchanged.is_empty();
                let new = (versioned || merges).then_some(KeyAt::Row(row));
                [new, old_key.filter(|_| versioned || merges || soft).map(KeyAt::Key)]
            }
            Action::Delete { key } => [(versioned || soft).then_some(KeyAt::Key(key)), None],
            Action::Append(_) | Action::Truncate | Action::Control => [None, None],
        }
    }

    /// The key columns of the given keys.
    pub(crate) fn key_batch(&self, keys: &[KeyAt]) -> Result<RecordBatch, ColumnError> {
        let mut columns = Vec::with_capacity(self.plan.key.len());
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.plan.key.len());
        for (place, index) in self.plan.key.iter().enumerate() {
            let (Some(row), Some(key)) = (self.tables.rows.get(*index), self.tables.keys.get(place)) else { continue };
            let cells: Vec<(usize, usize)> = keys
                .iter()
                .map(|key| match key {
                    KeyAt::Row(row) => (0, *row),
                    KeyAt::Key(row) => (1, *row),
                })
                .collect();
            columns.push(gather(&[row, key], &cells)?);
            fields.extend(self.schema.columns.get(*index).map(strict_field));
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}
