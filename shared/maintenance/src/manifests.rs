//! Manifest rewriting: many small manifests become few, clustered by partition, when that makes planning a read cheaper.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sluice_model::TableName;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_table::manifest_rewrite::{ManifestContent, ManifestFacts, ManifestOutcome, manifest_facts, rewrite_manifests};
use uuid::Uuid;

use crate::lease::Lease;
use crate::report::Work;
use crate::{Job, MaintenanceError, Plan, Table};

/// `[maintenance.manifests]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSettings {
    /// A manifest is finished at about so many bytes.
    pub target_manifest_size_bytes: u64,
    /// Fewer small manifests of one kind and spec are left alone.
    pub min_manifests: usize,
}

impl Default for ManifestSettings {
    fn default() -> Self {
        Self { target_manifest_size_bytes: 8 << 20, min_manifests: 20 }
    }
}

impl ManifestSettings {
    /// Reads `[maintenance.manifests]`.
    pub fn read(mut section: Section, problems: &mut Problems) -> Self {
        let given = Self::default();
        let settings = Self {
            target_manifest_size_bytes: section.read("target_manifest_size_bytes", problems).unwrap_or(given.target_manifest_size_bytes),
            min_manifests: section.read("min_manifests", problems).unwrap_or(given.min_manifests),
        };
        let mut wrong = |key: &str, message: &str| problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), message);
        if settings.target_manifest_size_bytes == 0 {
            wrong("target_manifest_size_bytes", "at least 1");
        }
        if settings.min_manifests < 2 {
            wrong("min_manifests", "at least 2: rewriting one manifest alone would never end");
        }
        section.finish(problems);
        settings
    }
}

/// The job.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    /// How it is done.
    pub settings: ManifestSettings,
}

/// A manifest that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedManifest {
    /// Where it is.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its live files.
    pub files: u64,
}

/// What to do with one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestPlan {
    /// The table.
    pub table: TableName,
    /// Its identity.
    pub uuid: Uuid,
    /// The manifests that become fewer.
    pub manifests: Vec<PlannedManifest>,
    /// Manifests that stay.
    pub kept: usize,
    /// Why nothing is done, if for another reason than that there is nothing to do.
    pub not_due: Option<String>,
}

impl Plan for ManifestPlan {
    fn is_empty(&self) -> bool {
        self.manifests.is_empty()
    }

    fn headline(&self) -> String {
        match &self.not_due {
            Some(why) => format!("{}: not now: {why}", self.table),
            None => format!("{}: {} manifests become fewer, {} stay", self.table, self.manifests.len(), self.kept),
        }
    }

    fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let row = |manifest: &PlannedManifest| vec![manifest.path.clone(), manifest.bytes.to_string(), manifest.files.to_string()];
        (vec!["manifest", "bytes", "files"], self.manifests.iter().map(row).collect())
    }
}

/// The manifests that are worth merging: of each kind and spec the small ones, if they are many and become at most half as many.
#[must_use]
pub fn worth_merging(facts: &[ManifestFacts], settings: &ManifestSettings) -> Vec<PlannedManifest> {
    let mut small: BTreeMap<(ManifestContent, i32), Vec<&ManifestFacts>> = BTreeMap::new();
    for manifest in facts.iter().filter(|manifest| manifest.bytes < settings.target_manifest_size_bytes / 2) {
        small.entry((manifest.content, manifest.spec_id)).or_default().push(manifest);
    }
    let pays = |manifests: &Vec<&ManifestFacts>| {
        let bytes: u64 = manifests.iter().map(|manifest| manifest.bytes).sum();
        let after = bytes.div_ceil(settings.target_manifest_size_bytes.max(1)).max(1);
        manifests.len() >= settings.min_manifests && after * 2 <= manifests.len() as u64
    };
    let merged = small.into_values().filter(pays).flatten();
    merged.map(|manifest| PlannedManifest { path: manifest.path.clone(), bytes: manifest.bytes, files: manifest.files }).collect()
}

#[async_trait]
impl Job for Manifests {
    type Plan = ManifestPlan;

    const NAME: &'static str = "manifests";

    async fn plan(&self, table: &Table<'_>) -> Result<ManifestPlan, MaintenanceError> {
        let version = table.now().await?;
        let not_due = sluice_table::manifests::check_format(&version.metadata).err().map(|error| error.to_string());
        let facts = if not_due.is_some() { Vec::new() } else { manifest_facts(&version).await? };
        let manifests = worth_merging(&facts, &self.settings);
        let kept = facts.len() - manifests.len();
        Ok(ManifestPlan { table: table.name.clone(), uuid: version.metadata.uuid(), manifests, kept, not_due })
    }

    async fn execute(&self, table: &Table<'_>, plan: &ManifestPlan, lease: &Lease) -> Result<Work, MaintenanceError> {
        let version = table.now().await?;
        if version.metadata.uuid() != plan.uuid {
            return Err(MaintenanceError::BadPlan(format!("the plan was made for another table than `{}` is now", table.name)));
        }
        let paths: Vec<String> = plan.manifests.iter().map(|manifest| manifest.path.clone()).collect();
        let mut work = Work { bytes_read: plan.manifests.iter().map(|manifest| manifest.bytes).sum(), ..Work::default() };
        lease.check(table).await?;
        let target = self.settings.target_manifest_size_bytes;
        match rewrite_manifests(&*table.operations, (&version, &paths, target), &table.context.commit()).await? {
            ManifestOutcome::Committed { replaced, written, .. } => {
                work.commits = 1;
                work.notes.push(format!("{replaced} manifests became {written}"));
            }
            ManifestOutcome::NoGain { .. } => work.notes.push("the manifests cannot become half as many; they stay".to_owned()),
            ManifestOutcome::Stale { .. } => {
                work.conflicts = 1;
                work.left = "a writer replaced one of the manifests; the next run plans again".to_owned();
            }
        }
        Ok(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(number: usize, bytes: u64) -> ManifestFacts {
        ManifestFacts { path: number.to_string(), content: ManifestContent::Data, spec_id: 0, bytes, files: 1 }
    }

    #[test]
    fn only_when_it_pays() {
        let settings = ManifestSettings { target_manifest_size_bytes: 1_000, min_manifests: 4 };
        let planned = |bytes: &[u64]| {
            let facts: Vec<ManifestFacts> = bytes.iter().enumerate().map(|(number, bytes)| manifest(number, *bytes)).collect();
            worth_merging(&facts, &settings).len()
        };
        assert_eq!(planned(&[10, 10, 10]), 0, "too few");
        assert_eq!(planned(&[10, 10, 10, 10]), 4);
        assert_eq!(planned(&[10, 10, 10, 10, 900]), 4, "large ones stay");
        assert_eq!(planned(&[499, 499, 499, 499, 499]), 0, "five would become three");
    }

    #[test]
    fn kinds_and_specs_are_not_mixed() {
        let settings = ManifestSettings { target_manifest_size_bytes: 1_000, min_manifests: 3 };
        let mut facts: Vec<ManifestFacts> = (0..4).map(|number| manifest(number, 10)).collect();
        facts[0].content = ManifestContent::Deletes;
        facts[1].spec_id = 1;
        assert!(worth_merging(&facts, &settings).is_empty());
    }
}
