//! Copying entries from manifest to manifest: a file keeps the snapshot that added it, its sequence numbers and its row ids.

use iceberg::spec::{DataFile, Manifest, ManifestFile, ManifestStatus, SchemaRef};

use crate::row_ids::{RowIds, with_first_row};
use crate::snapshot_producer::{ManifestPlace, manifest_writer};
use crate::{TableError, TableVersion};

/// A live file with what it was given at its commit, which it keeps (rules R5 and R6).
pub(crate) struct Existing {
    /// The file.
    pub(crate) file: DataFile,
    /// Its data sequence number.
    pub(crate) number: i64,
    pub(crate) snapshot_id: i64,
    /// Entries of before the field was in the specification have none.
    pub(crate) file_number: Option<i64>,
}

/// The live files of a manifest, in its order.
pub(crate) fn existing(manifest: &ManifestFile, loaded: &Manifest) -> Result<Vec<Existing>, TableError> {
    let path = &manifest.manifest_path;
    let lacks = |what: &str| TableError::Invalid(format!("{path}: an entry without a {what}"));
    let mut row_ids = RowIds::of(manifest);
    let mut live = Vec::with_capacity(loaded.entries().len());
    for entry in loaded.entries().iter().filter(|entry| entry.status() != ManifestStatus::Deleted) {
        let first_row_id = row_ids.first_of(entry.data_file())?;
        let file = with_first_row(entry.data_file(), (manifest.partition_spec_id, first_row_id))?;
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
