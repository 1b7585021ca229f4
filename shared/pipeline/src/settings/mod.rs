//! The settings of a table: CONFIG's `[table_defaults]`, `[tables."x"]` and `sluice.*` table properties, layered.
//!
//! Each layer is a [`TableOverrides`], where every key may be absent. [`TableSettings::resolve`] takes the first layer that has a
//! key; the order is `[tables."x"]`, `[table_defaults]`, the table's property, the default.

mod choices;
mod read;

use std::collections::BTreeMap;

use sluice_model::{ColumnType, SortField, TimeUnit, TransformedColumn};

pub use choices::{
    BinaryText, Coerce, DeleteForm, JsonColumn, OnDuplicateField, OnInexactDecimal, OnInexactTime, OnInfinity, OnMissingKey,
    OnMissingRequired, OnMissingTable, OnNan, OnPartialRow, OnSchemaChange, OnStale, OnTimeOutOfDay, OnTruncate, OnUnavailable,
    OnUnknownColumn, OnWiderType, WriteMode,
};
pub use read::check_settings;

use crate::check::Check;

/// A time without a zone in a timestamptz column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnNaiveTimestamp {
    /// The record is refused.
    DeadLetter,
    /// It is a wall-clock time of this IANA zone.
    Zone(String),
}

/// Where the version of a change stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionSource {
    /// In a column of the table: stored, so that later batches compare with it.
    Column(String),
    /// The event's own version field; orders within a batch.
    EventVersion,
    /// The event's own time; orders within a batch.
    EventTime,
}

/// The settings of one column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnSettings {
    /// The type that the column gets when it is created or added.
    pub column_type: Option<ColumnType>,
    /// The column's old name: it is renamed in place.
    pub rename_of: Option<String>,
    /// The unit of bare integers.
    pub time_unit: Option<TimeUnit>,
    /// The form of bytes in text.
    pub binary: Option<BinaryText>,
    /// Objects and arrays as JSON text.
    pub json: Option<JsonColumn>,
    /// The decimal mark of numbers in text; the other one of `.` and `,` groups thousands.
    pub decimal_mark: Option<char>,
}

/// One layer of table settings.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the names are CONFIG's; TableSettings describes each")]
pub struct TableOverrides {
    pub mode: Option<WriteMode>,
    pub key: Option<Vec<String>>,
    pub uuid: Option<String>,
    pub document: Option<String>,
    pub version: Option<String>,
    pub deletes: Option<DeleteForm>,
    pub soft_delete: Option<String>,
    pub on_missing_table: Option<OnMissingTable>,
    pub on_unavailable: Option<OnUnavailable>,
    pub on_missing_key: Option<OnMissingKey>,
    pub on_unknown_column: Option<OnUnknownColumn>,
    pub on_wider_type: Option<OnWiderType>,
    pub on_missing_required: Option<OnMissingRequired>,
    pub on_truncate: Option<OnTruncate>,
    pub on_schema_change: Option<OnSchemaChange>,
    pub on_stale: Option<OnStale>,
    pub on_partial_row: Option<OnPartialRow>,
    pub on_duplicate_field: Option<OnDuplicateField>,
    pub on_nan: Option<OnNan>,
    pub on_infinity: Option<OnInfinity>,
    pub on_time_out_of_day: Option<OnTimeOutOfDay>,
    pub on_inexact_decimal: Option<OnInexactDecimal>,
    pub on_inexact_time: Option<OnInexactTime>,
    pub on_naive_timestamp: Option<OnNaiveTimestamp>,
    pub time_unit: Option<Option<TimeUnit>>,
    pub coerce: Option<Coerce>,
    pub partition_by: Option<Vec<TransformedColumn>>,
    pub sort_by: Option<Vec<SortField>>,
    pub properties: Option<BTreeMap<String, String>>,
    pub checks: Option<Vec<Check>>,
    pub columns: Option<BTreeMap<String, ColumnSettings>>,
}

/// The settings of one table, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSettings {
    /// How changes reach the table.
    pub mode: WriteMode,
    /// The key's column names; empty means the table's identifier fields.
    pub key: Vec<String>,
    /// The UUID that the table must have; `None` means any.
    pub uuid: Option<String>,
    /// The string column that takes the whole row as JSON text.
    pub document: Option<String>,
    /// What orders the changes of one key.
    pub version: Option<VersionSource>,
    /// The form of deletes.
    pub deletes: DeleteForm,
    /// The boolean column that is set instead of deleting the row.
    pub soft_delete: Option<String>,
    /// What happens when the table does not exist.
    pub on_missing_table: OnMissingTable,
    /// What happens to the records of a table in fatal trouble.
    pub on_unavailable: OnUnavailable,
    /// An upsert on a table without a key.
    pub on_missing_key: OnMissingKey,
    /// A field without a column.
    pub on_unknown_column: OnUnknownColumn,
    /// A value or declared type wider than the column.
    pub on_wider_type: OnWiderType,
    /// A null in a required column.
    pub on_missing_required: OnMissingRequired,
    /// A truncate event.
    pub on_truncate: OnTruncate,
    /// A DDL event.
    pub on_schema_change: OnSchemaChange,
    /// A change older than the stored version.
    pub on_stale: OnStale,
    /// A row with unchanged-value markers.
    pub on_partial_row: OnPartialRow,
    /// A field that stands twice.
    pub on_duplicate_field: OnDuplicateField,
    /// NaN in a column that cannot hold it.
    pub on_nan: OnNan,
    /// Infinity in a column that cannot hold it.
    pub on_infinity: OnInfinity,
    /// A time that is no time of day.
    pub on_time_out_of_day: OnTimeOutOfDay,
    /// Digits beyond the scale.
    pub on_inexact_decimal: OnInexactDecimal,
    /// Digits finer than the column's time unit.
    pub on_inexact_time: OnInexactTime,
    /// A time without a zone in a timestamptz column.
    pub on_naive_timestamp: OnNaiveTimestamp,
    /// The unit of bare integers in date and time columns.
    pub time_unit: Option<TimeUnit>,
    /// Text where a number or boolean is expected.
    pub coerce: Coerce,
    /// The partition spec of a table that is created.
    pub partition_by: Vec<TransformedColumn>,
    /// The sort order of a table that is created.
    pub sort_by: Vec<SortField>,
    /// The properties of a table that is created.
    pub properties: BTreeMap<String, String>,
    /// Integrity rules.
    pub checks: Vec<Check>,
    /// Settings by column name.
    pub columns: BTreeMap<String, ColumnSettings>,
}

impl TableSettings {
    /// The settings that the layers give, the first layer that has a key winning.
    #[must_use]
    pub fn resolve(layers: &[&TableOverrides]) -> Self {
        fn pick<'a, T: Clone + 'a>(layers: &[&'a TableOverrides], key: impl Fn(&'a TableOverrides) -> &'a Option<T>) -> Option<T> {
            layers.iter().find_map(|layer| key(layer).clone())
        }
        Self {
            mode: pick(layers, |l| &l.mode).unwrap_or(WriteMode::Auto),
            key: pick(layers, |l| &l.key).unwrap_or_default(),
            uuid: pick(layers, |l| &l.uuid).filter(|text| !text.is_empty()),
            document: pick(layers, |l| &l.document).filter(|text| !text.is_empty()),
            version: pick(layers, |l| &l.version).and_then(|text| version_source(&text)),
            deletes: pick(layers, |l| &l.deletes).unwrap_or(DeleteForm::Equality),
            soft_delete: pick(layers, |l| &l.soft_delete).filter(|text| !text.is_empty()),
            on_missing_table: pick(layers, |l| &l.on_missing_table).unwrap_or(OnMissingTable::DeadLetter),
            on_unavailable: pick(layers, |l| &l.on_unavailable).unwrap_or(OnUnavailable::DeadLetter),
            on_missing_key: pick(layers, |l| &l.on_missing_key).unwrap_or(OnMissingKey::DeadLetter),
            on_unknown_column: pick(layers, |l| &l.on_unknown_column).unwrap_or(OnUnknownColumn::DeadLetter),
            on_wider_type: pick(layers, |l| &l.on_wider_type).unwrap_or(OnWiderType::Promote),
            on_missing_required: pick(layers, |l| &l.on_missing_required).unwrap_or(OnMissingRequired::DeadLetter),
            on_truncate: pick(layers, |l| &l.on_truncate).unwrap_or(OnTruncate::DeadLetter),
            on_schema_change: pick(layers, |l| &l.on_schema_change).unwrap_or(OnSchemaChange::Record),
            on_stale: pick(layers, |l| &l.on_stale).unwrap_or(OnStale::Skip),
            on_partial_row: pick(layers, |l| &l.on_partial_row).unwrap_or(OnPartialRow::Merge),
            on_duplicate_field: pick(layers, |l| &l.on_duplicate_field).unwrap_or(OnDuplicateField::DeadLetter),
            on_nan: pick(layers, |l| &l.on_nan).unwrap_or(OnNan::DeadLetter),
            on_infinity: pick(layers, |l| &l.on_infinity).unwrap_or(OnInfinity::DeadLetter),
            on_time_out_of_day: pick(layers, |l| &l.on_time_out_of_day).unwrap_or(OnTimeOutOfDay::DeadLetter),
            on_inexact_decimal: pick(layers, |l| &l.on_inexact_decimal).unwrap_or(OnInexactDecimal::DeadLetter),
            on_inexact_time: pick(layers, |l| &l.on_inexact_time).unwrap_or(OnInexactTime::DeadLetter),
            on_naive_timestamp: pick(layers, |l| &l.on_naive_timestamp).unwrap_or(OnNaiveTimestamp::DeadLetter),
            time_unit: pick(layers, |l| &l.time_unit).flatten(),
            coerce: pick(layers, |l| &l.coerce).unwrap_or(Coerce::Strict),
            partition_by: pick(layers, |l| &l.partition_by).unwrap_or_default(),
            sort_by: pick(layers, |l| &l.sort_by).unwrap_or_default(),
            properties: pick(layers, |l| &l.properties).unwrap_or_default(),
            checks: pick(layers, |l| &l.checks).unwrap_or_default(),
            columns: pick(layers, |l| &l.columns).unwrap_or_default(),
        }
    }

    /// The settings of the column called `name`, compared without regard to case.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnSettings> {
        let exact = self.columns.get(name);
        exact.or_else(|| self.columns.iter().find(|(key, _)| key.to_lowercase() == name.to_lowercase()).map(|(_, settings)| settings))
    }
}

impl Default for TableSettings {
    fn default() -> Self {
        Self::resolve(&[])
    }
}

fn version_source(text: &str) -> Option<VersionSource> {
    match text {
        "" => None,
        "@version" => Some(VersionSource::EventVersion),
        "@event_time" => Some(VersionSource::EventTime),
        column => Some(VersionSource::Column(column.to_owned())),
    }
}
