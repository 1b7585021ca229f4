//! Table buckets of S3 (moto, with the service's compare-and-set).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sluice_catalog::{S3TablesCatalog, S3TablesConfig};
use sluice_table::Catalog;
use sluice_testkit::{Namespaces, OldMetadata, catalog_contract_with};

use crate::aws::{service, storage};
use crate::services;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3tables() {
    let number = AtomicU32::new(0);
    // The service does not let clients delete objects.
    catalog_contract_with((Namespaces::Flat, OldMetadata::LeftToTheService), || async {
        let bucket = format!("arn:aws:s3tables:eu-central-1:123456789012:bucket/lake{}", number.fetch_add(1, Ordering::SeqCst));
        let config = S3TablesConfig { bucket, aws: service("eu-central-1"), storage: storage() };
        Arc::new(S3TablesCatalog::open(config, services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
}
