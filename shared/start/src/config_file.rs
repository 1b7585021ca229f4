//! The configuration's text: a file, or an object in S3.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use sluice_runtime::settings::parse_toml;
use sluice_runtime::{ConfigError, SystemClock};
use sluice_storage::{StorageConfig, StorageError};

/// The configuration cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file.
    #[error("CONFIG_UNREADABLE: {location}: {source}")]
    File {
        /// Where it was looked for.
        location: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The object.
    #[error("CONFIG_UNREADABLE: {location}: {source}")]
    Object {
        /// Where it was looked for.
        location: String,
        /// Why not.
        source: StorageError,
    },
    /// There is no such object.
    #[error("CONFIG_UNREADABLE: {location}: there is no such object")]
    Missing {
        /// Where it was looked for.
        location: String,
    },
    /// It is no text.
    #[error("CONFIG_UNREADABLE: {location}: it is no UTF-8 text")]
    NoText {
        /// Where it was looked for.
        location: String,
    },
}

/// A configuration as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its text.
    pub text: String,
    /// Where relative paths in it start: its folder; the working folder for an object.
    pub folder: PathBuf,
}

impl ConfigFile {
    /// Reads `sluice.toml` at a path or at `s3://bucket/key` (with the region and credentials of the environment).
    ///
    /// # Errors
    /// [`ReadError`] when it is not there or cannot be read.
    pub async fn read(location: &Path) -> Result<Self, ReadError> {
        match location.to_str().filter(|text| text.starts_with("s3://")) {
            Some(object) => Self::read_object(object).await,
            None => Self::read_file(location),
        }
    }

    fn read_file(path: &Path) -> Result<Self, ReadError> {
        let unreadable = |source| ReadError::File { location: path.display().to_string(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        Ok(Self { text, folder: folder.to_owned() })
    }

    async fn read_object(location: &str) -> Result<Self, ReadError> {
        let unreadable = |source| ReadError::Object { location: location.to_owned(), source };
        let storage = sluice_storage::open(&StorageConfig::default(), Arc::new(SystemClock)).await.map_err(unreadable)?;
        let objects = storage.objects(location).map_err(unreadable)?;
        let object = objects.get(location).await.map_err(unreadable)?;
        let object = object.ok_or_else(|| ReadError::Missing { location: location.to_owned() })?;
        let text = String::from_utf8(object.bytes.to_vec()).map_err(|_| ReadError::NoText { location: location.to_owned() })?;
        Ok(Self { text, folder: PathBuf::from(".") })
    }

    /// Its keys, as a JSON value.
    ///
    /// # Errors
    /// [`ConfigError`] when it is no TOML.
    pub fn parsed(&self) -> Result<Value, ConfigError> {
        parse_toml(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_and_relative_paths_start_at_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sluice.toml");
        assert!(matches!(ConfigFile::read(&path).await, Err(ReadError::File { .. })));
        std::fs::write(&path, "a = 1").unwrap();
        let file = ConfigFile::read(&path).await.unwrap();
        assert_eq!((file.text.as_str(), file.folder.as_path()), ("a = 1", folder.path()));
        assert_eq!(file.parsed().unwrap()["a"], 1);
    }

    #[cfg(not(feature = "s3"))]
    #[tokio::test]
    async fn an_object_without_s3_is_refused_with_what_to_do() {
        let error = ConfigFile::read(Path::new("s3://bucket/sluice.toml")).await.unwrap_err().to_string();
        assert!(error.contains("CONFIG_UNREADABLE") && error.contains("s3"), "{error}");
    }
}
