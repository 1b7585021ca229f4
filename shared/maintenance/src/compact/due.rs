//! When a table is worth a look at all. Pure.

use sluice_table::FileContent;
use sluice_table::rewrite::FileFacts;

use super::plan::Head;
use super::{Burden, CompactSettings};

/// Why the table is not due, if so: too early after the last compaction, or none of the triggers that are on is reached.
pub(super) fn not_due(head: &Head, measured: Burden, settings: &CompactSettings) -> Option<String> {
    if head.commits < settings.min_commits {
        return Some(format!("{} commits since the last compaction, min_commits is {}", head.commits, settings.min_commits));
    }
    if let Some(since) = head.since_last_ms.filter(|since| *since < settings.min_interval_ms) {
        return Some(format!("{since} ms since the last compaction, min_interval_ms is {}", settings.min_interval_ms));
    }
    let due = settings.due;
    let triggers = [
        ("small_files", measured.small_files, due.small_files),
        ("small_file_bytes", measured.small_file_bytes, due.small_file_bytes),
        ("delete_files", measured.delete_files, due.delete_files),
        ("equality_deletes", measured.equality_deletes, due.equality_deletes),
    ];
    let on: Vec<_> = triggers.into_iter().filter(|(_, _, trigger)| *trigger > 0).collect();
    if on.is_empty() || on.iter().any(|(_, measured, trigger)| measured >= trigger) {
        return None;
    }
    let short: Vec<String> = on.iter().map(|(name, measured, trigger)| format!("{name} {measured} of {trigger}")).collect();
    Some(format!("no trigger of maintenance.compact.due is reached: {}", short.join(", ")))
}

/// What the files are to a reader.
pub(super) fn burden(facts: &[FileFacts], settings: &CompactSettings) -> Burden {
    let mut measured = Burden::default();
    for file in facts {
        match file.content {
            FileContent::Data if file.bytes < settings.small_bytes() => {
                measured.small_files += 1;
                measured.small_file_bytes = measured.small_file_bytes.saturating_add(file.bytes);
            }
            FileContent::Data => {}
            FileContent::EqualityDeletes => {
                measured.delete_files += 1;
                measured.equality_deletes = measured.equality_deletes.saturating_add(file.records);
            }
            FileContent::PositionDeletes => measured.delete_files += 1,
        }
    }
    measured
}
