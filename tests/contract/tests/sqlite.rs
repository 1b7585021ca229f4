//! The SQL catalog in a file.

use std::sync::Arc;

use crate::{Warehouses, services};
use sluice_catalog::{SqlCatalog, SqlOptions};
use sluice_table::Catalog;
use sluice_testkit::{Namespaces, catalog_contract};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    let warehouses = Warehouses::default();
    catalog_contract(Namespaces::Nested, || async {
        let folder = warehouses.next();
        let options = SqlOptions {
            uri: format!("sqlite://{folder}/catalog.db"),
            catalog_name: "sluice".to_owned(),
            warehouse: format!("file://{folder}/warehouse"),
            file_io: None,
        };
        Arc::new(SqlCatalog::open(options, services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
}
