//! One table of a REST catalog.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use iceberg_catalog_rest::{CommitTableRequest, CommitTableResponse, LoadTableResult};
use reqwest::Method;
use sluice_model::TableName;
use sluice_table::{CommitError, StagedChange, TableError, TableOperations, TableVersion};

use super::errors::{of_commit, of_failed_commit, of_read};
use super::http::{Failure, Http, table_path};
use super::storage::Storages;

/// What all tables of a catalog share.
pub(super) struct Connection {
    pub(super) http: Http,
    pub(super) storages: Storages,
}

impl Connection {
    /// The table as it is now, `None` when there is none.
    pub(super) async fn load(&self, name: &TableName) -> Result<Option<TableVersion>, TableError> {
        let what = format!("loading {name}");
        let answer = self.http.send(Method::GET, &table_path(name), None).await.map_err(Failure::into_error)?;
        match answer.status {
            200 => self.version(answer.json(&what)?).await.map(Some),
            404 => Ok(None),
            _ => Err(of_read(&what, &answer)),
        }
    }

    async fn version(&self, loaded: LoadTableResult) -> Result<TableVersion, TableError> {
        let LoadTableResult { metadata_location, metadata, config, storage_credentials } = loaded;
        let location =
            metadata_location.ok_or_else(|| TableError::Invalid("the REST catalog gave a table without a metadata location".to_owned()))?;
        let file_io = self.storages.of(metadata.location(), &config, storage_credentials.as_deref()).await?;
        Ok(TableVersion { metadata: Arc::new(metadata), token: location.clone(), metadata_location: location, file_io })
    }
}

/// One table.
pub(super) struct RestTable {
    name: TableName,
    connection: Arc<Connection>,
    known: Mutex<Known>,
}

struct Known {
    /// The location of the newest metadata that was seen.
    token: String,
    /// What the catalog gave when it was asked for the table, until it is asked for the version: it need not be asked twice.
    first: Option<TableVersion>,
}

impl RestTable {
    pub(super) fn new(name: TableName, connection: Arc<Connection>, first: TableVersion) -> Self {
        let known = Mutex::new(Known { token: first.token.clone(), first: Some(first) });
        Self { name, connection, known }
    }

    /// Nothing panics while it is held, so a poisoned lock guards a sound value.
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn load(&self) -> Result<TableVersion, TableError> {
        let version = self.connection.load(&self.name).await?.ok_or_else(|| TableError::Missing(self.name.clone()))?;
        self.known().token.clone_from(&version.token);
        Ok(version)
    }

    /// The protocol compares snapshots, schemas and specs, not metadata files: a base that is known to be old is not even sent.
    async fn check(&self, base: &TableVersion) -> Result<(), CommitError> {
        if self.known().token == base.token {
            return Ok(());
        }
        let now = self.load().await.map_err(CommitError::before)?;
        if now.token == base.token { Ok(()) } else { Err(CommitError::Conflict) }
    }
}

#[async_trait]
impl TableOperations for RestTable {
    fn name(&self) -> &TableName {
        &self.name
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        let first = self.known().first.take();
        match first {
            Some(first) => Ok(first),
            None => self.load().await,
        }
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        self.check(base).await?;
        let request = CommitTableRequest { identifier: None, requirements: change.requirements.clone(), updates: change.updates.clone() };
        let wrong =
            |error: serde_json::Error| CommitError::Fatal { what: format!("writing the commit: {error}"), source: Some(Box::new(error)) };
        let body = serde_json::to_vec(&request).map_err(wrong)?;
        let sent = self.connection.http.send(Method::POST, &table_path(&self.name), Some(&body)).await;
        let answer = sent.map_err(of_failed_commit)?;
        if answer.status != 200 {
            return Err(of_commit(&answer));
        }
        // It was made; an answer that cannot be read leaves open how the table looks now.
        let unknown = |error: TableError| CommitError::Unknown { what: error.to_string(), source: Some(Box::new(error)) };
        let CommitTableResponse { metadata_location, metadata } = answer.json("committing").map_err(unknown)?;
        self.known().token.clone_from(&metadata_location);
        Ok(TableVersion {
            metadata: Arc::new(metadata),
            token: metadata_location.clone(),
            metadata_location,
            file_io: base.file_io.clone(),
        })
    }
}
