//! A storage and a catalog in memory that count what is asked of them, and may take their time for each request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use iceberg::io::{FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory};
use iceberg::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sluice_catalog::memory::MemoryPointers;
use sluice_catalog::pointer::{NewPointer, Pointer, PointerCatalog, PointerStore};
use sluice_model::TableName;
use sluice_table::{CommitError, CreateOutcome, TableError};

/// Requests since the last [`Counts::start`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) gets: AtomicU64,
    pub(crate) puts: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) swaps: AtomicU64,
    /// How long each request takes, in milliseconds.
    pub(crate) delay_ms: AtomicU64,
    files: Mutex<BTreeMap<String, Bytes>>,
}

/// What was asked: of the catalog (loads, swaps), of the storage (gets, puts, deletes).
pub(crate) type Asked = (u64, u64, u64, u64, u64);

impl Counts {
    pub(crate) fn start(&self) {
        for counter in [&self.gets, &self.puts, &self.deletes, &self.loads, &self.swaps] {
            counter.store(0, Ordering::SeqCst);
        }
    }

    pub(crate) fn asked(&self) -> Asked {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        (read(&self.loads), read(&self.swaps), read(&self.gets), read(&self.puts), read(&self.deletes))
    }

    async fn count(&self, counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::SeqCst);
        let ms = self.delay_ms.load(Ordering::SeqCst);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}

/// A catalog that counts.
pub(crate) fn catalog(counts: &Arc<Counts>) -> PointerCatalog<CountingPointers> {
    let file_io = FileIOBuilder::new(Arc::new(CountingStorage { counts: Arc::clone(counts) })).build();
    let store = CountingPointers { inner: MemoryPointers::default(), counts: Arc::clone(counts) };
    PointerCatalog::over(store, (file_io, "memory://warehouse"), crate::services())
}

pub(crate) struct CountingPointers {
    inner: MemoryPointers,
    counts: Arc<Counts>,
}

#[async_trait]
impl PointerStore for CountingPointers {
    type Entry = <MemoryPointers as PointerStore>::Entry;

    async fn get(&self, name: &TableName) -> std::result::Result<Option<Pointer<Self::Entry>>, TableError> {
        self.counts.count(&self.counts.loads).await;
        self.inner.get(name).await
    }

    async fn insert(&self, new: NewPointer<'_>) -> std::result::Result<CreateOutcome, TableError> {
        self.inner.insert(new).await
    }

    async fn swap(&self, old: &Pointer<Self::Entry>, new: NewPointer<'_>) -> std::result::Result<(), CommitError> {
        self.counts.count(&self.counts.swaps).await;
        self.inner.swap(old, new).await
    }

    async fn names(&self) -> std::result::Result<Vec<TableName>, TableError> {
        self.inner.names().await
    }

    async fn remove(&self, name: &TableName) -> std::result::Result<bool, TableError> {
        self.inner.remove(name).await
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct CountingStorage {
    #[serde(skip)]
    counts: Arc<Counts>,
}

impl CountingStorage {
    fn file(&self, path: &str) -> Result<Bytes> {
        let found = self.counts.files.lock().unwrap().get(path).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::Unexpected, format!("no such file: {path}")))
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        self.counts.count(&self.counts.gets).await;
        self.file(path)
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.counts.count(&self.counts.puts).await;
        self.counts.files.lock().unwrap().insert(path.to_owned(), bytes);
        Ok(())
    }
}

#[typetag::serde]
impl StorageFactory for CountingStorage {
    fn build(&self, _: &StorageConfig) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
#[typetag::serde]
impl Storage for CountingStorage {
    async fn exists(&self, path: &str) -> Result<bool> {
        self.counts.count(&self.counts.gets).await;
        Ok(self.file(path).is_ok())
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        Ok(FileMetadata { size: self.get(path).await?.len() as u64 })
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        self.get(path).await
    }

    async fn reader(&self, path: &str) -> Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader(self.get(path).await?)))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.put(path, bytes).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn FileWrite>> {
        Ok(Box::new(Writer { storage: self.clone(), path: path.to_owned(), buffer: BytesMut::new() }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.counts.count(&self.counts.deletes).await;
        self.counts.files.lock().unwrap().remove(path);
        Ok(())
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        Err(Error::new(ErrorKind::FeatureUnsupported, format!("deleting all of {path}")))
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> Result<()> {
        while let Some(path) = paths.next().await {
            self.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

struct Reader(Bytes);

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.0.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()))
    }
}

/// A file comes into being when it is closed, as in an object store.
struct Writer {
    storage: CountingStorage,
    path: String,
    buffer: BytesMut,
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.buffer.extend_from_slice(&bytes);
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        let bytes = self.buffer.split().freeze();
        self.storage.put(&self.path, bytes).await
    }
}
