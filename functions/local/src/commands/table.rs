//! `sluice table`: what the catalog and its tables hold.

use arrow_array::RecordBatch;
use serde_json::{Map, Value, json};
use sluice_ingest::Ingest;
use sluice_model::{OffsetLedger, TableName};
use sluice_table::{TableVersion, ledger, live_files, scan, schema};

use crate::cli::TableCommand;
use crate::failure::Failure;
use crate::output::Output;
use crate::value;

/// Shows tables.
///
/// # Errors
/// Exit code 3 when the table does not exist.
pub(crate) async fn run(ingest: &Ingest, command: &TableCommand, output: &Output) -> Result<(), Failure> {
    match command {
        TableCommand::List => list(ingest, output).await,
        TableCommand::Show { name } => show(&version(ingest, name).await?, name, output).await,
        TableCommand::Rows { name, limit } => {
            let rows = rows(&version(ingest, name).await?).await?;
            print_rows(&rows, *limit, output);
            Ok(())
        }
        TableCommand::Health { .. } => Err(Failure::failed("`table health` is run elsewhere", "")),
        TableCommand::History { name } => {
            history(&version(ingest, name).await?, output);
            Ok(())
        }
    }
}

/// The current version of a table.
///
/// # Errors
/// Exit code 3 when the table does not exist.
pub(crate) async fn version(ingest: &Ingest, name: &TableName) -> Result<TableVersion, Failure> {
    let operations = ingest.catalog.load(name).await?;
    let hint = "`sluice table list` shows the tables of the catalog";
    let operations = operations.ok_or_else(|| Failure::not_found(format!("there is no table `{name}`"), hint))?;
    Ok(operations.refresh().await?)
}

/// All rows of a table, as a reader sees them.
///
/// # Errors
/// What the storage said.
pub(crate) async fn rows(version: &TableVersion) -> Result<Vec<Map<String, Value>>, Failure> {
    let target = sluice_pipeline::arrow_schema(&schema::to_model(&version.metadata)?);
    let batches: Vec<RecordBatch> = scan(version, None, &target).await?;
    Ok(batches.iter().flat_map(value::rows).collect())
}

async fn list(ingest: &Ingest, output: &Output) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for name in ingest.catalog.tables().await? {
        let version = version(ingest, &name).await?;
        let snapshots = version.metadata.snapshots().len();
        let summary =
            version.metadata.current_snapshot().map(|snapshot| snapshot.summary().additional_properties.clone()).unwrap_or_default();
        let count = |key: &str| summary.get(key).cloned().unwrap_or_else(|| "0".to_owned());
        listed.push((name, snapshots, count("total-data-files"), count("total-delete-files")));
    }
    let json: Vec<Value> = listed
        .iter()
        .map(|(name, snapshots, data, deletes)| json!({"table": name, "snapshots": snapshots, "data_files": data, "delete_files": deletes}))
        .collect();
    output.result(&json!(json), |output| {
        let rows: Vec<Vec<String>> = listed
            .iter()
            .map(|(name, snapshots, data, deletes)| vec![name.to_string(), snapshots.to_string(), data.clone(), deletes.clone()])
            .collect();
        output.table(&["table", "snapshots", "data files", "delete files"], &rows);
    });
    Ok(())
}

async fn show(version: &TableVersion, name: &TableName, output: &Output) -> Result<(), Failure> {
    let schema = schema::to_model(&version.metadata)?;
    let files = live_files(version).await?;
    let ledger = ledger::read(&version.metadata)?;
    let columns: Vec<Vec<String>> = schema
        .columns
        .iter()
        .map(|column| {
            let key = if schema.identifier_ids.contains(&column.id) { "key" } else { "" };
            let required = if column.required { "required" } else { "" };
            vec![column.name.clone(), column.kind.to_string(), required.to_owned(), key.to_owned(), column.doc.clone().unwrap_or_default()]
        })
        .collect();
    let partitioning: Vec<String> =
        version.metadata.default_partition_spec().fields().iter().map(|field| format!("{} = {}", field.name, field.transform)).collect();
    let entries = ledger_entries(&ledger);
    let json = json!({
        "table": name, "uuid": version.metadata.uuid().to_string(), "location": version.metadata.location(),
        "metadata_location": version.metadata_location, "columns": columns, "partitioning": partitioning,
        "files": files.len(), "ledger": entries,
    });
    output.result(&json, |output| {
        output.heading(name.as_str());
        output.line(&format!("uuid      {}", version.metadata.uuid()));
        output.line(&format!("metadata  {}", version.metadata_location));
        output.line(&format!("files     {}", files.len()));
        output.line(&format!("partition {}", if partitioning.is_empty() { "none".to_owned() } else { partitioning.join(", ") }));
        output.table(&["column", "type", "", "", "doc"], &columns);
        for (partition, intervals) in &entries {
            output.line(&format!("ledger    {partition}: {intervals}"));
        }
    });
    Ok(())
}

fn ledger_entries(ledger: &OffsetLedger) -> Vec<(String, String)> {
    ledger.entries().map(|(key, entry)| (key.to_string(), entry.to_text())).collect()
}

/// Prints rows as a table, or as one JSON array.
pub(crate) fn print_rows(rows: &[Map<String, Value>], limit: usize, output: &Output) {
    let shown = if limit == 0 { rows.len() } else { rows.len().min(limit) };
    let rows_shown = &rows[..shown];
    output.result(&json!(rows_shown), |output| {
        let header: Vec<&str> = rows.first().map(|row| row.keys().map(String::as_str).collect()).unwrap_or_default();
        let cells: Vec<Vec<String>> = rows_shown.iter().map(|row| row.values().map(text).collect()).collect();
        output.table(&header, &cells);
        let more = if shown < rows.len() { format!(", {shown} shown; --limit 0 shows all") } else { String::new() };
        output.faint(&format!("{} row(s){more}", rows.len()));
    });
}

/// A cell for a person: text without quotes, long text cut.
fn text(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let text = text.replace(char::is_control, " ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn history(version: &TableVersion, output: &Output) {
    let mut snapshots: Vec<_> = version.metadata.snapshots().collect();
    snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.sequence_number()));
    let rows: Vec<Vec<String>> = snapshots
        .iter()
        .map(|snapshot| {
            let summary = snapshot.summary();
            let count = |key: &str| summary.additional_properties.get(key).cloned().unwrap_or_else(|| "0".to_owned());
            let ledger = summary.additional_properties.get(OffsetLedger::SUMMARY_KEY).cloned().unwrap_or_default();
            vec![
                snapshot.snapshot_id().to_string(),
                jiff::Timestamp::from_millisecond(snapshot.timestamp_ms()).map(|at| at.to_string()).unwrap_or_default(),
                summary.operation.as_str().to_owned(),
                count("added-records"),
                count("added-equality-deletes"),
                ledger.replace('\n', "; "),
            ]
        })
        .collect();
    let names = ["snapshot", "committed", "operation", "rows", "deletes", "ledger"];
    let json: Vec<Value> = rows
        .iter()
        .map(|row| Value::Object(names.iter().zip(row).map(|(name, cell)| ((*name).to_owned(), json!(cell))).collect()))
        .collect();
    output.result(&json!(json), |output| output.table(&names, &rows));
}
