//! `[maintenance]`.

use serde_json::Value;
use sluice_model::config::{ConfigCode, Problems, Section};

use crate::compact::CompactSettings;
use crate::expire::ExpireSettings;
use crate::manifests::ManifestSettings;
use crate::orphans::OrphanSettings;
use crate::selector::Selector;

/// Everything that `[maintenance]` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceSettings {
    /// The tables that are cared for, where a run does not name others.
    pub selector: Selector,
    /// How long a run may hold a table's lease, in milliseconds: longer than the function may run.
    pub lease_ms: i64,
    /// Attempts of one commit before a writer is let go first.
    pub max_attempts: u32,
    /// `[maintenance.compact]`.
    pub compact: CompactSettings,
    /// `[maintenance.expire]`.
    pub expire: ExpireSettings,
    /// `[maintenance.orphans]`.
    pub orphans: OrphanSettings,
    /// `[maintenance.manifests]`.
    pub manifests: ManifestSettings,
}

impl Default for MaintenanceSettings {
    fn default() -> Self {
        Self {
            selector: Selector::default(),
            lease_ms: 16 * 60_000,
            max_attempts: 4,
            compact: CompactSettings::default(),
            expire: ExpireSettings::default(),
            orphans: OrphanSettings::default(),
            manifests: ManifestSettings::default(),
        }
    }
}

impl MaintenanceSettings {
    /// Reads the value of `[maintenance]`; `null` gives the defaults.
    pub fn read(value: Value, problems: &mut Problems) -> Self {
        let (given, mut section) = (Self::default(), Section::new("maintenance", value, problems));
        let settings = Self {
            selector: Selector {
                tables: section.read("tables", problems).unwrap_or(given.selector.tables),
                except: section.read("except", problems).unwrap_or_default(),
            },
            lease_ms: section.read("lease_ms", problems).unwrap_or(given.lease_ms),
            max_attempts: section.read("max_attempts", problems).unwrap_or(given.max_attempts),
            compact: CompactSettings::read(section.section("compact", problems), problems),
            expire: ExpireSettings::read(section.section("expire", problems), problems),
            orphans: OrphanSettings::read(section.section("orphans", problems), problems),
            manifests: ManifestSettings::read(section.section("manifests", problems), problems),
        };
        for (key, wrong) in [("lease_ms", settings.lease_ms <= 0), ("max_attempts", settings.max_attempts == 0)] {
            if wrong {
                problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), "at least 1");
            }
        }
        section.finish(problems);
        settings
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> (MaintenanceSettings, Vec<String>) {
        let mut problems = Problems::default();
        let settings = MaintenanceSettings::read(value, &mut problems);
        (settings, problems.into_vec().into_iter().map(|problem| problem.path).collect())
    }

    #[test]
    fn nothing_gives_the_defaults() {
        assert_eq!(read(Value::Null), (MaintenanceSettings::default(), vec![]));
    }

    #[test]
    fn what_is_unsafe_or_unknown_is_told_together() {
        let value = json!({
            "max_attempts": 0,
            "compact": {"min_input_files": 1, "typo": 1},
            "expire": {"min_snapshots_to_keep": 0},
            "orphans": {"older_than_ms": 3_600_000},
            "manifests": {"min_manifests": 1},
        });
        let (_, problems) = read(value);
        let expected = [
            "compact.min_input_files",
            "compact.typo",
            "expire.min_snapshots_to_keep",
            "orphans.older_than_ms",
            "manifests.min_manifests",
            "max_attempts",
        ];
        assert_eq!(problems, expected.map(|key| format!("maintenance.{key}")));
    }
}
