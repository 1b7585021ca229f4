//! One `FileIO` for locations of several schemes: a catalog may hold tables on the local disk beside tables in S3.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use iceberg::io::{FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory};
use iceberg::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// A storage for each scheme.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ByScheme {
    #[serde(skip)]
    storages: Arc<BTreeMap<&'static str, Arc<dyn Storage>>>,
}

impl ByScheme {
    pub(crate) fn new(storages: impl IntoIterator<Item = (&'static str, Arc<dyn Storage>)>) -> Self {
        Self { storages: Arc::new(storages.into_iter().collect()) }
    }

    fn of(&self, path: &str) -> Result<&Arc<dyn Storage>> {
        let scheme = scheme_of(path);
        self.storages.get(scheme).ok_or_else(|| Error::new(ErrorKind::FeatureUnsupported, not_here(path)))
    }
}

/// `""` stands for a path without scheme.
pub(crate) fn scheme_of(location: &str) -> &str {
    location.split_once(':').map_or("", |(scheme, _)| scheme)
}

/// What to say of a location whose storage is not there, with what to do about it.
pub(crate) fn not_here(location: &str) -> String {
    let help = match scheme_of(location) {
        "s3" | "s3a" | "s3n" => "this program was built without S3: build it with --features s3",
        _ => "known are file://, memory:// and s3://",
    };
    format!("the storage of `{location}`; {help}")
}

#[typetag::serde(name = "SluiceByScheme")]
impl StorageFactory for ByScheme {
    fn build(&self, _: &StorageConfig) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
#[typetag::serde(name = "SluiceByScheme")]
impl Storage for ByScheme {
    async fn exists(&self, path: &str) -> Result<bool> {
        self.of(path)?.exists(path).await
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        self.of(path)?.metadata(path).await
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        self.of(path)?.read(path).await
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        self.of(path)?.reader(path).await
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.of(path)?.write(path, bytes).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        self.of(path)?.writer(path).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.of(path)?.delete(path).await
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        self.of(path)?.delete_prefix(path).await
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> Result<()> {
        while let Some(path) = paths.next().await {
            self.of(&path)?.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> Result<InputFile> {
        self.of(path)?.new_input(path)
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        self.of(path)?.new_output(path)
    }
}
