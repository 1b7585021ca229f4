//! Catalogs that keep, for each table, the location of its current metadata file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::spec::TableMetadata;
use sluice_model::{Class, Clock, IdSource, TableName};
use sluice_table::{
    Catalog, CommitError, CreateOutcome, StagedChange, TableCreation, TableError, TableOperations, TableVersion, metadata_file,
};

use crate::warehouse;

/// Time and randomness for new tables.
#[derive(Clone)]
pub struct Services {
    /// The time of creation.
    pub clock: Arc<dyn Clock>,
    /// Table ids and names of files.
    pub ids: Arc<dyn IdSource>,
}

/// Where a table's current metadata file is, as the store told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer<E> {
    /// The location of the current metadata file.
    pub location: String,
    /// What else the store wants back at the swap, such as a version number or the whole entry with what others have put there.
    pub entry: E,
}

/// What a table is to point to. Its metadata file is written already.
#[derive(Debug, Clone, Copy)]
pub struct NewPointer<'a> {
    /// The table.
    pub name: &'a TableName,
    /// The location of the metadata file.
    pub location: &'a str,
    /// What is in that file, for stores that show columns and properties of their own.
    pub metadata: &'a TableMetadata,
}

/// Where the files of a new table go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Into a folder of its own under the configured warehouse, by namespace and name.
    Warehouse,
    /// Into a folder of its own under this one, by name: the namespace has a location.
    Under(String),
    /// Into this folder and no other: the store gives each table its own.
    Exactly(String),
}

/// The pointers themselves.
#[async_trait]
pub trait PointerStore: Send + Sync {
    /// What the store wants back when it swaps a pointer that it has given; `()` when the location is enough.
    type Entry: Clone + Send + Sync + 'static;

    /// The table's pointer, `None` when there is no such table.
    ///
    /// # Errors
    /// What the store said, or that what stands under the name is no Iceberg table.
    async fn get(&self, name: &TableName) -> Result<Option<Pointer<Self::Entry>>, TableError>;

    /// Where a new table of that name must go. Asked once, before the first metadata file is written.
    ///
    /// # Errors
    /// What the store said.
    async fn place(&self, name: &TableName) -> Result<Place, TableError> {
        let _ = name;
        Ok(Place::Warehouse)
    }

    /// Registers a table, and its namespace when that is missing. `AlreadyExists` changes nothing.
    ///
    /// # Errors
    /// What the store said; of class unknown when the table may have been registered.
    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError>;

    /// Makes the table point to `new` if it still points to `old`. All or nothing.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] when it does not and this very call has surely changed nothing: the new metadata file is then deleted. A store whose
    /// transport may have sent the request twice must say [`CommitError::Unknown`]. Else what the store said.
    async fn swap(&self, old: &Pointer<Self::Entry>, new: NewPointer<'_>) -> Result<(), CommitError>;

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

    /// Who else compacts the table; see [`Catalog::compacted_by`].
    ///
    /// # Errors
    /// What the store said.
    async fn compacted_by(&self, name: &TableName) -> Result<Option<String>, TableError> {
        let _ = name;
        Ok(None)
    }

    /// What there is to know of the store's server before it is relied on; see [`Catalog::check_server`].
    ///
    /// # Errors
    /// What the server said, or that it cannot do what the settings ask of it.
    async fn check_server(&self) -> Result<Option<String>, TableError> {
        Ok(None)
    }
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
    fn location(&self, name: &TableName, place: Place) -> String {
        let unique = self.services.ids.next_u128() as u32;
        match place {
            Place::Warehouse => format!("{}/{}/{}-{unique:08x}", self.warehouse, name.namespace().replace('.', "/"), name.table()),
            Place::Under(folder) => format!("{}/{}-{unique:08x}", folder.trim_end_matches('/'), name.table()),
            Place::Exactly(folder) => folder.trim_end_matches('/').to_owned(),
        }
    }

    /// After an insert of unknown outcome: what stands there now tells, unless nothing does.
    async fn look_up(&self, new: NewPointer<'_>, error: TableError) -> Result<CreateOutcome, TableError> {
        match self.store.get(new.name).await? {
            Some(found) if found.location == new.location => Ok(CreateOutcome::Created),
            Some(_) => Ok(CreateOutcome::AlreadyExists),
            None => Err(error),
        }
    }

    fn table(&self, name: &TableName, first: Pointer<S::Entry>) -> PointerTable<S> {
        PointerTable {
            name: name.clone(),
            store: Arc::clone(&self.store),
            file_io: self.file_io.clone(),
            first: Mutex::new(Some(first)),
            newest: Mutex::new(None),
        }
    }
}

#[async_trait]
impl<S: PointerStore + 'static> Catalog for PointerCatalog<S> {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let found = self.store.get(name).await?;
        Ok(found.map(|first| Arc::new(self.table(name, first)) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        if self.store.get(name).await?.is_some() {
            return Ok(CreateOutcome::AlreadyExists);
        }
        let Services { clock, ids } = &self.services;
        let location = self.location(name, self.store.place(name).await?);
        let metadata = creation.metadata(&location, ids.next_u128(), clock.now_ms())?;
        let pointer = metadata_file::next_location(None, &metadata, ids.next_u128());
        metadata_file::write(&self.file_io, &metadata, &pointer).await?;
        let new = NewPointer { name, location: &pointer, metadata: &metadata };
        match self.store.insert(new).await {
            Err(error) if error.class() == Class::Unknown => self.look_up(new, error).await,
            other => other,
        }
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        self.store.names().await
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        self.store.remove(name).await
    }

    async fn compacted_by(&self, name: &TableName) -> Result<Option<String>, TableError> {
        self.store.compacted_by(name).await
    }

    async fn check_warehouse(&self) -> Result<String, TableError> {
        let place = Some(self.warehouse.as_str()).filter(|warehouse| warehouse.contains("://") || warehouse.starts_with('/'));
        warehouse::check(&self.file_io, place, self.services.ids.next_u128()).await
    }

    async fn check_server(&self) -> Result<Option<String>, TableError> {
        self.store.check_server().await
    }
}

struct PointerTable<S: PointerStore> {
    name: TableName,
    store: Arc<S>,
    file_io: FileIO,
    /// The pointer that loading found, for the first look at the table: the store need not be asked twice.
    first: Mutex<Option<Pointer<S::Entry>>>,
    /// What was read or written last: a location always means the same metadata, so an unchanged one saves reading it.
    newest: Mutex<Option<Known<S::Entry>>>,
}

/// A version, and the store's entry if that was read since.
#[derive(Clone)]
struct Known<E> {
    version: TableVersion,
    entry: Option<E>,
}

#[async_trait]
impl<S: PointerStore> TableOperations for PointerTable<S> {
    fn name(&self) -> &TableName {
        &self.name
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        self.forget_entry();
        let first = lock(&self.first).take();
        let Pointer { location, entry } = match first {
            Some(first) => first,
            None => self.pointer().await?,
        };
        let known = self.newest().clone().filter(|known| known.version.token == location);
        let version = match known {
            Some(known) => known.version,
            None => self.version(metadata_file::read(&self.file_io, &location).await?, &location),
        };
        *self.newest() = Some(Known { version: version.clone(), entry: Some(entry) });
        Ok(version)
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        let old = self.pointer_of(base).await?;
        let new = NewPointer { name: &self.name, location: &change.metadata_location, metadata: &change.metadata };
        metadata_file::write(&self.file_io, new.metadata, new.location).await.map_err(CommitError::before)?;
        match self.store.swap(&old, new).await {
            Ok(()) => {}
            Err(error) => {
                self.forget_entry();
                self.tidy(&error, new.location).await;
                return Err(error);
            }
        }
        metadata_file::delete_expired(&self.file_io, &change.metadata, &change.expired_logs).await;
        let version = self.version(change.metadata.clone(), new.location);
        *self.newest() = Some(Known { version: version.clone(), entry: None });
        Ok(version)
    }
}

/// Nothing panics while one of these is held, so a poisoned lock guards a sound value.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: PointerStore> PointerTable<S> {
    fn newest(&self) -> MutexGuard<'_, Option<Known<S::Entry>>> {
        lock(&self.newest)
    }

    /// What the store gave is not to be given back twice: a table that was made anew under the name may count its versions from the start.
    fn forget_entry(&self) {
        if let Some(known) = self.newest().as_mut() {
            known.entry = None;
        }
    }

    async fn pointer(&self) -> Result<Pointer<S::Entry>, TableError> {
        self.store.get(&self.name).await?.ok_or_else(|| TableError::Missing(self.name.clone()))
    }

    /// The pointer of the base: as it was read with it, or read now.
    async fn pointer_of(&self, base: &TableVersion) -> Result<Pointer<S::Entry>, CommitError> {
        let known = self.newest().clone().filter(|known| known.version.token == base.token);
        if let Some(entry) = known.and_then(|known| known.entry) {
            return Ok(Pointer { location: base.token.clone(), entry });
        }
        let found = self.pointer().await.map_err(CommitError::before)?;
        if found.location == base.token { Ok(found) } else { Err(CommitError::Conflict) }
    }

    fn version(&self, metadata: TableMetadata, location: &str) -> TableVersion {
        TableVersion {
            metadata: Arc::new(metadata),
            metadata_location: location.to_owned(),
            file_io: self.file_io.clone(),
            token: location.to_owned(),
        }
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
