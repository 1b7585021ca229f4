//! `sluice table health`: the condition of tables.

use std::path::Path;

use serde_json::json;
use sluice_maintenance::Selector;
use sluice_maintenance::health::{Health, Storage, health, html};
use sluice_model::Deadline;

use crate::failure::Failure;
use crate::output::Output;

/// Shows the condition of tables, and writes a page when a file is named.
///
/// # Errors
/// Exit code 3 when no table is selected.
pub(crate) async fn run(
    config: &Path,
    (tables, storage, page): (&[String], Storage, Option<&Path>),
    output: &Output,
) -> Result<(), Failure> {
    let maintain = super::maintain::open(config).await?;
    let configured = maintain.settings.selector.clone();
    let selector = if tables.is_empty() { configured } else { Selector { tables: tables.to_vec(), except: Vec::new() } };
    let context = maintain.context(Deadline::NONE);
    let mut found: Vec<Health> = Vec::new();
    for name in maintain.catalog.tables().await?.iter().filter(|name| selector.selects(name)) {
        found.extend(health(name, (&maintain.settings, storage), &context).await?);
    }
    if found.is_empty() {
        return Err(Failure::not_found("no table is selected", "`sluice table list` shows the tables of the catalog"));
    }
    found.iter().for_each(|health| output.result(&json!(health), |output| show(health, output)));
    if let Some(page) = page {
        let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", page.display()), "give another file with --html");
        std::fs::write(page, html(&found)).map_err(failed)?;
        output.line(&format!("wrote {}", page.display()));
    }
    Ok(())
}

fn show(health: &Health, output: &Output) {
    output.heading(health.table.as_str());
    let last = health.since_last_commit_ms.map_or_else(|| "never".to_owned(), |ms| format!("{} s ago", ms / 1_000));
    output.line(&format!("last commit      {last}"));
    output.line(&format!(
        "data files       {} ({} small), {} bytes, {} rows",
        health.data_files, health.small_files, health.data_bytes, health.records
    ));
    output.line(&format!("equality deletes {} in {} files", health.equality_deletes, health.equality_delete_files));
    output.line(&format!("position deletes {} in {} files", health.position_deletes, health.position_delete_files));
    output.line(&format!("snapshots        {}", health.snapshots));
    output.line(&format!("manifests        {}, {} bytes", health.manifests, health.manifest_bytes));
    if let Some(bytes) = health.storage_bytes {
        output.line(&format!(
            "storage          {bytes} bytes, {} % of it needed by the current rows",
            health.data_bytes * 100 / bytes.max(1)
        ));
    }
    health.due.iter().for_each(|(job, what)| output.line(&format!("{job:<16} {what}")));
    output.line("");
}
