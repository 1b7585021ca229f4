//! Runs the contract suite against a database that is already there: `sql_contract postgres://user@host/database FOLDER`.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sluice_catalog::{Services, SqlCatalog, SqlOptions};
use sluice_table::Catalog;
use sluice_testkit::{TestServices, catalog_contract};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = AtomicU32::new(0);
    catalog_contract(|| async {
        // A catalog name of its own for each case: they share the database.
        let catalog_name = format!("contract-{}-{}", std::process::id(), number.fetch_add(1, Ordering::SeqCst));
        let warehouse = format!("file://{}/{catalog_name}", arguments[2]);
        let options = SqlOptions { uri: arguments[1].clone(), catalog_name, warehouse, file_io: None };
        let TestServices { clock, ids } = TestServices::seeded(7);
        Arc::new(SqlCatalog::open(options, Services { clock, ids }).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
    println!("the catalog keeps the contract");
}
