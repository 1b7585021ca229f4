//! `[maintenance.compact]`.

use serde::{Deserialize, Serialize};
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_table::rewrite::KeyProof;

/// What is to be proved about keys, as the configuration says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProveKeys {
    /// Nothing.
    #[default]
    Off,
    /// No identifier key stands in two rows of what a group wrote; otherwise the group is not committed.
    Group,
}

impl From<ProveKeys> for KeyProof {
    fn from(prove: ProveKeys) -> Self {
        match prove {
            ProveKeys::Off => Self::Off,
            ProveKeys::Group => Self::Group,
        }
    }
}

/// What to do with a table that a service of the catalog compacts already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhereOthersCompact {
    /// Leave it to that service.
    #[default]
    StandDown,
    /// Compact it all the same; nothing is asked.
    GoOn,
}

/// What a table's readers have to bear. As a setting, how much of it makes the table due, besides commits and time: each is off while it is 0; when any is on, a table is
/// due as soon as one of them is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burden {
    /// So many small data files.
    pub small_files: u64,
    /// Small data files of so many bytes together.
    pub small_file_bytes: u64,
    /// So many delete files.
    pub delete_files: u64,
    /// Equality deletes of so many keys together: what every reader has to keep in mind.
    pub equality_deletes: u64,
}

impl Burden {
    fn read(mut section: Section, problems: &mut Problems) -> Self {
        let burden = Self {
            small_files: section.read("small_files", problems).unwrap_or_default(),
            small_file_bytes: section.read("small_file_bytes", problems).unwrap_or_default(),
            delete_files: section.read("delete_files", problems).unwrap_or_default(),
            equality_deletes: section.read("equality_deletes", problems).unwrap_or_default(),
        };
        section.finish(problems);
        burden
    }
}

/// How tables are compacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactSettings {
    /// A file is finished at about so many bytes.
    pub target_file_size_bytes: u64,
    /// A file of less than this part of the target, in percent, is small.
    pub small_file_percent: u64,
    /// So many small files of one partition are worth merging.
    pub min_input_files: usize,
    /// A file to which so many delete files apply is worth rewriting, whatever its size.
    pub min_delete_files: usize,
    /// The files of one group have at most so many bytes together, unless it is a single file.
    pub max_group_bytes: u64,
    /// One run reads at most so many bytes of a table.
    pub max_bytes: u64,
    /// So many groups are committed together.
    pub groups_per_commit: usize,
    /// Memory for keys, positions and deletion vectors of deletes.
    pub delete_memory_bytes: u64,
    /// Memory for rows that are being sorted.
    pub sort_memory_bytes: usize,
    /// A table is looked at only after so many commits since its last compaction.
    pub min_commits: u64,
    /// And only so many milliseconds after it.
    pub min_interval_ms: i64,
    /// `[maintenance.compact.due]`.
    pub due: Burden,
    /// What is to be proved about keys before a commit.
    pub prove_keys: ProveKeys,
    /// What to do with a table that a service of the catalog compacts already.
    pub where_others_compact: WhereOthersCompact,
}

impl Default for CompactSettings {
    fn default() -> Self {
        Self {
            target_file_size_bytes: 128 << 20,
            small_file_percent: 75,
            min_input_files: 5,
            min_delete_files: 5,
            max_group_bytes: 128 << 20,
            max_bytes: 16 << 30,
            groups_per_commit: 16,
            delete_memory_bytes: 64 << 20,
            sort_memory_bytes: 64 << 20,
            min_commits: 0,
            min_interval_ms: 0,
            due: Burden::default(),
            prove_keys: ProveKeys::Off,
            where_others_compact: WhereOthersCompact::StandDown,
        }
    }
}

impl CompactSettings {
    /// Reads `[maintenance.compact]`.
    pub fn read(mut section: Section, problems: &mut Problems) -> Self {
        let given = Self::default();
        let settings = Self {
            target_file_size_bytes: section.read("target_file_size_bytes", problems).unwrap_or(given.target_file_size_bytes),
            small_file_percent: section.read("small_file_percent", problems).unwrap_or(given.small_file_percent),
            min_input_files: section.read("min_input_files", problems).unwrap_or(given.min_input_files),
            min_delete_files: section.read("min_delete_files", problems).unwrap_or(given.min_delete_files),
            max_group_bytes: section.read("max_group_bytes", problems).unwrap_or(given.max_group_bytes),
            max_bytes: section.read("max_bytes", problems).unwrap_or(given.max_bytes),
            groups_per_commit: section.read("groups_per_commit", problems).unwrap_or(given.groups_per_commit),
            delete_memory_bytes: section.read("delete_memory_bytes", problems).unwrap_or(given.delete_memory_bytes),
            sort_memory_bytes: section.read("sort_memory_bytes", problems).unwrap_or(given.sort_memory_bytes),
            min_commits: section.read("min_commits", problems).unwrap_or(given.min_commits),
            min_interval_ms: section.read("min_interval_ms", problems).unwrap_or(given.min_interval_ms),
            due: Burden::read(section.section("due", problems), problems),
            prove_keys: section.read("prove_keys", problems).unwrap_or_default(),
            where_others_compact: section.read("where_others_compact", problems).unwrap_or_default(),
        };
        settings.check(&section, problems);
        section.finish(problems);
        settings
    }

    fn check(&self, section: &Section, problems: &mut Problems) {
        let mut wrong = |key: &str, message: &str| problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), message);
        if self.target_file_size_bytes == 0 {
            wrong("target_file_size_bytes", "at least 1");
        }
        if !(1..=99).contains(&self.small_file_percent) {
            wrong("small_file_percent", "from 1 to 99: a file of the target size must not be small");
        }
        if self.min_input_files < 2 {
            wrong("min_input_files", "at least 2: rewriting one file for its size alone would never end");
        }
        for (key, zero) in [
            ("min_delete_files", self.min_delete_files == 0),
            ("max_group_bytes", self.max_group_bytes == 0),
            ("max_bytes", self.max_bytes == 0),
            ("groups_per_commit", self.groups_per_commit == 0),
        ] {
            if zero {
                wrong(key, "at least 1");
            }
        }
    }

    /// A file of fewer bytes is small.
    #[must_use]
    pub const fn small_bytes(&self) -> u64 {
        self.target_file_size_bytes / 100 * self.small_file_percent
    }
}
