//! What a batch does to its table: the write mode, and which columns have a part in it.

use sluice_model::{ChangeEvent, Column, ColumnType, TableSchema};

use crate::names::{NameCase, find_column, safe_name};
use crate::settings::{OnMissingKey, OnUnknownColumn, TableSettings, VersionSource, WriteMode};

/// The write mode, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every row is added.
    Append,
    /// The newest row of a key stays.
    Upsert,
    /// Every event is added with its meaning.
    Changelog,
    /// An upsert that cannot be done: the table has no key.
    NoKey,
}

/// The column that takes an event's meaning in changelog mode.
pub(crate) const OPERATION_COLUMN: &str = "_op";

/// The write mode and the names of the key columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) mode: Mode,
    pub(crate) key: Vec<String>,
}

impl Intent {
    /// What the settings ask for. The key of a table that is created is the one that the first event with a key names.
    pub(crate) fn new(settings: &TableSettings, schema: Option<&TableSchema>, events: &[&ChangeEvent<'_>]) -> Self {
        let key = key_names(settings, schema, events);
        let mode = match settings.mode {
            WriteMode::Append => Mode::Append,
            WriteMode::Changelog => Mode::Changelog,
            WriteMode::Auto if key.is_empty() => Mode::Append,
            WriteMode::Auto => Mode::Upsert,
            WriteMode::Upsert if !key.is_empty() => Mode::Upsert,
            WriteMode::Upsert => match settings.on_missing_key {
                OnMissingKey::Append => Mode::Append,
                OnMissingKey::DeadLetter => Mode::NoKey,
            },
        };
        Self { mode, key }
    }

    /// The key of a table that is to be created: only a mode that needs one gives it.
    pub(crate) fn new_key(&self) -> &[String] {
        match self.mode {
            Mode::Upsert => &self.key,
            Mode::Append | Mode::Changelog | Mode::NoKey => &[],
        }
    }
}

fn key_names(settings: &TableSettings, schema: Option<&TableSchema>, events: &[&ChangeEvent<'_>]) -> Vec<String> {
    if !settings.key.is_empty() {
        return settings.key.clone();
    }
    match schema {
        Some(schema) => schema.identifier_names().into_iter().map(str::to_owned).collect(),
        None => {
            let named = events.iter().map(|event| named_key(event)).find(|names| !names.is_empty());
            named.unwrap_or_default()
        }
    }
}

/// The key that an event names: by its format, else by the fields of the record key.
fn named_key(event: &ChangeEvent<'_>) -> Vec<String> {
    if !event.key_columns.is_empty() {
        return event.key_columns.iter().map(|name| name.to_string()).collect();
    }
    let record_key = event.key.iter().flat_map(|image| image.object.fields());
    record_key.map(|(name, _)| name.into_owned()).collect()
}

/// Whether a field called `name` fills one of the key columns called `keys`.
pub(crate) fn means_key(keys: &[String], name: &str, case: NameCase) -> bool {
    if keys.is_empty() {
        return false;
    }
    let safe = safe_name(name, case).to_lowercase();
    keys.iter().any(|key| key == name || safe_name(key, case).to_lowercase() == safe)
}

/// Iceberg forbids identifier fields of these types (table spec, "Identifier Field IDs").
pub(crate) fn key_type_allowed(kind: &ColumnType) -> bool {
    !matches!(kind, ColumnType::Float | ColumnType::Double | ColumnType::Struct(_) | ColumnType::List(_) | ColumnType::Map(..))
}

/// Adds the columns that the settings name and no record brings.
pub(crate) fn add_own_columns(columns: &mut Vec<Column>, settings: &TableSettings, (mode, case): (Mode, NameCase)) {
    let operation = (mode == Mode::Changelog).then_some((OPERATION_COLUMN, ColumnType::String));
    let document = settings.document.as_deref().map(|name| (name, ColumnType::String));
    let soft_delete = settings.soft_delete.as_deref().map(|name| (name, ColumnType::Boolean));
    for (name, kind) in [document, soft_delete, operation].into_iter().flatten() {
        if find_column(columns, name, case).is_none() {
            columns.push(Column::optional(0, name, kind));
        }
    }
}

/// Whether columns that the settings name are added to a table that exists.
pub(crate) fn adds_columns(settings: &TableSettings) -> bool {
    settings.on_unknown_column == OnUnknownColumn::Add
}

/// The columns that have a part, by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) key: Vec<usize>,
    /// Key columns that the table does not have.
    pub(crate) missing_key: Vec<String>,
    pub(crate) version: Option<usize>,
    pub(crate) soft_delete: Option<usize>,
    pub(crate) document: Option<usize>,
    pub(crate) operation: Option<usize>,
}

impl Plan {
    pub(crate) fn new(intent: &Intent, settings: &TableSettings, (columns, case): (&[Column], NameCase)) -> Self {
        let find = |name: &str| find_column(columns, name, case);
        let (mut key, mut missing_key) = (Vec::new(), Vec::new());
        for name in &intent.key {
            match find(name).filter(|index| columns.get(*index).is_some_and(|column| is_plain(&column.kind))) {
                Some(index) if key.contains(&index) => {}
                Some(index) => key.push(index),
                None => missing_key.push(name.clone()),
            }
        }
        key.sort_unstable();
        let version = match &settings.version {
            Some(VersionSource::Column(name)) => find(name),
            Some(VersionSource::EventVersion | VersionSource::EventTime) | None => None,
        };
        let operation = if intent.mode == Mode::Changelog { find(OPERATION_COLUMN) } else { None };
        let soft_delete = if intent.mode == Mode::Upsert { settings.soft_delete.as_deref().and_then(find) } else { None };
        let document = settings.document.as_deref().and_then(find);
        Self { mode: intent.mode, key, missing_key, version, soft_delete, document, operation }
    }
}

fn is_plain(kind: &ColumnType) -> bool {
    !matches!(kind, ColumnType::Struct(_) | ColumnType::List(_) | ColumnType::Map(..))
}
