//! Pointers of tables in a table bucket.

use async_trait::async_trait;
use aws_sdk_s3tables::Client;
use aws_sdk_s3tables::config::http::HttpResponse;
use aws_sdk_s3tables::config::retry::RetryConfig;
use aws_sdk_s3tables::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3tables::operation::create_namespace::CreateNamespaceError;
use aws_sdk_s3tables::operation::create_table::CreateTableError;
use aws_sdk_s3tables::operation::delete_table::DeleteTableError;
use aws_sdk_s3tables::operation::get_table_metadata_location::{GetTableMetadataLocationError, GetTableMetadataLocationOutput};
use aws_sdk_s3tables::operation::update_table_metadata_location::UpdateTableMetadataLocationError;
use aws_sdk_s3tables::types::OpenTableFormat;
use sluice_model::{Class, TableName};
use sluice_storage::s3::{class_of_read, class_of_write, told};
use sluice_table::{CommitError, CreateOutcome, TableError};

use crate::pointer::{NewPointer, Place, Pointer, PointerStore};

/// The most pages of a listing.
const MOST_PAGES: usize = 10_000;

/// Pointers that the service keeps.
#[derive(Debug, Clone)]
pub struct S3TablesPointers {
    client: Client,
    bucket: String,
}

fn reading<E>(what: &str) -> impl FnOnce(SdkError<E, HttpResponse>) -> TableError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = format!("S3 Tables, {what}");
    move |error| TableError::Catalog { class: class_of_read(&error), what: told(&what, &error), source: Some(Box::new(error)) }
}

fn writing<E>(what: &str) -> impl FnOnce(SdkError<E, HttpResponse>) -> TableError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = format!("S3 Tables, {what}");
    move |error| TableError::Catalog { class: class_of_write(&error), what: told(&what, &error), source: Some(Box::new(error)) }
}

/// How an update of a pointer ended.
enum Update {
    Done,
    /// The token is not the current one, or the table is gone.
    Refused,
}

impl S3TablesPointers {
    /// Pointers of the table bucket of this ARN.
    #[must_use]
    pub const fn new(client: Client, bucket: String) -> Self {
        Self { client, bucket }
    }

    async fn look(&self, name: &TableName) -> Result<Option<GetTableMetadataLocationOutput>, TableError> {
        let request = self.client.get_table_metadata_location().table_bucket_arn(&self.bucket);
        match request.namespace(name.namespace()).name(name.table()).send().await {
            Ok(found) => Ok(Some(found)),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), GetTableMetadataLocationError::NotFoundException(_)) => Ok(None),
            Err(error) => Err(reading(&format!("GetTableMetadataLocation {name}"))(error)),
        }
    }

    async fn create_namespace(&self, name: &TableName) -> Result<(), TableError> {
        let request = self.client.create_namespace().table_bucket_arn(&self.bucket).namespace(name.namespace());
        match request.send().await {
            Ok(_) => Ok(()),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), CreateNamespaceError::ConflictException(_)) => Ok(()),
            Err(error) => Err(writing(&format!("CreateNamespace {}", name.namespace()))(error)),
        }
    }

    /// Makes an entry without a pointer: the service chooses the table's bucket.
    async fn reserve(&self, name: &TableName) -> Result<Reserved, TableError> {
        let request = self.client.create_table().table_bucket_arn(&self.bucket).namespace(name.namespace()).name(name.table());
        match request.format(OpenTableFormat::Iceberg).send().await {
            Ok(_) => Ok(Reserved::Yes),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), CreateTableError::ConflictException(_)) => Ok(Reserved::Yes),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), CreateTableError::NotFoundException(_)) => {
                Ok(Reserved::NoNamespace)
            }
            Err(error) => Err(writing(&format!("CreateTable {name}"))(error)),
        }
    }

    async fn update(&self, new: NewPointer<'_>, token: &str) -> Result<Update, SdkError<UpdateTableMetadataLocationError, HttpResponse>> {
        let request = self.client.update_table_metadata_location().table_bucket_arn(&self.bucket);
        let request = request.namespace(new.name.namespace()).name(new.name.table());
        let request = request.version_token(token).metadata_location(new.location).customize();
        // Sent twice, a commit that was made would be told as a conflict, and its metadata file be deleted.
        let once = aws_sdk_s3tables::Config::builder().retry_config(RetryConfig::disabled());
        match request.config_override(once).send().await {
            Ok(_) => Ok(Update::Done),
            Err(SdkError::ServiceError(answer)) if is_refusal(answer.err()) => Ok(Update::Refused),
            Err(error) => Err(error),
        }
    }
}

enum Reserved {
    Yes,
    NoNamespace,
}

fn is_refusal(error: &UpdateTableMetadataLocationError) -> bool {
    error.is_conflict_exception() || error.is_not_found_exception()
}

/// Names of S3 Tables are lower-case letters, digits and `_`, in one namespace.
fn check(name: &TableName) -> Result<(), TableError> {
    let fits =
        |text: &str| text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if fits(name.namespace()) && fits(name.table()) {
        return Ok(());
    }
    let help = "names are `namespace.table` of lower-case letters, digits and `_`: set route.case = \"lower\" or rename";
    Err(TableError::Unsupported(format!("`{name}` cannot be a table of S3 Tables: {help}")))
}

#[async_trait]
impl PointerStore for S3TablesPointers {
    /// The version token.
    type Entry = String;

    async fn get(&self, name: &TableName) -> Result<Option<Pointer<String>>, TableError> {
        check(name)?;
        let found = self.look(name).await?;
        // An entry without a pointer is a table that is being created, or whose creation broke off.
        Ok(found.and_then(|found| Some(Pointer { location: found.metadata_location?, entry: found.version_token })))
    }

    async fn place(&self, name: &TableName) -> Result<Place, TableError> {
        match self.reserve(name).await? {
            Reserved::Yes => {}
            Reserved::NoNamespace => {
                self.create_namespace(name).await?;
                self.reserve(name).await?;
            }
        }
        match self.look(name).await? {
            Some(found) => Ok(Place::Exactly(found.warehouse_location)),
            None => Err(TableError::Missing(name.clone())),
        }
    }

    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError> {
        let reserved = self.look(new.name).await?.ok_or_else(|| TableError::Missing(new.name.clone()))?;
        if reserved.metadata_location.is_some() {
            return Ok(CreateOutcome::AlreadyExists);
        }
        match self.update(new, &reserved.version_token).await {
            Ok(Update::Done) => Ok(CreateOutcome::Created),
            Ok(Update::Refused) => Ok(CreateOutcome::AlreadyExists),
            Err(error) => Err(writing(&format!("UpdateTableMetadataLocation {}", new.name))(error)),
        }
    }

    async fn swap(&self, old: &Pointer<String>, new: NewPointer<'_>) -> Result<(), CommitError> {
        match self.update(new, &old.entry).await {
            Ok(Update::Done) => Ok(()),
            Ok(Update::Refused) => Err(CommitError::Conflict),
            Err(error) => {
                let what = told("S3 Tables, UpdateTableMetadataLocation", &error);
                match class_of_write(&error) {
                    Class::Conflict => Err(CommitError::Conflict),
                    Class::Transient => Err(CommitError::Transient { what, source: Some(Box::new(error)) }),
                    Class::Unknown => Err(CommitError::Unknown { what, source: Some(Box::new(error)) }),
                    Class::Fatal => Err(CommitError::Fatal { what, source: Some(Box::new(error)) }),
                }
            }
        }
    }

    async fn names(&self) -> Result<Vec<TableName>, TableError> {
        let mut names = Vec::new();
        let mut pages = self.client.list_tables().table_bucket_arn(&self.bucket).into_paginator().send();
        for _ in 0..MOST_PAGES {
            let Some(page) = pages.next().await else {
                names.sort_unstable();
                return Ok(names);
            };
            let page = page.map_err(reading("ListTables"))?;
            names.extend(page.tables.iter().filter_map(|table| TableName::parse(&format!("{}.{}", table.namespace.join("."), table.name))));
        }
        Err(TableError::Unsupported(format!("a table bucket with more than {MOST_PAGES} pages of tables")))
    }

    /// The service deletes the table's files too.
    async fn remove(&self, name: &TableName) -> Result<bool, TableError> {
        let request = self.client.delete_table().table_bucket_arn(&self.bucket);
        match request.namespace(name.namespace()).name(name.table()).send().await {
            Ok(_) => Ok(true),
            Err(SdkError::ServiceError(answer)) if matches!(answer.err(), DeleteTableError::NotFoundException(_)) => Ok(false),
            Err(error) => Err(writing(&format!("DeleteTable {name}"))(error)),
        }
    }
}
