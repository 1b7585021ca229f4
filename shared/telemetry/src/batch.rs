//! What one invocation of the ingest function did.

use serde_json::{Map, Value, json};
use sluice_model::{BatchTally, Class};

use crate::Metric;
use crate::emf::{Measure, Place, document};
use crate::text::{as_i64, cut};

/// What was done for one table that was committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableWork {
    /// Data files that the commit added.
    pub data_files: usize,
    /// Delete files that the commit added.
    pub delete_files: usize,
    /// Bytes of the data files.
    pub data_file_bytes: u64,
    /// Attempts to commit, those included that another writer made stale.
    pub attempts: u32,
    /// Gaps of the offset ledger that were closed.
    pub gaps_closed: usize,
    /// Milliseconds to write the files.
    pub flush_ms: i64,
    /// Milliseconds to commit them, attempts and rests included.
    pub commit_ms: i64,
}

/// What the error topic took of the dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TopicWork {
    /// Letters that it acknowledged.
    pub published: usize,
    /// Of those: letters that went without their value, because they were too large for it.
    pub without_value: usize,
    /// Letters that are in the error table only, because it did not take them.
    pub failed: usize,
}

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Every record is decided.
    Applied,
    /// It failed; Kafka delivers the batch again.
    Failed {
        /// A stable code: `TABLES_FAILED`, `DEADLINE`, …
        code: String,
        /// What happened.
        message: String,
        /// What to do about it.
        class: Class,
        /// Classes of the tables that could not be written, the error table included.
        tables: Vec<Class>,
    },
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchEvent {
    /// Lambda's id of the invocation.
    pub request_id: String,
    /// The account as far as it got; `None` when the batch failed before there was one.
    pub tally: Option<BatchTally>,
    /// The tables that were committed.
    pub tables: Vec<TableWork>,
    /// What the error topic took.
    pub error_topic: TopicWork,
    /// Tables that were made or whose schema was changed.
    pub schema_changes: usize,
    /// How it ended.
    pub ending: Ending,
    /// Size of the event in bytes; Lambda's limit is 6 MB.
    pub event_bytes: usize,
    /// Milliseconds that it took.
    pub duration_ms: i64,
    /// Seconds since an invocation in this execution environment last ended well, or since the first one here began; 0 when this one did.
    pub elapsed_since_last_commit_s: i64,
}

impl BatchEvent {
    /// The invocation's line, without its line break.
    #[must_use]
    pub fn line(&self, place: Place<'_>) -> String {
        document(place, self.measures(), self.properties()).to_string()
    }

    fn properties(&self) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut add = |name: &str, value: Value| properties.insert(name.to_owned(), value);
        match &self.ending {
            Ending::Applied => {
                add("level", "INFO".into());
                add("message", "batch applied".into());
            }
            Ending::Failed { code, message, class, tables: _ } => {
                add("level", "ERROR".into());
                add("message", "batch failed, Kafka delivers it again".into());
                add("error_type", code.as_str().into());
                add("error", cut(message).into());
                add("class", format!("{class:?}").into());
            }
        }
        add("request_id", self.request_id.as_str().into());
        if let Some(tally) = &self.tally {
            add("tally", json!(tally));
        }
        properties
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = vec![
            Measure::one(Metric::EventBytes, as_i64(self.event_bytes)),
            Measure::one(Metric::Duration, self.duration_ms),
            Measure::one(Metric::ElapsedSinceLastCommit, self.elapsed_since_last_commit_s),
            Measure::one(Metric::SchemaChanges, as_i64(self.schema_changes)),
        ];
        measures.extend(of_topic(self.error_topic));
        measures.extend(self.tally.iter().flat_map(|tally| of_tally(tally, &self.ending)));
        measures.extend(of_ending(&self.ending));
        measures.extend(of_tables(&self.tables, conflicts(&self.ending)));
        measures
    }
}

fn of_tally(tally: &BatchTally, ending: &Ending) -> Vec<Measure> {
    let count = |metric, value: u64| Measure::one(metric, i64::try_from(value).unwrap_or(i64::MAX));
    // What a failed batch leaves open is no breach of promise R1: it is delivered again.
    let open = match ending {
        Ending::Applied => Metric::Unbalanced,
        Ending::Failed { .. } => Metric::RecordsUndecided,
    };
    let mut measures = vec![
        count(Metric::RecordsReceived, tally.received),
        count(Metric::RecordsCommitted, tally.rows + tally.deletes),
        count(Metric::RecordsControl, tally.control),
        count(Metric::RecordsStale, tally.stale),
        count(Metric::RecordsReplayed, tally.replayed),
        count(Metric::RecordsDeadLettered, tally.dead_letters),
        Measure::one(open, tally.unbalanced()),
    ];
    measures.extend(tally.dead_letters_by_code.iter().map(|(code, letters)| count(Metric::DeadLetters(*code), *letters)));
    measures
}

/// Nothing where there is no error topic, or no letter for it: each name costs.
fn of_topic(topic: TopicWork) -> Vec<Measure> {
    if topic == TopicWork::default() {
        return Vec::new();
    }
    vec![
        Measure::one(Metric::ErrorTopicPublished, as_i64(topic.published)),
        Measure::one(Metric::ErrorTopicWithoutValue, as_i64(topic.without_value)),
        Measure::one(Metric::ErrorTopicFailed, as_i64(topic.failed)),
    ]
}

fn of_ending(ending: &Ending) -> Vec<Measure> {
    let (failed, tables) = match ending {
        Ending::Applied => (0, [].as_slice()),
        Ending::Failed { tables, .. } => (1, tables.as_slice()),
    };
    let unknown = tables.iter().filter(|class| **class == Class::Unknown).count();
    vec![
        Measure::one(Metric::InvocationsFailed, failed),
        Measure::one(Metric::TablesFailed, as_i64(tables.len())),
        Measure::one(Metric::CommitUnknown, as_i64(unknown)),
    ]
}

/// Tables that were given up because other writers were faster.
fn conflicts(ending: &Ending) -> i64 {
    match ending {
        Ending::Applied => 0,
        Ending::Failed { tables, .. } => as_i64(tables.iter().filter(|class| **class == Class::Conflict).count()),
    }
}

fn of_tables(tables: &[TableWork], given_up: i64) -> Vec<Measure> {
    let sum = |of: fn(&TableWork) -> i64| tables.iter().map(of).fold(0_i64, i64::saturating_add);
    let repeated = sum(|table| i64::from(table.attempts.saturating_sub(1)));
    vec![
        Measure::one(Metric::Commits, as_i64(tables.len())),
        Measure::one(Metric::CommitConflicts, repeated.saturating_add(given_up)),
        Measure::one(Metric::CommittedDataFiles, sum(|table| as_i64(table.data_files))),
        Measure::one(Metric::CommittedDeleteFiles, sum(|table| as_i64(table.delete_files))),
        Measure::one(Metric::DataFileBytes, sum(|table| i64::try_from(table.data_file_bytes).unwrap_or(i64::MAX))),
        Measure::one(Metric::LedgerGaps, sum(|table| as_i64(table.gaps_closed))),
        Measure { metric: Metric::CommitDuration, values: tables.iter().map(|table| table.commit_ms).collect() },
        Measure { metric: Metric::FlushDuration, values: tables.iter().map(|table| table.flush_ms).collect() },
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluice_model::ReasonCode;

    use super::*;
    use crate::emf::{DIMENSION, checked};
    use crate::text::MAX_ERROR_BYTES;

    const PLACE: Place<'static> = Place { function: "sluice-dev-ingest", now_ms: 1_772_360_130_000 };

    fn event(tally: Option<BatchTally>, tables: Vec<TableWork>, ending: Ending) -> BatchEvent {
        let request_id = "r1".to_owned();
        BatchEvent {
            request_id,
            tally,
            tables,
            error_topic: TopicWork::default(),
            schema_changes: 1,
            ending,
            event_bytes: 512,
            duration_ms: 40,
            elapsed_since_last_commit_s: 0,
        }
    }

    #[test]
    fn a_batch_that_was_applied_has_the_names_of_the_design() {
        let mut tally = BatchTally { received: 9, rows: 4, deletes: 1, control: 1, stale: 1, replayed: 1, ..BatchTally::default() };
        tally.count_dead_letter(ReasonCode::TypeMismatch);
        let one =
            TableWork { data_files: 1, delete_files: 1, data_file_bytes: 900, attempts: 3, gaps_closed: 0, flush_ms: 7, commit_ms: 30 };
        let two = TableWork { data_files: 2, data_file_bytes: 100, attempts: 1, commit_ms: 20, ..TableWork::default() };
        let document = checked(&event(Some(tally), vec![one, two], Ending::Applied).line(PLACE));
        let expected = [
            ("records_received", 9),
            ("records_committed", 5),
            ("records_control", 1),
            ("records_stale", 1),
            ("records_replayed", 1),
            ("records_dead_lettered", 1),
            ("dead_letters_TYPE_MISMATCH", 1),
            ("unbalanced", 0),
            ("commits", 2),
            ("commit_conflicts", 2),
            ("commit_unknown", 0),
            ("committed_data_files", 3),
            ("committed_delete_files", 1),
            ("data_file_bytes", 1_000),
            ("schema_changes", 1),
            ("ledger_gaps", 0),
            ("event_bytes", 512),
            ("elapsed_since_last_commit_s", 0),
            ("invocations_failed", 0),
        ];
        for (name, value) in expected {
            assert_eq!(document[name], value, "{name}");
        }
        assert_eq!(document["commit_duration_ms"], json!([30, 20]));
        assert_eq!((&document[DIMENSION], &document["level"]), (&json!("sluice-dev-ingest"), &json!("INFO")));
        assert_eq!(document["tally"]["dead_letters_by_code"]["TYPE_MISMATCH"], 1);
    }

    #[test]
    fn an_error_topic_is_counted_where_it_had_something_to_do() {
        let mut with = event(None, Vec::new(), Ending::Applied);
        with.error_topic = TopicWork { published: 5, without_value: 2, failed: 1 };
        let names = ["error_topic_published", "error_topic_without_value", "error_topic_failed"];
        let document = checked(&with.line(PLACE));
        assert_eq!(names.map(|name| document[name].as_i64()), [Some(5), Some(2), Some(1)]);
        let document = checked(&event(None, Vec::new(), Ending::Applied).line(PLACE));
        assert_eq!(names.map(|name| document[name].as_i64()), [None; 3]);
    }

    #[test]
    fn what_a_failed_batch_leaves_open_does_not_breach_the_balance() {
        let tally = BatchTally { received: 5, rows: 2, ..BatchTally::default() };
        let tables = vec![Class::Unknown, Class::Conflict];
        let ending = Ending::Failed { code: "TABLES_FAILED".into(), message: "x".into(), class: Class::Unknown, tables };
        let document = checked(&event(Some(tally), Vec::new(), ending).line(PLACE));
        assert_eq!((&document["records_undecided"], document.get("unbalanced")), (&json!(3), None));
        let counted = ["invocations_failed", "tables_failed", "commit_unknown", "commit_conflicts"].map(|name| document[name].as_i64());
        assert_eq!(counted, [Some(1), Some(2), Some(1), Some(1)]);
        assert_eq!((&document["level"], &document["error_type"]), (&json!("ERROR"), &json!("TABLES_FAILED")));
    }

    #[test]
    fn a_batch_that_failed_before_it_was_read_has_no_account() {
        let message = "é".repeat(100_000);
        let ending = Ending::Failed { code: "EVENT_NOT_KAFKA".into(), message, class: Class::Fatal, tables: Vec::new() };
        let document = checked(&event(None, Vec::new(), ending).line(PLACE));
        assert_eq!((document.get("records_received"), document.get("tally"), document.get("commit_duration_ms")), (None, None, None));
        assert_eq!(document["error"].as_str().unwrap().len(), MAX_ERROR_BYTES);
    }

    proptest! {
        #[test]
        fn every_event_is_a_document_of_the_format(times in prop::collection::vec(0_i64..100_000, 0..300), codes in prop::collection::vec(0..CODES.len(), 0..99)) {
            let mut tally = BatchTally::default();
            codes.iter().for_each(|code| tally.count_dead_letter(CODES[*code]));
            let tables: Vec<_> = times.iter().map(|ms| TableWork { commit_ms: *ms, attempts: 1, ..TableWork::default() }).collect();
            let document = checked(&event(Some(tally), tables, Ending::Applied).line(PLACE));
            let slowest = document["commit_duration_ms"].as_array().map_or_else(|| document["commit_duration_ms"].as_i64(), |all| all[0].as_i64());
            prop_assert_eq!(slowest, times.iter().max().copied());
        }
    }

    const CODES: [ReasonCode; 4] = [ReasonCode::TypeMismatch, ReasonCode::RouteMissing, ReasonCode::KeyNull, ReasonCode::CheckFailed];
}
