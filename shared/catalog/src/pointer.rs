//! Catalogs that keep, for each table, the location of its current metadata file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::spec::TableMetadata;
use sluice_model::{Clock, IdSource, TableName};
use sluice_table::{
    Catalog, CommitError, CreateOutcome, StagedChange, TableCreation, TableError, TableOperations, TableVersion, metadata_file,
};

/// Time and randomness for new tables.
#[derive(Clone)]
pub struct Services {
    /// The time of creation.
    pub clock: Arc<dyn Clock>,
    /// Table ids and names of files.
    pub ids: Arc<dyn IdSource>,
}

/// The pointers themselves.
#[async_trait]
pub trait PointerStore: Send + Sync {
    /// The table's pointer, `None` when there is no such table.
    ///
    /// # Errors
    /// What the store said.
    async fn get(&self, name: &TableName) -> Result<Option<String>, TableError>;

    /// Registers a table, and its namespace when that is missing. `AlreadyExists` changes nothing.
    ///
    /// # Errors
    /// What the store said.
    async fn insert(&self, name: &TableName, pointer: &str) -> Result<CreateOutcome, TableError>;

    /// Sets the pointer to `new` if it is `old`.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] when it is not, else what the store said.
    async fn swap(&self, name: &TableName, old: &str, new: &str) -> Result<(), CommitError>;

    /// All tables, in order of their names.
    ///
    /// # Errors
    /// What the store said.
    async fn names(&self) -> Result<Vec<TableName>, TableError>;

    /// Takes a table out. Whether there was one.
    ///
    /// # Errors
    /// What the store said.
    async fn remove(&self, name: &TableName) -> Result<bool, TableError>;
}

/// A catalog over pointers.
pub struct PointerCatalog<S> {
    store: Arc<S>,
    file_io: FileIO,
    warehouse: String,
    services: Services,
}

impl<S: PointerStore + 'static> PointerCatalog<S> {
    /// A catalog whose new tables live under `warehouse`.
    #[must_use]
    pub fn over(store: S, (file_io, warehouse): (FileIO, &str), services: Services) -> Self {
        Self { store: Arc::new(store), file_io, warehouse: warehouse.trim_end_matches('/').to_owned(), services }
    }

    /// A folder of its own even for a table that is dropped and created anew: two tables must not share files.
    fn location(&self, name: &TableName) -> String {
        let unique = self.services.ids.next_u128() as u32;
        format!("{}/{}/{}-{unique:08x}", self.warehouse, name.namespace().replace('.', "/"), name.table())
    }

    fn table(&self, name: &TableName) -> PointerTable<S> {
        let newest = Mutex::new(None);
        PointerTable { name: name.clone(), store: Arc::clone(&self.store), file_io: self.file_io.clone(), newest }
    }
}

#[async_trait]
impl<S: PointerStore + 'static> Catalog for PointerCatalog<S> {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let found = self.store.get(name).await?;
        Ok(found.map(|_| Arc::new(self.table(name)) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        if self.store.get(name).await?.is_some() {
            return Ok(CreateOutcome::AlreadyExists);
        }
        let Services { clock, ids } = &self.services;
        let metadata = creation.metadata(&self.location(name), ids.next_u128(), clock.now_ms())?;
        let pointer = metadata_file::next_location(None, &metadata, ids.next_u128());
        metadata_file::write(&self.file_io, &metadata, &pointer).await?;
        self.store.insert(name, &pointer).await
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        self.store.names().await
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        self.store.remove(name).await
    }
}

struct PointerTable<S> {
    name: TableName,
    store: Arc<S>,
    file_io: FileIO,
    /// What was read or written last: a pointer always means the same metadata, so an unchanged pointer saves reading it.
    newest: Mutex<Option<TableVersion>>,
}

#[async_trait]
impl<S: PointerStore> TableOperations for PointerTable<S> {
    fn name(&self) -> &TableName {
        &self.name
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        let pointer = self.store.get(&self.name).await?.ok_or_else(|| TableError::Missing(self.name.clone()))?;
        if let Some(known) = self.newest().clone().filter(|known| known.token == pointer) {
            return Ok(known);
        }
        let metadata = metadata_file::read(&self.file_io, &pointer).await?;
        Ok(self.remember(metadata, &pointer))
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        let new = &change.metadata_location;
        metadata_file::write(&self.file_io, &change.metadata, new).await.map_err(CommitError::before)?;
        match self.store.swap(&self.name, &base.token, new).await {
            Ok(()) => {}
            Err(error) => {
                self.tidy(&error, new).await;
                return Err(error);
            }
        }
        metadata_file::delete_expired(&self.file_io, &change.metadata, &change.expired_logs).await;
        Ok(self.remember(change.metadata.clone(), new))
    }
}

impl<S> PointerTable<S> {
    /// Nothing panics while it is held, so a poisoned lock guards a sound value.
    fn newest(&self) -> MutexGuard<'_, Option<TableVersion>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, metadata: TableMetadata, pointer: &str) -> TableVersion {
        let version = TableVersion {
            metadata: Arc::new(metadata),
            metadata_location: pointer.to_owned(),
            file_io: self.file_io.clone(),
            token: pointer.to_owned(),
        };
        *self.newest() = Some(version.clone());
        version
    }

    /// A metadata file that was surely never pointed to goes; after an unknown outcome nothing is deleted (rule C2).
    async fn tidy(&self, error: &CommitError, location: &str) {
        match error {
            CommitError::Conflict => {
                let _ = self.file_io.delete(location).await;
            }
            CommitError::Transient { .. } | CommitError::Unknown { .. } | CommitError::Fatal { .. } => {}
        }
    }
}
