//! A catalog in an SQL database, SQLite or PostgreSQL, with the tables of Iceberg's `JdbcCatalog` (schema version V1), so that PyIceberg's
//! `SqlCatalog`, Spark and others see the same tables.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use iceberg::io::FileIO;
use sluice_model::{Class, TableName};
use sluice_table::{CommitError, CreateOutcome, TableError};
use sqlx::any::AnyPoolOptions;
use sqlx::{AnyPool, Executor as _, Row as _};

use crate::pointer::{NewPointer, Pointer, PointerCatalog, PointerStore, Services};
use crate::sql_errors::{reading, swapping, writing};

const MAX_CONNECTIONS: u32 = 4;
const BUSY_TIMEOUT_MS: u32 = 5_000;

const CREATE_TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (\
     catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, \
     metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), \
     PRIMARY KEY (catalog_name, table_namespace, table_name))";

const CREATE_NAMESPACES: &str = "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (\
     catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, \
     property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))";

/// A row without a type was written by a client from before there were views: it is a table.
const IS_TABLE: &str = "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)";

/// Where the catalog is.
#[derive(Debug, Clone)]
pub struct SqlOptions {
    /// `sqlite:///path/catalog.db` or `postgres://user:password@host/database`. An SQLite file is created when it is missing.
    pub uri: String,
    /// Several catalogs can share a database.
    pub catalog_name: String,
    /// Where new tables are put: `file:///folder`.
    pub warehouse: String,
    /// The storage of the tables; `None` is the local disk.
    pub file_io: Option<FileIO>,
}

/// The catalog in an SQL database.
pub type SqlCatalog = PointerCatalog<SqlPointers>;

impl PointerCatalog<SqlPointers> {
    /// Connects, and creates the catalog's tables when they are missing.
    ///
    /// # Errors
    /// [`TableError`] when the database cannot be reached.
    pub async fn open(options: SqlOptions, services: Services) -> Result<Self, TableError> {
        let file_io = options.file_io.unwrap_or_else(FileIO::new_with_fs);
        let pool = connect(&options.uri).await?;
        for statement in [CREATE_TABLES, CREATE_NAMESPACES] {
            match pool.execute(statement).await {
                Ok(_) => {}
                // PostgreSQL: another process creates the same table at this moment.
                Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {}
                Err(error) => return Err(writing("creating its tables")(error)),
            }
        }
        let store = SqlPointers { pool, catalog: options.catalog_name };
        Ok(Self::over(store, (file_io, &options.warehouse), services))
    }
}

async fn connect(uri: &str) -> Result<AnyPool, TableError> {
    sqlx::any::install_default_drivers();
    let sqlite = uri.starts_with("sqlite:");
    if sqlite {
        create_folder(uri)?;
    }
    let uri = if sqlite { creating(uri) } else { uri.to_owned() };
    let pool = AnyPoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(Duration::from_secs(10));
    let pool = pool.after_connect(move |connection, _| {
        Box::pin(async move {
            if sqlite {
                // Waiting comes first: switching to the write-ahead log needs the lock.
                connection.execute(format!("PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}").as_str()).await?;
                connection.execute("PRAGMA journal_mode = WAL").await?;
            }
            Ok(())
        })
    });
    pool.connect(&uri).await.map_err(reading("connecting"))
}

/// SQLite creates its file, but not the folder for it.
fn create_folder(uri: &str) -> Result<(), TableError> {
    let path = uri.trim_start_matches("sqlite:").trim_start_matches("//");
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    match Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty() && !path.starts_with(':')) {
        None => Ok(()),
        Some(folder) => std::fs::create_dir_all(folder).map_err(|error| TableError::Catalog {
            class: Class::Fatal,
            what: format!("the folder {} of the SQL catalog cannot be made: {error}", folder.display()),
            source: Some(Box::new(error)),
        }),
    }
}

/// The URI with the mode that creates the file.
fn creating(uri: &str) -> String {
    match uri.split_once('?') {
        None => format!("{uri}?mode=rwc"),
        Some((_, query)) if query.split('&').any(|part| part.starts_with("mode=")) => uri.to_owned(),
        Some(_) => format!("{uri}&mode=rwc"),
    }
}

/// Pointers in rows of `iceberg_tables`.
pub struct SqlPointers {
    pool: AnyPool,
    catalog: String,
}

impl SqlPointers {
    /// A namespace exists as soon as it has a property.
    async fn ensure_namespace(&self, name: &TableName) -> Result<(), TableError> {
        let insert = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) \
                      VALUES ($1, $2, 'exists', 'true') ON CONFLICT DO NOTHING";
        let query = sqlx::query(insert).bind(self.catalog.clone()).bind(name.namespace().to_owned());
        query.execute(&self.pool).await.map(|_| ()).map_err(writing("creating a namespace"))
    }
}

#[async_trait]
impl PointerStore for SqlPointers {
    type Entry = ();

    async fn get(&self, name: &TableName) -> Result<Option<Pointer<()>>, TableError> {
        let select = format!(
            "SELECT metadata_location FROM iceberg_tables \
             WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND {IS_TABLE}"
        );
        let query = sqlx::query(&select).bind(self.catalog.clone()).bind(name.namespace().to_owned()).bind(name.table().to_owned());
        let row = query.fetch_optional(&self.pool).await.map_err(reading("looking for a table"))?;
        let location = row.map(|row| row.try_get::<String, _>(0)).transpose().map_err(reading("looking for a table"))?;
        Ok(location.map(|location| Pointer { location, entry: () }))
    }

    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError> {
        self.ensure_namespace(new.name).await?;
        let insert = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) \
                      VALUES ($1, $2, $3, $4, 'TABLE')";
        let query = sqlx::query(insert)
            .bind(self.catalog.clone())
            .bind(new.name.namespace().to_owned())
            .bind(new.name.table().to_owned())
            .bind(new.location.to_owned());
        match query.execute(&self.pool).await {
            Ok(_) => Ok(CreateOutcome::Created),
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(CreateOutcome::AlreadyExists),
            Err(error) => Err(writing("creating a table")(error)),
        }
    }

    async fn swap(&self, old: &Pointer<()>, new: NewPointer<'_>) -> Result<(), CommitError> {
        let update = "UPDATE iceberg_tables SET metadata_location = $1, previous_metadata_location = $2 \
                      WHERE catalog_name = $3 AND table_namespace = $4 AND table_name = $5 AND metadata_location = $6";
        let query = sqlx::query(update)
            .bind(new.location.to_owned())
            .bind(old.location.clone())
            .bind(self.catalog.clone())
            .bind(new.name.namespace().to_owned())
            .bind(new.name.table().to_owned())
            .bind(old.location.clone());
        let done = query.execute(&self.pool).await.map_err(swapping)?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(CommitError::Conflict) }
    }

    async fn names(&self) -> Result<Vec<TableName>, TableError> {
        let select = format!("SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = $1 AND {IS_TABLE}");
        let rows = sqlx::query(&select).bind(self.catalog.clone()).fetch_all(&self.pool).await.map_err(reading("listing tables"))?;
        let mut names = Vec::with_capacity(rows.len());
        for row in rows {
            let namespace: String = row.try_get(0).map_err(reading("listing tables"))?;
            let table: String = row.try_get(1).map_err(reading("listing tables"))?;
            // A name that we could not address is none of ours.
            names.extend(TableName::parse(&format!("{namespace}.{table}")));
        }
        names.sort_unstable();
        Ok(names)
    }

    async fn remove(&self, name: &TableName) -> Result<bool, TableError> {
        let delete =
            format!("DELETE FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND {IS_TABLE}");
        let query = sqlx::query(&delete).bind(self.catalog.clone()).bind(name.namespace().to_owned()).bind(name.table().to_owned());
        let done = query.execute(&self.pool).await.map_err(writing("dropping a table"))?;
        Ok(done.rows_affected() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::creating;

    #[test]
    fn a_missing_file_is_created() {
        assert_eq!(creating("sqlite:///a.db"), "sqlite:///a.db?mode=rwc");
        assert_eq!(creating("sqlite:///a.db?cache=private"), "sqlite:///a.db?cache=private&mode=rwc");
        assert_eq!(creating("sqlite:///a.db?mode=ro"), "sqlite:///a.db?mode=ro");
    }
}
