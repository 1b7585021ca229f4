//! A small table, `(id long key, region string, total decimal)`, and batches for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
use sluice_model::{Column, ColumnType, Coordinate, Interval, PartitionKey, TableName, TableSchema, TransformedColumn};
use sluice_table::arrow::arrow_schema;
use sluice_table::{Catalog, RowDelta, TableCreation, TableOperations, TableVersion, scan};

use crate::TestServices;

/// The rows of a table: id to region and total.
pub type Rows = BTreeMap<i64, (Option<String>, i128)>;

/// The schema of the small table.
#[must_use]
pub fn schema() -> TableSchema {
    let columns = vec![
        Column::required(1, "id", ColumnType::Long),
        Column::optional(2, "region", ColumnType::String),
        Column::optional(3, "total", ColumnType::Decimal { precision: 12, scale: 2 }),
    ];
    TableSchema { schema_id: 0, columns, identifier_ids: vec![1], last_column_id: 3 }
}

/// The small table, partitioned as told.
#[must_use]
pub fn creation(partition_by: &[&str]) -> TableCreation {
    let mut creation = TableCreation::of(schema());
    creation.partition_by = partition_by.iter().map(|text| TransformedColumn::parse(text).unwrap()).collect();
    creation
}

/// A name in the namespace `shop`.
#[must_use]
pub fn name(table: &str) -> TableName {
    TableName::parse(&format!("shop.{table}")).unwrap()
}

/// Creates the table and loads it.
pub async fn create(catalog: &dyn Catalog, table: &str, creation: &TableCreation) -> Arc<dyn TableOperations> {
    catalog.create(&name(table), creation).await.unwrap();
    catalog.load(&name(table)).await.unwrap().unwrap()
}

/// Rows of (id, region, unscaled total).
#[must_use]
pub fn rows(values: &[(i64, Option<&str>, i128)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(values.iter().map(|row| row.0)));
    let regions: ArrayRef = Arc::new(values.iter().map(|row| row.1).collect::<StringArray>());
    let totals = Decimal128Array::from_iter_values(values.iter().map(|row| row.2)).with_precision_and_scale(12, 2).unwrap();
    RecordBatch::try_new(arrow_schema(&schema()).unwrap(), vec![ids, regions, Arc::new(totals)]).unwrap()
}

/// Keys to delete.
#[must_use]
pub fn keys(ids: &[i64]) -> RecordBatch {
    let mut key = schema();
    key.columns.truncate(1);
    RecordBatch::try_new(arrow_schema(&key).unwrap(), vec![Arc::new(Int64Array::from(ids.to_vec()))]).unwrap()
}

/// Partition `number` of the topic `orders`.
#[must_use]
pub fn partition(number: i32) -> PartitionKey {
    PartitionKey { source: "kafka".into(), epoch: 0, topic: "orders".into(), partition: number }
}

/// A delta that appends rows and says that they came from these offsets of a partition.
#[must_use]
pub fn delta(version: &TableVersion, rows: RecordBatch, (number, offsets): (i32, std::ops::Range<i64>)) -> RowDelta {
    let mut delta = RowDelta::on(version);
    let start = Coordinate::record(offsets.start);
    delta.claims.add(&partition(number), Interval::new(start, Coordinate::record(offsets.end)).unwrap());
    delta.applies = offsets.map(|offset| (partition(number), Coordinate::record(offset))).collect();
    delta.rows = Some(rows);
    delta
}

/// A delta that replaces the rows of the same ids.
#[must_use]
pub fn upsert(version: &TableVersion, values: &[(i64, Option<&str>, i128)], from: (i32, std::ops::Range<i64>)) -> RowDelta {
    let ids: Vec<i64> = values.iter().map(|row| row.0).collect();
    RowDelta { delete_keys: Some(keys(&ids)), ..delta(version, rows(values), from) }
}

/// What our own reader sees; two rows of one id are an error.
pub async fn read(version: &TableVersion) -> Rows {
    read_at(version, None).await
}

/// What our own reader sees in a snapshot; `None` is the current one.
pub async fn read_at(version: &TableVersion, snapshot_id: Option<i64>) -> Rows {
    let (mut seen, mut schema) = (Rows::new(), schema());
    // A table may have been promoted meanwhile; every decimal fits this one.
    schema.columns[2] = Column::optional(3, "total", ColumnType::Decimal { precision: 38, scale: 2 });
    for batch in scan(version, snapshot_id, &arrow_schema(&schema).unwrap()).await.unwrap() {
        let ids = batch.column(0).as_primitive::<Int64Type>();
        let regions = batch.column(1).as_string::<i32>();
        let totals = batch.column(2).as_primitive::<arrow_array::types::Decimal128Type>();
        for row in 0..batch.num_rows() {
            let region = regions.is_valid(row).then(|| regions.value(row).to_owned());
            let twice = seen.insert(ids.value(row), (region, totals.value(row)));
            assert_eq!(twice, None, "the id {} is there twice", ids.value(row));
        }
    }
    seen
}

/// Prepares and commits a delta, which must succeed.
pub async fn apply(ops: &dyn TableOperations, delta: RowDelta, services: &TestServices) -> TableVersion {
    let version = ops.refresh().await.unwrap();
    let prepared = sluice_table::prepare(&version, delta, &services.write_options()).await.unwrap();
    match sluice_table::commit_delta(ops, prepared, &services.commit_context()).await.unwrap() {
        sluice_table::DeltaOutcome::Committed { version, .. } => version,
        other => panic!("not committed: {other:?}"),
    }
}
