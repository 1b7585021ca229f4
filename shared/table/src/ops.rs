//! What a catalog must be able to do, and what is handed to it.

use std::sync::Arc;

use async_trait::async_trait;
use iceberg::io::FileIO;
use iceberg::spec::{MetadataLog, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};
use sluice_model::TableName;

use crate::{CommitError, TableCreation, TableError};

/// A table as it was at one moment. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TableVersion {
    /// Schema, specs, snapshots, properties.
    pub metadata: Arc<TableMetadata>,
    /// Where that metadata is stored.
    pub metadata_location: String,
    /// The storage of the table's files.
    pub file_io: FileIO,
    /// What the catalog compares to tell whether this version is still the current one.
    pub token: String,
}

/// A change that is ready to be committed: in the words of the REST protocol, and as the finished metadata for catalogs that only
/// keep a pointer to a file.
#[derive(Debug, Clone)]
pub struct StagedChange {
    /// What is changed.
    pub updates: Vec<TableUpdate>,
    /// What must be true of the table.
    pub requirements: Vec<TableRequirement>,
    /// The table after the change.
    pub metadata: TableMetadata,
    /// Where the new metadata is to be written, by catalogs that keep a pointer.
    pub metadata_location: String,
    /// Metadata files that fell out of the metadata log with this change.
    pub expired_logs: Vec<MetadataLog>,
}

/// One table of a catalog.
#[async_trait]
pub trait TableOperations: Send + Sync {
    /// The table's name.
    fn name(&self) -> &TableName;

    /// The current version.
    ///
    /// # Errors
    /// [`TableError::Missing`] when the table is gone, else what the catalog or the storage said.
    async fn refresh(&self) -> Result<TableVersion, TableError>;

    /// Makes `change` the current version if `base` still is. All or nothing.
    ///
    /// # Errors
    /// [`CommitError`]; only [`CommitError::Unknown`] may stand for a change that was made.
    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError>;
}

/// What became of a request to create a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It was created.
    Created,
    /// There is one of that name already; nothing was changed.
    AlreadyExists,
}

/// Where tables are registered.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// The table, or `None` when there is none of that name. Its first [`refresh`](TableOperations::refresh) may answer with what this saw.
    ///
    /// # Errors
    /// What the catalog or the storage said.
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError>;

    /// Creates a table, and its namespace when that is missing.
    ///
    /// # Errors
    /// [`TableError::Invalid`] when the creation contradicts itself, else what the catalog or the storage said.
    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError>;

    /// All tables, in order of their names.
    ///
    /// # Errors
    /// What the catalog said.
    async fn tables(&self) -> Result<Vec<TableName>, TableError>;

    /// Takes the table out of the catalog; its files stay. Whether there was one.
    ///
    /// # Errors
    /// What the catalog said.
    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError>;

    /// Who else compacts the table, as far as the catalog knows, for people: a service that rewrites the same files at the same time makes both lose work.
    ///
    /// # Errors
    /// What the catalog said. That it could not be told is not that there is nobody.
    async fn compacted_by(&self, name: &TableName) -> Result<Option<String>, TableError> {
        let _ = name;
        Ok(None)
    }

    /// Tries what creating and writing tables takes of the place for new tables: to write there, read and delete. What was tried, for people.
    ///
    /// # Errors
    /// What the storage said.
    async fn check_warehouse(&self) -> Result<String, TableError> {
        Ok("this catalog does not say where new tables go: nothing was tried".to_owned())
    }

    /// What there is to know of the catalog's server before it is relied on, found out by trying; nothing of that stays. `None` when there is nothing to
    /// find out. For people.
    ///
    /// # Errors
    /// What the server said, or that it cannot do what the settings ask of it.
    async fn check_server(&self) -> Result<Option<String>, TableError> {
        Ok(None)
    }
}
