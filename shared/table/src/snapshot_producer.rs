//! Snapshots: manifests of the new files, the manifest list, and the summary. iceberg-rust 0.10 has none that adds deletes.

use std::collections::{BTreeMap, HashMap, HashSet};

use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, FormatVersion, ManifestContentType, ManifestFile, ManifestListWriter, ManifestWriter, ManifestWriterBuilder,
    Operation, SchemaRef, Snapshot, Struct, Summary, TableMetadata, UNASSIGNED_SEQUENCE_NUMBER,
};
use uuid::Uuid;

use crate::delta::SpecFile;
use crate::manifest_copy::{Existing, existing};
use crate::reader::vectors::is_vector;
use crate::{TableError, TableVersion, Truncate};

/// What one commit's snapshots have in common over all attempts, so that its manifests can be used again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotIdentity {
    pub(crate) snapshot_id: i64,
    pub(crate) commit_id: Uuid,
}

/// What goes into one snapshot.
pub(crate) struct SnapshotContent<'a> {
    pub(crate) identity: SnapshotIdentity,
    /// Counts up, for the names of files that belong to one attempt only.
    pub(crate) attempt: u32,
    /// The snapshot's time, from [`next_timestamp`] of the base.
    pub(crate) timestamp_ms: i64,
    pub(crate) files: &'a [SpecFile],
    /// The manifests of `files`.
    pub(crate) manifests: &'a [ManifestFile],
    /// The manifests of the snapshot before.
    pub(crate) before: &'a [ManifestFile],
    pub(crate) truncate: Truncate,
    /// More entries of the summary.
    pub(crate) summary: HashMap<String, String>,
}

/// Counts for the summary.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<&'static str, u64>,
    partitions: HashSet<(i32, Struct)>,
}

impl Tally {
    pub(crate) fn count(&mut self, name: &'static str, by: u64) {
        *self.counts.entry(name).or_default() += by;
    }

    pub(crate) fn add(&mut self, spec_id: i32, file: &DataFile) {
        self.partitions.insert((spec_id, file.partition().clone()));
        self.count("added-files-size", bytes_of(file));
        match file.content_type() {
            DataContentType::Data => {
                self.count("added-data-files", 1);
                self.count("added-records", file.record_count());
            }
            DataContentType::EqualityDeletes => {
                self.count("added-delete-files", 1);
                self.count("added-equality-delete-files", 1);
                self.count("added-equality-deletes", file.record_count());
            }
            DataContentType::PositionDeletes => {
                self.count("added-delete-files", 1);
                self.count("added-position-delete-files", 1);
                self.count("added-position-deletes", file.record_count());
            }
        }
    }

    pub(crate) fn remove(&mut self, spec_id: i32, file: &DataFile) {
        self.partitions.insert((spec_id, file.partition().clone()));
        self.count("removed-files-size", bytes_of(file));
        match file.content_type() {
            DataContentType::Data => {
                self.count("deleted-data-files", 1);
                self.count("deleted-records", file.record_count());
            }
            DataContentType::EqualityDeletes => {
                self.count("removed-delete-files", 1);
                self.count("removed-equality-delete-files", 1);
                self.count("removed-equality-deletes", file.record_count());
            }
            DataContentType::PositionDeletes => {
                self.count("removed-delete-files", 1);
                self.count(if is_vector(file) { "removed-dvs" } else { "removed-position-delete-files" }, 1);
                self.count("removed-position-deletes", file.record_count());
            }
        }
    }

    fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// The counts and the new totals. A total that the parent does not have, or that its writer got wrong, is left out.
    fn write(&self, parent: Option<&Snapshot>, summary: &mut HashMap<String, String>) {
        let shown = self.counts.iter().filter(|(_, count)| **count > 0);
        summary.extend(shown.map(|(name, count)| ((*name).to_owned(), count.to_string())));
        summary.insert("changed-partition-count".to_owned(), self.partitions.len().to_string());
        for (total, added, removed) in TOTALS {
            let before = parent.map_or(Some(0), |parent| parent.summary().additional_properties.get(total)?.parse::<u64>().ok());
            let now = before.and_then(|before| before.checked_add(self.of(added))?.checked_sub(self.of(removed)));
            if let Some(now) = now {
                summary.insert(total.to_owned(), now.to_string());
            }
        }
    }
}

/// A file's bytes; of a deletion vector only its own in the Puffin file, which others share, so that they add up.
pub(crate) fn bytes_of(file: &DataFile) -> u64 {
    let own = file.content_size_in_bytes().and_then(|bytes| u64::try_from(bytes).ok());
    own.filter(|_| is_vector(file)).unwrap_or(file.file_size_in_bytes())
}

const TOTALS: [(&str, &str, &str); 6] = [
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
];

/// Writes the manifests of new files: one for each content and spec. Their data sequence number is inherited at commit, or the one given; either way they
/// serve every attempt.
pub(crate) async fn write_manifests(
    (file_io, metadata): (&FileIO, &TableMetadata),
    (identity, sequence_number): (SnapshotIdentity, Option<i64>),
    files: &[SpecFile],
) -> Result<Vec<ManifestFile>, TableError> {
    let mut groups: BTreeMap<(bool, i32), Vec<&DataFile>> = BTreeMap::new();
    for file in files {
        groups.entry((file.file.content_type() != DataContentType::Data, file.spec_id)).or_default().push(&file.file);
    }
    let mut manifests = Vec::with_capacity(groups.len());
    for (number, ((deletes, spec_id), files)) in groups.into_iter().enumerate() {
        let path = format!("{}/metadata/{}-m{number}.avro", metadata.location(), identity.commit_id);
        let content = if deletes { ManifestContentType::Deletes } else { ManifestContentType::Data };
        let place = ManifestPlace { path: &path, spec_id, content, snapshot_id: identity.snapshot_id };
        let mut writer = manifest_writer((file_io, metadata), metadata.current_schema().clone(), &place)?;
        for file in files {
            writer
                .add_file(file.clone(), sequence_number.unwrap_or(UNASSIGNED_SEQUENCE_NUMBER))
                .map_err(TableError::iceberg(format!("writing {path}")))?;
        }
        manifests.push(writer.write_manifest_file().await.map_err(TableError::iceberg(format!("writing {path}")))?);
    }
    Ok(manifests)
}

pub(crate) struct ManifestPlace<'a> {
    pub(crate) path: &'a str,
    pub(crate) spec_id: i32,
    pub(crate) content: ManifestContentType,
    pub(crate) snapshot_id: i64,
}

pub(crate) fn manifest_writer(
    (file_io, metadata): (&FileIO, &TableMetadata),
    schema: SchemaRef,
    place: &ManifestPlace<'_>,
) -> Result<ManifestWriter, TableError> {
    let spec = metadata.partition_spec_by_id(place.spec_id);
    let spec = spec.ok_or_else(|| TableError::Invalid(format!("the table has no partition spec {}", place.spec_id)))?;
    let output = file_io.new_output(place.path).map_err(TableError::iceberg(format!("writing {}", place.path)))?;
    let builder = ManifestWriterBuilder::new(output, Some(place.snapshot_id), schema, spec.as_ref().clone());
    match (metadata.format_version(), place.content) {
        (FormatVersion::V2, ManifestContentType::Data) => Ok(builder.build_v2_data()),
        (FormatVersion::V2, ManifestContentType::Deletes) => Ok(builder.build_v2_deletes()),
        (FormatVersion::V3, ManifestContentType::Data) => Ok(builder.build_v3_data()),
        (FormatVersion::V3, ManifestContentType::Deletes) => Ok(builder.build_v3_deletes()),
        (FormatVersion::V1, _) => Err(TableError::Unsupported("tables of format version 1".to_owned())),
    }
}

/// What a snapshot has besides its manifests.
pub(crate) struct SnapshotFrame {
    pub(crate) identity: SnapshotIdentity,
    /// Counts up, for the names of files that belong to one attempt only.
    pub(crate) attempt: u32,
    /// The snapshot's time, from [`next_timestamp`] of the base.
    pub(crate) timestamp_ms: i64,
    pub(crate) operation: Operation,
    /// More entries of the summary.
    pub(crate) summary: HashMap<String, String>,
}

/// Makes the snapshot that follows the current one out of these manifests.
pub(crate) async fn seal(
    version: &TableVersion,
    frame: SnapshotFrame,
    (manifests, tally): (Vec<ManifestFile>, Tally),
) -> Result<Snapshot, TableError> {
    let (manifest_list, rows) = write_list(version, &frame, manifests).await?;
    Ok(finish(version, frame, (manifest_list, rows, tally)))
}

/// Makes the snapshot that follows the current one. `version` is the base with the commit's schema and specs already in its metadata.
pub(crate) async fn produce(version: &TableVersion, content: SnapshotContent<'_>) -> Result<Snapshot, TableError> {
    let mut tally = Tally::default();
    for file in content.files {
        tally.add(file.spec_id, &file.file);
    }
    let mut manifests: Vec<ManifestFile> = content.manifests.to_vec();
    match content.truncate {
        Truncate::Keep => manifests.extend(carried(content.before)),
        Truncate::All => manifests.extend(emptied(version, &content, &mut tally).await?),
    }
    let frame = SnapshotFrame {
        operation: operation(&content),
        identity: content.identity,
        attempt: content.attempt,
        timestamp_ms: content.timestamp_ms,
        summary: content.summary,
    };
    seal(version, frame, (manifests, tally)).await
}

/// Manifests whose files are all deleted have told so in the last snapshot, and are not carried further.
pub(crate) fn carried(manifests: &[ManifestFile]) -> impl Iterator<Item = ManifestFile> {
    manifests.iter().filter(|manifest| manifest.has_added_files() || manifest.has_existing_files()).cloned()
}

/// Every live manifest again, with its files deleted.
async fn emptied(version: &TableVersion, content: &SnapshotContent<'_>, tally: &mut Tally) -> Result<Vec<ManifestFile>, TableError> {
    let mut emptied = Vec::new();
    for (number, manifest) in carried(content.before).enumerate() {
        let place = format!("{}/metadata/{}-{}-d{number}.avro", version.metadata.location(), content.identity.commit_id, content.attempt);
        emptied.extend(empty(version, &manifest, (&place, content.identity.snapshot_id, tally)).await?);
    }
    Ok(emptied)
}

async fn empty(
    version: &TableVersion,
    manifest: &ManifestFile,
    (path, snapshot_id, tally): (&str, i64, &mut Tally),
) -> Result<Option<ManifestFile>, TableError> {
    rewrite_manifest(version, manifest, (path, snapshot_id, tally), &|_| true).await
}

/// A manifest again: the files that `gone` names are deleted in it, the other live ones stay with the numbers, the row ids and the snapshot that they
/// have (rules R5 and R6). `None` when it had no live file.
pub(crate) async fn rewrite_manifest(
    version: &TableVersion,
    manifest: &ManifestFile,
    (path, snapshot_id, tally): (&str, i64, &mut Tally),
    gone: &(dyn Fn(&DataFile) -> bool + Sync),
) -> Result<Option<ManifestFile>, TableError> {
    let source = &manifest.manifest_path;
    let loaded = manifest.load_manifest(&version.file_io).await.map_err(TableError::iceberg(format!("reading {source}")))?;
    let place = ManifestPlace { path, spec_id: manifest.partition_spec_id, content: manifest.content, snapshot_id };
    // The manifest's own schema: a partition's source column may be dropped from the current one.
    let schema = loaded.metadata().schema().clone();
    let mut writer = manifest_writer((&version.file_io, &version.metadata), schema, &place)?;
    let mut any = false;
    for Existing { file, number, snapshot_id: added_by, file_number } in existing(manifest, &loaded)? {
        let wrong = TableError::iceberg(format!("writing {path}"));
        if gone(&file) {
            tally.remove(manifest.partition_spec_id, &file);
            writer.add_delete_file(file, number, file_number).map_err(wrong)?;
        } else {
            writer.add_existing_file(file, added_by, number, file_number).map_err(wrong)?;
        }
        any = true;
    }
    if !any {
        return Ok(None);
    }
    writer.write_manifest_file().await.map(Some).map_err(TableError::iceberg(format!("writing {path}")))
}

/// Writes the manifest list. Gives its path and, in format version 3, the number of row ids that the snapshot takes.
async fn write_list(
    version: &TableVersion,
    frame: &SnapshotFrame,
    manifests: Vec<ManifestFile>,
) -> Result<(String, Option<u64>), TableError> {
    let metadata = &version.metadata;
    let SnapshotIdentity { snapshot_id, commit_id } = frame.identity;
    let path = format!("{}/metadata/snap-{snapshot_id}-{}-{commit_id}.avro", metadata.location(), frame.attempt);
    let wrong = || TableError::iceberg(format!("writing {path}"));
    let output = version.file_io.new_output(&path).map_err(wrong())?.writer().await.map_err(wrong())?;
    let (parent, number, first) = (metadata.current_snapshot_id(), metadata.next_sequence_number(), metadata.next_row_id());
    let mut list = match metadata.format_version() {
        FormatVersion::V1 => return Err(TableError::Unsupported("tables of format version 1".to_owned())),
        FormatVersion::V2 => ManifestListWriter::v2(output, snapshot_id, parent, number),
        FormatVersion::V3 => ManifestListWriter::v3(output, snapshot_id, parent, number, Some(first)),
    };
    list.add_manifests(manifests.into_iter()).map_err(wrong())?;
    let rows = list.next_row_id().map(|next| next.saturating_sub(first));
    list.close().await.map_err(wrong())?;
    Ok((path, rows))
}

fn finish(version: &TableVersion, frame: SnapshotFrame, (manifest_list, rows, tally): (String, Option<u64>, Tally)) -> Snapshot {
    let metadata = &version.metadata;
    let parent = metadata.current_snapshot();
    let SnapshotFrame { identity, timestamp_ms, operation, mut summary, .. } = frame;
    tally.write(parent.map(AsRef::as_ref), &mut summary);
    let snapshot = Snapshot::builder()
        .with_snapshot_id(identity.snapshot_id)
        .with_parent_snapshot_id(parent.map(|parent| parent.snapshot_id()))
        .with_sequence_number(metadata.next_sequence_number())
        .with_timestamp_ms(timestamp_ms)
        .with_manifest_list(manifest_list)
        .with_schema_id(metadata.current_schema_id())
        .with_summary(Summary { operation, additional_properties: summary });
    match rows {
        Some(rows) => snapshot.with_row_range(metadata.next_row_id(), rows).build(),
        None => snapshot.build(),
    }
}

fn operation(content: &SnapshotContent<'_>) -> Operation {
    let is = |kind: DataContentType| content.files.iter().any(|file| file.file.content_type() == kind);
    match (content.truncate, is(DataContentType::Data), is(DataContentType::EqualityDeletes)) {
        (Truncate::All, true, _) | (Truncate::Keep, _, true) => Operation::Overwrite,
        (Truncate::All, false, _) => Operation::Delete,
        (Truncate::Keep, _, false) => Operation::Append,
    }
}

/// The time of the next snapshot. Machines' clocks differ; a table's history must not run backwards.
pub(crate) fn next_timestamp(metadata: &TableMetadata, now_ms: i64) -> i64 {
    let parent = metadata.current_snapshot().map_or(i64::MIN, |parent| parent.timestamp_ms().saturating_add(1));
    let logged = metadata.history().last().map_or(i64::MIN, |entry| entry.timestamp_ms);
    now_ms.max(parent).max(logged).max(metadata.last_updated_ms())
}
