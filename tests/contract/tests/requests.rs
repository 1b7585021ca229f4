//! What a commit costs: the requests of one append to a warm table, counted in the server's own log.

use std::sync::Arc;

use sluice_catalog::{GlueCatalog, GlueConfig, S3TablesCatalog, S3TablesConfig};
use sluice_table::Catalog;
use sluice_testkit::TestServices;
use sluice_testkit::tables::{apply, create, creation, delta, name, rows};

use crate::aws::{empty_region, folder, requests, service, storage};
use crate::services;

/// What an append asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// Requests of the catalog's own protocol.
    catalog: usize,
    /// Objects read.
    gets: usize,
    /// Objects written.
    puts: usize,
    /// Anything else.
    others: Vec<String>,
}

fn asked(lines: Vec<String>, is_catalog: impl Fn(&str) -> bool) -> Asked {
    let mut asked = Asked::default();
    for line in lines {
        match line.split_once(' ') {
            Some(_) if is_catalog(&line) => asked.catalog += 1,
            Some(("GET", _)) => asked.gets += 1,
            Some(("PUT", _)) => asked.puts += 1,
            Some(_) | None => asked.others.push(line),
        }
    }
    asked
}

/// Loads the table anew, as an invocation does, and appends to it.
async fn append(catalog: &dyn Catalog, offset: i64, services: &TestServices) {
    let ops = catalog.load(&name("t")).await.unwrap().unwrap();
    let base = ops.refresh().await.unwrap();
    let delta = delta(&base, rows(&[(offset, None, 1)]), (0, offset..offset + 1));
    let prepared = sluice_table::prepare(&base, delta, &services.write_options()).await.unwrap();
    sluice_table::commit_delta(&*ops, prepared, &services.commit_context()).await.unwrap();
}

/// The cost of the last of these appends, which must not grow: the first is not looked at.
async fn cost(catalog: &dyn Catalog, appends: i64, is_catalog: impl Fn(&str) -> bool) -> Asked {
    let services = TestServices::seeded(2);
    let ops = create(catalog, "t", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    apply(&*ops, delta(&base, rows(&[(0, None, 1)]), (0, 0..1)), &services).await;
    for offset in 1..appends {
        append(catalog, offset, &services).await;
    }
    let (_, before) = requests(0);
    append(catalog, appends, &services).await;
    asked(requests(before).0, is_catalog)
}

/// One look and one commit; the metadata file and the manifest list are read; the rows, their manifest, the list and the metadata file are written.
fn expected() -> Asked {
    Asked { catalog: 2, gets: 2, puts: 4, others: Vec::new() }
}

/// One test, because the server has one log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_takes_two_requests_of_the_catalog_and_six_of_the_storage() {
    let config = GlueConfig { warehouse: Some(folder("requests")), catalog_id: None, aws: service(&empty_region()), storage: storage() };
    let glue: Arc<dyn Catalog> = Arc::new(GlueCatalog::open(config, services()).await.unwrap());
    assert_eq!(cost(&*glue, 3, |line| line.starts_with("POST / ")).await, expected());
    // Snapshots and manifests add up, requests do not.
    assert!(glue.drop_table(&name("t")).await.unwrap());
    assert_eq!(cost(&*glue, 60, |line| line.starts_with("POST / ")).await, expected());
    let bucket = "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake31".to_owned();
    let config = S3TablesConfig { bucket, aws: service("eu-central-1"), storage: storage() };
    let tables: Arc<dyn Catalog> = Arc::new(S3TablesCatalog::open(config, services()).await.unwrap());
    assert_eq!(cost(&*tables, 3, |line| line.contains("metadata-location")).await, expected());
}
