//! Deleting what a plan names, after looking again.

use std::collections::{HashMap, HashSet};

use sluice_storage::{MAX_DELETES, ObjectEntry};
use sluice_table::TableVersion;
use sluice_table::expire::{normalised, referenced};

use super::find::list;
use super::guard;
use super::locations::roots;
use super::plan::{OrphanPlan, PlannedOrphan};
use super::quarantine::Quarantine;
use super::settings::{FLOOR_MS, OrphanSettings};
use crate::lease::Lease;
use crate::report::Work;
use crate::{MaintenanceError, Table};

pub(super) async fn execute(
    (table, lease): (&Table<'_>, &Lease),
    plan: &OrphanPlan,
    settings: &OrphanSettings,
) -> Result<Work, MaintenanceError> {
    let version = table.now().await?;
    if version.metadata.uuid() != plan.uuid || plan.table != table.name {
        return Err(MaintenanceError::BadPlan(format!("the plan was made for another table than `{}` is now", table.name)));
    }
    guard::check_table(table, &version, settings).await?;
    let older_than_ms = plan.older_than_ms.max(settings.older_than_ms).max(FLOOR_MS);
    let listing = list(table, &roots(&version), (table.context.now_ms(), older_than_ms)).await?;
    let there: HashMap<&str, &ObjectEntry> = listing.old.iter().map(|object| (object.location.as_str(), object)).collect();
    let same = |orphan: &&PlannedOrphan| {
        let object = there.get(orphan.location.as_str());
        object.is_some_and(|object| object.size == orphan.size && object.last_modified_ms == Some(orphan.last_modified_ms))
    };
    let same: Vec<&PlannedOrphan> = plan.orphans.iter().filter(same).collect();
    let mut work = Work::default();
    if same.len() < plan.orphans.len() {
        work.notes.push(format!("{} planned files are gone, or others by now: left alone", plan.orphans.len() - same.len()));
    }
    let place = (plan.uuid, plan.listed_ms);
    let quarantine = settings.quarantine.as_ref().map(|prefix| Quarantine::new(prefix, &version, place));
    Remover { table, lease, needed: None, quarantine, work }.run(&same).await
}

struct Remover<'a> {
    table: &'a Table<'a>,
    lease: &'a Lease,
    /// What the table needs, and the metadata file that says so.
    needed: Option<(String, HashSet<String>)>,
    quarantine: Option<Quarantine>,
    work: Work,
}

impl Remover<'_> {
    async fn run(mut self, orphans: &[&PlannedOrphan]) -> Result<Work, MaintenanceError> {
        for (number, batch) in orphans.chunks(MAX_DELETES).enumerate() {
            if self.table.context.deadline.has_passed(self.table.context.now_ms()) {
                self.work.left = format!("{} files: the time is over", orphans.len() - number * MAX_DELETES);
                break;
            }
            self.remove(batch).await?;
        }
        Ok(self.work)
    }

    /// Right before each deletion the table is looked at once more (rule O9).
    async fn remove(&mut self, batch: &[&PlannedOrphan]) -> Result<(), MaintenanceError> {
        let table = self.table;
        let version = table.now().await?;
        let needed = self.needed_by(&version).await?;
        let (stay, go): (Vec<&PlannedOrphan>, Vec<&PlannedOrphan>) =
            batch.iter().partition(|orphan| needed.contains(&normalised(&orphan.location)));
        let entries: Vec<ObjectEntry> = go.iter().map(|orphan| entry(orphan)).collect();
        guard::check_spellings(table, needed, &entries.iter().collect::<Vec<_>>())?;
        if !stay.is_empty() {
            self.work.notes.push(format!("{} planned files are needed by now: left alone", stay.len()));
        }
        self.lease.check(self.table).await?;
        let go = self.set_aside(go).await?;
        let paths: Vec<String> = go.iter().map(|orphan| orphan.location.clone()).collect();
        let not_deleted = self.table.objects.delete(&paths).await?;
        self.work.objects_deleted += (paths.len() - not_deleted.len()) as u64;
        self.work.objects_not_deleted += not_deleted.len() as u64;
        self.work.notes.extend(not_deleted.iter().take(10).map(|not| format!("{}: {}", not.location, not.error)));
        Ok(())
    }

    /// Those that may be deleted where they are: all of them, or those of which the quarantine has a copy.
    async fn set_aside<'a>(&mut self, go: Vec<&'a PlannedOrphan>) -> Result<Vec<&'a PlannedOrphan>, MaintenanceError> {
        let Some(quarantine) = &mut self.quarantine else { return Ok(go) };
        let done = quarantine.set_aside(self.table, &go).await?;
        self.work.notes.extend(done.notes);
        Ok(done.copied)
    }

    async fn needed_by(&mut self, version: &TableVersion) -> Result<&HashSet<String>, MaintenanceError> {
        let held = self.needed.take().filter(|(location, _)| *location == version.metadata_location);
        let needed = match held {
            Some(held) => held,
            None => (version.metadata_location.clone(), referenced(version).await?),
        };
        guard::check_complete(self.table, version, &needed.1)?;
        Ok(&self.needed.insert(needed).1)
    }
}

fn entry(orphan: &PlannedOrphan) -> ObjectEntry {
    ObjectEntry { location: orphan.location.clone(), size: orphan.size, last_modified_ms: Some(orphan.last_modified_ms) }
}
