//! The rows of a batch's keys as they stand while it is folded.

use arrow_array::{Array, ArrayRef};
use hashbrown::HashMap;

use crate::converted::Tables;
use crate::keys::Keys;
use crate::unit::KeyAt;
use crate::version::Version;

/// Where a value of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellAt {
    /// In a row of the batch.
    Batch(usize),
    /// In a row of the table.
    Stored(usize),
    /// It is `true`.
    True,
}

/// A row, most of its values from one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowState {
    base: CellAt,
    /// Values from elsewhere, by column.
    others: Vec<(usize, CellAt)>,
}

impl RowState {
    pub(super) fn of_batch(row: usize) -> Self {
        Self { base: CellAt::Batch(row), others: Vec::new() }
    }

    pub(super) fn of_stored(row: usize) -> Self {
        Self { base: CellAt::Stored(row), others: Vec::new() }
    }

    pub(super) fn cell(&self, column: usize) -> CellAt {
        self.others.iter().find(|(other, _)| *other == column).map_or(self.base, |(_, cell)| *cell)
    }

    /// The row of the batch that it is, where all its values are from there.
    pub(super) const fn whole(&self) -> Option<usize> {
        match self.base {
            CellAt::Batch(row) if self.others.is_empty() => Some(row),
            CellAt::Batch(_) | CellAt::Stored(_) | CellAt::True => None,
        }
    }

    pub(super) fn take(&mut self, column: usize, cell: CellAt) {
        self.others.retain(|(other, _)| *other != column);
        self.others.push((column, cell));
    }

    /// The same row, marked as deleted.
    pub(super) fn marked(&self, column: usize) -> Self {
        let mut row = self.clone();
        row.take(column, CellAt::True);
        row
    }
}

/// The row of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Current {
    /// A row of the table that was read back.
    Stored(usize),
    /// A row that this batch writes.
    Row(RowState),
    /// None, or none that was read.
    Absent,
}

#[derive(Debug)]
struct KeyState {
    key: KeyAt,
    current: Current,
    /// The version that this batch gave the key; `None` while only the table knows it.
    version: Option<Option<Version>>,
    /// When the row was written, counted in writes.
    written: usize,
    /// Whether older rows of the key are to be deleted.
    touched: bool,
}

/// The stored rows under the batch's schema.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) stored: Option<Vec<ArrayRef>>,
}

impl Sources {
    pub(super) fn is_null(&self, tables: &Tables, column: usize, cell: CellAt) -> bool {
        let is_null = |columns: Option<&[ArrayRef]>, row: usize| {
            let array = columns.and_then(|columns| columns.get(column));
            array.is_none_or(|array| row >= array.len() || array.is_null(row))
        };
        match cell {
            CellAt::Batch(row) => is_null(Some(&tables.rows), row),
            CellAt::Stored(row) => is_null(self.stored.as_deref(), row),
            CellAt::True => false,
        }
    }
}

/// The state of each key that the batch touches.
#[derive(Debug)]
pub(super) struct KeyStates<'k> {
    keys: &'k Keys,
    stored: HashMap<&'k [u8], usize>,
    index: HashMap<&'k [u8], usize>,
    /// The states of the keys that were asked for already, by where they stand: their bytes are hashed once.
    of_row: Vec<Option<usize>>,
    of_key: Vec<Option<usize>>,
    states: Vec<KeyState>,
    writes: usize,
}

impl<'k> KeyStates<'k> {
    pub(super) fn new(keys: &'k Keys) -> Self {
        let stored = keys.stored().enumerate().map(|(row, key)| (key, row)).collect();
        let (of_row, of_key) = (vec![None; keys.row_count()], vec![None; keys.key_count()]);
        let states = Vec::with_capacity(keys.row_count());
        Self { keys, stored, index: HashMap::with_capacity(keys.row_count()), of_row, of_key, states, writes: 0 }
    }

    fn at(&mut self, key: KeyAt) -> &mut KeyState {
        let known = match key {
            KeyAt::Row(row) => self.of_row[row],
            KeyAt::Key(row) => self.of_key[row],
        };
        let index = known.unwrap_or_else(|| self.find(key));
        &mut self.states[index]
    }

    fn find(&mut self, key: KeyAt) -> usize {
        let bytes = self.keys.bytes(key);
        let (states, stored) = (&mut self.states, &self.stored);
        let index = *self.index.entry(bytes).or_insert_with(|| {
            let current = stored.get(bytes).map_or(Current::Absent, |row| Current::Stored(*row));
            states.push(KeyState { key, current, version: None, written: 0, touched: false });
            states.len() - 1
        });
        match key {
            KeyAt::Row(row) => self.of_row[row] = Some(index),
            KeyAt::Key(row) => self.of_key[row] = Some(index),
        }
        index
    }

    pub(super) fn current(&mut self, key: KeyAt) -> &Current {
        &self.at(key).current
    }

    /// The version that this batch gave the key.
    pub(super) fn version(&mut self, key: KeyAt) -> Option<&Option<Version>> {
        self.at(key).version.as_ref()
    }

    pub(super) fn set_version(&mut self, key: KeyAt, version: Option<Version>) {
        self.at(key).version = Some(version);
    }

    pub(super) fn write(&mut self, key: KeyAt, row: RowState) {
        self.writes += 1;
        let written = self.writes;
        let state = self.at(key);
        state.current = Current::Row(row);
        state.written = written;
        state.touched = true;
    }

    pub(super) fn remove(&mut self, key: KeyAt) {
        let state = self.at(key);
        state.current = Current::Absent;
        state.touched = true;
    }

    /// Everything is gone: the table's rows, and what the batch wrote.
    pub(super) fn truncate(&mut self) {
        self.stored.clear();
        self.index.clear();
        self.of_row.fill(None);
        self.of_key.fill(None);
        self.states.clear();
    }

    /// The rows to write, in the order in which they were written.
    pub(super) fn rows(&self) -> Vec<&RowState> {
        let mut written: Vec<(usize, &RowState)> = Vec::with_capacity(self.states.len());
        for state in &self.states {
            if let Current::Row(row) = &state.current {
                written.push((state.written, row));
            }
        }
        written.sort_unstable_by_key(|(written, _)| *written);
        written.into_iter().map(|(_, row)| row).collect()
    }

    /// The keys whose older rows go, in the order in which they came up.
    pub(super) fn deleted_keys(&self) -> Vec<KeyAt> {
        self.states.iter().filter(|state| state.touched).map(|state| state.key).collect()
    }
}
