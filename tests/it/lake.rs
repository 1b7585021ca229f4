//! A lake for a test: the real function over a catalog in memory, with time and ids that the test owns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_cast::display::{ArrayFormatter, FormatOptions};
use base64::Engine as _;
use serde_json::{Value, json};
use sluice_catalog::{MemoryCatalog, Services};
use sluice_deadletter::NoTopic;
use sluice_ingest::{Ingest, IngestError, Reply};
use sluice_model::{BatchTally, Deadline, TableName};
use sluice_runtime::Settings;
use sluice_table::{Catalog, scan, schema};
use sluice_testkit::TestServices;

/// The function and its catalog.
pub struct Lake {
    pub ingest: Ingest,
    pub services: TestServices,
}

/// A record of the house envelope on topic `t`.
#[derive(Clone)]
pub struct Sent {
    pub partition: i32,
    pub offset: i64,
    /// Sent as JSON text; a string as it is.
    pub value: Value,
}

/// A change of table `erp.<table>`.
pub fn sent(offset: i64, table: &str, op: &str, data: Value) -> Sent {
    Sent { partition: 0, offset, value: json!({"meta": {"table": table, "op": op}, "data": data}) }
}

/// The Lambda event of some records.
pub fn event(records: &[Sent]) -> Vec<u8> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in records {
        let text = match &record.value {
            Value::String(raw) => raw.clone(),
            other => other.to_string(),
        };
        let value = base64::engine::general_purpose::STANDARD.encode(text);
        let fields = json!({"topic": "t", "partition": record.partition, "offset": record.offset, "timestamp": 1_772_360_130_000_i64, "value": value});
        groups.entry(format!("t-{}", record.partition)).or_default().push(fields);
    }
    serde_json::to_vec(&json!({"eventSource": "aws:kafka", "records": groups})).unwrap()
}

/// A configuration for the house envelope, with `over` on top of it.
pub fn config(over: Value) -> Value {
    let mut config = json!({
        "catalog": {"type": "memory"},
        "source": {"id": "it", "formats": [{"type": "envelope"}]},
        "route": {"table": "erp.{table}"},
        "table_defaults": {"on_missing_table": "create", "key": ["id"]},
        "errors": {"table": "ops.error_records"},
    });
    merge(&mut config, over);
    config
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// An empty catalog in memory.
pub fn memory(services: &TestServices) -> Arc<dyn Catalog> {
    let own = Services { clock: services.clock.clone(), ids: services.ids.clone() };
    Arc::new(MemoryCatalog::new("memory://warehouse", own))
}

impl Lake {
    /// A lake over an empty catalog in memory.
    pub fn new(config: Value) -> Self {
        let services = TestServices::seeded(7);
        let catalog = memory(&services);
        Self::over(config, catalog, services)
    }

    /// A lake over a given catalog.
    pub fn over(config: Value, catalog: Arc<dyn Catalog>, services: TestServices) -> Self {
        let ingest = Ingest {
            settings: Settings::from_value(config).unwrap(),
            catalog,
            topic: Arc::new(NoTopic),
            clock: services.clock.clone(),
            ids: services.ids.clone(),
            sleep: services.clock.clone(),
        };
        Self { ingest, services }
    }

    /// Invokes the function.
    pub async fn invoke(&self, event: &[u8]) -> Result<Reply, IngestError> {
        let reply = self.ingest.invoke(event, Deadline::NONE).await?;
        assert_eq!(reply.unbalanced, 0, "R1: {:?}", reply.tally);
        Ok(reply)
    }

    /// Invokes the function with some records.
    pub async fn send(&self, records: &[Sent]) -> BatchTally {
        self.invoke(&event(records)).await.unwrap().tally
    }

    /// All tables with their rows as text, sorted; of the error table what does not change from run to run.
    pub async fn content(&self) -> BTreeMap<String, Vec<String>> {
        content(self.ingest.catalog.as_ref()).await
    }
}

/// All tables of a catalog with their rows as text, sorted.
pub async fn content(catalog: &dyn Catalog) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for name in catalog.tables().await.unwrap() {
        found.insert(name.to_string(), rows(catalog, &name).await);
    }
    found
}

/// A table's rows as text, sorted, without what changes from run to run.
pub async fn rows(catalog: &dyn Catalog, name: &TableName) -> Vec<String> {
    const CHANGING: [&str; 2] = ["arrived_at", "detail"];
    rows_of(catalog, name, |column| !CHANGING.contains(&column)).await
}

/// Some columns of a table's rows as text, sorted.
pub async fn rows_of(catalog: &dyn Catalog, name: &TableName, shown: impl Fn(&str) -> bool) -> Vec<String> {
    let version = catalog.load(name).await.unwrap().unwrap().refresh().await.unwrap();
    let target = sluice_pipeline::arrow_schema(&schema::to_model(&version.metadata).unwrap());
    let options = FormatOptions::default().with_null("null");
    let mut rows = Vec::new();
    for batch in scan(&version, None, &target).await.unwrap() {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| shown(field.name()));
        let columns: Vec<_> =
            columns.map(|(field, column)| (field.name().clone(), ArrayFormatter::try_new(column, &options).unwrap())).collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|(name, cells)| format!("{name}={}", cells.value(row))).collect();
            rows.push(cells.join(" "));
        }
    }
    rows.sort_unstable();
    rows
}
