//! Marks that writers leave in snapshot summaries to know after a restart what they have committed: Flink's checkpoints, Kafka Connect's offsets, our own ledger. Writers look
//! for them from the newest snapshot backwards, so maintenance takes them along and never expires the newest snapshot that has one (rule R16).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iceberg::spec::{SnapshotRef, TableMetadata};
use sluice_model::OffsetLedger;

/// Keys that begin so are marks.
const PREFIXES: [&str; 4] = ["flink.", "kafka.connect.", "debezium.", "lsn"];
/// Several Flink jobs may write into one table, with the same keys.
const FLINK_WRITER: [&str; 2] = ["flink.job-id", "flink.operator-id"];

fn is_mark(key: &str) -> bool {
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The ancestors of the current snapshot, newest first, as far as they are there. The bound keeps a circle in broken metadata from hanging us.
pub fn ancestry(metadata: &TableMetadata, from: Option<i64>) -> impl Iterator<Item = &SnapshotRef> {
    let first = from.and_then(|id| metadata.snapshot_by_id(id));
    let parents = std::iter::successors(first, |snapshot| metadata.snapshot_by_id(snapshot.parent_snapshot_id()?));
    parents.take(metadata.snapshots().len())
}

/// All marks of the newest ancestor of the current snapshot that has any of other writers.
pub(crate) fn newest(metadata: &TableMetadata) -> HashMap<String, String> {
    let marks = ancestry(metadata, metadata.current_snapshot_id()).map(|snapshot| {
        let summary = snapshot.summary().additional_properties.iter();
        summary.filter(|(key, _)| is_mark(key)).map(|(key, value)| (key.clone(), value.clone())).collect::<HashMap<_, _>>()
    });
    marks.into_iter().find(|marks| !marks.is_empty()).unwrap_or_default()
}

/// For each mark, and for each Flink writer, the newest ancestor of `from` that has it.
pub(crate) fn holders(metadata: &TableMetadata, from: i64) -> BTreeSet<i64> {
    let mut newest: BTreeMap<String, i64> = BTreeMap::new();
    for snapshot in ancestry(metadata, Some(from)) {
        let summary = &snapshot.summary().additional_properties;
        let writer: String =
            FLINK_WRITER.iter().filter_map(|key| summary.get(*key)).fold(String::new(), |all, part| format!("{all}/{part}"));
        for key in summary.keys().filter(|key| is_mark(key) || *key == OffsetLedger::SUMMARY_KEY) {
            let name = if key.starts_with("flink.") { format!("{key}{writer}") } else { key.clone() };
            newest.entry(name).or_insert_with(|| snapshot.snapshot_id());
        }
    }
    newest.into_values().collect()
}
