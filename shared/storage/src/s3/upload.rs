//! Writing a file: in one request when it is small, else in parts, with one part in memory.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, ServerSideEncryption};
use bytes::{Bytes, BytesMut};
use iceberg::io::FileWrite;

use super::errors::writing;
use crate::config::Encryption;
use crate::{S3Config, StorageError};

/// S3 takes no more parts.
const MOST_PARTS: usize = 10_000;

/// The headers of encryption.
pub(crate) fn encryption(config: &S3Config) -> (Option<ServerSideEncryption>, Option<String>) {
    match config.encryption {
        Encryption::Bucket => (None, None),
        Encryption::S3 => (Some(ServerSideEncryption::Aes256), None),
        Encryption::Kms => (Some(ServerSideEncryption::AwsKms), config.kms_key.clone()),
        Encryption::KmsDsse => (Some(ServerSideEncryption::AwsKmsDsse), config.kms_key.clone()),
    }
}

/// Where to write.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) config: Arc<S3Config>,
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl Target {
    fn what(&self) -> String {
        format!("writing s3://{}/{}", self.bucket, self.key)
    }

    /// One request for the whole file.
    pub(crate) async fn put(&self, bytes: Bytes) -> Result<(), StorageError> {
        let (sse, key) = encryption(&self.config);
        let request = self.client.put_object().bucket(&self.bucket).key(&self.key).body(ByteStream::from(bytes));
        let sent = request.set_server_side_encryption(sse).set_ssekms_key_id(key).send().await;
        sent.map(|_| ()).map_err(writing(self.what()))
    }

    async fn begin(&self) -> Result<String, StorageError> {
        let (sse, key) = encryption(&self.config);
        let request = self.client.create_multipart_upload().bucket(&self.bucket).key(&self.key);
        let begun = request.set_server_side_encryption(sse).set_ssekms_key_id(key).send().await.map_err(writing(self.what()))?;
        begun.upload_id.ok_or_else(|| StorageError::fatal(format!("{}: the server began an upload without an id", self.what())))
    }

    async fn part(&self, upload: &Upload, bytes: Bytes) -> Result<CompletedPart, StorageError> {
        let number = upload.parts.len() + 1;
        let at = i32::try_from(number).ok().filter(|_| number <= MOST_PARTS);
        let at = at.ok_or_else(|| StorageError::fatal(format!("{}: more than {MOST_PARTS} parts; raise part_bytes", self.what())))?;
        let request = self.client.upload_part().bucket(&self.bucket).key(&self.key).upload_id(&upload.id).part_number(at);
        let sent = request.body(ByteStream::from(bytes)).send().await.map_err(writing(self.what()))?;
        Ok(CompletedPart::builder().part_number(at).set_e_tag(sent.e_tag).build())
    }

    async fn complete(&self, upload: Upload) -> Result<(), StorageError> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(upload.parts)).build();
        let request = self.client.complete_multipart_upload().bucket(&self.bucket).key(&self.key).upload_id(upload.id);
        request.multipart_upload(parts).send().await.map(|_| ()).map_err(writing(self.what()))
    }

    /// Parts that are given up cost money until a lifecycle rule removes them.
    async fn abort(&self, upload: &Upload) {
        let request = self.client.abort_multipart_upload().bucket(&self.bucket).key(&self.key).upload_id(&upload.id);
        let _ = request.send().await;
    }
}

#[derive(Debug)]
struct Upload {
    id: String,
    parts: Vec<CompletedPart>,
}

/// A file that is being written. It comes into being when it is closed.
pub(crate) struct S3Writer {
    target: Target,
    buffer: BytesMut,
    upload: Option<Upload>,
}

impl S3Writer {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, buffer: BytesMut::new(), upload: None }
    }

    async fn send_part(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => Upload { id: self.target.begin().await?, parts: Vec::new() },
        };
        match self.target.part(&upload, bytes).await {
            Ok(part) => {
                upload.parts.push(part);
                self.upload = Some(upload);
                Ok(())
            }
            Err(error) => {
                self.target.abort(&upload).await;
                Err(error)
            }
        }
    }

    async fn finish(&mut self) -> Result<(), StorageError> {
        let last = self.buffer.split().freeze();
        if self.upload.is_none() {
            return self.target.put(last).await;
        }
        if !last.is_empty() {
            self.send_part(last).await?;
        }
        match self.upload.take() {
            Some(upload) => self.target.complete(upload).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl FileWrite for S3Writer {
    async fn write(&mut self, bytes: Bytes) -> iceberg::Result<()> {
        self.buffer.extend_from_slice(&bytes);
        let part = self.target.config.part_bytes;
        // More than one part is kept back, so that a file of exactly one part is one request.
        while self.buffer.len() > part {
            let bytes = self.buffer.split_to(part).freeze();
            self.send_part(bytes).await.map_err(StorageError::into_iceberg)?;
        }
        Ok(())
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        self.finish().await.map_err(StorageError::into_iceberg)
    }
}
