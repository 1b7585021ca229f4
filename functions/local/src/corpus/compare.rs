//! What came out against what must come out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sluice_ingest::Ingest;
use sluice_model::{BatchTally, ColumnType, TableName, TableSchema};
use sluice_table::schema;

use super::case::{Case, ExpectedLetter, ExpectedTable};
use crate::commands::table::rows;

/// All differences; none means that the case passes.
///
/// # Errors
/// A sentence when the catalog or a table cannot be read.
pub(crate) async fn differences(ingest: &Ingest, case: &Case, tally: &BatchTally) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let existing = ingest.catalog.tables().await.map_err(|error| error.to_string())?;
    let before: BTreeMap<&str, BTreeMap<&str, &str>> = case
        .tables
        .iter()
        .map(|table| (table.name.as_str(), table.columns.iter().map(|column| (column.name.as_str(), column.kind.as_str())).collect()))
        .collect();
    for name in &existing {
        let is_error_table = *name == ingest.settings.errors.table;
        if !is_error_table && !case.expect.tables.contains_key(name.as_str()) && !before.contains_key(name.as_str()) {
            found.push(format!("table {name} must not exist"));
        }
    }
    for (name, expected) in &case.expect.tables {
        found.extend(table(ingest, name, expected, before.get(name.as_str())).await?);
    }
    found.extend(letters(ingest, &case.expect.dead_letters).await?);
    found.extend(case.expect.counts.iter().flat_map(|counts| count_differences(counts, tally)));
    if tally.unbalanced() != 0 {
        found.push(format!("unbalanced is {}", tally.unbalanced()));
    }
    Ok(found)
}

async fn table(
    ingest: &Ingest,
    name: &str,
    expected: &ExpectedTable,
    before: Option<&BTreeMap<&str, &str>>,
) -> Result<Vec<String>, String> {
    let parsed = TableName::parse(name).ok_or_else(|| format!("`{name}` is no table name"))?;
    let operations = ingest.catalog.load(&parsed).await.map_err(|error| error.to_string())?;
    let Some(operations) = operations else { return Ok(vec![format!("table {name} does not exist")]) };
    let version = operations.refresh().await.map_err(|error| error.to_string())?;
    let schema = schema::to_model(&version.metadata).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let columns: BTreeMap<String, String> = schema.columns.iter().map(|column| (column.name.clone(), column.kind.to_string())).collect();
    let wanted = match (&expected.columns, before) {
        (Some(columns), _) => columns.clone(),
        (None, Some(before)) => before.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect(),
        (None, None) => columns.clone(),
    };
    if columns != wanted {
        found.push(format!("table {name} has columns {columns:?}, expected {wanted:?}"));
    }
    let actual = rows(&version).await.map_err(|failure| failure.message)?;
    let mut actual: Vec<String> = actual.iter().map(|row| canonical_row(row, &schema)).collect();
    let mut wanted: Vec<String> = expected.rows.iter().map(|row| canonical_row(row, &schema)).collect();
    actual.sort_unstable();
    wanted.sort_unstable();
    if actual != wanted {
        found.push(format!("table {name} holds {actual:?}, expected {wanted:?}"));
    }
    Ok(found)
}

fn canonical_row(row: &Map<String, Value>, schema: &TableSchema) -> String {
    let sorted: BTreeMap<&String, &Value> = row.iter().collect();
    let cells = sorted.into_iter().map(|(name, value)| {
        let kind = schema.column(name).map(|column| &column.kind);
        format!("{name}={}", canonical(value, kind))
    });
    cells.collect::<Vec<_>>().join(" ")
}

/// A value as text that is equal exactly when the values are.
fn canonical(value: &Value, kind: Option<&ColumnType>) -> String {
    match (value, kind) {
        (Value::Number(number), Some(ColumnType::Double)) => {
            number.as_f64().map_or_else(|| number.to_string(), |double| format!("{double:?}"))
        }
        (Value::Number(number), Some(ColumnType::Float)) => {
            number.as_f64().map_or_else(|| number.to_string(), |double| format!("{:?}", double as f32))
        }
        (Value::Array(elements), Some(ColumnType::List(element))) => {
            let elements: Vec<String> = elements.iter().map(|value| canonical(value, Some(&element.kind))).collect();
            format!("[{}]", elements.join(","))
        }
        (Value::Array(pairs), Some(ColumnType::Map(key, value))) => {
            let entry = |pair: &Value| {
                let part = |index: usize, kind: &ColumnType| canonical(pair.get(index).unwrap_or(&Value::Null), Some(kind));
                format!("{}:{}", part(0, &key.kind), part(1, &value.kind))
            };
            let mut entries: Vec<String> = pairs.iter().map(entry).collect();
            entries.sort_unstable();
            format!("{{{}}}", entries.join(","))
        }
        (Value::Object(fields), Some(ColumnType::Struct(columns))) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let cells = sorted.into_iter().map(|(name, value)| {
                let kind = columns.iter().find(|column| column.name == *name).map(|column| &column.kind);
                format!("{name}={}", canonical(value, kind))
            });
            format!("<{}>", cells.collect::<Vec<_>>().join(" "))
        }
        (other, _) => other.to_string(),
    }
}

async fn letters(ingest: &Ingest, expected: &[ExpectedLetter]) -> Result<Vec<String>, String> {
    let operations = ingest.catalog.load(&ingest.settings.errors.table).await.map_err(|error| error.to_string())?;
    let stored = match operations {
        None => Vec::new(),
        Some(operations) => {
            let version = operations.refresh().await.map_err(|error| error.to_string())?;
            rows(&version).await.map_err(|failure| failure.message)?
        }
    };
    let mut left: Vec<ExpectedLetter> = stored.iter().map(letter).collect();
    let described = left.iter().zip(&stored).map(|(letter, row)| format!("{letter:?}: {}", row.get("detail").unwrap_or(&Value::Null)));
    let described: Vec<String> = described.collect();
    let mut found = Vec::new();
    for wanted in expected {
        let same = |letter: &ExpectedLetter| {
            let place = (&letter.topic, letter.partition, letter.offset) == (&wanted.topic, wanted.partition, wanted.offset);
            place && letter.code == wanted.code && (wanted.row.is_none() || wanted.row == letter.row)
        };
        match left.iter().position(same) {
            Some(index) => {
                left.remove(index);
            }
            None => found.push(format!("missing dead letter {wanted:?}; there are {described:?}")),
        }
    }
    found.extend(left.iter().map(|letter| format!("unexpected dead letter {letter:?} of {described:?}")));
    Ok(found)
}

fn letter(row: &Map<String, Value>) -> ExpectedLetter {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |name: &str| row.get(name).and_then(Value::as_i64).unwrap_or(-1);
    ExpectedLetter {
        topic: text("topic"),
        partition: number("partition"),
        offset: number("offset"),
        row: Some(number("row")),
        code: text("code"),
    }
}

fn count_differences(expected: &BTreeMap<String, u64>, tally: &BatchTally) -> Vec<String> {
    let actual = [
        ("rows", tally.rows),
        ("deletes", tally.deletes),
        ("control", tally.control),
        ("stale", tally.stale),
        ("replayed", tally.replayed),
        ("dead_letters", tally.dead_letters),
    ];
    let differing = actual.iter().filter(|(name, count)| expected.get(*name).is_some_and(|wanted| wanted != count));
    differing.map(|(name, count)| format!("{name} is {count}, expected {}", expected.get(*name).copied().unwrap_or_default())).collect()
}
