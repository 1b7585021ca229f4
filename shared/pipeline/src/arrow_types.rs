//! Arrow types of a table's columns, as Iceberg's own Arrow bridge gives them: each field carries its field id.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use sluice_model::{Column, ColumnType, TableSchema};

/// Metadata key of a field's Iceberg field id; Parquet writers store it as the column's field id.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";
const EXTENSION_KEY: &str = "ARROW:extension:name";
const UUID_EXTENSION: &str = "arrow.uuid";
const UUID_BYTES: i32 = 16;

/// The Arrow schema of a table: field ids on every nested level, fields nullable unless required.
#[must_use]
pub fn arrow_schema(schema: &TableSchema) -> SchemaRef {
    let fields: Fields = schema.columns.iter().map(strict_field).collect();
    Arc::new(Schema::new(fields))
}

/// The field of a column as the table declares it.
pub(crate) fn strict_field(column: &Column) -> FieldRef {
    field(column, Nullability::AsDeclared)
}

/// The field of a column where every level may be null: the form in which rows are built before refused ones are left out.
pub(crate) fn relaxed_field(column: &Column) -> FieldRef {
    field(column, Nullability::Everything)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nullability {
    AsDeclared,
    Everything,
}

fn field(column: &Column, nullability: Nullability) -> FieldRef {
    let nullable = !column.required || nullability == Nullability::Everything;
    let mut metadata = HashMap::from([(FIELD_ID_KEY.to_owned(), column.id.to_string())]);
    if column.kind == ColumnType::Uuid {
        metadata.insert(EXTENSION_KEY.to_owned(), UUID_EXTENSION.to_owned());
    }
    Arc::new(Field::new(&column.name, data_type(&column.kind, nullability), nullable).with_metadata(metadata))
}

fn data_type(kind: &ColumnType, nullability: Nullability) -> DataType {
    match kind {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Int => DataType::Int32,
        ColumnType::Long => DataType::Int64,
        ColumnType::Float => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale as i8),
        ColumnType::Date => DataType::Date32,
        ColumnType::Time => DataType::Time64(TimeUnit::Microsecond),
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        ColumnType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        ColumnType::TimestampTzNs => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        ColumnType::String => DataType::Utf8,
        ColumnType::Uuid => DataType::FixedSizeBinary(UUID_BYTES),
        ColumnType::Fixed(length) => DataType::FixedSizeBinary(i32::try_from(*length).unwrap_or(i32::MAX)),
        ColumnType::Binary => DataType::LargeBinary,
        ColumnType::Struct(columns) => DataType::Struct(columns.iter().map(|column| field(column, nullability)).collect()),
        ColumnType::List(element) => DataType::List(field(element, nullability)),
        ColumnType::Map(key, value) => DataType::Map(entries_field(key, value, nullability), false),
    }
}

fn entries_field(key: &Column, value: &Column, nullability: Nullability) -> FieldRef {
    let entries = [field(key, nullability), field(value, nullability)];
    Arc::new(Field::new("key_value", DataType::Struct(entries.into_iter().collect()), false))
}

fn utc() -> Option<Arc<str>> {
    Some(Arc::from("+00:00"))
}

/// The Iceberg field id that a field carries.
pub(crate) fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_text::parse_column_type;

    #[test]
    fn field_ids_stand_on_every_level() {
        let kind = parse_column_type("map<string, struct<n: int, l: list<long>>>").unwrap();
        let schema = TableSchema {
            schema_id: 0,
            columns: vec![Column::required(1, "id", ColumnType::Uuid), Column::optional(2, "m", kind)],
            identifier_ids: vec![1],
            last_column_id: 2,
        };
        let arrow = arrow_schema(&schema);
        assert_eq!(field_id(arrow.field(0)), Some(1));
        assert!(!arrow.field(0).is_nullable());
        assert_eq!(arrow.field(0).metadata().get("ARROW:extension:name").map(String::as_str), Some("arrow.uuid"));
        let DataType::Map(entries, false) = arrow.field(1).data_type() else { panic!("a map") };
        let DataType::Struct(fields) = entries.data_type() else { panic!("a struct") };
        assert_eq!((entries.name().as_str(), fields[0].name().as_str(), fields[1].name().as_str()), ("key_value", "key", "value"));
        assert!(fields.iter().all(|field| field_id(field).is_some()));
    }
}
