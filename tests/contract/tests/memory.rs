//! The catalog in memory.

use std::sync::Arc;

use crate::services;
use sluice_catalog::MemoryCatalog;
use sluice_table::Catalog;
use sluice_testkit::{Namespaces, catalog_contract};

#[tokio::test]
async fn memory() {
    let make = || async { Arc::new(MemoryCatalog::new("memory://warehouse", services())) as Arc<dyn Catalog> };
    catalog_contract(Namespaces::Nested, make).await;
}
