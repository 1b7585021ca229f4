//! Objects of S3.

use std::sync::Arc;

use async_trait::async_trait;
use aws_config::retry::RetryConfig;
use aws_sdk_s3::Client;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use bytes::Bytes;
use sluice_model::Class;

use super::client::{aws_config, client};
use super::errors::{class_of_write, is_absent, reading, writing};
use super::files::S3Files;
use super::location::S3Location;
use super::upload::encryption;
use crate::object_store::check_deletes;
use crate::{Condition, Credentials, ListPage, NotDeleted, Object, ObjectEntry, ObjectStore, PutOutcome, S3Config, StorageError, Token};

/// The objects of all buckets that the credentials reach. Clones share the connections.
#[derive(Clone)]
pub struct S3Objects {
    client: Client,
    config: Arc<S3Config>,
}

/// A client of AWS prints itself in a hundred kilobytes.
impl std::fmt::Debug for S3Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3Objects")
    }
}

impl S3Objects {
    /// With the given credentials, or those of AWS's usual chain.
    pub async fn open(config: &S3Config, credentials: Option<&Credentials>) -> Self {
        Self { client: client(&aws_config(config).await, config, credentials), config: Arc::new(config.clone()) }
    }

    pub(crate) const fn of(client: Client, config: Arc<S3Config>) -> Self {
        Self { client, config }
    }

    /// The same objects as files.
    #[must_use]
    pub fn storage(&self) -> Arc<dyn iceberg::io::Storage> {
        Arc::new(S3Files::new(self.client.clone(), Arc::clone(&self.config)))
    }
}

/// A write under a condition.
fn conditional(request: PutObjectFluentBuilder, condition: &Condition) -> PutObjectFluentBuilder {
    match condition {
        Condition::Always => request,
        Condition::IfAbsent => request.if_none_match("*"),
        Condition::IfMatch(etag) => request.if_match(etag),
    }
}

#[async_trait]
impl ObjectStore for S3Objects {
    async fn list(&self, prefix: &str, from: Option<&Token>) -> Result<ListPage, StorageError> {
        let at = S3Location::parse(prefix)?;
        let request = self.client.list_objects_v2().bucket(at.bucket).prefix(at.key);
        let request = request.set_continuation_token(from.map(|token| token.0.clone()));
        let page = request.send().await.map_err(reading(format!("ListObjectsV2 {prefix}")))?;
        let next = page.next_continuation_token.map(Token);
        let objects = page.contents.unwrap_or_default().into_iter().filter_map(|object| {
            let last_modified_ms = object.last_modified.and_then(|time| time.to_millis().ok());
            let size = object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
            object.key.map(|key| ObjectEntry { location: at.of(&key), size, last_modified_ms })
        });
        Ok(ListPage { objects: objects.collect(), next })
    }

    async fn get(&self, location: &str) -> Result<Option<Object>, StorageError> {
        let at = S3Location::parse(location)?;
        let what = || format!("reading {location}");
        let found = match self.client.get_object().bucket(at.bucket).key(at.key).send().await {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(reading(what())(error)),
        };
        let etag = found.e_tag.unwrap_or_default();
        let bytes = found.body.collect().await.map_err(|error| StorageError {
            class: Class::Transient,
            what: format!("{}: {error}", what()),
            source: Some(Box::new(error)),
        })?;
        Ok(Some(Object { bytes: bytes.into_bytes(), etag }))
    }

    async fn put(&self, location: &str, bytes: Bytes, condition: Condition) -> Result<PutOutcome, StorageError> {
        let at = S3Location::parse(location)?;
        let (sse, key) = encryption(&self.config);
        let request = self.client.put_object().bucket(at.bucket).key(at.key).body(ByteStream::from(bytes));
        let request = conditional(request.set_server_side_encryption(sse).set_ssekms_key_id(key), &condition).customize();
        let request = match condition {
            Condition::Always => request,
            // Sent twice, a write that was made could be told as refused.
            Condition::IfAbsent | Condition::IfMatch(_) => {
                request.config_override(aws_sdk_s3::Config::builder().retry_config(RetryConfig::disabled()))
            }
        };
        match request.send().await {
            Ok(written) => Ok(PutOutcome::Written(written.e_tag.unwrap_or_default())),
            Err(error) if class_of_write(&error) == Class::Conflict => Ok(PutOutcome::Refused),
            // `If-Match` on an object that is gone.
            Err(error) if condition != Condition::Always && is_absent(&error) => Ok(PutOutcome::Refused),
            Err(error) => Err(writing(format!("PutObject {location}"))(error)),
        }
    }

    async fn delete(&self, locations: &[String]) -> Result<Vec<NotDeleted>, StorageError> {
        check_deletes(locations)?;
        let mut by_bucket = std::collections::BTreeMap::<&str, Vec<(&str, &String)>>::new();
        for location in locations {
            let at = S3Location::parse(location)?;
            by_bucket.entry(at.bucket).or_default().push((at.key, location));
        }
        let mut left = Vec::new();
        for (bucket, keys) in by_bucket {
            left.extend(self.delete_in(bucket, &keys).await?);
        }
        Ok(left)
    }
}

impl S3Objects {
    async fn delete_in(&self, bucket: &str, keys: &[(&str, &String)]) -> Result<Vec<NotDeleted>, StorageError> {
        let wrong = |error: aws_sdk_s3::error::BuildError| StorageError::fatal(format!("deleting from {bucket}: {error}"));
        let mut delete = Delete::builder().quiet(true);
        for (key, _) in keys {
            delete = delete.objects(ObjectIdentifier::builder().key(*key).build().map_err(wrong)?);
        }
        let request = self.client.delete_objects().bucket(bucket).delete(delete.build().map_err(wrong)?);
        let done = request.send().await.map_err(writing(format!("deleting {} objects of {bucket}", keys.len())))?;
        let refused = done.errors.unwrap_or_default().into_iter().filter(|error| error.code.as_deref() != Some("NoSuchKey"));
        Ok(refused.filter_map(|error| not_deleted(keys, &error)).collect())
    }
}

fn not_deleted(keys: &[(&str, &String)], error: &aws_sdk_s3::types::Error) -> Option<NotDeleted> {
    let class = match error.code.as_deref() {
        Some("AccessDenied" | "InvalidArgument" | "MethodNotAllowed" | "NoSuchBucket") => Class::Fatal,
        Some(_) | None => Class::Transient,
    };
    let (_, location) = keys.iter().find(|(key, _)| Some(*key) == error.key.as_deref())?;
    let (code, message) = (error.code.as_deref().unwrap_or("?"), error.message.as_deref().unwrap_or(""));
    let error = StorageError { class, what: format!("deleting {location}: {code} {message}"), source: None };
    Some(NotDeleted { location: (*location).clone(), error })
}
