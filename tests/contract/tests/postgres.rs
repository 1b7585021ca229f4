//! The SQL catalog in a real PostgreSQL, `DATABASE_URI`.

use std::sync::Arc;

use crate::{Warehouses, address, services};
use sluice_catalog::{SqlCatalog, SqlOptions};
use sluice_table::Catalog;
use sluice_testkit::{Namespaces, catalog_contract};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    let uri = address("DATABASE_URI");
    let warehouses = Warehouses::default();
    catalog_contract(Namespaces::Nested, || async {
        // A catalog name of its own for each case: they share the database.
        let folder = warehouses.next();
        let options = SqlOptions { uri: uri.clone(), catalog_name: folder.clone(), warehouse: format!("file://{folder}"), file_io: None };
        Arc::new(SqlCatalog::open(options, services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
}
