//! Doing what an expiry plan says: tell what only the expired snapshots reach, write it down, commit, delete.

use std::collections::BTreeSet;

use sluice_storage::MAX_DELETES;
use sluice_table::TableVersion;
use sluice_table::expire::{ExpireOutcome, commit_expire, normalised, only_reached_by, reachable};

use super::plan::{ExpirePlan, gc_forbidden};
use super::record::{self, Record};
use super::settings::ExpireSettings;
use crate::lease::Lease;
use crate::report::Work;
use crate::{MaintenanceError, Table};

pub(super) async fn execute(
    (table, lease): (&Table<'_>, &Lease),
    plan: &ExpirePlan,
    settings: &ExpireSettings,
) -> Result<Work, MaintenanceError> {
    let version = table.now().await?;
    if version.metadata.uuid() != plan.uuid {
        return Err(MaintenanceError::BadPlan(format!("the plan was made for another table than `{}` is now", table.name)));
    }
    if let Some(reason) = gc_forbidden(&version) {
        return Err(table.refused(reason));
    }
    let mut work = Work::default();
    for location in record::unfinished(table, version.metadata.location()).await? {
        finish((table, lease), (&location, &version), &mut work).await?;
    }
    let what = plan.expirable();
    if what.snapshots.is_empty() && what.refs.is_empty() {
        return Ok(work);
    }
    let reached = only_reached_by(&version, &what.snapshots).await?;
    let unreadable = reached.unreadable.len();
    let record = Record::new(plan.uuid, what.snapshots.iter().copied().collect(), reached);
    lease.check(table).await?;
    let location = record.write(table, version.metadata.location()).await?;
    let paths = match commit_expire(&*table.operations, (&version, &what, &settings.retention()), &table.context.commit()).await? {
        ExpireOutcome::Committed { version: now, .. } => {
            work.commits += 1;
            still_unneeded(record.in_order(), (&version, &now)).await?
        }
        ExpireOutcome::Stale { .. } => {
            work.conflicts += 1;
            work.left = "something of the plan must stay by now; the next run plans again".to_owned();
            forget(table, &location).await?;
            return Ok(work);
        }
    };
    if unreadable > 0 {
        work.notes.push(format!("the files of {unreadable} expired snapshots cannot be told; orphan removal finds them"));
    }
    delete((table, lease), (&location, paths), &mut work).await?;
    Ok(work)
}

/// What nobody needs after the commit either: somebody may have published an expired snapshot's files in a commit of their own, between our look and our commit.
async fn still_unneeded(paths: Vec<String>, (before, now): (&TableVersion, &TableVersion)) -> Result<Vec<String>, MaintenanceError> {
    if now.metadata.snapshots().all(|snapshot| before.metadata.snapshot_by_id(snapshot.snapshot_id()).is_some()) {
        return Ok(paths);
    }
    let needed = reachable(now).await?;
    Ok(paths.into_iter().filter(|path| !needed.contains(&normalised(path))).collect())
}

/// Finishes what an earlier run has written down.
async fn finish(
    (table, lease): (&Table<'_>, &Lease),
    (location, version): (&str, &TableVersion),
    work: &mut Work,
) -> Result<(), MaintenanceError> {
    let Some(record) = record::read(table, location).await? else { return Ok(()) };
    if record.uuid != version.metadata.uuid() {
        return Err(table.refused(format!("{location} belongs to another table that stood in the same place")));
    }
    if record.snapshots.iter().any(|id| version.metadata.snapshot_by_id(*id).is_some()) {
        // Its commit did not happen, so nothing was deleted.
        lease.check(table).await?;
        return forget(table, location).await;
    }
    // Much may have happened since: what is needed now is looked up anew.
    let needed = reachable(version).await?;
    let paths: Vec<String> = record.in_order().into_iter().filter(|path| !needed.contains(&normalised(path))).collect();
    work.notes.push(format!("finished an earlier run: {} objects", paths.len()));
    delete((table, lease), (location, paths), work).await
}

/// Deletes objects in order, and the record when all are gone.
async fn delete(
    (table, lease): (&Table<'_>, &Lease),
    (location, paths): (&str, Vec<String>),
    work: &mut Work,
) -> Result<(), MaintenanceError> {
    let mut left = 0_u64;
    let mut failed: BTreeSet<String> = BTreeSet::new();
    for batch in paths.chunks(MAX_DELETES) {
        if table.context.deadline.has_passed(table.context.now_ms()) {
            left += batch.len() as u64;
            continue;
        }
        lease.check(table).await?;
        let not_deleted = table.objects.delete(batch).await?;
        work.objects_deleted += (batch.len() - not_deleted.len()) as u64;
        work.objects_not_deleted += not_deleted.len() as u64;
        failed.extend(not_deleted.into_iter().map(|not| format!("{}: {}", not.location, not.error)));
    }
    if left == 0 && failed.is_empty() {
        return forget(table, location).await;
    }
    work.notes.extend(failed.into_iter().take(10));
    work.left = format!("{} objects to delete; they are written down in {location}", left + work.objects_not_deleted);
    Ok(())
}

async fn forget(table: &Table<'_>, location: &str) -> Result<(), MaintenanceError> {
    // A record that stays is met again, and found to be done.
    table.objects.delete(&[location.to_owned()]).await?;
    Ok(())
}
