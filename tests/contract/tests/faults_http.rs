//! Exactly once while the network before catalogs and storages of HTTP fails: delays, resets, lost replies, and servers and gateways that answer with
//! trouble before or after they have done what was asked.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::TableUpdate;
use sluice_model::Class;
use sluice_table::{Catalog, StagedChange, metadata_file};
use sluice_testkit::tables::{create, creation};
use sluice_testkit::{Fault, Proxy, ProxyPlan, exactly_once};

/// Half of them come after the server has acted.
const TROUBLE: [Fault; 10] = [
    Fault::Delay(5),
    Fault::Reset,
    Fault::LoseReply,
    Fault::LoseReply,
    Fault::Status(429),
    Fault::Status(500),
    Fault::Status(503),
    Fault::StatusAfter(500),
    Fault::StatusAfter(502),
    Fault::StatusAfter(504),
];

fn first_seed() -> u64 {
    std::env::var("FAULT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What stands between `://` and the path.
fn host_of(uri: &str) -> String {
    let rest = uri.split_once("://").unwrap().1;
    rest.split_once('/').map_or(rest, |(host, _)| host).to_owned()
}

/// Runs so many schedules with the proxy before the server at `uri`; `FAULT_SEED` is the first, for running one again. `open` is given the address that a catalog
/// is to use.
async fn schedules<O, Made>(uri: &str, count: u64, open: O)
where
    O: Fn(String) -> Made,
    Made: Future<Output = Arc<dyn Catalog>>,
{
    let first = first_seed();
    let host = host_of(uri);
    let proxy = Proxy::before(&host, ProxyPlan::Calm);
    let direct = open(uri.to_owned()).await;
    // Opened in calm: what is tested is running, and a function that cannot start does nothing.
    let disturbed = uri.replace(&host, &proxy.address());
    let writers = [open(disturbed.clone()).await, open(disturbed).await];
    let mut met = 0;
    for seed in first..first + count {
        let plan = ProxyPlan::Random { seed, percent: 4 + seed % 16, faults: TROUBLE.to_vec() };
        met += exactly_once((&proxy, plan), (seed, &format!("t{seed}")), (writers.clone(), &*direct)).await;
    }
    println!("{count} schedules, {met} faults");
    assert!(met > count / 2, "hardly a fault: {met}");
}

/// A server that has acted and then says 500: the commit was sent once, is unknown, and what it wrote is still there. `open` as in [`schedules`].
async fn a_commit_is_sent_once<O, Made>(uri: &str, open: O)
where
    O: Fn(String) -> Made,
    Made: Future<Output = Arc<dyn Catalog>>,
{
    let host = host_of(uri);
    let proxy = Proxy::before(&host, ProxyPlan::Calm);
    let catalog = open(uri.replace(&host, &proxy.address())).await;
    let ops = create(&*catalog, "once", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    let change = StagedChange {
        updates: vec![TableUpdate::SetProperties { updates: HashMap::from([("owner".to_owned(), "sales".to_owned())]) }],
        requirements: Vec::new(),
        metadata: base.metadata.as_ref().clone(),
        metadata_location: metadata_file::next_location(Some(&base.metadata_location), &base.metadata, 9),
        expired_logs: Vec::new(),
    };
    proxy.follow(ProxyPlan::Random { seed: 0, percent: 100, faults: vec![Fault::StatusAfter(500)] });
    let outcome = ops.commit(&base, &change).await;
    assert_eq!(proxy.exchanges(), 1);
    assert_eq!(outcome.unwrap_err().class(), Class::Unknown);
    proxy.follow(ProxyPlan::Calm);
    let now = ops.refresh().await.unwrap();
    assert_ne!(now.token, base.token, "the server had acted");
    assert!(now.file_io.exists(&now.metadata_location).await.unwrap());
}

#[cfg(feature = "aws")]
mod on_aws {
    use sluice_catalog::{AwsConfig, GlueCatalog, GlueConfig, S3TablesCatalog, S3TablesConfig};
    use sluice_storage::StorageConfig;

    use super::*;
    use crate::aws::{empty_region, folder, service, storage};
    use crate::{address, services};

    /// A storage that gives up soon: the SDK's rests between its tries take a second each.
    fn hasty(endpoint: Option<String>) -> StorageConfig {
        let mut config = storage();
        config.s3.endpoint = endpoint.or(config.s3.endpoint);
        config.s3.max_attempts = 1;
        config
    }

    fn at(endpoint: String, region: &str) -> AwsConfig {
        AwsConfig { endpoint: Some(endpoint), ..service(region) }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn before_glue() {
        let (region, warehouse) = (empty_region(), folder("faults-glue"));
        schedules(&address("SLUICE_TEST_AWS_ENDPOINT"), 200, |uri| {
            let (aws, warehouse) = (at(uri, &region), Some(warehouse.clone()));
            let config = GlueConfig { warehouse, catalog_id: None, aws, storage: hasty(None) };
            async { Arc::new(GlueCatalog::open(config, services()).await.unwrap()) as Arc<dyn Catalog> }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_commit_to_glue_is_sent_once() {
        let (region, warehouse) = (empty_region(), folder("once-glue"));
        a_commit_is_sent_once(&address("SLUICE_TEST_AWS_ENDPOINT"), |uri| {
            let (aws, warehouse) = (at(uri, &region), Some(warehouse.clone()));
            let config = GlueConfig { warehouse, catalog_id: None, aws, storage: storage() };
            async { Arc::new(GlueCatalog::open(config, services()).await.unwrap()) as Arc<dyn Catalog> }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_commit_to_s3_tables_is_sent_once() {
        let bucket = "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake29";
        a_commit_is_sent_once(&address("SLUICE_TEST_AWS_ENDPOINT"), |uri| {
            let config = S3TablesConfig { bucket: bucket.to_owned(), aws: at(uri, "eu-central-1"), storage: storage() };
            async { Arc::new(S3TablesCatalog::open(config, services()).await.unwrap()) as Arc<dyn Catalog> }
        })
        .await;
    }

    /// Both the catalog and its storage.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn before_s3() {
        let (region, warehouse) = (empty_region(), folder("faults-s3"));
        schedules(&address("SLUICE_TEST_AWS_ENDPOINT"), 200, |uri| {
            let (aws, warehouse) = (at(uri.clone(), &region), Some(warehouse.clone()));
            let config = GlueConfig { warehouse, catalog_id: None, aws, storage: hasty(Some(uri)) };
            async { Arc::new(GlueCatalog::open(config, services()).await.unwrap()) as Arc<dyn Catalog> }
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn before_s3_tables() {
        let bucket = "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake30";
        schedules(&address("SLUICE_TEST_AWS_ENDPOINT"), 60, |uri| {
            let config = S3TablesConfig { bucket: bucket.to_owned(), aws: at(uri, "eu-central-1"), storage: hasty(None) };
            async { Arc::new(S3TablesCatalog::open(config, services()).await.unwrap()) as Arc<dyn Catalog> }
        })
        .await;
    }
}

#[cfg(feature = "rest")]
async fn rest_at(uri: String, context: &str) -> Arc<dyn Catalog> {
    use sluice_catalog::{RestAuth, RestCatalog, RestConfig, RestSecrets};
    let config = RestConfig { uri: format!("{uri}/{context}"), ..crate::rest::config(context, RestAuth::None) };
    Arc::new(RestCatalog::open(config, RestSecrets::default(), crate::services()).await.unwrap())
}

#[cfg(feature = "rest")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_rest() {
    schedules(&crate::address("SLUICE_TEST_REST_URI"), 200, |uri| rest_at(uri, "open23")).await;
}

#[cfg(feature = "rest")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_to_rest_is_sent_once() {
    a_commit_is_sent_once(&crate::address("SLUICE_TEST_REST_URI"), |uri| rest_at(uri, "open22")).await;
}
