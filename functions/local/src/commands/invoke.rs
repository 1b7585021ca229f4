//! `sluice invoke`: a function, here, with the events in files.

use std::path::Path;

use serde_json::json;
use sluice_ingest::{Ingest, Reply};
use sluice_model::{BatchTally, Deadline};

use crate::cli::{Function, InvokeArgs};
use crate::failure::Failure;
use crate::output::Output;

/// Invokes the function once for each event.
///
/// # Errors
/// The first invocation that fails ends the command.
pub(crate) async fn run(ingest: &Ingest, args: &InvokeArgs, output: &Output) -> Result<(), Failure> {
    for path in &args.events {
        let event = read(path)?;
        let reply = match args.function {
            Function::Ingest => ingest.invoke(&event, Deadline::NONE).await?,
        };
        print(&path.display().to_string(), &reply, output);
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::not_found(format!("{}: {error}", path.display()), "events/kafka/ has sample events"))
}

/// Prints what became of one event.
pub(crate) fn print(event: &str, reply: &Reply, output: &Output) {
    output.result(&json!({"event": event, "reply": reply}), |output| {
        output.heading(event);
        output.line(&format!("  {}", sentence(&reply.tally)));
        let rows: Vec<Vec<String>> = reply
            .tables
            .iter()
            .map(|report| {
                let tally = &report.tally;
                let counts = [tally.rows, tally.deletes, tally.control, tally.stale, tally.replayed, tally.dead_letters];
                let snapshot = report.snapshot_id.map_or_else(|| "-".to_owned(), |id| id.to_string());
                let mut row = vec![format!("  {}", report.table)];
                row.extend(counts.map(|count| if count == 0 { "·".to_owned() } else { count.to_string() }));
                row.extend([report.added_files.to_string(), snapshot, schema(report.schema).to_owned()]);
                row
            })
            .collect();
        if !rows.is_empty() {
            output.table(&["  table", "rows", "deletes", "control", "stale", "replayed", "dead", "files", "snapshot", "schema"], &rows);
        }
        for (code, count) in &reply.tally.dead_letters_by_code {
            output.bad(&format!("  {count} × {code}"));
        }
        output.line("");
    });
}

const fn schema(report: sluice_ingest::reply::SchemaReport) -> &'static str {
    match report {
        sluice_ingest::reply::SchemaReport::Unchanged => "",
        sluice_ingest::reply::SchemaReport::Evolved => "evolved",
        sluice_ingest::reply::SchemaReport::Created => "created",
    }
}

/// The account in words: what is 0 is left out.
fn sentence(tally: &BatchTally) -> String {
    let counts = [
        (tally.rows, "rows"),
        (tally.deletes, "deletes"),
        (tally.control, "control"),
        (tally.stale, "stale"),
        (tally.replayed, "replayed"),
        (tally.dead_letters, "dead letters"),
    ];
    let parts: Vec<String> = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    format!("{} received = {}", tally.received, if parts.is_empty() { "0".to_owned() } else { parts.join(" + ") })
}
