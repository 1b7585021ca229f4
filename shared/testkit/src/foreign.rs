//! Other programs' changes to a table: schema and partition changes, rollbacks, expiry, snapshots without a ledger.

use std::collections::HashMap;

use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, MAIN_BRANCH, ManifestFile, ManifestList, ManifestListWriter,
    ManifestWriterBuilder, Operation, Snapshot, SnapshotReference, SnapshotRetention, Summary, TableMetadataBuilder,
    UNASSIGNED_SEQUENCE_NUMBER,
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
        metadata: built.metadata,
        expired_logs: built.expired_metadata_logs,
    };
    ops.commit(&base, &staged).await.unwrap()
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
    let base = ops.refresh().await.unwrap();
    let metadata = &base.metadata;
    let id = metadata.last_sequence_number() + 1_000;
    let mut manifests = Vec::new();
    if let Some(current) = metadata.current_snapshot() {
        let bytes = base.file_io.new_input(current.manifest_list()).unwrap().read().await.unwrap();
        manifests.extend(ManifestList::parse_with_version(&bytes, metadata.format_version()).unwrap().consume_entries());
    }
    if let Some(file) = file {
        manifests.push(manifest(&base, id, file).await);
    }
    let list = format!("{}/metadata/foreign-{id}.avro", metadata.location());
    let output = base.file_io.new_output(&list).unwrap().writer().await.unwrap();
    let mut writer = ManifestListWriter::v2(output, id, metadata.current_snapshot_id(), metadata.next_sequence_number());
    writer.add_manifests(manifests.into_iter()).unwrap();
    writer.close().await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(metadata.current_snapshot_id())
        .with_sequence_number(metadata.next_sequence_number())
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_manifest_list(list)
        .with_schema_id(metadata.current_schema_id())
        .with_summary(Summary { operation: Operation::Overwrite, additional_properties: HashMap::new() })
        .build();
    alter(ops, |builder| builder.set_branch_snapshot(snapshot, MAIN_BRANCH).unwrap()).await
}

async fn manifest(base: &TableVersion, snapshot_id: i64, file: DataFile) -> ManifestFile {
    let metadata = &base.metadata;
    let path = format!("{}/metadata/foreign-m{snapshot_id}.avro", metadata.location());
    let spec = metadata.default_partition_spec().as_ref().clone();
    let output = base.file_io.new_output(path).unwrap();
    let builder = ManifestWriterBuilder::new(output, Some(snapshot_id), metadata.current_schema().clone(), spec);
    let mut writer = match file.content_type() {
        DataContentType::Data => builder.build_v2_data(),
        DataContentType::EqualityDeletes | DataContentType::PositionDeletes => builder.build_v2_deletes(),
    };
    writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER).unwrap();
    writer.write_manifest_file().await.unwrap()
}

/// Describes a file that a foreign writer has stored.
#[must_use]
pub fn data_file(path: &str, content: DataContentType, format: DataFileFormat) -> DataFile {
    let mut builder = DataFileBuilder::default();
    builder.file_path(path.to_owned()).content(content).file_format(format).record_count(1).file_size_in_bytes(1);
    builder.build().unwrap()
}
