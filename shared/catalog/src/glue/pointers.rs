//! Pointers in parameters of Glue's tables.

use async_trait::async_trait;
use aws_sdk_glue::Client;
use aws_sdk_glue::config::retry::RetryConfig;
use aws_sdk_glue::error::{BuildError, SdkError};
use aws_sdk_glue::operation::create_table::CreateTableError;
use aws_sdk_glue::operation::delete_table::DeleteTableError;
use aws_sdk_glue::operation::get_database::GetDatabaseError;
use aws_sdk_glue::operation::get_table::GetTableError;
use aws_sdk_glue::operation::get_table_optimizer::GetTableOptimizerError;
use aws_sdk_glue::operation::update_table::UpdateTableError;
use aws_sdk_glue::types::{DatabaseInput, Table, TableInput, TableOptimizerType};
use sluice_model::TableName;
use sluice_table::{CommitError, CreateOutcome, TableError};

use super::entry;
use super::errors::{reading, swapping, writing};
use crate::pointer::{NewPointer, Place, Pointer, PointerStore};

/// The most pages of a listing: 100 entries each.
const MOST_PAGES: usize = 10_000;

/// Pointers in Glue.
#[derive(Debug, Clone)]
pub struct GluePointers {
    client: Client,
    catalog_id: Option<String>,
    has_warehouse: HasWarehouse,
}

/// Whether new tables have a place where their database has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasWarehouse {
    /// There is a configured warehouse.
    Yes,
    /// There is none.
    No,
}

fn unfit(error: &BuildError) -> TableError {
    TableError::Invalid(format!("Glue: {error}"))
}

impl GluePointers {
    /// Pointers in the account's catalog, or in that of `catalog_id`.
    #[must_use]
    pub const fn new(client: Client, catalog_id: Option<String>, has_warehouse: HasWarehouse) -> Self {
        Self { client, catalog_id, has_warehouse }
    }

    /// The entry, `None` when there is none.
    async fn entry(&self, name: &TableName) -> Result<Option<Table>, TableError> {
        let request = self.client.get_table().set_catalog_id(self.catalog_id.clone());
        match request.database_name(name.namespace()).name(name.table()).send().await {
            Ok(found) => Ok(found.table),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), GetTableError::EntityNotFoundException(_)) => Ok(None),
            Err(error) => Err(reading(&format!("GetTable {name}"))(error)),
        }
    }

    async fn create_database(&self, name: &str) -> Result<(), TableError> {
        use aws_sdk_glue::operation::create_database::CreateDatabaseError;
        let input = DatabaseInput::builder().name(name).build().map_err(|error| unfit(&error))?;
        match self.client.create_database().set_catalog_id(self.catalog_id.clone()).database_input(input).send().await {
            Ok(_) => Ok(()),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), CreateDatabaseError::AlreadyExistsException(_)) => Ok(()),
            Err(error) => Err(writing(&format!("CreateDatabase {name}"))(error)),
        }
    }

    async fn create_table(&self, name: &TableName, input: TableInput) -> Result<Created, TableError> {
        let request = self.client.create_table().set_catalog_id(self.catalog_id.clone());
        match request.database_name(name.namespace()).table_input(input).send().await {
            Ok(_) => Ok(Created::Yes),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), CreateTableError::AlreadyExistsException(_)) => {
                Ok(Created::There)
            }
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), CreateTableError::EntityNotFoundException(_)) => {
                Ok(Created::NoDatabase)
            }
            Err(error) => Err(writing(&format!("CreateTable {name}"))(error)),
        }
    }

    async fn databases(&self) -> Result<Vec<String>, TableError> {
        let mut pages = self.client.get_databases().set_catalog_id(self.catalog_id.clone()).into_paginator().send();
        let mut names = Vec::new();
        for _ in 0..MOST_PAGES {
            let Some(page) = pages.next().await else { return Ok(names) };
            let page = page.map_err(reading("GetDatabases"))?;
            names.extend(page.database_list.into_iter().map(|database| database.name));
        }
        Err(too_many())
    }

    async fn tables_of(&self, database: &str) -> Result<Vec<TableName>, TableError> {
        let request = self.client.get_tables().set_catalog_id(self.catalog_id.clone()).database_name(database);
        let mut pages = request.into_paginator().send();
        let mut names = Vec::new();
        for _ in 0..MOST_PAGES {
            let Some(page) = pages.next().await else { return Ok(names) };
            let page = page.map_err(reading(&format!("GetTables {database}")))?;
            let tables = page.table_list.unwrap_or_default();
            // A name that we could not address is none of ours.
            names.extend(tables.iter().filter(|table| entry::is_iceberg(table)).filter_map(|table| {
                TableName::parse(&format!("{database}.{}", table.name())).filter(|name| entry::objection(name).is_none())
            }));
        }
        Err(too_many())
    }
}

enum Created {
    Yes,
    There,
    NoDatabase,
}

fn too_many() -> TableError {
    TableError::Unsupported(format!("a Glue catalog with more than {MOST_PAGES} pages of databases, or of tables in one"))
}

fn check(name: &TableName) -> Result<(), TableError> {
    entry::objection(name).map_or(Ok(()), |objection| Err(TableError::Unsupported(objection)))
}

/// The pointer of an entry, if it is that of an Iceberg table.
fn pointer(name: &TableName, table: Table) -> Result<Pointer<Table>, TableError> {
    let kind = table.table_type().unwrap_or("table");
    if !entry::is_iceberg(&table) {
        let help = "drop or rename it, or route these records to another table";
        return Err(TableError::Unsupported(format!("`{name}` in Glue is a {kind} that is no Iceberg table; {help}")));
    }
    match entry::metadata_location(&table).cloned() {
        Some(location) => Ok(Pointer { location, entry: table }),
        None => Err(TableError::Invalid(format!("`{name}` in Glue is an Iceberg table without a metadata_location"))),
    }
}

#[async_trait]
impl PointerStore for GluePointers {
    /// The whole entry: it goes back with what others have put there, under the version that it had.
    type Entry = Table;

    async fn get(&self, name: &TableName) -> Result<Option<Pointer<Table>>, TableError> {
        check(name)?;
        self.entry(name).await?.map(|table| pointer(name, table)).transpose()
    }

    async fn place(&self, name: &TableName) -> Result<Place, TableError> {
        let request = self.client.get_database().set_catalog_id(self.catalog_id.clone()).name(name.namespace());
        let database = match request.send().await {
            Ok(found) => found.database,
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), GetDatabaseError::EntityNotFoundException(_)) => None,
            Err(error) => return Err(reading(&format!("GetDatabase {}", name.namespace()))(error)),
        };
        let location = database.and_then(|database| database.location_uri).filter(|location| !location.is_empty());
        match (location, self.has_warehouse) {
            (Some(location), _) => Ok(Place::Under(location)),
            (None, HasWarehouse::Yes) => Ok(Place::Warehouse),
            (None, HasWarehouse::No) => Err(TableError::Unsupported(format!(
                "`{name}` has no place: give its database a location in Glue, or set catalog.warehouse"
            ))),
        }
    }

    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError> {
        check(new.name)?;
        let input = entry::created(new).map_err(|error| unfit(&error))?;
        let created = match self.create_table(new.name, input.clone()).await? {
            Created::NoDatabase => {
                self.create_database(new.name.namespace()).await?;
                self.create_table(new.name, input).await?
            }
            created @ (Created::Yes | Created::There) => created,
        };
        match created {
            Created::Yes => Ok(CreateOutcome::Created),
            Created::There => Ok(CreateOutcome::AlreadyExists),
            Created::NoDatabase => Err(TableError::Catalog {
                class: sluice_model::Class::Transient,
                what: format!("Glue, CreateTable {}: its database is gone again", new.name),
                source: None,
            }),
        }
    }

    async fn swap(&self, old: &Pointer<Table>, new: NewPointer<'_>) -> Result<(), CommitError> {
        let input = entry::changed(&old.entry, new).map_err(|error| CommitError::before(unfit(&error)))?;
        let Some(version) = old.entry.version_id.clone() else {
            let what = format!("Glue gave no version of {}: it could not be compared", new.name);
            return Err(CommitError::Fatal { what, source: None });
        };
        let request = self.client.update_table().set_catalog_id(self.catalog_id.clone()).database_name(new.name.namespace());
        let request = request.table_input(input).version_id(version).skip_archive(true).customize();
        // Sent twice, a commit that was made would be told as a conflict, and its metadata file be deleted.
        let once = aws_sdk_glue::Config::builder().retry_config(RetryConfig::disabled());
        match request.config_override(once).send().await {
            Ok(_) => Ok(()),
            // It was dropped, which the next look at it tells.
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), UpdateTableError::EntityNotFoundException(_)) => {
                Err(CommitError::Conflict)
            }
            Err(error) => Err(swapping(error)),
        }
    }

    async fn names(&self) -> Result<Vec<TableName>, TableError> {
        let mut names = Vec::new();
        for database in self.databases().await? {
            names.extend(self.tables_of(&database).await?);
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The table optimizer of Glue, when it is there and enabled.
    async fn compacted_by(&self, name: &TableName) -> Result<Option<String>, TableError> {
        let told = match &self.catalog_id {
            Some(id) => Some(id.clone()),
            None => self.entry(name).await?.and_then(|table| table.catalog_id),
        };
        // The call must name the account; an entry that names none is of a service that has no optimizers.
        let Some(catalog_id) = told else { return Ok(None) };
        let request = self.client.get_table_optimizer().catalog_id(catalog_id).r#type(TableOptimizerType::Compaction);
        let optimizer = match request.database_name(name.namespace()).table_name(name.table()).send().await {
            Ok(found) => found.table_optimizer,
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), GetTableOptimizerError::EntityNotFoundException(_)) => None,
            Err(error) => return Err(reading(&format!("GetTableOptimizer {name}"))(error)),
        };
        let active = optimizer.and_then(|optimizer| optimizer.configuration?.enabled).unwrap_or(false);
        Ok(active.then(|| "a table optimizer of Glue compacts it".to_owned()))
    }

    async fn remove(&self, name: &TableName) -> Result<bool, TableError> {
        if self.get(name).await?.is_none() {
            return Ok(false);
        }
        let request = self.client.delete_table().set_catalog_id(self.catalog_id.clone());
        match request.database_name(name.namespace()).name(name.table()).send().await {
            Ok(_) => Ok(true),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), DeleteTableError::EntityNotFoundException(_)) => Ok(false),
            Err(error) => Err(writing(&format!("DeleteTable {name}"))(error)),
        }
    }
}
