//! The storage that a warehouse is in.

use iceberg::io::FileIO;
use sluice_table::TableError;

/// The storage of a location: `file://…` or an absolute path is the local disk, `memory://…` is memory of its own.
///
/// # Errors
/// [`TableError::Unsupported`] for any other scheme: hand over a `FileIO` of your own then.
pub fn file_io_for(location: &str) -> Result<FileIO, TableError> {
    match location.split_once(':') {
        Some(("memory", _)) => Ok(FileIO::new_with_memory()),
        Some(("file", _)) => Ok(FileIO::new_with_fs()),
        None if location.starts_with('/') => Ok(FileIO::new_with_fs()),
        Some(_) | None => Err(TableError::Unsupported(format!("the storage of `{location}`; known are file:// and memory://"))),
    }
}
