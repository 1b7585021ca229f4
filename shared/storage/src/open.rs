//! Opens the storage of a configuration.

use std::sync::Arc;

use iceberg::io::{FileIO, FileIOBuilder, LocalFsStorageFactory, StorageConfig as Properties, StorageFactory};
use sluice_model::Clock;

use crate::by_scheme::{ByScheme, not_here, scheme_of};
use crate::{Credentials, LocalObjects, MemoryObjects, ObjectStore, StorageConfig, StorageError};

/// A storage, ready to use. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Storage {
    /// Files of tables, of every scheme that this program was built with.
    pub file_io: FileIO,
    /// `memory://` objects, the same as its files.
    memory: MemoryObjects,
    #[cfg(feature = "s3")]
    s3: crate::s3::S3Objects,
}

/// Opens the storage. It reaches for nothing yet: the first request does.
///
/// # Errors
/// [`StorageError`] when the configuration cannot be turned into a client.
pub async fn open(config: &StorageConfig, clock: Arc<dyn Clock>) -> Result<Storage, StorageError> {
    open_with(config, None, clock).await
}

/// Opens the storage with credentials that a catalog handed out, instead of AWS's usual chain.
///
/// # Errors
/// As [`open`].
pub async fn open_with(config: &StorageConfig, credentials: Option<&Credentials>, clock: Arc<dyn Clock>) -> Result<Storage, StorageError> {
    let memory = MemoryObjects::new(clock);
    let local = build(&LocalFsStorageFactory)?;
    let mut storages = vec![("", Arc::clone(&local)), ("file", local), ("memory", build(&memory)?)];
    #[cfg(feature = "s3")]
    let s3 = crate::s3::S3Objects::open(&config.s3, credentials).await;
    #[cfg(feature = "s3")]
    storages.extend(["s3", "s3a", "s3n"].map(|scheme| (scheme, s3.storage())));
    #[cfg(not(feature = "s3"))]
    let _ = (config, credentials);
    let file_io = FileIOBuilder::new(Arc::new(ByScheme::new(storages.drain(..)))).build();
    Ok(Storage {
        file_io,
        memory,
        #[cfg(feature = "s3")]
        s3,
    })
}

fn build(factory: &dyn StorageFactory) -> Result<Arc<dyn iceberg::io::Storage>, StorageError> {
    factory.build(&Properties::new()).map_err(|error| StorageError::fatal(error.to_string()))
}

impl Storage {
    /// The objects beside a location, for maintenance.
    ///
    /// # Errors
    /// [`StorageError`] when this program cannot list the storage of that location.
    pub fn objects(&self, location: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
        match scheme_of(location) {
            "" if location.starts_with('/') => Ok(Arc::new(LocalObjects)),
            "file" => Ok(Arc::new(LocalObjects)),
            "memory" => Ok(Arc::new(self.memory.clone())),
            #[cfg(feature = "s3")]
            "s3" | "s3a" | "s3n" => Ok(Arc::new(self.s3.clone())),
            _ => Err(StorageError::fatal(format!("not supported: listing {}", not_here(location)))),
        }
    }

    /// Whether files can be read and written at that location.
    ///
    /// # Errors
    /// [`StorageError`] when its storage is not built in, with what to do.
    pub fn check(&self, location: &str) -> Result<(), StorageError> {
        self.file_io.new_input(location).map(|_| ()).map_err(|_| StorageError::fatal(format!("not supported: {}", not_here(location))))
    }
}
