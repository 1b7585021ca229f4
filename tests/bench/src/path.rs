//! Sluice's own path over the same event: bytes in, files out, the function's real code. Loading and committing tables is left out: the
//! catalog answers from memory.

use std::sync::Arc;

use async_trait::async_trait;
use futures::executor::block_on;
use serde_json::json;
use sluice_catalog::{MemoryCatalog, Services};
use sluice_deadletter::NoTopic;
use sluice_ingest::batch::{Batch, Decisions};
use sluice_ingest::refusals::DeadLetters;
use sluice_ingest::resolve::{Work, resolve};
use sluice_ingest::{Ingest, receive};
use sluice_model::{Clock, Column, ColumnType, IdSource, TableName, TableSchema, TapeBuffer};
use sluice_runtime::{Settings, open_event};
use sluice_start::TokioSleep;
use sluice_table::{Catalog, CommitError, CreateOutcome, StagedChange, TableCreation, TableError, TableOperations, TableVersion, prepare};

use crate::clock::Stages;
use crate::event::{Kind, table_name};
use crate::fixed::{FixedClock, FixedIds};

/// The function over tables that are there and empty.
pub struct Path {
    ingest: Ingest,
}

/// What an event came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Records in data files.
    pub rows: u64,
    /// Records in delete files.
    pub deletes: u64,
    /// Records that were applied.
    pub applied: usize,
    /// Records that were refused.
    pub refused: usize,
}

impl Path {
    /// The function for events of that kind, over `tables` tables.
    ///
    /// # Panics
    /// When the settings or the tables cannot be made, which is a fault of the bench.
    #[must_use]
    pub fn new(kind: Kind, tables: usize) -> Self {
        let settings = Settings::from_value(settings(kind)).expect("the bench's settings are sound");
        let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>) = (Arc::new(FixedClock), Arc::new(FixedIds::default()));
        let memory = MemoryCatalog::new("memory://warehouse", Services { clock: Arc::clone(&clock), ids: Arc::clone(&ids) });
        let catalog: Arc<dyn Catalog> = Arc::new(block_on(Frozen::new(&memory, tables)).expect("the tables can be made"));
        let sleep = Arc::new(TokioSleep);
        Self { ingest: Ingest { settings, catalog, topic: Arc::new(NoTopic), clock, ids, sleep } }
    }

    /// Takes one event through the path.
    ///
    /// # Panics
    /// When the event is refused as a whole or a table is in trouble, which is a fault of the bench.
    pub fn run(&self, event: &[u8], stages: &mut Stages) -> Made {
        let settings = &self.ingest.settings;
        let door = stages.time("open_event", || open_event(event)).expect("the event is one");
        let records = stages.time("source_records", || door.source_records());
        let mut tokens = TapeBuffer::default();
        let read = stages.time("read_all", || receive::read_all(&records, settings, &mut tokens));
        let units = stages.time("units", || receive::units(&door, &records, &read, settings));
        let (batch, decisions) = stages.time("batch", || {
            let batch = Batch::new(units);
            let decisions = Decisions::of(&batch);
            (batch, decisions)
        });
        let refusals = block_on(DeadLetters::open(&self.ingest)).expect("there is no error table yet");
        let mut made = Made::default();
        for table in batch.tables.keys() {
            let resolved = stages.time("resolve", || block_on(resolve(&self.ingest, &batch, table, &refusals)));
            let resolved = resolved.map_err(|trouble| trouble.error).expect("the tables are sound");
            made.refused += resolved.refused.len();
            if let Some(work) = resolved.work {
                self.write(work, stages, &mut made);
            }
        }
        stages.time("free", || drop((batch, decisions)));
        stages.time("free", || drop(read));
        stages.time("free", || drop(tokens));
        stages.time("free", || drop(records));
        stages.time("free", || drop(door));
        made
    }

    fn write(&self, work: Work, stages: &mut Stages, made: &mut Made) {
        made.applied += work.outcomes.len();
        let file_io = work.version.file_io.clone();
        let prepared = stages.time("prepare", || block_on(prepare(&work.version, work.delta, &self.ingest.write_options())));
        let prepared = prepared.expect("files in memory can be written");
        for file in prepared.files() {
            made.files += 1;
            made.bytes += file.file.file_size_in_bytes();
            match file.file.equality_ids() {
                None => made.rows += file.file.record_count(),
                Some(_) => made.deletes += file.file.record_count(),
            }
            // Not timed: the next round begins without them.
            block_on(file_io.delete(file.file.file_path())).expect("a file that was written can be deleted");
        }
    }
}

fn settings(kind: Kind) -> serde_json::Value {
    let format = match kind {
        Kind::Envelope => json!({
            "type": "envelope",
            "fields": {
                "source": "/source/db", "table": "/table", "operation": "/op", "event_time": "/ts_ms", "before": "/before", "data": "/after"
            }
        }),
        Kind::Debezium | Kind::DebeziumWithSchema => json!({"type": "debezium"}),
    };
    json!({
        "catalog": {"type": "memory"},
        "source": {"id": "bench", "formats": [format]},
        "route": {"table": "shop.{table}"},
        "table_defaults": {"time_unit": "us"},
        "errors": {"table": "ops.error_records"},
    })
}

fn table_schema() -> TableSchema {
    let text = |id, name: &str| Column::optional(id, name, ColumnType::String);
    let decimal = |scale| ColumnType::Decimal { precision: 18, scale };
    let shipping = vec![text(13, "street"), text(14, "city"), text(15, "zip"), text(16, "country")];
    let columns = vec![
        Column::required(1, "order_id", ColumnType::Long),
        Column::optional(2, "customer_id", ColumnType::Long),
        text(3, "order_no"),
        text(4, "status"),
        text(5, "currency"),
        Column::optional(6, "total_amount", decimal(2)),
        Column::optional(7, "tax_amount", decimal(4)),
        Column::optional(8, "created_at", ColumnType::Timestamp),
        Column::optional(9, "updated_at", ColumnType::Timestamp),
        Column::optional(10, "is_gift", ColumnType::Boolean),
        Column::optional(11, "shipping", ColumnType::Struct(shipping)),
        text(12, "notes"),
    ];
    TableSchema { schema_id: -1, columns, identifier_ids: vec![1], last_column_id: 16 }
}

/// A catalog whose tables never change: loading and refreshing cost nothing, committing is not done.
struct Frozen(Vec<Arc<FrozenTable>>);

struct FrozenTable {
    name: TableName,
    version: TableVersion,
}

impl Frozen {
    async fn new(memory: &MemoryCatalog, tables: usize) -> Result<Self, TableError> {
        let mut frozen = Vec::with_capacity(tables);
        for table in 0..tables {
            let name = TableName::parse(&format!("shop.{}", table_name(table))).expect("the generated names are names");
            memory.create(&name, &TableCreation::of(table_schema())).await?;
            let operations = memory.load(&name).await?.ok_or_else(|| TableError::Missing(name.clone()))?;
            frozen.push(Arc::new(FrozenTable { version: operations.refresh().await?, name }));
        }
        Ok(Self(frozen))
    }
}

#[async_trait]
impl Catalog for Frozen {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let found = self.0.iter().find(|table| table.name == *name);
        Ok(found.map(|table| Arc::clone(table) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, _creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        Err(TableError::Invalid(format!("the bench creates no table, and {name} is not there")))
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        Ok(self.0.iter().map(|table| table.name.clone()).collect())
    }

    async fn drop_table(&self, _name: &TableName) -> Result<bool, TableError> {
        Ok(false)
    }
}

#[async_trait]
impl TableOperations for FrozenTable {
    fn name(&self) -> &TableName {
        &self.name
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        Ok(self.version.clone())
    }

    async fn commit(&self, _base: &TableVersion, _change: &StagedChange) -> Result<TableVersion, CommitError> {
        Err(CommitError::Conflict)
    }
}
