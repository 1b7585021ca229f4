//! `[maintenance.expire]`.

use std::collections::BTreeSet;

use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_table::expire::Retention;

/// A staged snapshot that nothing leads to yet is left alone for so long.
const UNREFERENCED_MS: i64 = 24 * 3_600_000;

/// How long snapshots are kept, where the table and its branches and tags do not say otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpireSettings {
    /// So many of the newest snapshots of each branch stay.
    pub min_snapshots_to_keep: usize,
    /// Younger ones stay too; 0 keeps by number alone.
    pub max_snapshot_age_ms: i64,
    /// Older branches and tags go, except `main`; `None` keeps them.
    pub max_ref_age_ms: Option<i64>,
}

impl Default for ExpireSettings {
    fn default() -> Self {
        Self { min_snapshots_to_keep: 100, max_snapshot_age_ms: 0, max_ref_age_ms: None }
    }
}

impl ExpireSettings {
    /// Reads `[maintenance.expire]`.
    pub fn read(mut section: Section, problems: &mut Problems) -> Self {
        let given = Self::default();
        let settings = Self {
            min_snapshots_to_keep: section.read("min_snapshots_to_keep", problems).unwrap_or(given.min_snapshots_to_keep),
            max_snapshot_age_ms: section.read("max_snapshot_age_ms", problems).unwrap_or(given.max_snapshot_age_ms),
            max_ref_age_ms: section.read("max_ref_age_ms", problems),
        };
        let mut wrong = |key: &str, message: &str| problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), message);
        if settings.min_snapshots_to_keep == 0 {
            wrong("min_snapshots_to_keep", "at least 1: the current snapshot always stays");
        }
        if settings.max_snapshot_age_ms < 0 {
            wrong("max_snapshot_age_ms", "at least 0");
        }
        if settings.max_ref_age_ms.is_some_and(|age| age <= 0) {
            wrong("max_ref_age_ms", "at least 1; leave it out to keep branches and tags");
        }
        section.finish(problems);
        settings
    }

    pub(super) fn retention(&self) -> Retention {
        Retention {
            min_snapshots_to_keep: self.min_snapshots_to_keep,
            max_snapshot_age_ms: self.max_snapshot_age_ms,
            max_ref_age_ms: self.max_ref_age_ms,
            min_unreferenced_age_ms: UNREFERENCED_MS.max(self.max_snapshot_age_ms),
            protected: BTreeSet::new(),
        }
    }
}
