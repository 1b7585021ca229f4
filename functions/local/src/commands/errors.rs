//! `sluice errors`: the records that were refused.

use base64::Engine as _;
use serde_json::{Map, Value, json};
use sluice_ingest::Ingest;

use crate::cli::ErrorsCommand;
use crate::failure::Failure;
use crate::output::Output;

type Row = Map<String, Value>;

/// Shows refused records.
///
/// # Errors
/// Exit code 3 when `show` finds no such record.
pub(crate) async fn run(ingest: &Ingest, command: &ErrorsCommand, output: &Output) -> Result<(), Failure> {
    let rows = all(ingest).await?;
    match command {
        ErrorsCommand::Redrive(_) => Err(Failure::failed("`errors redrive` is run elsewhere", "")),
        ErrorsCommand::List { all, code, table, limit } => {
            let is_open = |row: &Row| row.get("resolved_at").is_none_or(Value::is_null);
            let wanted = |row: &&Row| {
                (*all || is_open(row)) && matches(row, "code", code.as_deref()) && matches(row, "target_table", table.as_deref())
            };
            let found: Vec<Row> = rows.iter().filter(wanted).map(|row| summary(row, if *all { &ALL } else { &OPEN })).collect();
            super::table::print_rows(&found, *limit, output);
            Ok(())
        }
        ErrorsCommand::Show { coordinate } => {
            let found: Vec<&Row> = rows.iter().filter(|row| names(row, coordinate)).collect();
            if found.is_empty() {
                let hint = "`sluice errors list` shows their coordinates: topic:partition:offset";
                return Err(Failure::not_found(format!("no refused record at {coordinate}"), hint));
            }
            found.into_iter().for_each(|row| show(row, output));
            Ok(())
        }
    }
}

/// All refused records, newest first; none when the error table does not exist yet.
async fn all(ingest: &Ingest) -> Result<Vec<Row>, Failure> {
    let Some(operations) = ingest.catalog.load(&ingest.settings.errors.table).await? else { return Ok(Vec::new()) };
    let mut rows = super::table::rows(&operations.refresh().await?).await?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.get("arrived_at").map(Value::to_string)));
    Ok(rows)
}

fn matches(row: &Row, column: &str, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| row.get(column).and_then(Value::as_str) == Some(wanted))
}

fn coordinate(row: &Row) -> String {
    let field = |name: &str| row.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    let base = format!("{}:{}:{}", field("topic"), field("partition"), field("offset"));
    if row.get("row") == Some(&json!(0)) { base } else { format!("{base}:{}", field("row")) }
}

fn names(row: &Row, wanted: &str) -> bool {
    coordinate(row) == wanted || format!("{}:0", coordinate(row)) == wanted
}

/// What is shown of unresolved records, and of all.
const OPEN: [&str; 6] = ["code", "field", "target_table", "operation", "attempts", "detail"];
const ALL: [&str; 8] = ["code", "field", "target_table", "operation", "attempts", "resolution", "resolved_at", "detail"];

fn summary(row: &Row, shown: &[&str]) -> Row {
    let mut summary = Row::new();
    summary.insert("coordinate".to_owned(), json!(coordinate(row)));
    for name in shown {
        summary.insert((*name).to_owned(), row.get(*name).cloned().unwrap_or(Value::Null));
    }
    // What was never redriven has no number there, and an error table from before has not even the column.
    let attempts = summary.get("attempts").and_then(Value::as_i64).unwrap_or(0);
    summary.insert("attempts".to_owned(), json!(attempts));
    summary
}

fn show(row: &Row, output: &Output) {
    output.result(&json!(row), |output| {
        output.heading(&coordinate(row));
        for (name, value) in row.iter().filter(|(_, value)| !value.is_null()) {
            let text = match (raw_text(value), value) {
                (Some(text), _) => text,
                (None, Value::String(text)) => text.clone(),
                (None, other) => other.to_string(),
            };
            output.line(&format!("{name:<17} {text}"));
        }
    });
}

/// Bytes that are text, as text.
fn raw_text(value: &Value) -> Option<String> {
    let encoded = value.get("base64")?.as_str()?;
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(encoded).ok()?).ok()
}
