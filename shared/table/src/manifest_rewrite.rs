//! Rewriting manifests: many small ones become few, clustered by partition, and not a row changes. Each file keeps its sequence numbers and the snapshot that added it (rule
//! R6).

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use iceberg::spec::{ManifestContentType, ManifestFile, Operation, SchemaRef, Snapshot, TableMetadata};
use sluice_model::TableName;
use uuid::Uuid;

use crate::commit_loop::{Attempt, Change, Ended, commit, new_identity};
use crate::manifest_copy::{Existing, existing, write_existing};
use crate::manifests::{Base, check_format, path_of};
use crate::snapshot_producer::{ManifestPlace, SnapshotFrame, SnapshotIdentity, Tally, carried, next_timestamp, seal};
use crate::stage::{kept_summary, on_main};
use crate::{CommitContext, StagedChange, TableError, TableOperations, TableVersion};

/// What planning looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFacts {
    /// Where the manifest is.
    pub path: String,
    /// Whether it lists data files or delete files.
    pub content: ManifestContent,
    /// The partition spec of its files.
    pub spec_id: i32,
    /// Its size.
    pub bytes: u64,
    /// Its live files.
    pub files: u64,
}

/// What a manifest lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManifestContent {
    /// Data files.
    Data,
    /// Delete files.
    Deletes,
}

impl From<ManifestContentType> for ManifestContent {
    fn from(content: ManifestContentType) -> Self {
        match content {
            ManifestContentType::Data => Self::Data,
            ManifestContentType::Deletes => Self::Deletes,
        }
    }
}

/// What became of a rewriting.
#[derive(Debug, Clone)]
pub enum ManifestOutcome {
    /// It is in the table.
    Committed {
        /// The table as the commit, or the look for it, found it.
        version: TableVersion,
        /// The commit's snapshot.
        snapshot_id: i64,
        /// Manifests before.
        replaced: usize,
        /// Manifests instead.
        written: usize,
        /// How often it was tried.
        attempts: u32,
    },
    /// One of the manifests is not in the table any more. Plan again.
    Stale {
        /// The table as it is.
        version: TableVersion,
    },
    /// They cannot become at most half as many, which only their content shows; nothing was written.
    NoGain {
        /// The table as it is.
        version: TableVersion,
    },
}

/// The manifests of the current snapshot that list live files.
///
/// # Errors
/// What the storage said.
pub async fn manifest_facts(version: &TableVersion) -> Result<Vec<ManifestFacts>, TableError> {
    let mut base = Base::new(version.clone());
    let facts = carried(base.manifests().await?).map(|manifest| ManifestFacts {
        content: manifest.content.into(),
        spec_id: manifest.partition_spec_id,
        bytes: manifest.manifest_length.max(0).cast_unsigned(),
        files: u64::from(manifest.added_files_count.unwrap_or(0)) + u64::from(manifest.existing_files_count.unwrap_or(0)),
        path: manifest.manifest_path,
    });
    Ok(facts.collect())
}

/// Merges the manifests at `paths` into ones of about `target_bytes`, one commit, where that makes them at most half as many.
///
/// # Errors
/// [`TableError::Unsupported`] for tables of format version 1 and encrypted ones; else as every commit.
pub async fn rewrite_manifests(
    ops: &dyn TableOperations,
    (version, paths, target_bytes): (&TableVersion, &[String], u64),
    context: &CommitContext<'_>,
) -> Result<ManifestOutcome, TableError> {
    check_format(&version.metadata)?;
    let identity = new_identity(version, context.ids)?;
    let paths: HashSet<&str> = paths.iter().map(String::as_str).collect();
    let (table_uuid, row_ids) = (version.metadata.uuid(), Vec::new());
    let mut change = RewriteManifests { table_uuid, paths, target_bytes, identity, row_ids, clusters: None, merged: None, written: 0 };
    Ok(match commit(ops, &mut change, (Some(Base::new(version.clone())), context)).await? {
        Ended::Landed { version, attempts } => ManifestOutcome::Committed {
            version,
            snapshot_id: identity.snapshot_id,
            replaced: change.paths.len(),
            written: change.merged.map_or(0, |merged| merged.len()),
            attempts,
        },
        Ended::Refused { version, refusal: Refusal::Gone } => ManifestOutcome::Stale { version },
        Ended::Refused { version, refusal: Refusal::NoGain } => ManifestOutcome::NoGain { version },
    })
}

struct RewriteManifests<'a> {
    table_uuid: Uuid,
    paths: HashSet<&'a str>,
    target_bytes: u64,
    identity: SnapshotIdentity,
    /// The first row ids of the manifests, in the list's order, when they were read.
    row_ids: Vec<Option<u64>>,
    /// Read in the first attempt that gets so far, until they are written.
    clusters: Option<Vec<Cluster>>,
    /// Written in the first attempt that gets so far: manifests do not change, so they serve every attempt on which the old ones have the same row ids.
    merged: Option<Vec<ManifestFile>>,
    /// How many manifests were ever written, for their names.
    written: usize,
}

enum Refusal {
    Gone,
    NoGain,
}

/// Live entries of manifests that may stand in one.
struct Cluster {
    content: ManifestContentType,
    spec_id: i32,
    schema: SchemaRef,
    bytes: u64,
    /// With their partitions, for sorting.
    files: Vec<(String, Existing)>,
}

impl Cluster {
    fn of(manifest: &ManifestFile, schema: SchemaRef) -> Self {
        Self { content: manifest.content, spec_id: manifest.partition_spec_id, schema, bytes: 0, files: Vec::new() }
    }

    /// How many files stand in a manifest of about `target_bytes`.
    fn files_each(&self, target_bytes: u64) -> usize {
        let count = usize::try_from(self.bytes.div_ceil(target_bytes.max(1))).unwrap_or(usize::MAX).max(1);
        self.files.len().div_ceil(count).max(1)
    }
}

/// The live entries of manifests, by what may stand in one.
async fn clusters(version: &TableVersion, manifests: &[ManifestFile]) -> Result<Vec<Cluster>, TableError> {
    let metadata = &version.metadata;
    let mut clusters: BTreeMap<(ManifestContent, i32, String), Cluster> = BTreeMap::new();
    for manifest in manifests {
        let path = &manifest.manifest_path;
        let loaded = manifest.load_manifest(&version.file_io).await.map_err(TableError::iceberg(format!("reading {path}")))?;
        let schema = loaded.metadata().schema().clone();
        // Values of a partition are written by the types of the manifest's schema: those of two schemas may differ, and mostly do not.
        let kind = loaded.metadata().partition_spec().partition_type(&schema);
        let kind = kind.map_err(TableError::iceberg(format!("reading the partitions of {path}")))?;
        let key = (manifest.content.into(), manifest.partition_spec_id, format!("{kind:?}"));
        let cluster = clusters.entry(key).or_insert_with(|| Cluster::of(manifest, schema.clone()));
        if schema.schema_id() > cluster.schema.schema_id() {
            cluster.schema = schema;
        }
        cluster.bytes += manifest.manifest_length.max(0).cast_unsigned();
        for file in existing(manifest, &loaded)? {
            cluster.files.push((path_of(metadata, manifest.partition_spec_id, file.file.partition()), file));
        }
    }
    Ok(clusters.into_values().collect())
}

impl RewriteManifests<'_> {
    /// Reads the manifests, unless an earlier attempt did; whether they become at most half as many.
    async fn pays(&mut self, version: &TableVersion, manifests: &[ManifestFile]) -> Result<bool, TableError> {
        // In an upgraded table the next snapshot is the first that gives row ids to a manifest.
        let row_ids: Vec<Option<u64>> = manifests.iter().map(|manifest| manifest.first_row_id).collect();
        if row_ids != self.row_ids {
            (self.row_ids, self.clusters, self.merged) = (row_ids, None, None);
        }
        if self.merged.is_some() {
            return Ok(true);
        }
        let clusters = match self.clusters.take() {
            Some(clusters) => clusters,
            None => clusters(version, manifests).await?,
        };
        let after: usize = clusters.iter().map(|cluster| cluster.files.len().div_ceil(cluster.files_each(self.target_bytes))).sum();
        self.clusters = Some(clusters);
        Ok(after * 2 <= manifests.len())
    }

    async fn merge(&mut self, version: &TableVersion) -> Result<Vec<ManifestFile>, TableError> {
        let (mut merged, clusters) = (Vec::new(), self.clusters.take().unwrap_or_default());
        let before: usize = clusters.iter().map(|cluster| cluster.files.len()).sum();
        for cluster in clusters {
            self.write(version, cluster, &mut merged).await?;
        }
        let after: u64 = merged.iter().map(|manifest| u64::from(manifest.existing_files_count.unwrap_or(0))).sum();
        if after != before as u64 {
            return Err(TableError::Invalid(format!("{before} files stood in the manifests and {after} would; nothing is committed")));
        }
        Ok(merged)
    }

    async fn write(&mut self, version: &TableVersion, mut cluster: Cluster, merged: &mut Vec<ManifestFile>) -> Result<(), TableError> {
        cluster.files.sort_by(|(a, x), (b, y)| (a, x.number).cmp(&(b, y.number)));
        let most = cluster.files_each(self.target_bytes);
        let mut files = cluster.files.into_iter().map(|(_, file)| file).peekable();
        while files.peek().is_some() {
            let path = format!("{}/metadata/{}-c{}.avro", version.metadata.location(), self.identity.commit_id, self.written);
            self.written += 1;
            let (spec_id, content, snapshot_id) = (cluster.spec_id, cluster.content, self.identity.snapshot_id);
            let place = ManifestPlace { path: &path, spec_id, content, snapshot_id };
            merged.push(write_existing(version, cluster.schema.clone(), &place, files.by_ref().take(most).collect()).await?);
        }
        Ok(())
    }

    async fn snapshot(&mut self, base: &mut Base, attempt: Attempt) -> Result<Snapshot, TableError> {
        let before: Vec<ManifestFile> = carried(base.manifests().await?).collect();
        let (replaced, mut manifests): (Vec<ManifestFile>, Vec<ManifestFile>) =
            before.into_iter().partition(|manifest| self.paths.contains(manifest.manifest_path.as_str()));
        let merged = match self.merged.take() {
            Some(merged) => merged,
            None => self.merge(&base.version).await?,
        };
        let mut summary = kept_summary(&base.version.metadata)?;
        let counts = [("manifests-created", merged.len()), ("manifests-kept", manifests.len()), ("manifests-replaced", replaced.len())];
        summary.extend(counts.map(|(name, count)| (name.to_owned(), count.to_string())));
        manifests.extend(merged.iter().cloned());
        self.merged = Some(merged);
        let frame = SnapshotFrame {
            identity: self.identity,
            attempt: attempt.number,
            timestamp_ms: next_timestamp(&base.version.metadata, attempt.now_ms),
            operation: Operation::Replace,
            summary,
        };
        seal(&base.version, frame, (manifests, Tally::default())).await
    }
}

#[async_trait]
impl Change for RewriteManifests<'_> {
    type Refusal = Refusal;

    fn table_uuid(&self) -> Uuid {
        self.table_uuid
    }

    fn has_landed(&self, metadata: &TableMetadata) -> bool {
        metadata.snapshot_by_id(self.identity.snapshot_id).is_some()
    }

    fn unknown(&self, name: TableName, what: String) -> TableError {
        TableError::UnknownOutcome { name, snapshot_id: self.identity.snapshot_id, what }
    }

    async fn judge(&mut self, base: &mut Base, _attempts: u32) -> Result<Option<Refusal>, TableError> {
        let named = |manifest: &ManifestFile| self.paths.contains(manifest.manifest_path.as_str());
        let held: Vec<ManifestFile> = carried(base.manifests().await?).filter(named).collect();
        if held.len() != self.paths.len() {
            return Ok(Some(Refusal::Gone));
        }
        Ok(if self.pays(&base.version, &held).await? { None } else { Some(Refusal::NoGain) })
    }

    async fn stage(&mut self, base: &mut Base, attempt: Attempt) -> Result<StagedChange, TableError> {
        let snapshot = self.snapshot(base, attempt).await?;
        on_main(&base.version, snapshot, attempt.file_id)
    }
}
