//! Metadata files: their names, writing and reading them, and deleting those that fell out of the log. For catalogs that keep a
//! pointer to the current file.

use iceberg::MetadataLocation;
use iceberg::io::FileIO;
use iceberg::spec::{MetadataLog, TableMetadata};
use std::str::FromStr;
use uuid::Uuid;

use crate::TableError;

/// The property that lets a commit delete the metadata files that fall out of the log.
pub const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";
const COMPRESSION: &str = "write.metadata.compression-codec";

/// The name of the metadata file behind `current`, `<location>/metadata/NNNNN-<uuid>.metadata.json`.
///
/// A name without a number in front (a table that another catalog wrote) counts as number 0.
#[must_use]
pub fn next_location(current: Option<&str>, metadata: &TableMetadata, id: u128) -> String {
    let number = current.map_or(0, |location| version_of(location).map_or(1, |number| number.saturating_add(1)));
    let codec = metadata.properties().get(COMPRESSION).map(|codec| codec.to_ascii_lowercase());
    let gz = if codec.as_deref() == Some("gzip") { ".gz" } else { "" };
    format!("{}/metadata/{number:05}-{}{gz}.metadata.json", metadata.location(), Uuid::from_u128(id))
}

fn version_of(location: &str) -> Option<u32> {
    let (_, name) = location.rsplit_once('/')?;
    name.split_once('-')?.0.parse().ok()
}

/// Writes a metadata file.
///
/// # Errors
/// What the storage said.
pub async fn write(file_io: &FileIO, metadata: &TableMetadata, location: &str) -> Result<(), TableError> {
    let wrong = || format!("writing {location}");
    let parsed = MetadataLocation::from_str(location).map_err(TableError::iceberg(wrong()))?;
    metadata.write_to(file_io, &parsed).await.map_err(TableError::iceberg(wrong()))
}

/// Reads a metadata file.
///
/// # Errors
/// What the storage said, or that the file is no metadata.
pub async fn read(file_io: &FileIO, location: &str) -> Result<TableMetadata, TableError> {
    TableMetadata::read_from(file_io, location).await.map_err(TableError::iceberg(format!("reading {location}")))
}

/// Deletes metadata files that fell out of the log, if the table wants it. A file that cannot be deleted stays: the commit that this
/// belongs to has succeeded, and orphan removal finds the file later.
pub async fn delete_expired(file_io: &FileIO, metadata: &TableMetadata, expired: &[MetadataLog]) {
    let wanted = metadata.properties().get(DELETE_AFTER_COMMIT).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if !wanted {
        return;
    }
    for log in expired {
        let _ = file_io.delete(&log.metadata_file).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_on() {
        assert_eq!(version_of("s3://b/t/metadata/00041-aa.metadata.json"), Some(41));
        assert_eq!(version_of("s3://b/t/metadata/v1.metadata.json"), None);
    }
}
