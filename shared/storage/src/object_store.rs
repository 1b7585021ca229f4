//! A store of objects as maintenance needs it: listing, conditional writes, deletes in bulk. iceberg's `FileIO` has none of these.

use async_trait::async_trait;
use bytes::Bytes;

use crate::StorageError;

/// The most locations that one [`ObjectStore::delete`] takes: what S3 takes in one request.
pub const MAX_DELETES: usize = 1_000;

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEntry {
    /// Its location, in the spelling of the prefix that was asked for: `s3a://b/` lists `s3a://b/…`. The key is raw, nothing is decoded or encoded.
    pub location: String,
    /// Its bytes.
    pub size: u64,
    /// When it was written, in milliseconds since 1970-01-01T00:00:00Z by the storage's clock; `None` when the storage does not say. An object of
    /// unknown age is not old.
    pub last_modified_ms: Option<i64>,
}

/// One page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Objects, in no order to rely on.
    pub objects: Vec<ObjectEntry>,
    /// For the next page; `None` when this was the last.
    pub next: Option<Token>,
}

/// Where a listing goes on. It can be kept and used by another process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Token(pub String);

/// An object with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its content.
    pub bytes: Bytes,
    /// The version of the content, for [`Condition::IfMatch`]. It says nothing else: two stores make it differently.
    pub etag: String,
}

/// When a write may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// Only if there is no such object (HTTP's `If-None-Match: *`).
    IfAbsent,
    /// Only if the object has the content of this etag (HTTP's `If-Match`).
    IfMatch(String),
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// It was written, and has this etag now.
    Written(String),
    /// The condition did not hold; nothing was written.
    Refused,
}

/// An object that was not deleted.
#[derive(Debug)]
pub struct NotDeleted {
    /// Its location.
    pub location: String,
    /// Why.
    pub error: StorageError,
}

/// Objects at locations. Locations are absolute, with scheme.
///
/// Every call is one request (or as many as the configured retries make of it), bounded in time by the configuration. A conditional write is never
/// sent twice, so [`PutOutcome::Refused`] always means that somebody else was there.
#[async_trait]
pub trait ObjectStore: std::fmt::Debug + Send + Sync {
    /// One page of the objects whose location starts with `prefix`, as text: end it with `/` to mean a folder. The pages together hold every object
    /// that was there from the first call to the last; one that came or went meanwhile may be in it or not.
    ///
    /// # Errors
    /// What the storage said. A prefix where nothing is, is no error.
    async fn list(&self, prefix: &str, from: Option<&Token>) -> Result<ListPage, StorageError>;

    /// The object, `None` when there is none.
    ///
    /// # Errors
    /// What the storage said.
    async fn get(&self, location: &str) -> Result<Option<Object>, StorageError>;

    /// Writes an object whole if the condition holds; of racing writers with conditions one wins.
    ///
    /// # Errors
    /// What the storage said. Of class unknown, it may have been written: [`get`](Self::get) tells.
    async fn put(&self, location: &str, bytes: Bytes, condition: Condition) -> Result<PutOutcome, StorageError>;

    /// Deletes objects, [`MAX_DELETES`] at most, and returns those that it could not delete. An object that is not there counts as deleted.
    ///
    /// # Errors
    /// When the request as a whole failed (any of the objects may be deleted), or there are too many locations.
    async fn delete(&self, locations: &[String]) -> Result<Vec<NotDeleted>, StorageError>;
}

/// Refuses more locations than one request takes.
pub(crate) fn check_deletes(locations: &[String]) -> Result<(), StorageError> {
    if locations.len() <= MAX_DELETES {
        return Ok(());
    }
    Err(StorageError::fatal(format!("{} objects to delete at once; {MAX_DELETES} are the most", locations.len())))
}
