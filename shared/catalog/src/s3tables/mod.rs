//! S3 table buckets: each table has a bucket of its own, and the service keeps its pointer under a version token.

mod pointers;

use std::sync::Arc;

use aws_sdk_s3tables::Client;
use aws_sdk_s3tables::config::{Builder, Region};
use sluice_storage::s3::aws_config;
use sluice_table::TableError;

pub use pointers::S3TablesPointers;

use crate::config::storage_error;
use crate::pointer::{PointerCatalog, Services};
use crate::{AwsConfig, S3TablesConfig};

/// The catalog of a table bucket.
pub type S3TablesCatalog = PointerCatalog<S3TablesPointers>;

impl PointerCatalog<S3TablesPointers> {
    /// Makes the clients. Nothing is asked of the service yet.
    ///
    /// # Errors
    /// [`TableError`] when the storage cannot be opened.
    pub async fn open(config: S3TablesConfig, services: Services) -> Result<Self, TableError> {
        let storage = sluice_storage::open(&config.storage, Arc::clone(&services.clock)).await.map_err(storage_error)?;
        let client = client(&config).await;
        let store = S3TablesPointers::new(client, config.bucket.clone());
        Ok(Self::over(store, (storage.file_io, &config.bucket), services))
    }
}

async fn client(config: &S3TablesConfig) -> Client {
    let mut s3 = config.storage.s3.clone();
    let AwsConfig { region, endpoint } = config.aws.clone();
    // arn:aws:s3tables:REGION:ACCOUNT:bucket/NAME
    let of_bucket = config.bucket.split(':').nth(3).filter(|region| !region.is_empty()).map(str::to_owned);
    s3.region = region.or(of_bucket).or(s3.region);
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
