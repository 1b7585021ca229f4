//! The names and units of all metrics.

use sluice_model::ReasonCode;

/// What a metric's values are counted in, as CloudWatch spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// CloudWatch's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Bytes => "Bytes",
            Self::Milliseconds => "Milliseconds",
            Self::Seconds => "Seconds",
        }
    }
}

/// A metric of one invocation.
///
/// Its only dimension is the function: one for each table or partition would be billed by their number. What a metric means is in
/// docs/metrics.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "docs/metrics.md describes each, and a test looks")]
pub enum Metric {
    RecordsReceived,
    RecordsCommitted,
    RecordsControl,
    RecordsStale,
    RecordsReplayed,
    RecordsDeadLettered,
    RecordsUndecided,
    /// Dead letters of one code; the codes are few.
    DeadLetters(ReasonCode),
    Unbalanced,
    ErrorTopicPublished,
    ErrorTopicWithoutValue,
    ErrorTopicFailed,
    InvocationsFailed,
    TablesFailed,
    Commits,
    CommitDuration,
    FlushDuration,
    CommitConflicts,
    CommitUnknown,
    ElapsedSinceLastCommit,
    CommittedDataFiles,
    CommittedDeleteFiles,
    DataFileBytes,
    SchemaChanges,
    LedgerGaps,
    EventBytes,
    Duration,
    TablesMaintained,
    TablesUnfinished,
    BytesRead,
    BytesWritten,
    ObjectsDeleted,
    ObjectsNotDeleted,
    TableSnapshots,
    TableLastCommitAge,
    TableSmallFiles,
    TableDeleteFiles,
    TableEqualityDeletes,
}

impl Metric {
    /// Name and unit.
    #[must_use]
    pub fn spelling(self) -> (String, Unit) {
        let (name, unit) = match self {
            Self::RecordsReceived => ("records_received", Unit::Count),
            Self::RecordsCommitted => ("records_committed", Unit::Count),
            Self::RecordsControl => ("records_control", Unit::Count),
            Self::RecordsStale => ("records_stale", Unit::Count),
            Self::RecordsReplayed => ("records_replayed", Unit::Count),
            Self::RecordsDeadLettered => ("records_dead_lettered", Unit::Count),
            Self::RecordsUndecided => ("records_undecided", Unit::Count),
            Self::DeadLetters(code) => return (format!("dead_letters_{}", code.as_str()), Unit::Count),
            Self::Unbalanced => ("unbalanced", Unit::Count),
            Self::ErrorTopicPublished => ("error_topic_published", Unit::Count),
            Self::ErrorTopicWithoutValue => ("error_topic_without_value", Unit::Count),
            Self::ErrorTopicFailed => ("error_topic_failed", Unit::Count),
            Self::InvocationsFailed => ("invocations_failed", Unit::Count),
            Self::TablesFailed => ("tables_failed", Unit::Count),
            Self::Commits => ("commits", Unit::Count),
            Self::CommitDuration => ("commit_duration_ms", Unit::Milliseconds),
            Self::FlushDuration => ("flush_duration_ms", Unit::Milliseconds),
            Self::CommitConflicts => ("commit_conflicts", Unit::Count),
            Self::CommitUnknown => ("commit_unknown", Unit::Count),
            Self::ElapsedSinceLastCommit => ("elapsed_since_last_commit_s", Unit::Seconds),
            Self::CommittedDataFiles => ("committed_data_files", Unit::Count),
            Self::CommittedDeleteFiles => ("committed_delete_files", Unit::Count),
            Self::DataFileBytes => ("data_file_bytes", Unit::Bytes),
            Self::SchemaChanges => ("schema_changes", Unit::Count),
            Self::LedgerGaps => ("ledger_gaps", Unit::Count),
            Self::EventBytes => ("event_bytes", Unit::Bytes),
            Self::Duration => ("duration_ms", Unit::Milliseconds),
            Self::TablesMaintained => ("tables_maintained", Unit::Count),
            Self::TablesUnfinished => ("tables_unfinished", Unit::Count),
            Self::BytesRead => ("bytes_read", Unit::Bytes),
            Self::BytesWritten => ("bytes_written", Unit::Bytes),
            Self::ObjectsDeleted => ("objects_deleted", Unit::Count),
            Self::ObjectsNotDeleted => ("objects_not_deleted", Unit::Count),
            Self::TableSnapshots => ("table_snapshots", Unit::Count),
            Self::TableLastCommitAge => ("table_last_commit_age_s", Unit::Seconds),
            Self::TableSmallFiles => ("table_small_files", Unit::Count),
            Self::TableDeleteFiles => ("table_delete_files", Unit::Count),
            Self::TableEqualityDeletes => ("table_equality_deletes", Unit::Count),
        };
        (name.to_owned(), unit)
    }
}
