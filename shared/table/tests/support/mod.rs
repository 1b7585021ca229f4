//! A table in memory.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

pub mod compacting;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use iceberg::spec::{ManifestList, Struct};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use sluice_catalog::{MemoryCatalog, Services};
use sluice_table::{DeltaOutcome, RowDelta, TableCreation, TableError, TableOperations, TableVersion, commit_delta, prepare};
use sluice_testkit::{FaultPlan, FaultyCatalog, TestServices, tables};

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

    /// A table whose commits and refreshes fail as planned.
    pub async fn faulty(creation: &TableCreation) -> (Self, Arc<FaultPlan>) {
        let services = TestServices::seeded(3);
        let given = Services { clock: services.clock.clone(), ids: services.ids.clone() };
        let plan = Arc::new(FaultPlan::default());
        let catalog = FaultyCatalog::new(Arc::new(MemoryCatalog::new("memory://warehouse", given)), Arc::clone(&plan));
        (Self { ops: tables::create(&catalog, "t", creation).await, services }, plan)
    }

    /// The partition of a live file.
    pub async fn partition_of(&self, path: &str) -> Struct {
        let version = self.now().await;
        let snapshot = version.metadata.current_snapshot().unwrap();
        let bytes = version.file_io.new_input(snapshot.manifest_list()).unwrap().read().await.unwrap();
        let list = ManifestList::parse_with_version(&bytes, version.metadata.format_version()).unwrap();
        for manifest in list.entries() {
            let loaded = manifest.load_manifest(&version.file_io).await.unwrap();
            if let Some(entry) = loaded.entries().iter().find(|entry| entry.file_path() == path) {
                return entry.data_file().partition().clone();
            }
        }
        panic!("{path} is in no manifest");
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

/// Stores a file that deletes rows of data files by position, as other programs do.
pub async fn store_positions(version: &TableVersion, path: &str, deleted: &[(&str, i64)]) {
    let field = |name: &str, kind: DataType, id: i32| {
        Field::new(name, kind, false).with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())].into())
    };
    let fields = vec![field("file_path", DataType::Utf8, 2_147_483_546), field("pos", DataType::Int64, 2_147_483_545)];
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(deleted.iter().map(|(path, _)| path)));
    let positions: ArrayRef = Arc::new(Int64Array::from_iter_values(deleted.iter().map(|(_, position)| *position)));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![paths, positions]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    version.file_io.new_output(path).unwrap().write(writer.into_inner().unwrap().into()).await.unwrap();
}
