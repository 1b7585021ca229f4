//! `sluice rewind`: a table is taken back to before some offsets.

use serde_json::json;
use sluice_ingest::Ingest;
use sluice_model::Deadline;
use sluice_redrive::rewind::{RewindEnd, RewindReply, RewindRequest};
use sluice_redrive::{Mode, Redrive};

use crate::cli::RewindArgs;
use crate::failure::Failure;
use crate::output::Output;

/// Takes a table back, or tells what that would do.
///
/// # Errors
/// Exit code 3 when there is no such table, 4 when its history does not allow it, 1 when the commit failed.
pub(crate) async fn run(ingest: Ingest, args: RewindArgs, output: &Output) -> Result<(), Failure> {
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Execute };
    let request = RewindRequest { table: args.table, to: args.to, mode };
    let reply = (Redrive { ingest }).rewind(&request, Deadline::NONE).await?;
    output.result(&json!(reply), |output| print(&reply, output));
    Ok(())
}

fn print(reply: &RewindReply, output: &Output) {
    let RewindReply { table, from_snapshot, to_snapshot, left_behind, .. } = reply;
    match reply.end {
        RewindEnd::NothingToDo => output.good(&format!("`{table}` is not beyond that position: nothing to do")),
        RewindEnd::Planned => output.heading(&format!(
            "`{table}` would go back from snapshot {from_snapshot} to {to_snapshot}, {left_behind} snapshot(s) left behind"
        )),
        RewindEnd::Done => output
            .good(&format!("`{table}` went back from snapshot {from_snapshot} to {to_snapshot}, {left_behind} snapshot(s) left behind")),
    }
    if !reply.replay.is_empty() {
        output.line("replay the source from:");
        let rows = reply.replay.iter().map(|replay| {
            let key = &replay.key;
            vec![key.topic.to_string(), key.partition.to_string(), replay.from.to_string(), format!("{} epoch {}", key.source, key.epoch)]
        });
        output.table(&["topic", "partition", "offset", "source"], &rows.collect::<Vec<_>>());
    }
    if reply.dead_letters > 0 {
        let count = reply.dead_letters;
        output.line(&format!(
            "{count} refused record(s) of the table stand from there on in the error table: a replay does not apply them, `sluice errors redrive --table {table}` does"
        ));
    }
    if reply.reopened > 0 {
        let verb = if reply.end == RewindEnd::Planned { "would be" } else { "are" };
        output.line(&format!("{} record(s) that were redriven {verb} open again in the error table", reply.reopened));
    }
    reply.warnings.iter().for_each(|warning| output.bad(warning));
    match reply.end {
        RewindEnd::Planned => output.faint("pause what writes to the table, then run it without --dry-run"),
        RewindEnd::NothingToDo | RewindEnd::Done => {}
    }
}
