//! Copying entries from manifest to manifest: a file keeps the snapshot that added it, its sequence numbers and its row ids.

use iceberg::spec::{DataFile, DataFileBuilder, Manifest, ManifestContentType, ManifestFile, ManifestStatus, SchemaRef};

use crate::snapshot_producer::{ManifestPlace, manifest_writer};
use crate::{TableError, TableVersion};

/// A live file with what it was given at its commit, which it keeps (rules R5 and R6).
pub(crate) struct Existing {
    /// The file.
    pub(crate) file: DataFile,
    /// Its data sequence number.
    pub(crate) number: i64,
    snapshot_id: i64,
    /// Entries of before the field was in the specification have none.
    pub(crate) file_number: Option<i64>,
}

/// The live files of a manifest, in its order.
pub(crate) fn existing(manifest: &ManifestFile, loaded: &Manifest) -> Result<Vec<Existing>, TableError> {
    let path = &manifest.manifest_path;
    let lacks = |what: &str| TableError::Invalid(format!("{path}: an entry without a {what}"));
    // iceberg does not hand row ids down from the manifest to its entries.
    let mut next_row = manifest.first_row_id;
    let mut live = Vec::with_capacity(loaded.entries().len());
    for entry in loaded.entries().iter().filter(|entry| entry.status() != ManifestStatus::Deleted) {
        let mut file = entry.data_file().clone();
        if let (None, Some(first), ManifestContentType::Data) = (file.first_row_id(), next_row, manifest.content) {
            next_row = Some(first + file.record_count());
            file = with_first_row(&file, manifest.partition_spec_id, first)?;
        }
        live.push(Existing {
            file,
            snapshot_id: entry.snapshot_id().ok_or_else(|| lacks("snapshot id"))?,
            number: entry.sequence_number().ok_or_else(|| lacks("sequence number"))?,
            file_number: entry.file_sequence_number,
        });
    }
    Ok(live)
}

/// Writes a manifest of files that were in the table before.
pub(crate) async fn write_existing(
    version: &TableVersion,
    schema: SchemaRef,
    place: &ManifestPlace<'_>,
    files: Vec<Existing>,
) -> Result<ManifestFile, TableError> {
    let wrong = || TableError::iceberg(format!("writing {}", place.path));
    let mut writer = manifest_writer((&version.file_io, &version.metadata), schema, place)?;
    for Existing { file, number, snapshot_id, file_number } in files {
        writer.add_existing_file(file, snapshot_id, number, file_number).map_err(wrong())?;
    }
    writer.write_manifest_file().await.map_err(wrong())
}

/// The file with its first row's id written down: there is no other way than through all getters.
fn with_first_row(file: &DataFile, spec_id: i32, first: u64) -> Result<DataFile, TableError> {
    let first = i64::try_from(first).map_err(|_| TableError::Invalid(format!("{}: row id {first} is too large", file.file_path())))?;
    let mut builder = DataFileBuilder::default();
    builder
        .content(file.content_type())
        .file_path(file.file_path().to_owned())
        .file_format(file.file_format())
        .partition(file.partition().clone())
        .record_count(file.record_count())
        .file_size_in_bytes(file.file_size_in_bytes())
        .column_sizes(file.column_sizes().clone())
        .value_counts(file.value_counts().clone())
        .null_value_counts(file.null_value_counts().clone())
        .nan_value_counts(file.nan_value_counts().clone())
        .lower_bounds(file.lower_bounds().clone())
        .upper_bounds(file.upper_bounds().clone())
        .key_metadata(file.key_metadata().map(<[u8]>::to_vec))
        .split_offsets(file.split_offsets().map(<[i64]>::to_vec))
        .equality_ids(file.equality_ids())
        .first_row_id(Some(first))
        .partition_spec_id(spec_id)
        .referenced_data_file(file.referenced_data_file())
        .content_offset(file.content_offset())
        .content_size_in_bytes(file.content_size_in_bytes());
    if let Some(order) = file.sort_order_id() {
        builder.sort_order_id(order);
    }
    builder.build().map_err(|error| TableError::Invalid(format!("{}: {error}", file.file_path())))
}
