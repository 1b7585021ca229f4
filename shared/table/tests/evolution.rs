//! Schemas that change, and files of before.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int32Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Fields};
use iceberg::spec::{Literal, NestedField, PrimitiveType, Schema, Type};
use sluice_model::{Class, Column, ColumnType, TableSchema};
use sluice_table::arrow::arrow_schema;
use sluice_table::manifest_rewrite::{ManifestOutcome, manifest_facts, rewrite_manifests};
use sluice_table::{DeltaOutcome, RowDelta, StaleReason, TableCreation, TableVersion, lookup, prepare, scan};
use sluice_testkit::{foreign, tables};
use support::Fixture;

/// `(id int key, s struct<a: float>)`.
fn old_schema() -> TableSchema {
    let columns = vec![
        Column::required(1, "id", ColumnType::Int),
        Column::optional(2, "s", ColumnType::Struct(vec![Column::optional(3, "a", ColumnType::Float)])),
    ];
    TableSchema { schema_id: 0, columns, identifier_ids: vec![1], last_column_id: 3 }
}

/// `(id long key, s struct<a: double, b: long>, extra list<long>)`.
fn new_schema() -> TableSchema {
    let inner = vec![Column::optional(3, "a", ColumnType::Double), Column::optional(4, "b", ColumnType::Long)];
    let columns = vec![
        Column::required(1, "id", ColumnType::Long),
        Column::optional(2, "s", ColumnType::Struct(inner)),
        Column::optional(5, "extra", ColumnType::List(Box::new(Column::optional(6, "element", ColumnType::Long)))),
    ];
    TableSchema { schema_id: -1, columns, identifier_ids: vec![1], last_column_id: 6 }
}

fn struct_fields(schema: &arrow_schema::SchemaRef) -> Fields {
    match schema.field(1).data_type() {
        DataType::Struct(fields) => fields.clone(),
        other => panic!("{other}"),
    }
}

fn old_rows(ids: &[i32]) -> RecordBatch {
    let schema = arrow_schema(&old_schema()).unwrap();
    let a: ArrayRef = Arc::new(Float32Array::from(vec![1.5; ids.len()]));
    let s: ArrayRef = Arc::new(StructArray::new(struct_fields(&schema), vec![a], None));
    RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from(ids.to_vec())), s]).unwrap()
}

fn new_rows(ids: &[i64]) -> RecordBatch {
    let schema = arrow_schema(&new_schema()).unwrap();
    let a: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![2.5; ids.len()]));
    let b: ArrayRef = Arc::new(Int64Array::from(vec![7; ids.len()]));
    let s: ArrayRef = Arc::new(StructArray::new(struct_fields(&schema), vec![a, b], None));
    let extra = arrow_array::new_null_array(schema.field(2).data_type(), ids.len());
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(ids.to_vec())), s, extra]).unwrap()
}

fn keys(ids: &[i64]) -> RecordBatch {
    let mut schema = new_schema();
    schema.columns.truncate(1);
    RecordBatch::try_new(arrow_schema(&schema).unwrap(), vec![Arc::new(Int64Array::from(ids.to_vec()))]).unwrap()
}

async fn evolved(table: &Fixture) -> TableVersion {
    let version = table.now().await;
    table.apply(RowDelta { rows: Some(old_rows(&[1, 2, 3])), ..RowDelta::on(&version) }).await;
    let version = table.now().await;
    let delta =
        RowDelta { rows: Some(new_rows(&[2, 4])), delete_keys: Some(keys(&[2])), evolved: Some(new_schema()), ..RowDelta::on(&version) };
    table.apply(delta).await
}

#[tokio::test]
async fn rows_and_their_new_schema_come_in_one_commit() {
    let table = Fixture::of(&TableCreation::of(old_schema())).await;
    let version = evolved(&table).await;
    let schema = sluice_table::schema::to_model(&version.metadata).unwrap();
    assert_eq!((schema.columns, schema.last_column_id, schema.schema_id), (new_schema().columns, 6, 1));
    assert_eq!(version.metadata.current_snapshot().unwrap().schema_id(), Some(1));
    assert_eq!(version.metadata.metadata_log().len(), 2);
    let target = arrow_schema(&new_schema()).unwrap();
    let mut seen = Vec::new();
    for batch in scan(&version, None, &target).await.unwrap() {
        let s = batch.column(1).as_struct();
        let (a, b) = (s.column(0).as_primitive::<Float64Type>(), s.column(1).as_primitive::<Int64Type>());
        assert_eq!(batch.column(2).null_count(), batch.num_rows());
        let ids = batch.column(0).as_primitive::<Int64Type>();
        seen.extend((0..batch.num_rows()).map(|row| (ids.value(row), a.value(row), b.is_valid(row).then(|| b.value(row)))));
    }
    seen.sort_by_key(|row| row.0);
    assert_eq!(seen, [(1, 1.5, None), (2, 2.5, Some(7)), (3, 1.5, None), (4, 2.5, Some(7))]);
}

#[tokio::test]
async fn keys_are_found_in_files_of_an_older_type() {
    let table = Fixture::of(&TableCreation::of(old_schema())).await;
    let version = evolved(&table).await;
    let target = arrow_schema(&new_schema()).unwrap();
    assert_eq!(lookup(&version, &target, &[1], &keys(&[1, 2, 9])).await.unwrap().num_rows(), 2);
}

#[tokio::test]
async fn deletes_reach_partitions_of_before_a_promotion() {
    for by in ["id", "bucket(4, id)", "truncate(2, id)"] {
        let mut creation = TableCreation::of(old_schema());
        creation.partition_by.push(sluice_model::TransformedColumn::parse(by).unwrap());
        let table = Fixture::of(&creation).await;
        let version = evolved(&table).await;
        assert!(sluice_table::live_files(&version).await.unwrap().iter().all(|file| file.spec_id == 0), "not scoped to partitions");
        let batches = scan(&version, None, &arrow_schema(&new_schema()).unwrap()).await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4, "{by}");
    }
}

/// What rewriting all manifests of the table ends as.
async fn rewritten(table: &Fixture, version: &TableVersion) -> ManifestOutcome {
    let paths: Vec<String> = manifest_facts(version).await.unwrap().into_iter().map(|manifest| manifest.path).collect();
    rewrite_manifests(&*table.ops, (version, &paths, 8 << 20), &table.services.commit_context()).await.unwrap()
}

#[tokio::test]
async fn manifests_of_two_schemas_become_one_where_their_partitions_are_of_one_type() {
    let table = Fixture::of(&TableCreation::of(old_schema())).await;
    evolved(&table).await;
    let version = table.apply(RowDelta { rows: Some(new_rows(&[5])), ..RowDelta::on(&table.now().await) }).await;
    let outcome = rewritten(&table, &version).await;
    let ManifestOutcome::Committed { version, replaced, written, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((replaced, written), (4, 2), "three of data, one of deletes");
    let batches = scan(&version, None, &arrow_schema(&new_schema()).unwrap()).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
}

#[tokio::test]
async fn manifests_whose_partitions_are_of_two_types_stay_and_nothing_is_committed() {
    let mut creation = TableCreation::of(old_schema());
    creation.partition_by.push(sluice_model::TransformedColumn::parse("id").unwrap());
    let table = Fixture::of(&creation).await;
    evolved(&table).await;
    let version = table.now().await;
    let outcome = rewritten(&table, &version).await;
    assert!(matches!(outcome, ManifestOutcome::NoGain { .. }), "{outcome:?}");
    assert_eq!(table.now().await.metadata_location, version.metadata_location);
}

#[tokio::test]
async fn another_schema_makes_a_delta_stale() {
    let table = Fixture::of(&TableCreation::of(old_schema())).await;
    let version = table.now().await;
    let on_old = RowDelta { rows: Some(old_rows(&[9])), ..RowDelta::on(&version) };
    let evolving = RowDelta { evolved: Some(new_schema()), ..RowDelta::on(&version) };
    let prepared = prepare(&version, on_old.clone(), &table.services.write_options()).await.unwrap();
    table.commit_on(&version, evolving.clone()).await.unwrap();
    let context = table.services.commit_context();
    for outcome in
        [sluice_table::commit_delta(&*table.ops, prepared, &context).await.unwrap(), table.commit_on(&version, evolving).await.unwrap()]
    {
        assert!(matches!(outcome, DeltaOutcome::Stale { reason: StaleReason::SchemaChanged, .. }), "{outcome:?}");
    }
    let error = prepare(&table.now().await, on_old, &table.services.write_options()).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
}

#[tokio::test]
async fn a_column_that_the_table_lacks_is_fatal_and_not_left_out() {
    let table = Fixture::of(&TableCreation::of(old_schema())).await;
    let version = table.now().await;
    let delta = RowDelta { rows: Some(new_rows(&[1])), ..RowDelta::on(&version) };
    assert_eq!(prepare(&version, delta, &table.services.write_options()).await.unwrap_err().class(), Class::Fatal);
}

#[tokio::test]
async fn an_illegal_evolution_is_fatal_before_anything_is_written() {
    let table = Fixture::of(&TableCreation::of(old_schema())).await;
    let version = table.now().await;
    let mut wrong = new_schema();
    wrong.columns[0].kind = ColumnType::String;
    let delta = RowDelta { evolved: Some(wrong), ..RowDelta::on(&version) };
    assert_eq!(prepare(&version, delta, &table.services.write_options()).await.unwrap_err().class(), Class::Fatal);
}

#[tokio::test]
async fn a_null_key_and_a_key_on_a_new_column_delete_only_their_rows() {
    let table = Fixture::small(&[]).await;
    let rows = [(1, Some("a"), 1), (2, None, 2), (3, None, 3)];
    let version = table.now().await;
    table.apply(RowDelta { rows: Some(tables::rows(&rows)), ..RowDelta::on(&version) }).await;
    // Delete (region = 'a', total = 9.99), which no row has, and (region = null, total = 0.02), which one has.
    let mut key = tables::schema();
    key.columns.remove(0);
    let schema = arrow_schema(&key).unwrap();
    let regions: ArrayRef = Arc::new(arrow_array::StringArray::from(vec![Some("a"), None]));
    let totals = arrow_array::Decimal128Array::from(vec![999, 2]).with_precision_and_scale(12, 2).unwrap();
    let keys = RecordBatch::try_new(schema, vec![regions, Arc::new(totals)]).unwrap();
    let version = table.apply(RowDelta { delete_keys: Some(keys), ..RowDelta::on(&version) }).await;
    assert_eq!(tables::read(&version).await.into_keys().collect::<Vec<_>>(), [1, 3]);
}

#[tokio::test]
async fn a_key_column_that_old_files_lack_is_null_there() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, Some("a"), 1), (2, None, 2)], 0).await;
    let mut wider = tables::schema();
    wider.columns.push(Column::optional(4, "kind", ColumnType::String));
    let version = table.now().await;
    let version = table.apply(RowDelta { evolved: Some(wider.clone()), ..RowDelta::on(&version) }).await;
    wider.columns.drain(..3);
    let key = |value: Option<&str>| {
        let kinds: ArrayRef = Arc::new(arrow_array::StringArray::from(vec![value]));
        RecordBatch::try_new(arrow_schema(&TableSchema { identifier_ids: vec![], ..wider.clone() }).unwrap(), vec![kinds]).unwrap()
    };
    let version = table.apply(RowDelta { delete_keys: Some(key(Some("x"))), ..RowDelta::on(&version) }).await;
    assert_eq!(tables::read(&version).await.len(), 2, "a key that no old row can have deletes none");
    let version = table.apply(RowDelta { delete_keys: Some(key(None)), ..RowDelta::on(&version) }).await;
    assert!(tables::read(&version).await.is_empty(), "null equals null");
}

#[tokio::test]
async fn a_column_with_an_initial_default_is_refused_not_read_as_null() {
    let creation = TableCreation { format_version: 3, ..tables::creation(&[]) };
    let table = Fixture::of(&creation).await;
    let version = table.now().await;
    let field = NestedField::optional(4, "d", Type::Primitive(PrimitiveType::Int)).with_initial_default(Literal::int(5));
    let fields = version.metadata.current_schema().as_struct().fields().iter().cloned().chain([Arc::new(field)]);
    let schema = Schema::builder().with_fields(fields).with_identifier_field_ids([1]).build().unwrap();
    let version = foreign::alter(&*table.ops, |builder| builder.add_current_schema(schema).unwrap()).await;
    let model = sluice_table::schema::to_model(&version.metadata).unwrap();
    table.apply(RowDelta::on(&version)).await;
    let error = scan(&table.now().await, None, &arrow_schema(&model).unwrap()).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
    let mut evolved = model;
    evolved.columns.push(Column::optional(5, "e", ColumnType::Int));
    let version = table.now().await;
    let version = table.apply(RowDelta { evolved: Some(evolved), ..RowDelta::on(&version) }).await;
    let kept = version.metadata.current_schema().field_by_id(4).unwrap().initial_default.clone();
    assert_eq!(kept, Some(Literal::int(5)), "an evolution keeps the defaults that the model does not carry");
}
