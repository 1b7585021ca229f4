//! What a record becomes once it is converted: a reference to its row or key, and what to do with it.

use crate::version::Version;

/// Where the key of a change stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyAt {
    /// In the key columns of a row.
    Row(usize),
    /// In a row of the key table, which holds the keys of deletes and the old keys of updates.
    Key(usize),
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A row is added, whatever is there.
    Append(Row),
    /// A row takes the place of the one with its key; the row of the old key, where there is one, goes.
    Upsert { row: usize, old_key: Option<usize> },
    /// The row of a key goes.
    Delete { key: usize },
    /// All rows go.
    Truncate,
    /// Nothing is done.
    Control,
}

/// A row of a table that is only added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// A row that stands after the event.
    After(usize),
    /// The row that a delete removed, as a changelog keeps it.
    Deleted(usize),
}

/// An accepted record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unit {
    /// The event's index in the batch.
    pub(crate) event: usize,
    pub(crate) action: Action,
    /// Columns whose value did not change and was not sent.
    pub(crate) unchanged: Vec<usize>,
    /// The version that the event itself carries.
    pub(crate) version: Option<Version>,
}
