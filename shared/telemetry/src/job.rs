//! What one run of a maintenance job did.

use serde_json::{Map, Value, json};
use sluice_model::TableName;

use crate::Metric;
use crate::emf::{Measure, Place, document};
use crate::text::{as_i64, cut, total};

/// The tables that a line names at most: it is at most 256 KB long, and a name has at most 255 letters on each side of its dot.
const MAX_NAMED: usize = 200;

/// How a job ended for one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nothing was due.
    NothingDue,
    /// It was only asked what would be done.
    Planned,
    /// All that was due is done.
    Done,
    /// A part of it; the next run does the rest.
    Partial,
    /// The job keeps off this table.
    StoodDown,
    /// It failed.
    Failed,
}

impl Ended {
    const fn as_str(self) -> &'static str {
        match self {
            Self::NothingDue => "nothing-due",
            Self::Planned => "planned",
            Self::Done => "done",
            Self::Partial => "partial",
            Self::StoodDown => "stood-down",
            Self::Failed => "failed",
        }
    }
}

/// What compaction found that a reader has to bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burden {
    /// Small data files.
    pub small_files: u64,
    /// Delete files of all kinds.
    pub delete_files: u64,
    /// Keys in equality deletes.
    pub equality_deletes: u64,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCare {
    /// Its name.
    pub table: TableName,
    /// How it ended.
    pub ended: Ended,
    /// Snapshots in its metadata.
    pub snapshots: u64,
    /// Seconds since its last commit, where it has one.
    pub last_commit_age_s: Option<u64>,
    /// What was found before anything was done; only compaction looks.
    pub burden: Option<Burden>,
    /// Commits made.
    pub commits: u64,
    /// Commits, or groups of one, that a writer was faster than.
    pub conflicts: u64,
    /// Bytes of files read.
    pub bytes_read: u64,
    /// Bytes of files written.
    pub bytes_written: u64,
    /// Objects deleted from storage.
    pub objects_deleted: u64,
    /// Objects that could not be deleted.
    pub objects_not_deleted: u64,
    /// Milliseconds that it took.
    pub duration_ms: i64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEvent {
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// The job's name, as in the command line.
    pub job: &'static str,
    /// The tables that were looked at.
    pub tables: Vec<TableCare>,
    /// A stable code and what happened, when the invocation failed.
    pub failure: Option<(String, String)>,
    /// Milliseconds that it took.
    pub duration_ms: i64,
    /// Megabytes of memory that the function has, times seconds; `None` where that is not known.
    pub mb_seconds: Option<u64>,
}

impl JobEvent {
    /// The run's line, without its line break.
    #[must_use]
    pub fn line(&self, place: Place<'_>) -> String {
        document(place, self.measures(), self.properties()).to_string()
    }

    fn properties(&self) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut add = |name: &str, value: Value| properties.insert(name.to_owned(), value);
        let (level, message) = match &self.failure {
            None => ("INFO", "maintained"),
            Some(_) => ("ERROR", "maintenance failed; the next run goes on"),
        };
        add("level", level.into());
        add("message", message.into());
        if let Some((code, message)) = &self.failure {
            add("error_type", code.as_str().into());
            add("error", cut(message).into());
        }
        add("request_id", self.request_id.as_str().into());
        add("job", self.job.into());
        add("tables_looked_at", self.tables.len().into());
        let told = self.tables.iter().filter(|care| care.ended != Ended::NothingDue).take(MAX_NAMED);
        let told = told.map(|care| json!({"table": care.table, "ended": care.ended.as_str(), "duration_ms": care.duration_ms}));
        add("tables", told.collect());
        if let Some(mb_seconds) = self.mb_seconds {
            add("mb_seconds", mb_seconds.into());
        }
        properties
    }

    fn measures(&self) -> Vec<Measure> {
        let sum = |of: fn(&TableCare) -> u64| total(self.tables.iter().map(of));
        let ended = |which: &[Ended]| as_i64(self.tables.iter().filter(|care| which.contains(&care.ended)).count());
        let mut measures = vec![
            Measure::one(Metric::Duration, self.duration_ms),
            Measure::one(Metric::InvocationsFailed, i64::from(self.failure.is_some())),
            Measure::one(Metric::TablesMaintained, ended(&[Ended::Done, Ended::Partial])),
            Measure::one(Metric::TablesUnfinished, ended(&[Ended::Partial])),
            Measure::one(Metric::TablesFailed, ended(&[Ended::Failed])),
            Measure::one(Metric::Commits, sum(|care| care.commits)),
            Measure::one(Metric::CommitConflicts, sum(|care| care.conflicts)),
            Measure::one(Metric::BytesRead, sum(|care| care.bytes_read)),
            Measure::one(Metric::BytesWritten, sum(|care| care.bytes_written)),
            Measure::one(Metric::ObjectsDeleted, sum(|care| care.objects_deleted)),
            Measure::one(Metric::ObjectsNotDeleted, sum(|care| care.objects_not_deleted)),
        ];
        measures.extend(of_tables(&self.tables));
        measures
    }
}

/// One value for each table, so that the maximum is the table that needs most.
fn of_tables(tables: &[TableCare]) -> [Measure; 5] {
    let each = |metric, of: fn(&TableCare) -> Option<u64>| Measure {
        metric,
        values: tables.iter().filter_map(of).map(|value| i64::try_from(value).unwrap_or(i64::MAX)).collect(),
    };
    [
        // A table that failed or was passed by was not measured.
        each(Metric::TableSnapshots, |care| Some(care.snapshots).filter(|snapshots| *snapshots > 0)),
        each(Metric::TableLastCommitAge, |care| care.last_commit_age_s),
        each(Metric::TableSmallFiles, |care| Some(care.burden?.small_files)),
        each(Metric::TableDeleteFiles, |care| Some(care.burden?.delete_files)),
        each(Metric::TableEqualityDeletes, |care| Some(care.burden?.equality_deletes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'static> = Place { function: "sluice-dev-compact", now_ms: 1_772_360_130_000 };

    fn care(table: &str, ended: Ended) -> TableCare {
        TableCare {
            table: TableName::parse(table).unwrap(),
            ended,
            snapshots: 0,
            last_commit_age_s: None,
            burden: None,
            commits: 0,
            conflicts: 0,
            bytes_read: 0,
            bytes_written: 0,
            objects_deleted: 0,
            objects_not_deleted: 0,
            duration_ms: 5,
        }
    }

    fn event(tables: Vec<TableCare>) -> JobEvent {
        JobEvent { request_id: "r1".to_owned(), job: "compact", tables, failure: None, duration_ms: 70, mb_seconds: Some(123) }
    }

    fn document(event: &JobEvent) -> Value {
        crate::emf::checked(&event.line(PLACE))
    }

    #[test]
    fn sums_are_of_the_run_and_values_of_each_table() {
        let burden = Some(Burden { small_files: 40, delete_files: 7, equality_deletes: 900 });
        let done = TableCare { snapshots: 12, last_commit_age_s: Some(3), burden, commits: 2, conflicts: 1, ..care("erp.a", Ended::Done) };
        let left = TableCare { snapshots: 90, last_commit_age_s: Some(60), bytes_read: 10, ..care("erp.b", Ended::Partial) };
        let line = document(&event(vec![done, left, care("erp.c", Ended::NothingDue), care("erp.d", Ended::Failed)]));
        let one = ["tables_maintained", "tables_unfinished", "tables_failed", "commits", "commit_conflicts", "bytes_read", "duration_ms"];
        assert_eq!(one.map(|name| line[name].as_i64().unwrap()), [2, 1, 1, 2, 1, 10, 70]);
        assert_eq!((&line["table_snapshots"], &line["table_last_commit_age_s"]), (&json!([90, 12]), &json!([60, 3])));
        let found = ["table_small_files", "table_delete_files", "table_equality_deletes"].map(|name| line[name].as_i64().unwrap());
        assert_eq!(found, [40, 7, 900]);
        let told: Vec<&str> = line["tables"].as_array().unwrap().iter().map(|table| table["ended"].as_str().unwrap()).collect();
        assert_eq!(told, ["done", "partial", "failed"], "what was not due is only counted");
        assert_eq!((&line["tables_looked_at"], &line["mb_seconds"]), (&json!(4), &json!(123)));
    }

    #[test]
    fn a_run_that_failed_says_so_in_a_line_that_stays_short() {
        let name = format!("{}.{}", "n".repeat(200), "t".repeat(200));
        let mut failed = event(vec![care(&name, Ended::Failed); 5_000]);
        failed.failure = Some(("TABLES_FAILED".to_owned(), "é".repeat(100_000)));
        let line = document(&failed);
        assert_eq!((&line["level"], &line["error_type"]), (&json!("ERROR"), &json!("TABLES_FAILED")));
        assert_eq!((&line["invocations_failed"], &line["tables_failed"]), (&json!(1), &json!(5_000)));
    }
}
