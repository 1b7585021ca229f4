//! Format versions, and files that others have written.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use iceberg::spec::{DataContentType, DataFileFormat, FormatVersion, SortOrder, TableMetadataBuilder, UnboundPartitionSpec};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use sluice_model::Class;
use sluice_table::arrow::arrow_schema;
use sluice_table::{RowDelta, TableCreation, TableVersion, live_files, scan};
use sluice_testkit::{foreign, tables};
use support::{Fixture, rows};

#[tokio::test]
async fn version_3_gives_every_row_an_id() {
    let table = Fixture::of(&TableCreation { format_version: 3, ..tables::creation(&["region"]) }).await;
    let first = table.upsert(&[(1, Some("eu"), 1), (2, Some("us"), 2)], 0).await;
    assert_eq!(first.metadata.current_snapshot().unwrap().row_range(), Some((0, 2)));
    let second = table.upsert(&[(2, Some("eu"), 3)], 1).await;
    assert_eq!(second.metadata.current_snapshot().unwrap().row_range(), Some((2, 1)));
    assert_eq!(second.metadata.next_row_id(), 3);
    let deleted = table.apply(RowDelta { delete_keys: Some(tables::keys(&[1])), ..RowDelta::on(&second) }).await;
    assert_eq!(deleted.metadata.current_snapshot().unwrap().row_range(), Some((3, 0)));
    assert_eq!(tables::read(&deleted).await, rows(&[(2, Some("eu"), 3)]));
}

#[tokio::test]
async fn version_1_and_encryption_are_refused() {
    let schema = sluice_table::schema::to_iceberg(&tables::schema()).unwrap();
    let builder = TableMetadataBuilder::new(
        schema,
        UnboundPartitionSpec::builder().build(),
        SortOrder::unsorted_order(),
        "memory://t".to_owned(),
        FormatVersion::V1,
        HashMap::new(),
    );
    let metadata = builder.unwrap().build().unwrap().metadata;
    let table = Fixture::small(&[]).await;
    let version = TableVersion { metadata: Arc::new(metadata), ..table.now().await };
    let error = sluice_table::prepare(&version, RowDelta::on(&version), &table.services.write_options()).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
    let mut encrypted = tables::creation(&[]);
    encrypted.properties.insert("encryption.key-id".to_owned(), "k".to_owned());
    let table = Fixture::of(&encrypted).await;
    let version = table.now().await;
    let error = sluice_table::prepare(&version, RowDelta::on(&version), &table.services.write_options()).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
    let unknown = TableCreation { format_version: 4, ..tables::creation(&[]) };
    assert_eq!(unknown.metadata("memory://t", 1, 0).unwrap_err().class(), Class::Fatal);
}

async fn store(version: &TableVersion, path: &str, batch: &RecordBatch) {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    version.file_io.new_output(path).unwrap().write(bytes.into()).await.unwrap();
}

fn with_id(name: &str, kind: DataType, id: i32) -> Field {
    Field::new(name, kind, false).with_metadata(HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]))
}

#[tokio::test]
async fn position_deletes_of_others_are_applied() {
    let table = Fixture::small(&[]).await;
    let version = table.upsert(&[(1, None, 1), (2, None, 2), (3, None, 3)], 0).await;
    let path = live_files(&version).await.unwrap()[0].path.clone();
    let schema =
        ArrowSchema::new(vec![with_id("file_path", DataType::Utf8, 2_147_483_546), with_id("pos", DataType::Int64, 2_147_483_545)]);
    let paths: ArrayRef = Arc::new(StringArray::from(vec![path.as_str(), "elsewhere"]));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![paths, Arc::new(Int64Array::from(vec![1, 0]))]).unwrap();
    store(&version, "memory://deletes.parquet", &batch).await;
    let file = foreign::data_file("memory://deletes.parquet", DataContentType::PositionDeletes, DataFileFormat::Parquet);
    let version = foreign::snapshot(&*table.ops, Some(file)).await;
    assert_eq!(tables::read(&version).await, rows(&[(1, None, 1), (3, None, 3)]));
    let version = table.upsert(&[(2, Some("again"), 4)], 1).await;
    assert_eq!(tables::read(&version).await.len(), 3);
}

async fn refused(content: DataContentType, format: DataFileFormat) {
    let table = Fixture::small(&[]).await;
    let version = table.upsert(&[(1, None, 1)], 0).await;
    let batch = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    store(&version, "memory://foreign", &batch).await;
    let version = foreign::snapshot(&*table.ops, Some(foreign::data_file("memory://foreign", content, format))).await;
    let error = scan(&version, None, &arrow_schema(&tables::schema()).unwrap()).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal, "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_never_left_out() {
    refused(DataContentType::PositionDeletes, DataFileFormat::Puffin).await;
    refused(DataContentType::Data, DataFileFormat::Orc).await;
    // A file without field ids needs a name mapping.
    refused(DataContentType::Data, DataFileFormat::Parquet).await;
}

#[tokio::test]
async fn large_batches_become_several_files_by_partition_and_size() {
    let table = Fixture::small(&["bucket(3, id)"]).await;
    let version = table.now().await;
    let values: Vec<(i64, Option<&str>, i128)> = (0..60_000).map(|id| (id, Some("eu"), i128::from(id) * 7_919 % 1_000_003)).collect();
    let delta = RowDelta { rows: Some(tables::rows(&values)), ..RowDelta::on(&version) };
    let mut options = table.services.write_options();
    options.target_file_bytes = 60_000;
    let prepared = sluice_table::prepare(&version, delta, &options).await.unwrap();
    assert!(prepared.files().len() > 3, "{}", prepared.files().len());
    let total: u64 = prepared.files().iter().map(|file| file.file.record_count()).sum();
    assert_eq!(total, 60_000);
    sluice_table::commit_delta(&*table.ops, prepared, &table.services.commit_context()).await.unwrap();
    assert_eq!(tables::read(&table.now().await).await.len(), 60_000);
}
