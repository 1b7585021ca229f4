//! Files and objects in memory, for tests and dry runs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use iceberg::io::{
    FileIO, FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory,
};
use serde::{Deserialize, Serialize};
use sluice_model::Clock;

use crate::object_store::check_deletes;
use crate::{Condition, ListPage, NotDeleted, Object, ObjectEntry, ObjectStore, PutOutcome, StorageError, Token};

/// Objects of one page: small, so that tests meet several pages.
const PAGE: usize = 100;

/// Objects in memory. Clones share them; [`file_io`](Self::file_io) shows the same objects as files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MemoryObjects {
    #[serde(skip)]
    shared: Arc<Mutex<Objects>>,
    #[serde(skip)]
    clock: Time,
}

#[derive(Debug, Default)]
struct Objects {
    by_location: BTreeMap<String, Stored>,
    writes: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    bytes: Bytes,
    etag: String,
    written_ms: Option<i64>,
}

/// The time of writing, unknown without a clock.
#[derive(Clone, Default)]
struct Time(Option<Arc<dyn Clock>>);

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Time")
    }
}

impl MemoryObjects {
    /// No objects yet. `clock` dates them.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::default(), clock: Time(Some(clock)) }
    }

    /// The objects as files.
    #[must_use]
    pub fn file_io(&self) -> FileIO {
        FileIOBuilder::new(Arc::new(self.clone())).build()
    }

    /// No operation on the map can panic half-way, so a poisoned lock guards a sound map.
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_if(&self, location: &str, bytes: Bytes, condition: &Condition) -> PutOutcome {
        let written_ms = self.clock.0.as_ref().map(|clock| clock.now_ms());
        let mut objects = self.objects();
        let there = objects.by_location.get(location).map(|stored| stored.etag.as_str());
        let holds = match condition {
            Condition::Always => true,
            Condition::IfAbsent => there.is_none(),
            Condition::IfMatch(etag) => there == Some(etag.as_str()),
        };
        if !holds {
            return PutOutcome::Refused;
        }
        objects.writes += 1;
        let etag = format!("write-{}", objects.writes);
        objects.by_location.insert(location.to_owned(), Stored { bytes, etag: etag.clone(), written_ms });
        PutOutcome::Written(etag)
    }

    fn file(&self, path: &str) -> iceberg::Result<Bytes> {
        let found = self.objects().by_location.get(path).map(|stored| stored.bytes.clone());
        found.ok_or_else(|| iceberg::Error::new(iceberg::ErrorKind::DataInvalid, format!("{path}: no such file in memory")))
    }
}

#[async_trait]
impl ObjectStore for MemoryObjects {
    async fn list(&self, prefix: &str, from: Option<&Token>) -> Result<ListPage, StorageError> {
        let objects = self.objects();
        let start = from.map_or(prefix, |token| token.0.as_str());
        let rest = objects.by_location.range(start.to_owned()..).take_while(|(location, _)| location.starts_with(prefix));
        let mut entries: Vec<ObjectEntry> = rest
            .take(PAGE + 1)
            .map(|(location, stored)| ObjectEntry {
                location: location.clone(),
                size: stored.bytes.len() as u64,
                last_modified_ms: stored.written_ms,
            })
            .collect();
        let next = if entries.len() > PAGE { entries.pop().map(|entry| Token(entry.location)) } else { None };
        Ok(ListPage { objects: entries, next })
    }

    async fn get(&self, location: &str) -> Result<Option<Object>, StorageError> {
        let found = self.objects().by_location.get(location).cloned();
        Ok(found.map(|stored| Object { bytes: stored.bytes, etag: stored.etag }))
    }

    async fn put(&self, location: &str, bytes: Bytes, condition: Condition) -> Result<PutOutcome, StorageError> {
        Ok(self.write_if(location, bytes, &condition))
    }

    async fn delete(&self, locations: &[String]) -> Result<Vec<NotDeleted>, StorageError> {
        check_deletes(locations)?;
        let mut objects = self.objects();
        for location in locations {
            objects.by_location.remove(location);
        }
        Ok(Vec::new())
    }
}

#[typetag::serde(name = "SluiceMemory")]
impl StorageFactory for MemoryObjects {
    fn build(&self, _: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
#[typetag::serde(name = "SluiceMemory")]
impl Storage for MemoryObjects {
    async fn exists(&self, path: &str) -> iceberg::Result<bool> {
        Ok(self.objects().by_location.contains_key(path))
    }

    async fn metadata(&self, path: &str) -> iceberg::Result<FileMetadata> {
        Ok(FileMetadata { size: self.file(path)?.len() as u64 })
    }

    async fn read(&self, path: &str) -> iceberg::Result<Bytes> {
        self.file(path)
    }

    async fn reader(&self, path: &str) -> iceberg::Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader(self.file(path)?)))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> iceberg::Result<()> {
        self.write_if(path, bytes, &Condition::Always);
        Ok(())
    }

    async fn writer(&self, path: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        Ok(Box::new(Writer { objects: self.clone(), path: path.to_owned(), buffer: BytesMut::new() }))
    }

    async fn delete(&self, path: &str) -> iceberg::Result<()> {
        self.objects().by_location.remove(path);
        Ok(())
    }

    async fn delete_prefix(&self, path: &str) -> iceberg::Result<()> {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.objects().by_location.retain(|location, _| !location.starts_with(&folder));
        Ok(())
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> iceberg::Result<()> {
        while let Some(path) = paths.next().await {
            self.objects().by_location.remove(&path);
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

struct Reader(Bytes);

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        let wanted = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        match wanted.filter(|(start, end)| start <= end && *end <= self.0.len()) {
            Some((start, end)) => Ok(self.0.slice(start..end)),
            None => {
                Err(iceberg::Error::new(iceberg::ErrorKind::DataInvalid, format!("bytes {range:?} of a file of {} bytes", self.0.len())))
            }
        }
    }
}

/// A file comes into being when it is closed, as in an object store.
struct Writer {
    objects: MemoryObjects,
    path: String,
    buffer: BytesMut,
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> iceberg::Result<()> {
        self.buffer.extend_from_slice(&bytes);
        Ok(())
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        let bytes = self.buffer.split().freeze();
        self.objects.write_if(&self.path, bytes, &Condition::Always);
        Ok(())
    }
}
