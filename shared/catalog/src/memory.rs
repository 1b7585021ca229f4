//! A catalog in memory: pointers and files are gone with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use iceberg::io::FileIO;
use sluice_model::TableName;
use sluice_table::{CommitError, CreateOutcome, TableError};

use crate::pointer::{NewPointer, Pointer, PointerCatalog, PointerStore, Services};

/// The catalog in memory.
pub type MemoryCatalog = PointerCatalog<MemoryPointers>;

impl PointerCatalog<MemoryPointers> {
    /// An empty catalog. Its files are in memory, whatever `warehouse` (`memory://…`) says.
    #[must_use]
    pub fn new(warehouse: &str, services: Services) -> Self {
        Self::over(MemoryPointers::default(), (FileIO::new_with_memory(), warehouse), services)
    }
}

/// Pointers in a map.
#[derive(Default)]
pub struct MemoryPointers(Mutex<BTreeMap<TableName, String>>);

impl MemoryPointers {
    /// No operation on the map can panic half-way, so a poisoned lock guards a sound map.
    fn map(&self) -> MutexGuard<'_, BTreeMap<TableName, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl PointerStore for MemoryPointers {
    type Entry = ();

    async fn get(&self, name: &TableName) -> Result<Option<Pointer<()>>, TableError> {
        Ok(self.map().get(name).map(|location| Pointer { location: location.clone(), entry: () }))
    }

    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError> {
        let mut map = self.map();
        if map.contains_key(new.name) {
            return Ok(CreateOutcome::AlreadyExists);
        }
        map.insert(new.name.clone(), new.location.to_owned());
        Ok(CreateOutcome::Created)
    }

    async fn swap(&self, old: &Pointer<()>, new: NewPointer<'_>) -> Result<(), CommitError> {
        match self.map().get_mut(new.name) {
            Some(location) if *location == old.location => {
                new.location.clone_into(location);
                Ok(())
            }
            Some(_) | None => Err(CommitError::Conflict),
        }
    }

    async fn names(&self) -> Result<Vec<TableName>, TableError> {
        Ok(self.map().keys().cloned().collect())
    }

    async fn remove(&self, name: &TableName) -> Result<bool, TableError> {
        Ok(self.map().remove(name).is_some())
    }
}
