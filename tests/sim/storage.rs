//! The simulated object store under iceberg's `FileIO`.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use iceberg::io::{
    FileIO, FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory,
};
use iceberg::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::world::{Call, Fate, Sim};

/// Files of the simulated world.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SimStorage {
    #[serde(skip)]
    sim: Sim,
}

/// The storage as a `FileIO`.
pub fn file_io(sim: &Sim) -> FileIO {
    FileIOBuilder::new(Arc::new(SimStorage { sim: sim.clone() })).build()
}

/// What an object store says when it is in trouble.
fn broken(what: &str, path: &str) -> Error {
    Error::new(ErrorKind::Unexpected, format!("{what} {path}: simulated trouble"))
}

impl SimStorage {
    async fn get(&self, path: &str) -> Result<Bytes> {
        match self.sim.gate(Call::Read).await {
            Fate::Pass => {
                let found = self.sim.world().files.get(path).cloned();
                found.ok_or_else(|| Error::new(ErrorKind::Unexpected, format!("no such file: {path}")))
            }
            Fate::Instead(_) | Fate::Lost | Fate::Late => Err(broken("reading", path)),
        }
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        let fate = self.sim.gate(Call::Write).await;
        match fate {
            Fate::Pass | Fate::Lost => self.sim.world().files.insert(path.to_owned(), bytes),
            Fate::Instead(_) | Fate::Late => None,
        };
        if fate == Fate::Pass { Ok(()) } else { Err(broken("writing", path)) }
    }
}

#[typetag::serde]
impl StorageFactory for SimStorage {
    fn build(&self, _: &StorageConfig) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
#[typetag::serde]
impl Storage for SimStorage {
    async fn exists(&self, path: &str) -> Result<bool> {
        match self.sim.gate(Call::Read).await {
            Fate::Pass => Ok(self.sim.world().files.contains_key(path)),
            Fate::Instead(_) | Fate::Lost | Fate::Late => Err(broken("looking for", path)),
        }
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
        match self.sim.gate(Call::Delete).await {
            Fate::Pass => {
                let mut world = self.sim.world();
                world.files.remove(path);
                world.deleted.push(path.to_owned());
                Ok(())
            }
            Fate::Instead(_) | Fate::Lost | Fate::Late => Err(broken("deleting", path)),
        }
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        Err(broken("deleting a whole folder", path))
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
    storage: SimStorage,
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
