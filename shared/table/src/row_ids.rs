//! The ids of rows (format version 3, "Row Lineage"): what a manifest hands down to its files, which iceberg does not do.

use iceberg::spec::{DataFile, DataFileBuilder, ManifestContentType, ManifestFile};

use crate::TableError;

/// Hands the row ids of one manifest down to its live files, which must be asked for in the manifest's order.
pub(crate) struct RowIds {
    /// The first row id of the next file that has none of its own; `None` when the manifest has no ids, as those of snapshots from before an upgrade.
    next: Option<u64>,
}

impl RowIds {
    /// Those of a manifest. Delete files have none.
    pub(crate) const fn of(manifest: &ManifestFile) -> Self {
        match manifest.content {
            ManifestContentType::Data => Self { next: manifest.first_row_id },
            ManifestContentType::Deletes => Self { next: None },
        }
    }

    /// The id of the first row of the next live file: its own, or else the one that is handed down.
    pub(crate) fn first_of(&mut self, file: &DataFile) -> Result<Option<i64>, TableError> {
        let (None, Some(first)) = (file.first_row_id(), self.next) else { return Ok(file.first_row_id()) };
        let too_large = || TableError::Invalid(format!("{}: row id {first} is too large", file.file_path()));
        self.next = Some(first.checked_add(file.record_count()).ok_or_else(too_large)?);
        i64::try_from(first).map(Some).map_err(|_| too_large())
    }
}

/// The file with its first row's id written down, if it is not yet: there is no other way than through all getters.
pub(crate) fn with_first_row(file: &DataFile, (spec_id, first): (i32, Option<i64>)) -> Result<DataFile, TableError> {
    if file.first_row_id() == first {
        return Ok(file.clone());
    }
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
        .first_row_id(first)
        .partition_spec_id(spec_id)
        .referenced_data_file(file.referenced_data_file())
        .content_offset(file.content_offset())
        .content_size_in_bytes(file.content_size_in_bytes());
    if let Some(order) = file.sort_order_id() {
        builder.sort_order_id(order);
    }
    builder.build().map_err(|error| TableError::Invalid(format!("{}: {error}", file.file_path())))
}
