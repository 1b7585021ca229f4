//! Files of tables in S3, under iceberg's `FileIO`.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use iceberg::io::{FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage};
use serde::{Deserialize, Serialize};
use sluice_model::Class;

use super::errors::{is_absent, reading, writing};
use super::location::S3Location;
use super::objects::S3Objects;
use super::upload::{S3Writer, Target};
use crate::{MAX_DELETES, ObjectStore as _, S3Config, StorageError};

/// Files of all buckets that the credentials reach. iceberg wants to send storages to other processes: such a copy has no client and says so.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct S3Files {
    #[serde(skip)]
    inner: Option<(Client, Arc<S3Config>)>,
}

/// A client of AWS prints itself in a hundred kilobytes.
impl std::fmt::Debug for S3Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3Files")
    }
}

impl S3Files {
    pub(crate) fn new(client: Client, config: Arc<S3Config>) -> Self {
        Self { inner: Some((client, config)) }
    }

    fn at(&self, path: &str) -> Result<Target, StorageError> {
        let at = S3Location::parse(path)?;
        let (client, config) =
            self.inner.clone().ok_or_else(|| StorageError::fatal("a storage that came from another process has no client of S3"))?;
        Ok(Target { client, config, bucket: at.bucket.to_owned(), key: at.key.to_owned() })
    }
}

impl Target {
    async fn size(&self) -> Result<Option<u64>, StorageError> {
        match self.client.head_object().bucket(&self.bucket).key(&self.key).send().await {
            Ok(head) => Ok(Some(head.content_length.and_then(|size| u64::try_from(size).ok()).unwrap_or_default())),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(reading(self.named("looking for"))(error)),
        }
    }

    async fn read(&self, range: Option<Range<u64>>) -> Result<Bytes, StorageError> {
        if range.as_ref().is_some_and(Range::is_empty) {
            return Ok(Bytes::new());
        }
        let wanted = range.as_ref().map(|range| format!("bytes={}-{}", range.start, range.end - 1));
        let request = self.client.get_object().bucket(&self.bucket).key(&self.key).set_range(wanted);
        let found = match request.send().await {
            Ok(found) => found,
            // Not for ever: a reader that is behind may ask for what was just replaced.
            Err(error) if is_absent(&error) => return Err(self.broken("there is no such object")),
            Err(error) => return Err(reading(self.named("reading"))(error)),
        };
        let bytes = found.body.collect().await.map_err(|error| self.broken(&error.to_string()))?.into_bytes();
        match range.map(|range| range.end - range.start).filter(|wanted| *wanted != bytes.len() as u64) {
            Some(wanted) => Err(self.broken(&format!("{} bytes came of {wanted}", bytes.len()))),
            None => Ok(bytes),
        }
    }

    fn named(&self, what: &str) -> String {
        format!("{what} s3://{}/{}", self.bucket, self.key)
    }

    fn broken(&self, why: &str) -> StorageError {
        StorageError { class: Class::Transient, what: format!("{}: {why}", self.named("reading")), source: None }
    }
}

/// Reads ranges of one file.
struct Reader(Target);

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        self.0.read(Some(range)).await.map_err(StorageError::into_iceberg)
    }
}

#[async_trait]
#[typetag::serde(name = "SluiceS3")]
impl Storage for S3Files {
    async fn exists(&self, path: &str) -> iceberg::Result<bool> {
        let target = self.at(path).map_err(StorageError::into_iceberg)?;
        target.size().await.map(|size| size.is_some()).map_err(StorageError::into_iceberg)
    }

    async fn metadata(&self, path: &str) -> iceberg::Result<FileMetadata> {
        let target = self.at(path).map_err(StorageError::into_iceberg)?;
        let size = target.size().await.map_err(StorageError::into_iceberg)?;
        let size = size.ok_or_else(|| target.broken("there is no such object").into_iceberg())?;
        Ok(FileMetadata { size })
    }

    async fn read(&self, path: &str) -> iceberg::Result<Bytes> {
        self.at(path).map_err(StorageError::into_iceberg)?.read(None).await.map_err(StorageError::into_iceberg)
    }

    async fn reader(&self, path: &str) -> iceberg::Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader(self.at(path).map_err(StorageError::into_iceberg)?)))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> iceberg::Result<()> {
        let mut writer = self.writer(path).await?;
        writer.write(bytes).await?;
        writer.close().await
    }

    async fn writer(&self, path: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        Ok(Box::new(S3Writer::new(self.at(path).map_err(StorageError::into_iceberg)?)))
    }

    async fn delete(&self, path: &str) -> iceberg::Result<()> {
        let target = self.at(path).map_err(StorageError::into_iceberg)?;
        let sent = target.client.delete_object().bucket(&target.bucket).key(&target.key).send().await;
        sent.map(|_| ()).map_err(writing(target.named("deleting"))).map_err(StorageError::into_iceberg)
    }

    /// Nobody asks for it: whole folders are deleted by a plan that names each file.
    async fn delete_prefix(&self, path: &str) -> iceberg::Result<()> {
        Err(StorageError::fatal(format!("deleting all below {path} at once is not supported")).into_iceberg())
    }

    async fn delete_stream(&self, paths: BoxStream<'static, String>) -> iceberg::Result<()> {
        let (client, config) = self.inner.clone().ok_or_else(|| StorageError::fatal("no client of S3").into_iceberg())?;
        let objects = S3Objects::of(client, config);
        let mut groups = paths.chunks(MAX_DELETES);
        while let Some(group) = groups.next().await {
            let left = objects.delete(&group).await.map_err(StorageError::into_iceberg)?;
            if let Some(first) = left.into_iter().next() {
                return Err(first.error.into_iceberg());
            }
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> iceberg::Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> iceberg::Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}
