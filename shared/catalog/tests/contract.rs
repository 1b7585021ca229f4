//! Both catalogs against the one suite.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sluice_catalog::{MemoryCatalog, Services, SqlCatalog, SqlOptions};
use sluice_table::Catalog;
use sluice_testkit::{TestServices, catalog_contract};

fn services() -> Services {
    let TestServices { clock, ids } = TestServices::seeded(7);
    Services { clock, ids }
}

#[tokio::test]
async fn memory() {
    catalog_contract(|| async { Arc::new(MemoryCatalog::new("memory://warehouse", services())) as Arc<dyn Catalog> }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let number = AtomicU32::new(0);
    catalog_contract(|| async {
        let path = folder.path().join(number.fetch_add(1, Ordering::SeqCst).to_string());
        std::fs::create_dir(&path).unwrap();
        let options = SqlOptions {
            uri: format!("sqlite://{}/catalog.db", path.display()),
            catalog_name: "sluice".to_owned(),
            warehouse: format!("file://{}/warehouse", path.display()),
            file_io: None,
        };
        Arc::new(SqlCatalog::open(options, services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
}
