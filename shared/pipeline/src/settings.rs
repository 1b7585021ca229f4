//! The settings of a table: CONFIG's `[table_defaults]`, `[tables."x"]` and `sluice.*` table properties, layered.
//!
//! Each layer is a [`TableOverrides`], where every key may be absent. [`TableSettings::resolve`] takes the first layer that has a
//! key; the order is `[tables."x"]`, `[table_defaults]`, the table's property, the default.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_model::{ColumnType, SortField, TimeUnit, TransformedColumn};

use crate::check::Check;
use crate::type_text::parse_column_type;

/// Declares an enum of choices with its kebab-case spellings.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    };
}

choice! {
    /// How changes reach the table.
    WriteMode {
        /// Upsert where the table has a key, else append.
        Auto,
        /// Every insert, snapshot and update adds a row.
        Append,
        /// The newest change of a key replaces its row.
        Upsert,
        /// Every event adds a row, its meaning in `_op`.
        Changelog,
    }
}
choice! {
    /// The form of deletes.
    DeleteForm {
        /// Equality delete files.
        Equality,
        /// Position delete files; deletion vectors on v3.
        Position,
        /// Data files are rewritten.
        CopyOnWrite,
    }
}
choice! {
    /// What happens when the table does not exist.
    OnMissingTable {
        /// The record is refused.
        DeadLetter,
        /// The table is created.
        Create,
    }
}
choice! {
    /// What happens to the records of a table in fatal trouble.
    OnUnavailable {
        /// They are refused as `TABLE_UNAVAILABLE`.
        DeadLetter,
        /// The invocation fails, the partition waits.
        Block,
    }
}
choice! {
    /// An upsert on a table without a key.
    OnMissingKey {
        /// The record is refused.
        DeadLetter,
        /// The row is appended.
        Append,
    }
}
choice! {
    /// A field without a column.
    OnUnknownColumn {
        /// The record is refused.
        DeadLetter,
        /// The field is left out.
        Ignore,
        /// The column is added.
        Add,
    }
}
choice! {
    /// A value or declared type wider than the column.
    OnWiderType {
        /// The column is promoted where Iceberg allows it.
        Promote,
        /// The record is refused.
        DeadLetter,
    }
}
choice! {
    /// A null in a required column.
    OnMissingRequired {
        /// The record is refused.
        DeadLetter,
        /// The column becomes optional; never a key column.
        Relax,
    }
}
choice! {
    /// A truncate event.
    OnTruncate {
        /// It is refused.
        DeadLetter,
        /// The table is emptied.
        DeleteAll,
        /// It counts as control.
        Ignore,
    }
}
choice! {
    /// A DDL event.
    OnSchemaChange {
        /// It counts as control.
        Record,
        /// Columns that it lists and the table lacks are added.
        Apply,
    }
}
choice! {
    /// A change older than the stored version.
    OnStale {
        /// It is skipped and counted.
        Skip,
        /// It is refused.
        DeadLetter,
    }
}
choice! {
    /// A row with unchanged-value markers.
    OnPartialRow {
        /// The stored values are kept.
        Merge,
        /// It is refused.
        DeadLetter,
    }
}
choice! {
    /// A field that stands twice.
    OnDuplicateField {
        /// The record is refused.
        DeadLetter,
        /// The last one counts.
        Last,
    }
}
choice! {
    /// NaN in a column that cannot hold it.
    OnNan {
        /// The record is refused.
        DeadLetter,
        /// Null is stored.
        Null,
    }
}
choice! {
    /// Infinity in a column that cannot hold it.
    OnInfinity {
        /// The record is refused.
        DeadLetter,
        /// Null is stored.
        Null,
        /// The last or first instant is stored.
        Clamp,
    }
}
choice! {
    /// A time that is no time of day.
    OnTimeOutOfDay {
        /// The record is refused.
        DeadLetter,
    }
}
choice! {
    /// Digits beyond the scale.
    OnInexactDecimal {
        /// The record is refused.
        DeadLetter,
        /// Halves go to the even neighbour.
        HalfEven,
        /// Halves go away from zero.
        HalfUp,
    }
}
choice! {
    /// Digits finer than the column's time unit.
    OnInexactTime {
        /// The record is refused.
        DeadLetter,
        /// They are cut off.
        Truncate,
    }
}
choice! {
    /// Text where a number or boolean is expected.
    Coerce {
        /// It is refused.
        Strict,
        /// It is read.
        Lenient,
    }
}
choice! {
    /// The text form of bytes.
    BinaryText {
        /// Base64 with padding.
        Base64,
        /// Hexadecimal, with or without 0x.
        Hex,
    }
}
choice! {
    /// What objects and arrays become in a string column.
    JsonColumn {
        /// Their source text without blanks.
        Text,
    }
}

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

impl TableOverrides {
    /// Prefix of the table properties that are settings.
    pub const PROPERTY_PREFIX: &'static str = "sluice.";

    /// Reads a layer from a section of the file.
    pub fn from_section(mut section: Section, problems: &mut Problems) -> Self {
        let mut overrides = Self::read_choices(&mut section, problems);
        overrides.read_values(&mut section, problems);
        section.finish(problems);
        overrides
    }

    /// Reads the layer that a table's properties give. Lists and tables of settings stand there as JSON text.
    pub fn from_properties<'a>(properties: impl Iterator<Item = (&'a String, &'a String)>, problems: &mut Problems) -> Self {
        let own = properties.filter_map(|(name, value)| Some((name.strip_prefix(Self::PROPERTY_PREFIX)?, value)));
        let settings = own.filter(|(name, _)| !name.contains('.') && *name != "ledger").map(|(name, value)| {
            let structured = matches!(name, "key" | "partition_by" | "sort_by" | "properties" | "checks" | "columns");
            let parsed = if structured { serde_json::from_str(value).ok() } else { None };
            (name.to_owned(), parsed.unwrap_or_else(|| Value::String(value.clone())))
        });
        let section = Section::new("sluice", Value::Object(settings.collect()), problems);
        Self::from_section(section, problems)
    }

    fn read_choices(section: &mut Section, problems: &mut Problems) -> Self {
        Self {
            mode: section.read("mode", problems),
            deletes: section.read("deletes", problems),
            on_missing_table: section.read("on_missing_table", problems),
            on_unavailable: section.read("on_unavailable", problems),
            on_missing_key: section.read("on_missing_key", problems),
            on_unknown_column: section.read("on_unknown_column", problems),
            on_wider_type: section.read("on_wider_type", problems),
            on_missing_required: section.read("on_missing_required", problems),
            on_truncate: section.read("on_truncate", problems),
            on_schema_change: section.read("on_schema_change", problems),
            on_stale: section.read("on_stale", problems),
            on_partial_row: section.read("on_partial_row", problems),
            on_duplicate_field: section.read("on_duplicate_field", problems),
            on_nan: section.read("on_nan", problems),
            on_infinity: section.read("on_infinity", problems),
            on_time_out_of_day: section.read("on_time_out_of_day", problems),
            on_inexact_decimal: section.read("on_inexact_decimal", problems),
            on_inexact_time: section.read("on_inexact_time", problems),
            coerce: section.read("coerce", problems),
            ..Self::default()
        }
    }

    fn read_values(&mut self, section: &mut Section, problems: &mut Problems) {
        self.key = section.read("key", problems);
        self.uuid = section.read("uuid", problems);
        self.document = section.read("document", problems);
        self.version = section.read("version", problems);
        self.soft_delete = section.read("soft_delete", problems);
        self.on_naive_timestamp = section.parse("on_naive_timestamp", naive_timestamp, problems);
        self.time_unit = section.parse("time_unit", time_unit, problems);
        self.partition_by = section.parse_list("partition_by", TransformedColumn::parse, problems);
        self.sort_by = section.parse_list("sort_by", SortField::parse, problems);
        self.properties = section.read("properties", problems);
        self.checks = section.parse_list("checks", Check::parse, problems);
        self.columns = columns(section, problems);
    }
}

fn naive_timestamp(text: &str) -> Result<OnNaiveTimestamp, String> {
    if text == "dead-letter" {
        return Ok(OnNaiveTimestamp::DeadLetter);
    }
    match jiff::tz::TimeZone::get(text) {
        Ok(_) => Ok(OnNaiveTimestamp::Zone(text.to_owned())),
        Err(_) => Err(format!("`{text}` is neither \"dead-letter\" nor an IANA time zone")),
    }
}

fn time_unit(text: &str) -> Result<Option<TimeUnit>, String> {
    match text {
        "" => Ok(None),
        "s" => Ok(Some(TimeUnit::Seconds)),
        "ms" => Ok(Some(TimeUnit::Millis)),
        "us" => Ok(Some(TimeUnit::Micros)),
        "ns" => Ok(Some(TimeUnit::Nanos)),
        other => Err(format!("`{other}` is no unit: expected s, ms, us or ns")),
    }
}

fn decimal_mark(text: &str) -> Result<char, String> {
    match text {
        "." => Ok('.'),
        "," => Ok(','),
        other => Err(format!("`{other}` is no decimal mark: expected \".\" or \",\"")),
    }
}

fn columns(section: &mut Section, problems: &mut Problems) -> Option<BTreeMap<String, ColumnSettings>> {
    let value = section.take("columns")?;
    let mut holder = Section::new(section.path(), Value::Object([("columns".to_owned(), value)].into_iter().collect()), problems);
    let inner = holder.sections("columns", problems);
    Some(inner.into_iter().map(|(name, column)| (name, column_settings(column, problems))).collect())
}

fn column_settings(mut section: Section, problems: &mut Problems) -> ColumnSettings {
    let settings = ColumnSettings {
        column_type: section.parse("type", parse_column_type, problems),
        rename_of: section.read("rename_of", problems),
        time_unit: section.parse("time_unit", time_unit, problems).flatten(),
        binary: section.read("binary", problems),
        json: section.read("json", problems),
        decimal_mark: section.parse("decimal_mark", decimal_mark, problems),
    };
    section.finish(problems);
    settings
}

/// The problems that only a resolved table shows: key types that Iceberg forbids, transforms that no declared type can take, forms that
/// this version cannot write.
pub fn check_settings(path: &str, settings: &TableSettings, problems: &mut Problems) {
    for key in &settings.key {
        if let Some(ColumnType::Float | ColumnType::Double) = settings.column(key).and_then(|column| column.column_type.as_ref()) {
            let message = format!("column `{key}` is float or double, which Iceberg forbids as an identifier field; declare an exact type");
            problems.add(ConfigCode::KeyTypeNotAllowed, &format!("{path}.key"), message);
        }
    }
    for field in &settings.partition_by {
        let declared = settings.column(&field.column).and_then(|column| column.column_type.as_ref());
        if let Some(kind) = declared
            && !crate::type_text::transform_fits(field.transform, kind)
        {
            problems.add(ConfigCode::ConfigInvalid, &format!("{path}.partition_by"), format!("`{field}` cannot be applied to type {kind}"));
        }
    }
    match settings.deletes {
        DeleteForm::Equality => {}
        DeleteForm::Position | DeleteForm::CopyOnWrite => {
            problems.add(ConfigCode::ConfigUnsupported, &format!("{path}.deletes"), "this version writes equality deletes only");
        }
    }
}
