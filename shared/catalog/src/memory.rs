//! A catalog in memory: pointers and files are gone with it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use iceberg::io::FileIO;
use sluice_model::TableName;
use sluice_table::{CommitError, CreateOutcome, TableError};

use crate::pointer::{PointerCatalog, PointerStore, Services};

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
    async fn get(&self, name: &TableName) -> Result<Option<String>, TableError> {
        Ok(self.map().get(name).cloned())
    }

    async fn insert(&self, name: &TableName, pointer: &str) -> Result<CreateOutcome, TableError> {
        let mut map = self.map();
        if map.contains_key(name) {
            return Ok(CreateOutcome::AlreadyExists);
        }
        map.insert(name.clone(), pointer.to_owned());
        Ok(CreateOutcome::Created)
    }

    async fn swap(&self, name: &TableName, old: &str, new: &str) -> Result<(), CommitError> {
        match self.map().get_mut(name) {
            Some(pointer) if pointer == old => {
                new.clone_into(pointer);
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
