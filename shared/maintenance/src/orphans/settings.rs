//! `[maintenance.orphans]`.

use sluice_model::config::{ConfigCode, Problems, Section};

/// No file is an orphan before it is a day old (rule O1).
pub(crate) const FLOOR_MS: i64 = 24 * 3_600_000;

/// What counts as an orphan, and how many may go at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanSettings {
    /// Younger files stay, in milliseconds: longer than the longest write takes from its first file to its commit.
    pub older_than_ms: i64,
    /// The most files of one plan.
    pub max_files: usize,
    /// The most bytes of one plan.
    pub max_bytes: u64,
    /// When more of the files found are orphans than this, in percent, the table is taken to be misread and nothing goes.
    pub max_percent: u64,
    /// Orphans are moved below this location instead of being deleted.
    pub quarantine: Option<String>,
}

impl Default for OrphanSettings {
    fn default() -> Self {
        Self { older_than_ms: 3 * FLOOR_MS, max_files: 100_000, max_bytes: 1 << 40, max_percent: 50, quarantine: None }
    }
}

impl OrphanSettings {
    /// Reads `[maintenance.orphans]`.
    pub fn read(mut section: Section, problems: &mut Problems) -> Self {
        let given = Self::default();
        let settings = Self {
            older_than_ms: section.read("older_than_ms", problems).unwrap_or(given.older_than_ms),
            max_files: section.read("max_files", problems).unwrap_or(given.max_files),
            max_bytes: section.read("max_bytes", problems).unwrap_or(given.max_bytes),
            max_percent: section.read("max_percent", problems).unwrap_or(given.max_percent),
            quarantine: section.read("quarantine", problems),
        };
        let mut wrong = |key: &str, message: &str| problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), message);
        if settings.older_than_ms < FLOOR_MS {
            wrong("older_than_ms", "at least 86400000 (24 hours): a write under way may own younger files");
        }
        if settings.max_files == 0 {
            wrong("max_files", "at least 1");
        }
        if !(1..=100).contains(&settings.max_percent) {
            wrong("max_percent", "from 1 to 100");
        }
        if settings.quarantine.as_ref().is_some_and(|prefix| !prefix.starts_with('/') && !prefix.contains("://")) {
            wrong("quarantine", "a location such as s3://bucket/quarantine, apart from all tables");
        }
        section.finish(problems);
        settings
    }
}
