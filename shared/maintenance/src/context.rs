//! What jobs need from outside.

use std::sync::Arc;

use sluice_model::{Clock, Deadline, IdSource, TableName};
use sluice_storage::{MemoryObjects, ObjectStore, Storage, StorageError};
use sluice_table::{Catalog, CommitContext, RetryPolicy, Sleep, TableOperations, TableVersion};

use crate::MaintenanceError;

/// Where objects can be listed and deleted.
pub trait Stores: Send + Sync {
    /// The objects beside a location.
    ///
    /// # Errors
    /// When this program cannot list the storage of that location.
    fn objects(&self, location: &str) -> Result<Arc<dyn ObjectStore>, StorageError>;
}

impl Stores for Storage {
    fn objects(&self, location: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
        Self::objects(self, location)
    }
}

impl Stores for MemoryObjects {
    fn objects(&self, _location: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
        Ok(Arc::new(self.clone()))
    }
}

/// Time, ids, the catalog and the storage.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Where the tables are registered.
    pub catalog: &'a dyn Catalog,
    /// Where their files are.
    pub stores: &'a dyn Stores,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Unique numbers.
    pub ids: &'a dyn IdSource,
    /// Waiting between attempts.
    pub sleep: &'a dyn Sleep,
    /// When to stop.
    pub deadline: Deadline,
    /// How often to try a commit. Few attempts: a writer goes first.
    pub policy: RetryPolicy,
}

impl Context<'_> {
    /// For commits.
    #[must_use]
    pub fn commit(&self) -> CommitContext<'_> {
        CommitContext { clock: self.clock, ids: self.ids, sleep: self.sleep, deadline: self.deadline, policy: self.policy }
    }

    /// The time, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

/// A table that a job works on.
pub struct Table<'a> {
    /// Its name.
    pub name: TableName,
    /// Its operations.
    pub operations: Arc<dyn TableOperations>,
    /// The objects beside its location.
    pub objects: Arc<dyn ObjectStore>,
    /// Time, ids and the rest.
    pub context: &'a Context<'a>,
}

impl Table<'_> {
    /// The table as it is.
    ///
    /// # Errors
    /// What the catalog said.
    pub async fn now(&self) -> Result<TableVersion, MaintenanceError> {
        Ok(self.operations.refresh().await?)
    }

    /// The refusal of a job on this table.
    #[must_use]
    pub fn refused(&self, reason: impl Into<String>) -> MaintenanceError {
        MaintenanceError::Refused { table: self.name.clone(), reason: reason.into() }
    }
}
