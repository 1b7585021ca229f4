//! `sluice validate`: the configuration and the tables that it names, all problems together.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sluice_ingest::Ingest;
use sluice_model::TableName;
use sluice_pipeline::settings::OnMissingTable;
use sluice_table::{ledger, schema};

use crate::failure::Failure;
use crate::output::Output;

struct Finding {
    table: TableName,
    problem: Option<String>,
    note: String,
}

/// Checks everything that can be checked without a record. A small file is written into the warehouse and deleted again.
///
/// # Errors
/// Exit code 2 when the configuration is wrong, 4 when a table is.
pub(crate) async fn run(config: &Path, output: &Output) -> Result<(), Failure> {
    sluice_maintain::Configuration::read(config).await?;
    let ingest = super::open(config).await?;
    let mut names: Vec<TableName> = ingest.settings.configured_tables().collect();
    names.extend(ingest.catalog.tables().await?);
    names.sort_unstable();
    names.dedup();
    let warehouse = ingest.catalog.check_warehouse().await?;
    let server = ingest.catalog.check_server().await?;
    let topic = ingest.topic.check().await.map_err(|error| Failure::check(error.to_string()))?;
    let mut findings = Vec::new();
    for name in names {
        findings.push(check(&ingest, name).await);
    }
    print(&findings, (&warehouse, server.as_deref(), topic.as_deref()), output);
    let wrong = findings.iter().filter(|finding| finding.problem.is_some()).count();
    if wrong == 0 { Ok(()) } else { Err(Failure::check(format!("{wrong} table(s) have problems"))) }
}

async fn check(ingest: &Ingest, table: TableName) -> Finding {
    match look(ingest, &table).await {
        Ok(note) => Finding { table, problem: None, note },
        Err(problem) => Finding { table, problem: Some(problem), note: String::new() },
    }
}

/// What a record for the table would meet: its settings, its schema, its ledger.
async fn look(ingest: &Ingest, table: &TableName) -> Result<String, String> {
    let operations = ingest.catalog.load(table).await.map_err(|error| error.to_string())?;
    let Some(operations) = operations else {
        let settings = ingest.settings.table(table, &BTreeMap::new()).map_err(|problems| listed(&problems))?;
        return match settings.on_missing_table {
            OnMissingTable::Create => Ok("does not exist yet; the first records create it".to_owned()),
            OnMissingTable::DeadLetter => Err("does not exist, and on_missing_table is \"dead-letter\"".to_owned()),
        };
    };
    let version = operations.refresh().await.map_err(|error| error.to_string())?;
    let properties = version.metadata.properties().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let settings = ingest.settings.table(table, &properties).map_err(|problems| listed(&problems))?;
    let uuid = version.metadata.uuid().to_string();
    if settings.uuid.as_ref().is_some_and(|expected| !expected.eq_ignore_ascii_case(&uuid)) {
        return Err(format!("has the uuid {uuid}, the settings expect another: TABLE_REPLACED"));
    }
    let columns = schema::to_model(&version.metadata).map_err(|error| error.to_string())?.columns.len();
    ledger::read(&version.metadata).map_err(|error| error.to_string())?;
    Ok(format!("{columns} columns, mode {:?}, format v{}", settings.mode, version.metadata.format_version() as u8))
}

fn listed(problems: &[sluice_model::config::ConfigProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn print(findings: &[Finding], (warehouse, server, topic): (&str, Option<&str>, Option<&str>), output: &Output) {
    let tables: Vec<Value> =
        findings.iter().map(|finding| json!({"table": finding.table, "problem": finding.problem, "note": finding.note})).collect();
    let value = json!({"configuration": "valid", "warehouse": warehouse, "server": server, "error_topic": topic, "tables": tables});
    output.result(&value, |output| {
        output.good("the configuration is valid, the catalog answers");
        for note in [Some(warehouse), server, topic].into_iter().flatten() {
            output.good(note);
        }
        for finding in findings {
            match &finding.problem {
                Some(problem) => output.bad(&format!("  {}: {problem}", finding.table)),
                None => output.line(&format!("  {}: {}", finding.table, finding.note)),
            }
        }
    });
}
