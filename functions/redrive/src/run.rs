//! A whole run.

use sluice_deadletter::ErrorQueue;
use sluice_ingest::Ingest;
use sluice_model::Deadline;
use sluice_table::TableError;

use crate::deliver::{Delivery, told};
use crate::reopen::{reopen, taken_back};
use crate::reply::{Fate, Reply};
use crate::select::{Chosen, choose};
use crate::{Mode, RedriveError, Request, Selection};

/// The function: the pipeline of ingest, applied to records that it refused.
pub struct Redrive {
    /// The pipeline. Its error topic is not used: the records are there already.
    pub ingest: Ingest,
}

impl Redrive {
    /// Tries refused records again, those that an interrupted run has begun first. Records of other sources than this configuration's are left alone.
    ///
    /// # Errors
    /// [`RedriveError`]; whatever was begun is finished by the next run.
    pub async fn run(&self, request: &Request, deadline: Deadline) -> Result<Reply, RedriveError> {
        let selection = request.selection().map_err(RedriveError::Request)?;
        let failed = |source| RedriveError::ErrorTable { table: self.ingest.settings.errors.table.clone(), source };
        let reply = self.selected(&selection, deadline).await.map_err(failed)?;
        if reply.failures.is_empty() { Ok(reply) } else { Err(RedriveError::Unfinished(Box::new(reply))) }
    }

    async fn selected(&self, selection: &Selection, deadline: Deadline) -> Result<Reply, TableError> {
        let ingest = &self.ingest;
        let mut reply = Reply { dry_run: selection.mode == Mode::DryRun, ..Reply::default() };
        let (catalog, name) = (ingest.catalog.as_ref(), &ingest.settings.errors.table);
        let Some(mut queue) = ErrorQueue::open(catalog, name, &ingest.settings.source.id).await? else { return Ok(reply) };
        let mut entries = queue.entries().await?;
        let gone = taken_back(ingest, &queue, &entries).await?;
        match selection.mode {
            Mode::DryRun => reply.reopened = gone.len() as u64,
            Mode::Execute if gone.is_empty() => {}
            Mode::Execute => {
                reply.reopened = reopen(ingest, (&mut queue, &gone), deadline).await?;
                entries = queue.entries().await?;
            }
        }
        let chosen = choose(&entries, selection);
        count(&chosen, &mut reply);
        for entry in &chosen.cut {
            reply.tell(told(entry, None, (Fate::Cut, None)));
        }
        for rows in chosen.begun.iter().chain(&chosen.fresh) {
            if deadline.has_passed(ingest.clock.now_ms()) {
                reply.left += (rows.ids.len() + rows.duplicates.len()) as u64;
                continue;
            }
            Delivery { ingest, queue: &mut queue, selection, deadline, reply: &mut reply }.deliver(rows).await?;
        }
        Ok(reply)
    }
}

fn count(chosen: &Chosen, reply: &mut Reply) {
    let rows = |batches: &[crate::select::Rows]| batches.iter().map(|rows| (rows.ids.len() + rows.duplicates.len()) as u64).sum::<u64>();
    reply.taken_up = rows(&chosen.begun);
    reply.selected = reply.taken_up + rows(&chosen.fresh) + chosen.cut.len() as u64;
}
