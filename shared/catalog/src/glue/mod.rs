//! The AWS Glue Data Catalog.
//!
//! A table's entry holds the location of its metadata file as a parameter; a commit is one `UpdateTable` with the version that was read, which Glue refuses when
//! another came first. Everything in the entry that is not ours stays as it was.

mod entry;
mod errors;
mod pointers;

use std::sync::Arc;

use aws_sdk_glue::Client;
use aws_sdk_glue::config::{Builder, Region};
use sluice_storage::s3::aws_config;
use sluice_table::TableError;

pub use pointers::{GluePointers, HasWarehouse};

use crate::config::storage_error;
use crate::pointer::{PointerCatalog, Services};
use crate::{AwsConfig, GlueConfig};

/// The catalog in Glue.
pub type GlueCatalog = PointerCatalog<GluePointers>;

impl PointerCatalog<GluePointers> {
    /// Makes the clients. Nothing is asked of Glue yet.
    ///
    /// # Errors
    /// [`TableError`] when the warehouse's storage is not known.
    pub async fn open(config: GlueConfig, services: Services) -> Result<Self, TableError> {
        let storage = sluice_storage::open(&config.storage, Arc::clone(&services.clock)).await.map_err(storage_error)?;
        if let Some(warehouse) = &config.warehouse {
            storage.check(warehouse).map_err(storage_error)?;
        }
        let client = client(&config).await;
        let has_warehouse = config.warehouse.as_ref().map_or(HasWarehouse::No, |_| HasWarehouse::Yes);
        let warehouse = config.warehouse.unwrap_or_default();
        let store = GluePointers::new(client, config.catalog_id, has_warehouse);
        Ok(Self::over(store, (storage.file_io, &warehouse), services))
    }
}

async fn client(config: &GlueConfig) -> Client {
    let mut s3 = config.storage.s3.clone();
    let AwsConfig { region, endpoint } = config.aws.clone();
    s3.region = region.or(s3.region);
    let shared = aws_config(&s3).await;
    let mut builder = Builder::from(&shared);
    if let Some(endpoint) = endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    if shared.region().is_none() {
        builder = builder.region(Region::from_static("us-east-1"));
    }
    Client::from_conf(builder.build())
}
