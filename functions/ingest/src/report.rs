//! From the end of an invocation to what telemetry says of it.

use std::sync::atomic::{AtomicI64, Ordering};

use sluice_model::Class;
use sluice_telemetry::{BatchEvent, Ending, TableWork, TopicWork};

use crate::reply::SchemaReport;
use crate::{IngestError, Reply, TableReport};

/// What an execution environment remembers from one invocation to the next.
#[derive(Debug, Default)]
pub struct Reporter {
    /// When an invocation last ended well, or when the first one began; 0 before that.
    well_ms: AtomicI64,
}

impl Reporter {
    /// The event of an invocation that began at `started_ms` and ended at `now_ms` (milliseconds since 1970), without what only Lambda knows.
    pub fn event(&self, result: &Result<Reply, IngestError>, started_ms: i64, now_ms: i64) -> BatchEvent {
        // Nothing else hangs on this number: no order with other memory is needed.
        let _ = self.well_ms.compare_exchange(0, started_ms, Ordering::Relaxed, Ordering::Relaxed);
        let (tally, tables, ending) = match result {
            Ok(reply) => (Some(reply.tally.clone()), reply.tables.as_slice(), Ending::Applied),
            Err(error) => failed(error),
        };
        let topic = result.as_ref().map_or_else(IngestError::error_topic, |reply| reply.error_topic);
        if ending == Ending::Applied {
            self.well_ms.store(now_ms, Ordering::Relaxed);
        }
        BatchEvent {
            request_id: String::new(),
            tally,
            tables: tables.iter().filter(|table| table.snapshot_id.is_some()).map(work).collect(),
            error_topic: TopicWork { published: topic.published, without_value: topic.without_value, failed: topic.failed },
            schema_changes: tables.iter().filter(|table| table.schema != SchemaReport::Unchanged).count(),
            ending,
            event_bytes: 0,
            duration_ms: now_ms - started_ms,
            elapsed_since_last_commit_s: (now_ms - self.well_ms.load(Ordering::Relaxed)) / 1_000,
        }
    }
}

/// The stable code of an error: what stands before the first colon of its message.
#[must_use]
pub fn code(error: &IngestError) -> String {
    error.to_string().split(':').next().unwrap_or("INGEST_FAILED").to_owned()
}

fn failed(error: &IngestError) -> (Option<sluice_model::BatchTally>, &[TableReport], Ending) {
    let (tally, tables, classes): (_, &[TableReport], Vec<Class>) = match error {
        IngestError::Tables { failures, tables, tally, error_topic: _ } => {
            (Some(tally.as_ref().clone()), tables, failures.iter().map(|failure| failure.class).collect())
        }
        IngestError::ErrorTable { source, .. } => (None, &[], vec![source.class()]),
        IngestError::Event(_) | IngestError::Topic(_) | IngestError::Deadline { .. } => (None, &[], Vec::new()),
    };
    (tally, tables, Ending::Failed { code: code(error), message: error.to_string(), class: error.class(), tables: classes })
}

fn work(table: &TableReport) -> TableWork {
    TableWork {
        data_files: table.work.data_files,
        delete_files: table.work.delete_files,
        data_file_bytes: table.work.data_file_bytes,
        attempts: table.attempts,
        gaps_closed: table.work.gaps_closed,
        flush_ms: table.work.flush_ms,
        commit_ms: table.work.commit_ms,
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::{BatchTally, TableName};

    use super::*;
    use crate::error::TableFailure;
    use crate::reply::TopicTally;

    fn reply() -> Reply {
        Reply { tally: BatchTally::default(), unbalanced: 0, tables: Vec::new(), error_topic: TopicTally::default() }
    }

    fn trouble() -> IngestError {
        let failure = TableFailure { table: TableName::of("erp", "orders"), class: Class::Unknown, message: "reset".to_owned() };
        IngestError::Tables {
            failures: vec![failure],
            tables: Vec::new(),
            tally: Box::new(BatchTally::default()),
            error_topic: TopicTally::default(),
        }
    }

    #[test]
    fn the_time_without_success_grows_until_a_batch_is_applied() {
        let reporter = Reporter::default();
        let elapsed = |result, started, now| reporter.event(&result, started, now).elapsed_since_last_commit_s;
        assert_eq!(elapsed(Err(trouble()), 1_000_000, 1_005_000), 5);
        assert_eq!(elapsed(Err(trouble()), 1_060_000, 1_065_000), 65);
        assert_eq!(elapsed(Ok(reply()), 1_120_000, 1_121_000), 0);
        assert_eq!(elapsed(Err(trouble()), 1_180_000, 1_181_000), 60);
    }

    #[test]
    fn a_failure_says_its_code_and_the_classes_of_its_tables() {
        let event = Reporter::default().event(&Err(trouble()), 1, 2);
        let Ending::Failed { code, class, tables, .. } = event.ending else { unreachable!("it failed") };
        assert_eq!((code.as_str(), class, tables), ("TABLES_FAILED", Class::Unknown, vec![Class::Unknown]));
    }
}
