//! The pipeline knows Arrow and the table crate knows Iceberg; both must mean the same columns.

use arrow_schema::{DataType, Field};
use sluice_model::{Column, ColumnType as T, TableSchema};

/// A type without the mark that tells a UUID from other sixteen bytes: the table crate sets it when it writes.
fn unmarked(kind: &DataType) -> DataType {
    let field = |field: &Field| {
        let mut metadata = field.metadata().clone();
        metadata.remove("ARROW:extension:name");
        Field::new(field.name(), unmarked(field.data_type()), field.is_nullable()).with_metadata(metadata)
    };
    match kind {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|inner| field(inner)).collect()),
        DataType::List(element) => DataType::List(field(element).into()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries).into(), *sorted),
        other => other.clone(),
    }
}

#[test]
fn both_crates_give_a_schema_the_same_arrow_form() {
    let nested = T::Struct(vec![
        Column::optional(31, "a", T::Int),
        Column::required(
            32,
            "b",
            T::Map(Box::new(Column::required(33, "key", T::String)), Box::new(Column::optional(34, "value", T::Uuid))),
        ),
    ]);
    let kinds = [
        T::Boolean,
        T::Int,
        T::Long,
        T::Float,
        T::Double,
        T::Decimal { precision: 38, scale: 10 },
        T::Date,
        T::Time,
        T::Timestamp,
        T::TimestampTz,
        T::TimestampNs,
        T::TimestampTzNs,
        T::String,
        T::Uuid,
        T::Fixed(5),
        T::Binary,
        nested,
        T::List(Box::new(Column::required(35, "element", T::TimestampTz))),
    ];
    let columns: Vec<Column> =
        (1..).zip(kinds).map(|(id, kind)| Column { required: id % 2 == 0, ..Column::optional(id, format!("c{id}"), kind) }).collect();
    let schema = TableSchema { schema_id: 0, columns, identifier_ids: vec![], last_column_id: 35 };
    let ours = sluice_pipeline::arrow_schema(&schema);
    let theirs = sluice_table::arrow::arrow_schema(&schema).unwrap();
    for (ours, theirs) in ours.fields().iter().zip(theirs.fields()) {
        assert_eq!(unmarked(ours.data_type()), unmarked(theirs.data_type()), "{}", ours.name());
        assert_eq!(ours.is_nullable(), theirs.is_nullable(), "{}", ours.name());
        assert_eq!(sluice_table::arrow::field_id(ours), sluice_table::arrow::field_id(theirs), "{}", ours.name());
    }
}
