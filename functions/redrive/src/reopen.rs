//! Rows that were resolved, but whose table has been taken back since: their effect is gone, so they are open again.

use std::collections::BTreeMap;

use sluice_deadletter::{Entry, EntryId, ErrorQueue, ErrorTableCommit, Settled};
use sluice_ingest::Ingest;
use sluice_model::{Coordinate, Coverage, Deadline, TableName};
use sluice_table::{TableError, ledger};

/// So many rows are opened in one commit.
const AT_ONCE: usize = 1_000;
/// How often rows are read again because the error table moved.
const MAX_TRIES: usize = 16;

/// The rows whose effect is not in their table: it stands there, and its ledger does not know their number. The entries must have been read before.
///
/// # Errors
/// What the catalog, a storage or a stored ledger said.
pub async fn taken_back(ingest: &Ingest, queue: &ErrorQueue, entries: &[Entry]) -> Result<Vec<EntryId>, TableError> {
    let mut by_table: BTreeMap<&str, Vec<(&Entry, i64)>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| matches!(&entry.settled, Settled::Resolved(how) if how == "applied" || how == "decided")) {
        if let (Some(table), Some(number)) = (entry.target.as_deref(), entry.redrive_offset) {
            by_table.entry(table).or_default().push((entry, number));
        }
    }
    let lane = queue.lane();
    let mut taken_back = Vec::new();
    for (table, resolved) in by_table {
        let Some(name) = TableName::parse(table) else { continue };
        let Some(operations) = ingest.catalog.load(&name).await? else { continue };
        let ledger = ledger::read(&operations.refresh().await?.metadata)?;
        let is_gone = |number: i64| ledger.coverage(&lane, Coordinate::record(number)) == Coverage::New;
        taken_back.extend(resolved.into_iter().filter(|(_, number)| is_gone(*number)).map(|(entry, _)| entry.id.clone()));
    }
    Ok(taken_back)
}

/// Opens rows again; how many.
///
/// # Errors
/// [`TableError`] when the commit failed or its outcome is unknown: the next run looks again.
pub async fn reopen(ingest: &Ingest, (queue, ids): (&mut ErrorQueue, &[EntryId]), deadline: Deadline) -> Result<u64, TableError> {
    let mut opened = 0;
    for some in ids.chunks(AT_ONCE) {
        opened += reopen_some(ingest, (queue, some), deadline).await?;
    }
    Ok(opened)
}

async fn reopen_some(ingest: &Ingest, (queue, ids): (&mut ErrorQueue, &[EntryId]), deadline: Deadline) -> Result<u64, TableError> {
    let tools = (&ingest.write_options(), &ingest.commit_context(deadline));
    for _ in 0..MAX_TRIES {
        let found = queue.rows(ids).await?;
        let resolved: Vec<usize> = (0..found.entries.len()).filter(|row| found.entries[*row].settled != Settled::Open).collect();
        if resolved.is_empty() {
            return Ok(0);
        }
        match queue.reopen((&found, &resolved), tools).await? {
            ErrorTableCommit::Done => return Ok(resolved.len() as u64),
            ErrorTableCommit::Moved => {}
        }
    }
    Err(TableError::OutOfAttempts {
        name: ingest.settings.errors.table.clone(),
        attempts: MAX_TRIES as u32,
        last: "other invocations keep writing".to_owned(),
    })
}
