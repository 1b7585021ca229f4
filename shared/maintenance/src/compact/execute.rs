//! Doing what a compaction plan says: group by group, several commits, a writer always first.

use sluice_model::Class;
use sluice_table::TableError;
use sluice_table::rewrite::{GroupReport, Keys, RewriteOptions, RewriteOutcome, RewrittenGroup, TableFiles, commit_rewrite, rewrite_group};

use super::plan::{CompactionPlan, PlannedGroup};
use super::settings::CompactSettings;
use crate::lease::Lease;
use crate::report::Work;
use crate::{MaintenanceError, Plan, Table};

pub(super) async fn execute(
    (table, lease): (&Table<'_>, &Lease),
    plan: &CompactionPlan,
    settings: &CompactSettings,
) -> Result<Work, MaintenanceError> {
    let version = table.now().await?;
    if version.metadata.uuid() != plan.head.uuid {
        return Err(MaintenanceError::BadPlan(format!("the plan was made for another table than `{}` is now", table.name)));
    }
    if plan.is_empty() {
        return Ok(Work::default());
    }
    let held = plan.head.snapshot_id.filter(|id| version.metadata.snapshot_by_id(*id).is_some());
    let Some(start) = TableFiles::load(&version, held).await?.filter(|_| held.is_some()) else {
        return Ok(Work { left: "the snapshot of the plan is expired; plan again".to_owned(), ..Work::default() });
    };
    Runner { table, lease, settings, start, work: Work::default() }.run(plan).await
}

struct Runner<'a> {
    table: &'a Table<'a>,
    lease: &'a Lease,
    settings: &'a CompactSettings,
    start: TableFiles,
    work: Work,
}

impl Runner<'_> {
    async fn run(mut self, plan: &CompactionPlan) -> Result<Work, MaintenanceError> {
        let began = self.table.context.now_ms();
        let mut waiting: Vec<RewrittenGroup> = Vec::new();
        let mut done = 0;
        for (number, group) in plan.groups.iter().enumerate() {
            if !self.has_time_for(group, began) {
                self.work.left = format!("{} of {} groups: the time is over", plan.groups.len() - number, plan.groups.len());
                break;
            }
            waiting.push(self.rewrite(group).await?);
            done += 1;
            if waiting.len() >= self.settings.groups_per_commit && !self.commit(&mut waiting).await? {
                break;
            }
        }
        if !waiting.is_empty() {
            self.commit(&mut waiting).await?;
        }
        if self.work.left.is_empty() && done == plan.groups.len() && plan.later > 0 {
            self.work.left = format!("{} groups beyond max_bytes", plan.later);
        }
        Ok(self.work)
    }

    /// Whether a group of that size will be done before the deadline, by the speed so far. What is begun and not committed is work for nothing.
    fn has_time_for(&self, group: &PlannedGroup, began: i64) -> bool {
        let (now, context) = (self.table.context.now_ms(), self.table.context);
        let elapsed = now.saturating_sub(began).max(0).cast_unsigned();
        let needs = elapsed.saturating_mul(group.bytes()).checked_div(self.work.bytes_read).unwrap_or(0);
        // Half as much again: the last groups may be slower, and the commit takes time too.
        let needs = i64::try_from(needs.saturating_add(needs / 2)).unwrap_or(i64::MAX);
        !context.deadline.has_passed(now) && context.deadline.remaining_ms(now) > needs
    }

    async fn rewrite(&mut self, group: &PlannedGroup) -> Result<RewrittenGroup, MaintenanceError> {
        let paths: Vec<String> = group.files.iter().map(|file| file.path.clone()).collect();
        let options = RewriteOptions {
            ids: self.table.context.ids,
            target_file_bytes: self.settings.target_file_size_bytes,
            delete_memory_bytes: self.settings.delete_memory_bytes,
            sort_memory_bytes: self.settings.sort_memory_bytes,
            keys: self.settings.prove_keys.into(),
        };
        let rewritten = rewrite_group(&self.start, &paths, &options).await?;
        let report = rewritten.report();
        self.work.bytes_read += report.bytes_in;
        self.work.bytes_written += report.bytes_out;
        self.work.rows_read += report.rows_in;
        self.work.rows_deleted += report.rows_deleted;
        self.note(group, &report);
        Ok(rewritten)
    }

    fn note(&mut self, group: &PlannedGroup, report: &GroupReport) {
        let partition = if group.partition.is_empty() { "the table" } else { group.partition.as_str() };
        let keys = match report.keys {
            Keys::NotAsked => None,
            Keys::NoKey => Some("not proved: the table has no identifier fields at its top level"),
            Keys::TooMany => Some("not proved: too many for delete_memory_bytes"),
            Keys::UniqueInGroup => Some("unique in the group; other files that may hold them were not read"),
            Keys::UniqueInTable => Some("unique in the table"),
        };
        self.work.notes.extend(keys.map(|keys| format!("{partition}, {} files: keys {keys}", report.files_in)));
        if report.passes > 1 {
            let passes = report.passes;
            self.work
                .notes
                .push(format!("{partition}: {passes} passes over {} files; more delete_memory_bytes make it fewer", report.files_in));
        }
    }

    /// Commits what is waiting, without the groups that no longer fit. Whether to go on: not when a writer was faster in every attempt.
    async fn commit(&mut self, waiting: &mut Vec<RewrittenGroup>) -> Result<bool, MaintenanceError> {
        // Each round either commits or leaves out a group.
        for _ in 0..=waiting.len() {
            if waiting.is_empty() {
                return Ok(true);
            }
            self.lease.check(self.table).await?;
            let committed = commit_rewrite(&*self.table.operations, (&self.start, waiting), &self.table.context.commit()).await;
            match committed {
                Ok(RewriteOutcome::Committed { .. }) => {
                    self.work.commits += 1;
                    waiting.clear();
                }
                Ok(RewriteOutcome::Stale { groups, reason, .. }) => self.leave_out(waiting, &groups, &reason),
                Err(error) => return self.yielded(error, waiting),
            }
        }
        Ok(true)
    }

    fn leave_out(&mut self, waiting: &mut Vec<RewrittenGroup>, groups: &[usize], reason: &str) {
        self.work.conflicts += u32::try_from(groups.len()).unwrap_or(u32::MAX);
        self.work.left = format!("groups that a writer has changed: {reason}");
        let mut number = 0;
        waiting.retain(|_| {
            number += 1;
            !groups.contains(&(number - 1))
        });
    }

    /// A writer that is faster every time goes first; anything else is an error.
    fn yielded(&mut self, error: TableError, waiting: &mut Vec<RewrittenGroup>) -> Result<bool, MaintenanceError> {
        match error.class() {
            Class::Conflict => {
                self.work.conflicts += 1;
                self.work.left = format!("{} groups: a writer was faster in every attempt", waiting.len());
                waiting.clear();
                Ok(false)
            }
            Class::Transient | Class::Unknown | Class::Fatal => Err(error.into()),
        }
    }
}
