//! Pointers in a Hive Metastore.

use std::time::Duration;

use async_trait::async_trait;
use hive_metastore::{
    Database, Table, ThriftHiveMetastoreCreateDatabaseException as CreateDatabaseException,
    ThriftHiveMetastoreCreateTableException as CreateTableException, ThriftHiveMetastoreDropTableException as DropTableException,
    ThriftHiveMetastoreGetDatabaseException as GetDatabaseException, ThriftHiveMetastoreGetTableException as GetTableException,
    ThriftHiveMetastoreGetTableObjectsByNameException as GetTablesException,
};
use pilota::FastStr;
use sluice_model::{Class, TableName};
use sluice_table::{CommitError, CreateOutcome, TableError};
use tokio::sync::OnceCell;

use super::connection::{Connection, metastore_error};
use super::entry::{self, place_of};
use super::lock::Locker;
use crate::pointer::{NewPointer, Place, Pointer, PointerStore, Services};
use crate::{HiveConfig, HiveLock};

/// How many tables are asked for in one request.
const TABLES_AT_ONCE: usize = 200;

/// Pointers in parameters of the metastore's tables.
pub struct HivePointers {
    pub(super) connection: Connection,
    pub(super) config: HiveConfig,
    pub(super) services: Services,
    /// Whether the server compares the expected location: found out once, when it matters.
    pub(super) compares: OnceCell<bool>,
}

impl HivePointers {
    pub(super) fn new(connection: Connection, config: HiveConfig, services: Services) -> Self {
        Self { connection, config, services, compares: OnceCell::new() }
    }

    pub(super) const fn lock_setting(&self) -> HiveLock {
        self.config.lock
    }

    pub(super) fn locker(&self) -> Locker<'_> {
        Locker { connection: &self.connection, user: &self.config.user, patience: Duration::from_millis(self.config.lock_wait_ms) }
    }

    /// What stands in the metastore under the name, whatever it is.
    pub(super) async fn entry(&self, (database, table): (FastStr, FastStr)) -> Result<Option<Table>, TableError> {
        match self.connection.call(async |client| client.get_table(database, table).await).await {
            Ok(Ok(table)) => Ok(Some(table)),
            Ok(Err(GetTableException::O2(_))) => Ok(None),
            Ok(Err(GetTableException::O1(error))) => Err(metastore_error(Class::Transient, "reading a table", &text(error.message))),
            Err(error) => Err(error.reading("reading a table")),
        }
    }

    async fn database(&self, name: FastStr) -> Result<Option<Database>, TableError> {
        match self.connection.call(async |client| client.get_database(name).await).await {
            Ok(Ok(database)) => Ok(Some(database)),
            Ok(Err(GetDatabaseException::O1(_))) => Ok(None),
            Ok(Err(GetDatabaseException::O2(error))) => Err(metastore_error(Class::Transient, "reading a database", &text(error.message))),
            Err(error) => Err(error.reading("reading a database")),
        }
    }

    async fn create_database(&self, name: &str) -> Result<(), TableError> {
        let what = "creating a database";
        let database = Database {
            name: Some(name.to_owned().into()),
            location_uri: Some(format!("{}/{name}", self.config.warehouse.trim_end_matches('/')).into()),
            parameters: Some(pilota::AHashMap::new()),
            owner_name: Some(self.config.user.clone().into()),
            owner_type: Some(hive_metastore::PrincipalType::USER),
            ..Database::default()
        };
        match self.connection.call(async |client| client.create_database(database).await).await {
            // Another invocation has made it.
            Ok(Ok(()) | Err(CreateDatabaseException::O1(_))) => Ok(()),
            Ok(Err(CreateDatabaseException::O2(error))) => Err(metastore_error(Class::Fatal, what, &text(error.message))),
            Ok(Err(CreateDatabaseException::O3(error))) => Err(metastore_error(Class::Transient, what, &text(error.message))),
            // A database is no table: creating it again is harmless.
            Err(error) => Err(error.reading(what)),
        }
    }

    async fn databases(&self) -> Result<Vec<FastStr>, TableError> {
        match self.connection.call(async |client| client.get_all_databases().await).await {
            Ok(Ok(databases)) => Ok(databases),
            Ok(Err(exception)) => Err(metastore_error(Class::Transient, "listing databases", &format!("{exception:?}"))),
            Err(error) => Err(error.reading("listing databases")),
        }
    }

    /// The tables of a database; none when it is gone by now.
    async fn tables_of(&self, database: &FastStr) -> Result<Vec<Table>, TableError> {
        let what = "listing tables";
        let names = match self.connection.call(async |client| client.get_all_tables(database.clone()).await).await {
            Ok(Ok(names)) => names,
            Ok(Err(exception)) => return Err(metastore_error(Class::Transient, what, &format!("{exception:?}"))),
            Err(error) => return Err(error.reading(what)),
        };
        let mut tables = Vec::with_capacity(names.len());
        for some in names.chunks(TABLES_AT_ONCE) {
            match self.connection.call(async |client| client.get_table_objects_by_name(database.clone(), some.to_vec()).await).await {
                Ok(Ok(found)) => tables.extend(found),
                Ok(Err(GetTablesException::O3(_))) => return Ok(tables),
                Ok(Err(GetTablesException::O1(error))) => return Err(metastore_error(Class::Transient, what, &text(error.message))),
                Ok(Err(GetTablesException::O2(error))) => return Err(metastore_error(Class::Fatal, what, &text(error.message))),
                Err(error) => return Err(error.reading(what)),
            }
        }
        Ok(tables)
    }
}

pub(super) fn text(message: Option<FastStr>) -> String {
    message.map_or_else(|| "no reason was given".to_owned(), |message| message.to_string())
}

/// The scheme of a location; S3's three spellings are one.
fn scheme(location: &str) -> &str {
    match location.split_once(':') {
        Some(("s3a" | "s3n", _)) => "s3",
        Some((scheme, _)) => scheme,
        None => "file",
    }
}

/// Hadoop writes `file:/path`.
fn with_authority(location: &str) -> String {
    match location.strip_prefix("file:/") {
        Some(path) if !path.starts_with('/') => format!("file:///{path}"),
        Some(_) | None => location.to_owned(),
    }
}

#[async_trait]
impl PointerStore for HivePointers {
    type Entry = Table;

    async fn get(&self, name: &TableName) -> Result<Option<Pointer<Table>>, TableError> {
        match self.entry(place_of(name)?).await? {
            Some(entry) => Ok(Some(Pointer { location: entry::location_of(&entry, name)?, entry })),
            None => Ok(None),
        }
    }

    /// A database's own location comes first, unless it is in a storage that the warehouse is not in: then we may not be able to write there.
    async fn place(&self, name: &TableName) -> Result<Place, TableError> {
        let (database, _) = place_of(name)?;
        let location = self.database(database).await?.and_then(|database| database.location_uri);
        match location.filter(|location| scheme(location) == scheme(&self.config.warehouse)) {
            Some(location) => Ok(Place::Under(with_authority(&location))),
            None => Ok(Place::Warehouse),
        }
    }

    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError> {
        let what = "creating a table";
        let seconds = i32::try_from(self.services.clock.now_ms() / 1_000).unwrap_or(i32::MAX);
        let entry = entry::created(new, &self.config.user, seconds)?;
        if self.database(place_of(new.name)?.0).await?.is_none() {
            self.create_database(new.name.namespace()).await?;
        }
        match self.connection.call(async |client| client.create_table(entry).await).await {
            Ok(Ok(())) => Ok(CreateOutcome::Created),
            Ok(Err(CreateTableException::O1(_))) => Ok(CreateOutcome::AlreadyExists),
            Ok(Err(CreateTableException::O2(error))) => Err(metastore_error(Class::Fatal, what, &text(error.message))),
            // The server may have created the table before it failed to tell others of it.
            Ok(Err(CreateTableException::O3(error))) => Err(metastore_error(Class::Unknown, what, &text(error.message))),
            Ok(Err(CreateTableException::O4(error))) => Err(metastore_error(Class::Transient, what, &text(error.message))),
            Err(error) => Err(error.writing(what)),
        }
    }

    async fn swap(&self, old: &Pointer<Table>, new: NewPointer<'_>) -> Result<(), CommitError> {
        self.commit(old, new).await
    }

    async fn names(&self) -> Result<Vec<TableName>, TableError> {
        let mut names = Vec::new();
        for database in self.databases().await? {
            let tables = self.tables_of(&database).await?;
            let iceberg = tables.into_iter().filter(entry::is_iceberg).filter_map(|table| table.table_name);
            names.extend(iceberg.filter_map(|table| TableName::parse(&format!("{database}.{table}"))));
        }
        names.sort_unstable();
        Ok(names)
    }

    async fn remove(&self, name: &TableName) -> Result<bool, TableError> {
        let what = "dropping a table";
        // Only an Iceberg table is ours to drop.
        if self.get(name).await?.is_none() {
            return Ok(false);
        }
        let (database, table) = place_of(name)?;
        match self.connection.call(async |client| client.drop_table(database, table, false).await).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(DropTableException::O1(_))) => Ok(false),
            Ok(Err(DropTableException::O3(error))) => Err(metastore_error(Class::Unknown, what, &text(error.message))),
            Err(error) => Err(error.writing(what)),
        }
    }

    async fn check_server(&self) -> Result<Option<String>, TableError> {
        self.describe_locking().await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_of_hadoop_are_understood() {
        assert_eq!(with_authority("file:/tmp/x"), "file:///tmp/x");
        assert_eq!(with_authority("file:///tmp/x"), "file:///tmp/x");
        assert_eq!(scheme("s3a://b/x"), scheme("s3://b/x"));
        assert_ne!(scheme("hdfs://n/x"), scheme("s3://b/x"));
        assert_eq!(scheme("/tmp/x"), "file");
    }
}
