//! From the reports of a run to what telemetry says of it.

use sluice_maintenance::{Outcome, Report};
use sluice_telemetry::{Burden, Ended, JobEvent, TableCare};

/// The event of a run that ended at `now_ms` (milliseconds since 1970), without what only Lambda knows.
#[must_use]
pub fn event(reports: &[Report], now_ms: i64) -> JobEvent {
    let tables = reports.iter().map(|report| care(report, now_ms)).collect();
    JobEvent { request_id: String::new(), job: "", tables, failure: None, duration_ms: 0, mb_seconds: None }
}

fn care(report: &Report, now_ms: i64) -> TableCare {
    let work = &report.work;
    TableCare {
        table: report.table.clone(),
        ended: ended(&report.outcome),
        snapshots: report.after.snapshots,
        // Before: a commit of the job itself is none of a writer.
        last_commit_age_s: report.before.committed_ms.map(|committed| now_ms.saturating_sub(committed).max(0).cast_unsigned() / 1_000),
        burden: report.burden.map(|found| Burden {
            small_files: found.small_files,
            delete_files: found.delete_files,
            equality_deletes: found.equality_deletes,
        }),
        commits: work.commits.into(),
        conflicts: work.conflicts.into(),
        bytes_read: work.bytes_read,
        bytes_written: work.bytes_written,
        objects_deleted: work.objects_deleted,
        objects_not_deleted: work.objects_not_deleted,
        duration_ms: report.duration_ms,
    }
}

fn ended(outcome: &Outcome) -> Ended {
    match outcome {
        Outcome::NothingDue => Ended::NothingDue,
        Outcome::Planned => Ended::Planned,
        Outcome::Done => Ended::Done,
        Outcome::Partial(_) => Ended::Partial,
        Outcome::StoodDown(_) => Ended::StoodDown,
        Outcome::Failed(_) => Ended::Failed,
    }
}
