//! Exactly once while the network between a catalog and its clients fails: delays, resets, lost replies.

use std::sync::Arc;

use sluice_table::Catalog;
use sluice_testkit::{Fault, Proxy, ProxyPlan, exactly_once};

use crate::{Warehouses, address};

const NETWORK: [Fault; 4] = [Fault::Delay(5), Fault::Reset, Fault::LoseReply, Fault::LoseReply];

/// Runs this many schedules; `FAULT_SEED` is the first, for running one again.
async fn schedules<O, Made>(address: &str, count: u64, open: O)
where
    O: Fn(String) -> Made,
    Made: Future<Output = Arc<dyn Catalog>>,
{
    let first: u64 = std::env::var("FAULT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let proxy = Proxy::before(address, ProxyPlan::Calm);
    let direct = open(address.to_owned()).await;
    // Opened in calm: what is tested is running, and a function that cannot start does nothing.
    let writers = [open(proxy.address()).await, open(proxy.address()).await];
    let mut met = 0;
    for seed in first..first + count {
        let plan = ProxyPlan::Random { seed, percent: 4 + seed % 16, faults: NETWORK.to_vec() };
        met += exactly_once((&proxy, plan), (seed, &format!("t{seed}")), (writers.clone(), &*direct)).await;
    }
    println!("{count} schedules, {met} faults");
    assert!(met > count, "hardly a fault: {met}");
}

/// What stands between `://` and the path, without the user.
pub(crate) fn host_of(uri: &str) -> String {
    let rest = uri.split_once("://").unwrap().1;
    let rest = rest.split_once('@').map_or(rest, |(_, host)| host);
    rest.split_once('/').map_or(rest, |(host, _)| host).to_owned()
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    use sluice_catalog::{SqlCatalog, SqlOptions};
    let warehouses = Warehouses::default();
    let (uri, folder) = (address("DATABASE_URI"), warehouses.next());
    let host = host_of(&uri);
    schedules(&host, 200, |at| {
        let (uri, folder) = (uri.replace(&host, &at), folder.clone());
        async move {
            let options = SqlOptions { uri, catalog_name: folder.clone(), warehouse: format!("file://{folder}"), file_io: None };
            Arc::new(SqlCatalog::open(options, crate::services()).await.unwrap()) as Arc<dyn Catalog>
        }
    })
    .await;
}

#[cfg(feature = "hive")]
async fn hive(variable: &str, count: u64, choose: impl Fn(&mut sluice_catalog::HiveConfig)) {
    let warehouses = Warehouses::default();
    let (uri, folder) = (address(variable), warehouses.next());
    schedules(&host_of(&uri), count, |at| {
        let mut options = sluice_catalog::HiveConfig::at(format!("thrift://{at}"), format!("file://{folder}"));
        options.timeout_ms = 5_000;
        choose(&mut options);
        async move { Arc::new(sluice_catalog::HiveCatalog::open(options, crate::services()).await.unwrap()) as Arc<dyn Catalog> }
    })
    .await;
}

#[cfg(feature = "hive")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hive_2_without_locks() {
    hive("HMS_2_URI", 200, |options| options.lock = sluice_catalog::HiveLock::Never).await;
}

/// Fewer, because a lock that a lost reply leaves behind takes its ten seconds to go.
#[cfg(feature = "hive")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hive_3_with_locks() {
    hive("HMS_3_URI", 20, |_| {}).await;
}
