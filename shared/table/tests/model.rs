//! Random deltas under random faults, against a plain map: no row is lost, doubled or left over.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;

use iceberg::spec::{Transform, UnboundPartitionSpec};
use sluice_catalog::{MemoryCatalog, Services};
use sluice_model::{Class, Coordinate, Coverage, IdSource};
use sluice_table::{Catalog, DeltaOutcome, RowDelta, TableOperations, TableVersion, Truncate, commit_delta, ledger, prepare};
use sluice_testkit::{CommitFault, FaultPlan, FaultyCatalog, TestServices, foreign, tables};
use tables::Rows;

/// One batch: what it does to the rows.
#[derive(Debug, Clone, Default)]
struct Batch {
    truncate: bool,
    writes: Vec<(i64, Option<&'static str>, i128)>,
    deletes: Vec<i64>,
}

impl Batch {
    fn random(ids: &dyn IdSource) -> Self {
        let regions = [None, Some(""), Some("eu"), Some("us/west")];
        let below = |limit: u128| ids.next_u128() % limit;
        let mut batch = Self { truncate: below(12) == 0, ..Self::default() };
        for _ in 0..below(5) {
            let id = below(10) as i64;
            if batch.writes.iter().all(|write| write.0 != id) {
                batch.writes.push((id, regions[below(4) as usize], below(1_000) as i128));
            }
        }
        batch.deletes = (0..below(3)).map(|_| below(10) as i64).filter(|id| batch.writes.iter().all(|write| write.0 != *id)).collect();
        batch
    }

    fn on(&self, version: &TableVersion, offset: i64) -> RowDelta {
        let keys: Vec<i64> = self.deletes.iter().copied().chain(self.writes.iter().map(|write| write.0)).collect();
        RowDelta {
            delete_keys: Some(tables::keys(&keys)),
            truncate: if self.truncate { Truncate::All } else { Truncate::Keep },
            ..tables::delta(version, tables::rows(&self.writes), (0, offset..offset + 1))
        }
    }

    fn apply_to(&self, rows: &mut Rows) {
        if self.truncate {
            rows.clear();
        }
        rows.retain(|id, _| !self.deletes.contains(id));
        rows.extend(self.writes.iter().map(|(id, region, total)| (*id, (region.map(str::to_owned), *total))));
    }
}

struct World {
    ops: Arc<dyn TableOperations>,
    plan: Arc<FaultPlan>,
    services: TestServices,
}

impl World {
    async fn new(seed: u64) -> Self {
        let services = TestServices::seeded(seed);
        let given = Services { clock: services.clock.clone(), ids: services.ids.clone() };
        let plan = Arc::new(FaultPlan::default());
        let catalog: Arc<dyn Catalog> = Arc::new(MemoryCatalog::new("memory://warehouse", given));
        let catalog = FaultyCatalog::new(catalog, Arc::clone(&plan));
        let by = [&[][..], &["bucket(3, id)"], &["region"], &["region", "bucket(2, id)"]][(seed % 4) as usize];
        let mut creation = tables::creation(by);
        creation.format_version = if seed.is_multiple_of(3) { 3 } else { 2 };
        Self { ops: tables::create(&catalog, "t", &creation).await, plan, services }
    }

    fn plan_faults(&self) {
        let all = [
            CommitFault::None,
            CommitFault::Instead(Class::Conflict),
            CommitFault::Instead(Class::Transient),
            CommitFault::Instead(Class::Unknown),
            CommitFault::After(Class::Unknown),
            CommitFault::After(Class::Transient),
        ];
        self.plan.on_commits([all[(self.services.ids.next_u128() % 6) as usize]]);
    }

    /// Delivers a batch, prepared on an older version, until it is in the table.
    async fn deliver(&self, batch: &Batch, offset: i64, mut version: TableVersion) {
        for _ in 0..10 {
            let prepared = prepare(&version, batch.on(&version, offset), &self.services.write_options()).await.unwrap();
            match commit_delta(&*self.ops, prepared, &self.services.commit_context()).await {
                Ok(DeltaOutcome::Committed { .. } | DeltaOutcome::AlreadyCommitted { .. }) => return,
                Ok(DeltaOutcome::Stale { version: newer, .. }) => version = newer,
                Err(error) => {
                    assert!(error.class().may_pass_later(), "{error}");
                    version = self.ops.refresh().await.unwrap();
                }
            }
        }
        panic!("the batch at {offset} never came through");
    }

    async fn change_spec(&self, buckets: u32) {
        let spec = UnboundPartitionSpec::builder().add_partition_field(1, format!("b{buckets}"), Transform::Bucket(buckets)).unwrap();
        foreign::alter(&*self.ops, |builder| builder.add_default_partition_spec(spec.build()).unwrap()).await;
    }
}

async fn run(seed: u64) {
    let world = World::new(seed).await;
    let mut expected = Rows::new();
    let mut old = world.ops.refresh().await.unwrap();
    for offset in 0..15_i64 {
        let batch = Batch::random(world.services.ids.as_ref());
        if world.services.ids.next_u128() % 2 == 0 {
            old = world.ops.refresh().await.unwrap();
        }
        if offset == 7 && seed.is_multiple_of(5) {
            world.change_spec(4 + seed as u32 % 3).await;
        }
        world.plan_faults();
        world.deliver(&batch, offset, old.clone()).await;
        world.deliver(&batch, offset, old.clone()).await;
        batch.apply_to(&mut expected);
        let now = world.ops.refresh().await.unwrap();
        assert_eq!(tables::read(&now).await, expected, "seed {seed}, offset {offset}, {batch:?}");
        let known = ledger::read(&now.metadata).unwrap();
        assert_eq!(known.coverage(&tables::partition(0), Coordinate::record(offset)), Coverage::Decided);
    }
}

#[tokio::test]
async fn rows_are_those_of_a_plain_map() {
    for seed in 0..6 {
        run(seed).await;
    }
}
