//! Merging manifests at a commit, so that their number follows the table's size and not its age: each commit adds one or two, and every commit writes
//! the list of all. When a kind of them has become many, those that fit together are written anew as one. Property names and defaults are Iceberg's.

use std::collections::{BTreeMap, HashMap};

use futures::{StreamExt as _, TryStreamExt as _};
use iceberg::spec::{Manifest, ManifestContentType, ManifestFile, SchemaRef, TableMetadata};

use crate::manifest_copy::{existing, write_existing};
use crate::snapshot_producer::{ManifestPlace, SnapshotIdentity, carried};
use crate::{TableError, TableVersion};

const ENABLED: &str = "commit.manifest-merge.enabled";
const MIN_COUNT: &str = "commit.manifest.min-count-to-merge";
const TARGET_BYTES: &str = "commit.manifest.target-size-bytes";
/// Manifests that are read at the same time.
const READS_AT_ONCE: usize = 8;

/// When to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MergePolicy {
    enabled: bool,
    min_count: usize,
    target_bytes: i64,
}

impl MergePolicy {
    /// A value that cannot be read is as if it were not set: it must not stop a commit.
    fn of(metadata: &TableMetadata) -> Self {
        let value = |key: &str| metadata.properties().get(key).map(String::as_str);
        Self {
            enabled: !value(ENABLED).is_some_and(|text| text.eq_ignore_ascii_case("false")),
            min_count: value(MIN_COUNT).and_then(|text| text.parse().ok()).unwrap_or(100).max(2),
            target_bytes: value(TARGET_BYTES).and_then(|text| text.parse().ok()).unwrap_or(8 << 20),
        }
    }
}

/// Merged manifests of one commit, by what they were made of: a later attempt uses them again. The row ids that a list gives to a manifest are part of that: in
/// an upgraded table the next snapshot is the first to give any.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    made: HashMap<Vec<(String, Option<u64>)>, Vec<ManifestFile>>,
}

impl Merger {
    /// The manifests that are carried into the next snapshot, `before` merged where they have become many. `fresh` are the commit's own.
    pub(crate) async fn merge(
        &mut self,
        version: &TableVersion,
        identity: SnapshotIdentity,
        (before, fresh): (&[ManifestFile], &[ManifestFile]),
    ) -> Result<Vec<ManifestFile>, TableError> {
        let policy = MergePolicy::of(&version.metadata);
        let mut result = Vec::with_capacity(before.len());
        for (kind, group) in groups(before) {
            let own = fresh.iter().filter(|manifest| kind_of(manifest) == kind).count();
            if !policy.enabled || group.len() + own < policy.min_count {
                result.extend(group);
                continue;
            }
            for bin in bins(group, policy.target_bytes) {
                result.extend(self.merge_bin(version, identity, bin).await?);
            }
        }
        Ok(result)
    }

    async fn merge_bin(
        &mut self,
        version: &TableVersion,
        identity: SnapshotIdentity,
        bin: Vec<ManifestFile>,
    ) -> Result<Vec<ManifestFile>, TableError> {
        if bin.len() < 2 {
            return Ok(bin);
        }
        let key: Vec<_> = bin.iter().map(|manifest| (manifest.manifest_path.clone(), manifest.first_row_id)).collect();
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let path = format!("{}/metadata/{}-g{}.avro", version.metadata.location(), identity.commit_id, self.made.len());
        let merged = write_merged(version, (&path, identity.snapshot_id), bin).await?;
        self.made.insert(key, merged.clone());
        Ok(merged)
    }
}

/// Content and spec: only such manifests can be one.
type Kind = (bool, i32);

fn kind_of(manifest: &ManifestFile) -> Kind {
    (manifest.content == ManifestContentType::Deletes, manifest.partition_spec_id)
}

fn groups(before: &[ManifestFile]) -> BTreeMap<Kind, Vec<ManifestFile>> {
    let mut groups: BTreeMap<Kind, Vec<ManifestFile>> = BTreeMap::new();
    for manifest in carried(before) {
        groups.entry(kind_of(&manifest)).or_default().push(manifest);
    }
    groups
}

/// Neighbours that are not larger than the target together. The list begins with the newest; packing from the oldest keeps full ones as they are.
fn bins(group: Vec<ManifestFile>, target_bytes: i64) -> Vec<Vec<ManifestFile>> {
    let mut bins: Vec<Vec<ManifestFile>> = Vec::new();
    let mut room = 0;
    for manifest in group.into_iter().rev() {
        match bins.last_mut().filter(|_| manifest.manifest_length <= room) {
            Some(bin) => {
                room -= manifest.manifest_length;
                bin.push(manifest);
            }
            None => {
                room = target_bytes.saturating_sub(manifest.manifest_length);
                bins.push(vec![manifest]);
            }
        }
    }
    for bin in &mut bins {
        bin.reverse();
    }
    bins.reverse();
    bins
}

/// One manifest instead of `bin`; a manifest whose partition values have other types than the current schema gives (a promoted source column) stays as
/// it is.
async fn write_merged(
    version: &TableVersion,
    (path, snapshot_id): (&str, i64),
    bin: Vec<ManifestFile>,
) -> Result<Vec<ManifestFile>, TableError> {
    let (content, spec_id) = (bin[0].content, bin[0].partition_spec_id);
    let reads = futures::stream::iter(bin).map(async |manifest| {
        let wrong = TableError::iceberg(format!("reading {}", manifest.manifest_path));
        let loaded = manifest.load_manifest(&version.file_io).await.map_err(wrong)?;
        Ok::<_, TableError>((manifest, loaded))
    });
    let loaded: Vec<(ManifestFile, Manifest)> = reads.buffered(READS_AT_ONCE).try_collect().await?;
    let Some(schema) = schema_for(version, spec_id, &loaded) else { return Ok(loaded.into_iter().map(|(manifest, _)| manifest).collect()) };
    let place = ManifestPlace { path, spec_id, content, snapshot_id };
    let mut files = Vec::new();
    for (manifest, loaded) in &loaded {
        files.extend(existing(manifest, loaded)?);
    }
    Ok(vec![write_existing(version, schema, &place, files).await?])
}

/// The schema of the merged manifest: the current one, if the partition values of all that are merged have the types that it gives.
fn schema_for(version: &TableVersion, spec_id: i32, loaded: &[(ManifestFile, Manifest)]) -> Option<SchemaRef> {
    let spec = version.metadata.partition_spec_by_id(spec_id)?;
    let current = version.metadata.current_schema();
    let wanted = spec.partition_type(current).ok()?;
    let same = loaded.iter().all(|(_, manifest)| spec.partition_type(manifest.metadata().schema()).is_ok_and(|kind| kind == wanted));
    same.then(|| current.clone())
}
