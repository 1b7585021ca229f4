//! Every type through a file and back, and as a partition.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeBinaryArray, ListArray, RecordBatch, StringArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use iceberg::spec::Datum;
use sluice_model::{Column, ColumnType, SortField, TableSchema, TransformedColumn};
use sluice_table::arrow::arrow_schema;
use sluice_table::{RowDelta, TableCreation, live_files, scan};
use support::Fixture;

fn kinds() -> Vec<(&'static str, ColumnType, ArrayRef)> {
    let utc = |array: TimestampMicrosecondArray| array.with_timezone("+00:00");
    let fixed = |bytes: [Option<[u8; 16]>; 3]| FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 16).unwrap();
    vec![
        ("boolean", ColumnType::Boolean, Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("int", ColumnType::Int, Arc::new(Int32Array::from(vec![Some(-5), None, Some(i32::MAX)]))),
        ("long", ColumnType::Long, Arc::new(Int64Array::from(vec![Some(-5), None, Some(i64::MAX)]))),
        ("float", ColumnType::Float, Arc::new(Float32Array::from(vec![Some(-1.5), None, Some(0.25)]))),
        ("double", ColumnType::Double, Arc::new(Float64Array::from(vec![Some(-1.5), None, Some(f64::INFINITY)]))),
        ("small", ColumnType::Decimal { precision: 9, scale: 2 }, decimals(9, 2)),
        ("large", ColumnType::Decimal { precision: 38, scale: 10 }, decimals(38, 10)),
        ("date", ColumnType::Date, Arc::new(Date32Array::from(vec![Some(-1), None, Some(20_000)]))),
        ("time", ColumnType::Time, Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)]))),
        ("ts", ColumnType::Timestamp, Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1_772_323_200_000_001)]))),
        ("tstz", ColumnType::TimestampTz, Arc::new(utc(TimestampMicrosecondArray::from(vec![Some(-86_400_500_000), None, Some(7)])))),
        ("tsns", ColumnType::TimestampNs, Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None, Some(1_772_323_200_000_000_001)]))),
        ("text", ColumnType::String, Arc::new(StringArray::from(vec![Some(""), None, Some("ä/ö = %")]))),
        ("uuid", ColumnType::Uuid, Arc::new(fixed([Some([0xff; 16]), None, Some([1; 16])]))),
        ("fixed", ColumnType::Fixed(16), Arc::new(fixed([Some([0; 16]), None, Some([2; 16])]))),
        ("binary", ColumnType::Binary, Arc::new(LargeBinaryArray::from_opt_vec(vec![Some(b""), None, Some(b"\xff\xfe")]))),
    ]
}

fn decimals(precision: u8, scale: i8) -> ArrayRef {
    let array = Decimal128Array::from(vec![Some(-5), None, Some(123_456_789)]);
    Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
}

fn table_of(kinds: &[(&str, ColumnType, ArrayRef)]) -> (TableSchema, RecordBatch) {
    let columns: Vec<Column> = (1..).zip(kinds).map(|(id, (name, kind, _))| Column::optional(id, *name, kind.clone())).collect();
    let last_column_id = columns.len() as i32;
    let schema = TableSchema { schema_id: 0, columns, identifier_ids: vec![], last_column_id };
    let arrays = kinds.iter().map(|(_, _, array)| Arc::clone(array)).collect();
    let rows = RecordBatch::try_new(arrow_schema(&schema).unwrap(), arrays).unwrap();
    (schema, rows)
}

async fn round_trip(creation: &TableCreation, rows: &RecordBatch) -> (Fixture, Vec<RecordBatch>) {
    let table = Fixture::of(creation).await;
    let version = table.now().await;
    let version = table.apply(RowDelta { rows: Some(rows.clone()), ..RowDelta::on(&version) }).await;
    let target = arrow_schema(&sluice_table::schema::to_model(&version.metadata).unwrap()).unwrap();
    let batches = scan(&version, None, &target).await.unwrap();
    (table, batches)
}

fn v3(schema: &TableSchema) -> TableCreation {
    TableCreation { format_version: 3, ..TableCreation::of(schema.clone()) }
}

#[tokio::test]
async fn every_type_comes_back_exactly() {
    let (schema, rows) = table_of(&kinds());
    let (_, batches) = round_trip(&v3(&schema), &rows).await;
    assert_eq!(batches, [rows]);
}

#[tokio::test]
async fn every_type_can_be_a_partition() {
    let (schema, rows) = table_of(&kinds());
    for column in &schema.columns {
        let name = &column.name;
        let all = ["", "bucket(4, ", "truncate(3, ", "year(", "month(", "day(", "hour("];
        for prefix in all {
            let text = if prefix.is_empty() { name.clone() } else { format!("{prefix}{name})") };
            let mut creation = v3(&schema);
            creation.partition_by.push(TransformedColumn::parse(&text).unwrap());
            if creation.metadata("memory://t", 1, 0).is_err() {
                assert!(!prefix.is_empty() || ["tsns", "uuid"].contains(&name.as_str()), "{text}");
                continue;
            }
            let (table, batches) = round_trip(&creation, &rows).await;
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3, "{text}");
            let paths: Vec<String> = live_files(&table.now().await).await.unwrap().into_iter().map(|file| file.partition).collect();
            assert!(paths.len() >= 2 && paths.iter().any(|path| path.ends_with("=null")), "{text}: {paths:?}");
        }
    }
}

#[tokio::test]
async fn nested_columns_come_back_exactly() {
    let inner = vec![Column::optional(2, "a", ColumnType::Long), Column::required(3, "b", ColumnType::String)];
    let columns = vec![
        Column::optional(1, "s", ColumnType::Struct(inner)),
        Column::optional(4, "l", ColumnType::List(Box::new(Column::optional(5, "element", ColumnType::Long)))),
        Column::optional(
            6,
            "m",
            ColumnType::Map(
                Box::new(Column::required(7, "key", ColumnType::String)),
                Box::new(Column::optional(8, "value", ColumnType::Long)),
            ),
        ),
    ];
    let schema = TableSchema { schema_id: 0, columns, identifier_ids: vec![], last_column_id: 8 };
    let given = TableCreation::of(schema);
    let table = Fixture::of(&given).await;
    let stored = sluice_table::schema::to_model(&table.now().await.metadata).unwrap();
    let arrow = arrow_schema(&stored).unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let DataType::Struct(fields) = arrow.field(0).data_type() else { panic!() };
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let structs = StructArray::new(fields.clone(), vec![Arc::clone(&numbers), texts], Some(NullBuffer::from(vec![true, false, true])));
    let DataType::List(element) = arrow.field(1).data_type() else { panic!() };
    let lists =
        ListArray::new(element.clone(), OffsetBuffer::from_lengths([2, 0, 1]), numbers, Some(NullBuffer::from(vec![true, false, true])));
    let rows = RecordBatch::try_new(arrow.clone(), vec![Arc::new(structs), Arc::new(lists), maps(arrow.field(2).data_type())]).unwrap();
    let version = table.now().await;
    let version = table.apply(RowDelta { rows: Some(rows.clone()), ..RowDelta::on(&version) }).await;
    let batches = scan(&version, None, &arrow).await.unwrap();
    assert_eq!(batches, [rows]);
}

fn maps(kind: &DataType) -> ArrayRef {
    let DataType::Map(entries, _) = kind else { panic!() };
    let DataType::Struct(fields) = entries.data_type() else { panic!() };
    let names = MapFieldNames { entry: entries.name().clone(), key: fields[0].name().clone(), value: fields[1].name().clone() };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), Int64Builder::new())
        .with_keys_field(fields[0].clone())
        .with_values_field(fields[1].clone());
    for (key, value) in [("a", Some(1)), ("b", None)] {
        builder.keys().append_value(key);
        builder.values().append_option(value);
    }
    builder.append(true).unwrap();
    builder.append(false).unwrap();
    builder.append(true).unwrap();
    Arc::new(builder.finish())
}

#[tokio::test]
async fn files_are_sorted_and_say_so_and_have_sound_bounds() {
    let (schema, rows) = table_of(&kinds()[..3]);
    let mut creation = TableCreation::of(schema);
    creation.sort_by.push(SortField::parse("long desc").unwrap());
    creation.properties.insert("write.parquet.compression-codec".to_owned(), "snappy".to_owned());
    creation.properties.insert("write.data.path".to_owned(), "memory://elsewhere/".to_owned());
    let table = Fixture::of(&creation).await;
    let version = table.now().await;
    let delta = RowDelta { rows: Some(rows), ..RowDelta::on(&version) };
    let prepared = sluice_table::prepare(&version, delta.clone(), &table.services.write_options()).await.unwrap();
    let file = &prepared.files()[0].file;
    assert_eq!(file.sort_order_id(), Some(1));
    assert!(file.file_path().starts_with("memory://elsewhere/"), "{}", file.file_path());
    assert!(!file.file_path().starts_with("memory://elsewhere//"));
    assert_eq!(file.split_offsets(), Some(&[4_i64][..]));
    assert_eq!((file.value_counts()[&2], file.null_value_counts()[&2]), (3, 1));
    assert_eq!((&file.lower_bounds()[&2], &file.upper_bounds()[&2]), (&Datum::int(-5), &Datum::int(i32::MAX)));
    assert!(file.column_sizes().len() == 3);
    let version = table.apply(delta).await;
    let target = arrow_schema(&sluice_table::schema::to_model(&version.metadata).unwrap()).unwrap();
    let batches = scan(&version, None, &target).await.unwrap();
    let longs = Int64Array::from(vec![Some(i64::MAX), Some(-5), None]);
    assert_eq!(batches[0].column(2).as_ref(), &longs as &dyn Array);
}

#[tokio::test]
async fn an_unknown_codec_is_fatal() {
    let (schema, rows) = table_of(&kinds()[..1]);
    let mut creation = TableCreation::of(schema);
    creation.properties.insert("write.parquet.compression-codec".to_owned(), "lzo".to_owned());
    let table = Fixture::of(&creation).await;
    let version = table.now().await;
    let delta = RowDelta { rows: Some(rows), ..RowDelta::on(&version) };
    let error = sluice_table::prepare(&version, delta, &table.services.write_options()).await.unwrap_err();
    assert_eq!(error.class(), sluice_model::Class::Fatal);
}
