//! A table that a delete made: its ledger has to remember the delete, but what its columns are only its first rows can tell.
//!
//! The table says so in a property until rows are committed to it. As long as it does, their fields become columns, as they would have if the rows had
//! made the table.

use std::collections::HashMap;

use sluice_pipeline::settings::{OnUnknownColumn, TableSettings};

/// Whether the columns are still open. No setting: those have no dot behind `sluice.`.
const PROPERTY: &str = "sluice.shape.open";

/// The property of a table that no row has shaped.
pub(super) fn open() -> (String, String) {
    (PROPERTY.to_owned(), true.to_string())
}

/// The property of a table that gets its first rows.
pub(super) fn closed() -> (String, String) {
    (PROPERTY.to_owned(), false.to_string())
}

/// Whether the first rows are still to come.
pub(super) fn is_open(properties: &HashMap<String, String>) -> bool {
    properties.get(PROPERTY).is_some_and(|value| *value == open().1)
}

/// The settings for a table in that state.
pub(super) fn settings_for(properties: &HashMap<String, String>, settings: TableSettings) -> TableSettings {
    if is_open(properties) { TableSettings { on_unknown_column: OnUnknownColumn::Add, ..settings } } else { settings }
}
