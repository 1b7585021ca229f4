//! How many requests a commit makes to a real catalog, and how long it takes when each takes 50 ms longer. `--nocapture` shows the figures of
//! docs/performance.md.

use std::sync::Arc;
use std::time::Instant;

use sluice_table::Catalog;
use sluice_testkit::tables::{create, creation, delta, rows};
use sluice_testkit::{Proxy, ProxyPlan, TestServices};

use crate::faults::host_of;
use crate::{Warehouses, address};

/// The exchanges of an append to a warm table, the look whether the table has changed included.
async fn requests(what: &str, address: &str, open: impl AsyncFn(String) -> Arc<dyn Catalog>) -> u64 {
    let (proxy, services) = (Proxy::before(address, ProxyPlan::Calm), TestServices::seeded(80));
    let catalog = open(proxy.address()).await;
    let ops = create(&*catalog, &format!("latency_{what}"), &creation(&[])).await;
    let mut exchanges = 0;
    for (offset, plan) in [(0, ProxyPlan::Calm), (1, ProxyPlan::Calm), (2, ProxyPlan::Slow(50))] {
        proxy.follow(plan.clone());
        let started = Instant::now();
        let version = ops.refresh().await.unwrap();
        let delta = delta(&version, rows(&[(offset, None, 1)]), (0, offset..offset + 1));
        let prepared = sluice_table::prepare(&version, delta, &services.write_options()).await.unwrap();
        sluice_table::commit_delta(&*ops, prepared, &services.commit_context()).await.unwrap();
        exchanges = proxy.exchanges();
        println!("{what}, {plan:?}: {exchanges} exchanges, {:?}", started.elapsed());
    }
    exchanges
}

#[cfg(feature = "hive")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hive() {
    use sluice_catalog::{HiveCatalog, HiveConfig, HiveLock};
    // Load and alter; with a lock: load, lock, load again, alter, unlock.
    for (variable, lock, expected) in
        [("HMS_2_URI", HiveLock::Never, 2), ("HMS_2_URI", HiveLock::Always, 5), ("HMS_3_URI", HiveLock::Always, 5)]
    {
        let (warehouses, uri) = (Warehouses::default(), address(variable));
        let folder = warehouses.next();
        let made = requests(&format!("{variable}_{lock:?}").to_lowercase(), &host_of(&uri), async |at: String| {
            let mut options = HiveConfig::at(format!("thrift://{at}"), format!("file://{folder}"));
            options.lock = lock;
            Arc::new(HiveCatalog::open(options, crate::services()).await.unwrap()) as Arc<dyn Catalog>
        })
        .await;
        assert_eq!(made, expected, "{variable} {lock:?}");
    }
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    use sluice_catalog::{SqlCatalog, SqlOptions};
    let (warehouses, uri) = (Warehouses::default(), address("DATABASE_URI"));
    let (folder, host) = (warehouses.next(), host_of(&uri));
    let made = requests("postgres", &host, async |at: String| {
        let options =
            SqlOptions { uri: uri.replace(&host, &at), catalog_name: folder.clone(), warehouse: format!("file://{folder}"), file_io: None };
        Arc::new(SqlCatalog::open(options, crate::services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
    // One exchange a statement, the ping of the pool before each, and what a connection has not prepared yet.
    assert!(made <= 7, "{made}");
}
