//! Other programs' changes to a table: schema and partition changes, rollbacks, expiry, snapshots without a ledger.

use std::collections::HashMap;

use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, MAIN_BRANCH, ManifestContentType, ManifestFile,
    ManifestList, ManifestListWriter, ManifestWriter, ManifestWriterBuilder, Operation, Snapshot, SnapshotReference, SnapshotRetention,
    Struct, Summary, TableMetadata, TableMetadataBuilder, UNASSIGNED_SEQUENCE_NUMBER,
};
use sluice_table::{StagedChange, TableOperations, TableVersion, metadata_file};

/// Commits whatever `change` does to the metadata.
pub async fn alter(ops: &dyn TableOperations, change: impl FnOnce(TableMetadataBuilder) -> TableMetadataBuilder) -> TableVersion {
    let base = ops.refresh().await.unwrap();
    let builder = base.metadata.as_ref().clone().into_builder(Some(base.metadata_location.clone()));
    let built = change(builder).build().unwrap();
    let id = u128::from_le_bytes((base.metadata.metadata_log().len() as u128 + 77).to_le_bytes());
    let staged = StagedChange {
        updates: built.changes,
        requirements: Vec::new(),
        metadata_location: metadata_file::next_location(Some(&base.metadata_location), &built.metadata, id),
        metadata: at_time(&built.metadata, base.metadata.last_updated_ms() + 1),
        expired_logs: built.expired_metadata_logs,
    };
    ops.commit(&base, &staged).await.unwrap()
}

/// `build` stamps metadata that has no new snapshot with the machine's clock, which a test does not own.
fn at_time(metadata: &TableMetadata, now_ms: i64) -> TableMetadata {
    let mut json = serde_json::to_value(metadata).unwrap();
    json["last-updated-ms"] = now_ms.max(metadata.history().last().map_or(0, |entry| entry.timestamp_ms)).into();
    serde_json::from_value(json).unwrap()
}

/// Makes an older snapshot the current one.
pub async fn roll_back(ops: &dyn TableOperations, snapshot_id: i64) -> TableVersion {
    let main = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
    alter(ops, |builder| builder.set_ref(MAIN_BRANCH, main).unwrap()).await
}

/// Removes snapshots from the metadata.
pub async fn expire(ops: &dyn TableOperations, snapshot_ids: &[i64]) -> TableVersion {
    alter(ops, |builder| builder.remove_snapshots(snapshot_ids)).await
}

/// A snapshot of another program, without a ledger: the current one's manifests and, if given, one file of its own.
pub async fn snapshot(ops: &dyn TableOperations, file: Option<DataFile>) -> TableVersion {
    snapshot_with(ops, file, HashMap::new()).await
}

/// A snapshot of another program that leaves these marks in its summary.
pub async fn mark(ops: &dyn TableOperations, marks: &[(&str, &str)]) -> TableVersion {
    snapshot_with(ops, None, marks.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()).await
}

async fn snapshot_with(ops: &dyn TableOperations, file: Option<DataFile>, marks: HashMap<String, String>) -> TableVersion {
    let base = ops.refresh().await.unwrap();
    let metadata = &base.metadata;
    let id = metadata.last_sequence_number() + 1_000;
    let mut manifests = Vec::new();
    if let Some(current) = metadata.current_snapshot() {
        let bytes = base.file_io.new_input(current.manifest_list()).unwrap().read().await.unwrap();
        manifests.extend(ManifestList::parse_with_version(&bytes, metadata.format_version()).unwrap().consume_entries());
    }
    if let Some(file) = file {
        manifests.push(manifest(&base, (id, 0), vec![file]).await);
    }
    commit_manifests(ops, &base, (id, manifests, marks)).await
}

/// A snapshot of another program that consists of these files, a manifest for each list, and of nothing that was there before.
pub async fn instead(ops: &dyn TableOperations, lists: Vec<Vec<DataFile>>) -> TableVersion {
    let base = ops.refresh().await.unwrap();
    let id = base.metadata.last_sequence_number() + 1_000;
    let mut manifests = Vec::new();
    for (number, files) in lists.into_iter().enumerate() {
        manifests.push(manifest(&base, (id, number), files).await);
    }
    commit_manifests(ops, &base, (id, manifests, HashMap::new())).await
}

pub(crate) async fn commit_manifests(
    ops: &dyn TableOperations,
    base: &TableVersion,
    (id, manifests, marks): (i64, Vec<ManifestFile>, HashMap<String, String>),
) -> TableVersion {
    let metadata = &base.metadata;
    let list = format!("{}/metadata/foreign-{id}.avro", metadata.location());
    let output = base.file_io.new_output(&list).unwrap().writer().await.unwrap();
    let (parent, number, first_row) = (metadata.current_snapshot_id(), metadata.next_sequence_number(), metadata.next_row_id());
    let mut writer = match metadata.format_version() {
        FormatVersion::V3 => ManifestListWriter::v3(output, id, parent, number, Some(first_row)),
        FormatVersion::V1 | FormatVersion::V2 => ManifestListWriter::v2(output, id, parent, number),
    };
    writer.add_manifests(manifests.into_iter()).unwrap();
    let rows = writer.next_row_id().map(|next| next - first_row);
    writer.close().await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(metadata.current_snapshot_id())
        .with_sequence_number(metadata.next_sequence_number())
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_manifest_list(list)
        .with_schema_id(metadata.current_schema_id())
        .with_summary(Summary { operation: Operation::Overwrite, additional_properties: marks });
    let snapshot = match rows {
        Some(rows) => snapshot.with_row_range(first_row, rows).build(),
        None => snapshot.build(),
    };
    alter(ops, |builder| builder.set_branch_snapshot(snapshot, MAIN_BRANCH).unwrap()).await
}

async fn manifest(base: &TableVersion, (snapshot_id, number): (i64, usize), files: Vec<DataFile>) -> ManifestFile {
    let metadata = &base.metadata;
    let path = format!("{}/metadata/foreign-m{snapshot_id}-{number}.avro", metadata.location());
    let content = match files[0].content_type() {
        DataContentType::Data => ManifestContentType::Data,
        DataContentType::EqualityDeletes | DataContentType::PositionDeletes => ManifestContentType::Deletes,
    };
    let mut writer = manifest_writer(base, (&path, snapshot_id), (content, metadata.default_partition_spec_id()));
    for file in files {
        writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER).unwrap();
    }
    writer.write_manifest_file().await.unwrap()
}

/// A manifest of the table's format version.
pub(crate) fn manifest_writer(
    base: &TableVersion,
    (path, snapshot_id): (&str, i64),
    (content, spec_id): (ManifestContentType, i32),
) -> ManifestWriter {
    let metadata = &base.metadata;
    let spec = metadata.partition_spec_by_id(spec_id).unwrap().as_ref().clone();
    let output = base.file_io.new_output(path).unwrap();
    let builder = ManifestWriterBuilder::new(output, Some(snapshot_id), metadata.current_schema().clone(), spec);
    match (metadata.format_version(), content) {
        (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
        (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
        (FormatVersion::V1 | FormatVersion::V2, ManifestContentType::Data) => builder.build_v2_data(),
        (FormatVersion::V1 | FormatVersion::V2, ManifestContentType::Deletes) => builder.build_v2_deletes(),
    }
}

/// Describes a file that a foreign writer has stored.
#[must_use]
pub fn data_file(path: &str, content: DataContentType, format: DataFileFormat) -> DataFile {
    let mut builder = DataFileBuilder::default();
    builder.file_path(path.to_owned()).content(content).file_format(format).record_count(1).file_size_in_bytes(1);
    builder.build().unwrap()
}

/// Describes a file of positions in one data file.
#[must_use]
pub fn position_delete(path: &str, data_file: &str, partition: Struct) -> DataFile {
    let mut builder = DataFileBuilder::default();
    builder.file_path(path.to_owned()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Parquet);
    builder.record_count(1).file_size_in_bytes(1).partition(partition).referenced_data_file(Some(data_file.to_owned()));
    builder.build().unwrap()
}

/// The manifests that a manifest list names.
pub async fn manifest_paths(version: &TableVersion, list: &str) -> Vec<String> {
    manifests(version, list).await.into_iter().map(|manifest| manifest.manifest_path).collect()
}

pub(crate) async fn manifests(version: &TableVersion, list: &str) -> Vec<ManifestFile> {
    let bytes = version.file_io.new_input(list).unwrap().read().await.unwrap();
    ManifestList::parse_with_version(&bytes, version.metadata.format_version()).unwrap().consume_entries().into_iter().collect()
}

/// A live file's path and offset in it, the snapshot that added it, its data and its file sequence number.
pub type EntryFacts = (String, Option<i64>, Option<i64>, Option<i64>, Option<i64>);

/// The live entries of the current snapshot, sorted.
pub async fn entries(version: &TableVersion) -> Vec<EntryFacts> {
    let mut found = Vec::new();
    for manifest in manifests(version, version.metadata.current_snapshot().unwrap().manifest_list()).await {
        let loaded = manifest.load_manifest(&version.file_io).await.unwrap();
        found.extend(loaded.entries().iter().filter(|entry| entry.is_alive()).map(|entry| {
            let offset = entry.data_file().content_offset();
            (entry.file_path().to_owned(), offset, entry.snapshot_id(), entry.sequence_number(), entry.file_sequence_number)
        }));
    }
    found.sort();
    found
}

/// A snapshot of another program that takes the part of a file at `offset` out of the table.
pub async fn without(ops: &dyn TableOperations, path: &str, offset: i64) -> TableVersion {
    let base = ops.refresh().await.unwrap();
    let id = base.metadata.last_sequence_number() + 1_000;
    let kept = manifests_without(&base, id, &|file| file.file_path() == path && file.content_offset() == Some(offset)).await;
    commit_manifests(ops, &base, (id, kept, HashMap::new())).await
}

/// The current manifests, with those deletes deleted in them.
pub(crate) async fn manifests_without(base: &TableVersion, id: i64, is_it: &(dyn Fn(&DataFile) -> bool + Sync)) -> Vec<ManifestFile> {
    let metadata = &base.metadata;
    let mut kept = Vec::new();
    for (number, manifest) in manifests(base, metadata.current_snapshot().unwrap().manifest_list()).await.into_iter().enumerate() {
        let loaded = manifest.load_manifest(&base.file_io).await.unwrap();
        if !loaded.entries().iter().any(|entry| is_it(entry.data_file())) {
            kept.push(manifest);
            continue;
        }
        let path = format!("{}/metadata/foreign-w{id}-{number}.avro", metadata.location());
        let mut writer = manifest_writer(base, (&path, id), (manifest.content, manifest.partition_spec_id));
        for entry in loaded.entries().iter().filter(|entry| entry.is_alive()) {
            let (file, number, written) = (entry.data_file().clone(), entry.sequence_number().unwrap(), entry.file_sequence_number);
            if is_it(&file) {
                writer.add_delete_file(file, number, written).unwrap();
            } else {
                writer.add_existing_file(file, entry.snapshot_id().unwrap(), number, written).unwrap();
            }
        }
        kept.push(writer.write_manifest_file().await.unwrap());
    }
    kept
}
