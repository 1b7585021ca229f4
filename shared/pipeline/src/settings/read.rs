//! Reading table settings from a section of the file or from a table's properties, and what only a resolved table shows.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_model::{ColumnType, SortField, TimeUnit, TransformedColumn};

use super::{ColumnSettings, DeleteForm, OnNaiveTimestamp, TableOverrides, TableSettings};
use crate::check::Check;
use crate::type_text::{parse_column_type, transform_fits};

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
            && !transform_fits(field.transform, kind)
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
