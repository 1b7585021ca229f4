//! Exactly once through a network that fails.

use std::sync::Arc;

use sluice_model::{Class, TableName};
use sluice_table::{Catalog, DeltaOutcome, TableError, TableOperations, commit_delta, prepare};

use crate::TestServices;
use crate::proxy::{Proxy, ProxyPlan};
use crate::tables::{creation, delta, name, read, rows};

/// Batches of each writer.
const BATCHES: i64 = 3;
const WRITERS: i32 = 2;
/// A batch that is not through after so many deliveries never will be.
const DELIVERIES: u32 = 200;

/// Two writers, each with a catalog of its own behind `proxy`, write their batches into one table while `plan` holds; a batch whose delivery fails is
/// delivered again, as Kafka does. Then every row is there once: `direct` sees the same catalog without the proxy. Gives the faults met.
pub async fn exactly_once(
    (proxy, plan): (&Proxy, ProxyPlan),
    (seed, table): (u64, &str),
    (writers, direct): ([Arc<dyn Catalog>; WRITERS as usize], &dyn Catalog),
) -> u64 {
    proxy.follow(plan);
    let table = name(table);
    let [first, second] = &writers;
    futures::join!(write_all((&**first, &table), 0, seed), write_all((&**second, &table), 1, seed));
    let met = proxy.faults();
    proxy.follow(ProxyPlan::Calm);
    let version = direct.load(&table).await.unwrap().unwrap().refresh().await.unwrap();
    let expected: Vec<i64> = (0..WRITERS).flat_map(|writer| (0..BATCHES).map(move |batch| id(writer, batch))).collect();
    // A row that is there twice is found by `read`.
    assert_eq!(read(&version).await.into_keys().collect::<Vec<_>>(), expected, "seed {seed}");
    assert_eq!(version.metadata.snapshots().len() as i64, i64::from(WRITERS) * BATCHES, "seed {seed}");
    met
}

fn id(writer: i32, batch: i64) -> i64 {
    i64::from(writer) * 1_000 + batch
}

async fn write_all((catalog, table): (&dyn Catalog, &TableName), writer: i32, seed: u64) {
    let services = TestServices::seeded(seed * 2 + u64::try_from(writer).unwrap() + 1);
    for batch in 0..BATCHES {
        let mut last = String::new();
        let mut delivered = false;
        for _ in 0..DELIVERIES {
            match deliver((catalog, table), (writer, batch), &services).await {
                Ok(()) => {
                    delivered = true;
                    break;
                }
                Err(error) => {
                    assert_ne!(error.class(), Class::Fatal, "seed {seed}: a failing network is not fatal: {error}");
                    last = error.to_string();
                }
            }
        }
        assert!(delivered, "seed {seed}: batch {batch} of writer {writer} did not get through: {last}");
    }
}

/// One delivery, as an invocation does it: load or create, prepare, commit.
async fn deliver(
    (catalog, table): (&dyn Catalog, &TableName),
    (writer, batch): (i32, i64),
    services: &TestServices,
) -> Result<(), TableError> {
    let ops: Arc<dyn TableOperations> = match catalog.load(table).await? {
        Some(ops) => ops,
        None => {
            catalog.create(table, &creation(&[])).await?;
            catalog.load(table).await?.ok_or_else(|| TableError::Missing(table.clone())).map_err(|error| transient(&error))?
        }
    };
    let version = ops.refresh().await?;
    let delta = delta(&version, rows(&[(id(writer, batch), Some("eu"), 1)]), (writer, batch..batch + 1));
    let prepared = prepare(&version, delta, &services.write_options()).await?;
    match commit_delta(&*ops, prepared, &services.commit_context()).await? {
        DeltaOutcome::Committed { .. } | DeltaOutcome::AlreadyCommitted { .. } => Ok(()),
        DeltaOutcome::Stale { reason, .. } => panic!("a plain append is never stale: {reason:?}"),
    }
}

/// Nobody drops tables here: what was just created is there, or its creation is still under way.
fn transient(error: &TableError) -> TableError {
    TableError::Catalog { class: Class::Transient, what: error.to_string(), source: None }
}
