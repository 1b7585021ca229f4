//! A table in memory.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use sluice_catalog::{MemoryCatalog, Services};
use sluice_table::{DeltaOutcome, RowDelta, TableCreation, TableError, TableOperations, TableVersion, commit_delta, prepare};
use sluice_testkit::{TestServices, tables};

/// A table, and the time and ids to work on it.
pub struct Fixture {
    pub ops: Arc<dyn TableOperations>,
    pub services: TestServices,
}

impl Fixture {
    pub async fn of(creation: &TableCreation) -> Self {
        let services = TestServices::seeded(3);
        let given = Services { clock: services.clock.clone(), ids: services.ids.clone() };
        let catalog = MemoryCatalog::new("memory://warehouse", given);
        Self { ops: tables::create(&catalog, "t", creation).await, services }
    }

    pub async fn small(partition_by: &[&str]) -> Self {
        Self::of(&tables::creation(partition_by)).await
    }

    pub async fn now(&self) -> TableVersion {
        self.ops.refresh().await.unwrap()
    }

    pub async fn apply(&self, delta: RowDelta) -> TableVersion {
        tables::apply(&*self.ops, delta, &self.services).await
    }

    /// Upserts rows that came from one offset of partition 0.
    pub async fn upsert(&self, values: &[(i64, Option<&str>, i128)], offset: i64) -> TableVersion {
        let version = self.now().await;
        self.apply(tables::upsert(&version, values, (0, offset..offset + 1))).await
    }

    /// Commits what was prepared on an older version.
    pub async fn commit_on(&self, version: &TableVersion, delta: RowDelta) -> Result<DeltaOutcome, TableError> {
        let prepared = prepare(version, delta, &self.services.write_options()).await?;
        commit_delta(&*self.ops, prepared, &self.services.commit_context()).await
    }
}

/// What the reader must see.
pub fn rows(values: &[(i64, Option<&str>, i128)]) -> tables::Rows {
    values.iter().map(|(id, region, total)| (*id, (region.map(str::to_owned), *total))).collect()
}
