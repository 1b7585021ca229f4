//! `sluice errors redrive`: refused records are tried again.

use serde_json::json;
use sluice_ingest::Ingest;
use sluice_model::Deadline;
use sluice_redrive::{Fate, Group, Redrive, RedriveError, Reply, Request};

use crate::cli::RedriveArgs;
use crate::failure::Failure;
use crate::output::Output;

/// Tries refused records again, or tells what would become of them.
///
/// # Errors
/// Exit code 2 for a wrong request, 1 when not all could be finished.
pub(crate) async fn run(ingest: Ingest, args: &RedriveArgs, output: &Output) -> Result<(), Failure> {
    let request = Request {
        table: args.table.clone(),
        code: args.code.clone(),
        since: args.since.clone(),
        until: args.until.clone(),
        offsets: args.offsets.clone(),
        limit: args.limit,
        dry_run: Some(args.dry_run),
        overwrite: args.overwrite,
    };
    match (Redrive { ingest }).run(&request, Deadline::NONE).await {
        Ok(reply) => {
            print(&reply, output);
            Ok(())
        }
        Err(error) => {
            if let RedriveError::Unfinished(reply) = &error {
                print(reply, output);
            }
            Err(error.into())
        }
    }
}

fn print(reply: &Reply, output: &Output) {
    output.result(&json!(reply), |output| {
        let rows: Vec<Vec<String>> = reply.groups.iter().map(row).collect();
        let header = ["table", "was refused as", if reply.dry_run { "would be" } else { "is" }, "records", "for example", "why"];
        output.table(&header, &rows);
        let fates: Vec<String> = reply.fates.iter().map(|(fate, count)| format!("{count} {}", word(*fate))).collect();
        let fates = if fates.is_empty() { "nothing to do".to_owned() } else { fates.join(", ") };
        output.good(&format!("{} refused record(s): {fates}", reply.selected));
        if reply.reopened > 0 {
            output.line(&format!("{} resolved record(s) of tables that were taken back are open again", reply.reopened));
        }
        if reply.left > 0 {
            output.bad(&format!("{} not come to; run it again", reply.left));
        }
        if reply.dry_run {
            output.faint("nothing was changed; without --dry-run it is done");
        } else if reply.count(Fate::Cut) > 0 {
            output.faint("cut records are only at the source: produce them again, and raise errors.max_raw_bytes");
        }
    });
}

fn row(group: &Group) -> Vec<String> {
    let fate = match group.refused_as {
        Some(code) => format!("refused as {code}"),
        None => word(group.fate).to_owned(),
    };
    vec![
        group.table.clone().unwrap_or_default(),
        group.code.clone(),
        fate,
        group.records.to_string(),
        group.example.clone(),
        group.detail.clone().unwrap_or_default(),
    ]
}

const fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Applied => "applied",
        Fate::Stale => "stale",
        Fate::Control => "no row",
        Fate::Decided => "decided by a run before",
        Fate::Duplicate => "a duplicate",
        Fate::Refused => "refused again",
        Fate::Cut => "cut",
        Fate::Unfinished => "unfinished",
    }
}
