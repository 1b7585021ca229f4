//! The catalog in real Hive Metastores: 2.3.10, which compares the expected metadata location, and 3.1.3, which does not.

use std::sync::Arc;

use sluice_catalog::{HiveCatalog, HiveConfig, HiveLock, HiveTransport};
use sluice_table::Catalog;
use sluice_testkit::{Namespaces, catalog_contract};

use crate::{Warehouses, address, services};

/// One metastore is shared by all tests of its variable, so each catalog sees databases of its own only: it starts by dropping what is left.
async fn contract(variable: &str, choose: impl Fn(&mut HiveConfig)) {
    let warehouses = Warehouses::default();
    catalog_contract(Namespaces::Flat, || async {
        let mut options = HiveConfig::at(address(variable), format!("file://{}", warehouses.next()));
        choose(&mut options);
        let catalog = HiveCatalog::open(options, services()).await.unwrap();
        for name in catalog.tables().await.unwrap() {
            catalog.drop_table(&name).await.unwrap();
        }
        Arc::new(catalog) as Arc<dyn Catalog>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hive_2_with_and_without_locks() {
    contract("HMS_2_URI", |_| {}).await;
    contract("HMS_2_URI", |options| options.lock = HiveLock::Never).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hive_3_with_locks() {
    contract("HMS_3_URI", |_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_framed_server() {
    contract("HMS_FRAMED_URI", |options| options.transport = HiveTransport::Framed).await;
}
