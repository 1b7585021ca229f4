//! The error table's columns, and dead letters as their values.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, LargeBinaryArray, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use sluice_model::{Column, ColumnType, TableSchema};

use crate::{DeadLetter, RawBytes, Repetition};

/// The schema with which the error table is created.
#[must_use]
pub fn error_table_schema() -> TableSchema {
    use ColumnType as T;
    let header = T::Struct(vec![Column::required(24, "name", T::String), Column::optional(25, "value", T::Binary)]);
    let columns = vec![
        described(Column::required(1, "source_id", T::String), "source.id: the name of the Kafka cluster"),
        described(Column::required(2, "source_epoch", T::Int), "source.epoch: the life of the topic"),
        described(Column::required(3, "topic", T::String), "Kafka topic"),
        described(Column::required(4, "partition", T::Int), "Kafka partition; -1 when the record does not say where it stood"),
        described(Column::required(5, "offset", T::Long), "Kafka offset; a hash of the record when it does not say where it stood"),
        described(Column::required(6, "row", T::Int), "index of the row inside a record of several rows, else 0"),
        described(Column::optional(7, "record_timestamp", T::TimestampTz), "Kafka timestamp of the record"),
        described(Column::required(8, "arrived_at", T::TimestampTz), "when Sluice refused it"),
        described(Column::required(9, "stage", T::String), "step that refused it"),
        described(Column::required(10, "code", T::String), "reason code"),
        described(Column::optional(11, "field", T::String), "field or column at fault"),
        described(Column::optional(12, "detail", T::String), "what is wrong, and the other faults of the record"),
        described(Column::optional(13, "target_table", T::String), "table it was for"),
        described(Column::optional(14, "operation", T::String), "insert, snapshot, update, delete or truncate"),
        described(Column::optional(15, "key", T::Binary), "raw key bytes"),
        described(Column::optional(16, "value", T::Binary), "raw value bytes, or the JSON of a record that could not be read"),
        described(Column::required(17, "raw_is_cut", T::Boolean), "whether key or value was longer than errors.max_raw_bytes"),
        described(Column::optional(18, "headers", T::List(Box::new(Column::required(23, "element", header)))), "Kafka headers"),
        described(Column::optional(19, "schema_id", T::String), "schema id of the value"),
        described(
            Column::required(20, "maybe_repeated", T::Boolean),
            "whether the table may hold this record twice: it lay below the ledger",
        ),
        described(Column::required(21, "sluice_version", T::String), "version that refused it"),
        described(Column::optional(22, "resolved_at", T::TimestampTz), "when it was redriven"),
    ];
    let columns = columns.into_iter().chain(redrive_columns(25)).collect();
    TableSchema { schema_id: -1, columns, identifier_ids: Vec::new(), last_column_id: 28 }
}

/// The columns that redrive needs and older error tables lack; their ids follow `last_column_id`.
pub(crate) fn redrive_columns(last_column_id: i32) -> [Column; 3] {
    use ColumnType as T;
    [
        described(
            Column::optional(last_column_id + 1, "redrive_offset", T::Long),
            "its place in the redrive that is applying, or has applied, it",
        ),
        described(Column::optional(last_column_id + 2, "attempts", T::Int), "how often it was redriven and refused again"),
        described(
            Column::optional(last_column_id + 3, "resolution", T::String),
            "how it was resolved: applied, stale, control, decided or duplicate",
        ),
    ]
}

fn described(column: Column, doc: &str) -> Column {
    Column { doc: Some(doc.to_owned()), ..column }
}

/// The letters as rows of the table whose Arrow schema is `target`: columns that it has besides ours are null, and columns of ours that it
/// lacks are left out.
///
/// # Errors
/// An Arrow error when a column of the table has another type than ours, or a required column is not ours.
pub fn rows(letters: &[DeadLetter], target: &SchemaRef, arrived_at_ms: i64) -> Result<RecordBatch, ArrowError> {
    let own = own_columns(letters, arrived_at_ms);
    let columns = target.fields().iter().map(|field| match own.iter().find(|(name, _)| name == field.name()) {
        Some((_, values)) if values.data_type() == field.data_type() => Ok(Arc::clone(values)),
        Some(_) => Err(other_type(field)),
        None if field.name() == HEADERS => headers(letters, field),
        None => Ok(new_null_array(field.data_type(), letters.len())),
    });
    RecordBatch::try_new(Arc::clone(target), columns.collect::<Result<Vec<_>, _>>()?)
}

const HEADERS: &str = "headers";

fn own_columns(letters: &[DeadLetter], arrived_at_ms: i64) -> Vec<(&'static str, ArrayRef)> {
    let text = |of: fn(&DeadLetter) -> Option<String>| Arc::new(letters.iter().map(of).collect::<StringArray>()) as ArrayRef;
    let int = |of: fn(&DeadLetter) -> i32| Arc::new(Int32Array::from_iter_values(letters.iter().map(of))) as ArrayRef;
    let flag = |of: fn(&DeadLetter) -> bool| Arc::new(letters.iter().map(|letter| Some(of(letter))).collect::<BooleanArray>()) as ArrayRef;
    let bytes = |of: fn(&DeadLetter) -> Option<&RawBytes>| {
        Arc::new(letters.iter().map(|letter| of(letter).map(RawBytes::kept)).collect::<LargeBinaryArray>()) as ArrayRef
    };
    vec![
        ("source_id", text(|letter| Some(letter.key.source.to_string()))),
        ("source_epoch", int(|letter| i32::try_from(letter.key.epoch).unwrap_or(i32::MAX))),
        ("topic", text(|letter| Some(letter.key.topic.to_string()))),
        ("partition", int(|letter| letter.key.partition)),
        ("offset", Arc::new(Int64Array::from_iter_values(letters.iter().map(|letter| letter.coordinate.offset)))),
        ("row", int(|letter| i32::try_from(letter.coordinate.row).unwrap_or(i32::MAX))),
        ("record_timestamp", instants(letters.iter().map(|letter| letter.record_timestamp_ms))),
        ("arrived_at", instants(letters.iter().map(|_| Some(arrived_at_ms)))),
        ("stage", text(|letter| Some(letter.rejection.stage.as_str().to_owned()))),
        ("code", text(|letter| Some(letter.rejection.code.as_str().to_owned()))),
        ("field", text(|letter| Some(letter.rejection.field.clone()).filter(|field| !field.is_empty()))),
        ("detail", text(|letter| Some(letter.rejection.detail.clone()))),
        ("target_table", text(|letter| letter.target.as_ref().map(ToString::to_string))),
        ("operation", text(|letter| letter.operation.map(|operation| operation.as_str().to_owned()))),
        ("key", bytes(|letter| letter.raw_key.as_ref())),
        ("value", bytes(|letter| letter.raw_value.as_ref())),
        ("raw_is_cut", flag(|letter| [&letter.raw_key, &letter.raw_value].into_iter().flatten().any(RawBytes::is_cut))),
        ("schema_id", text(|letter| letter.schema_id.clone())),
        ("maybe_repeated", flag(|letter| letter.repetition == Repetition::Possible)),
        ("sluice_version", text(|_| Some(env!("CARGO_PKG_VERSION").to_owned()))),
    ]
}

fn instants(ms: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let micros = ms.map(|ms| ms.map(|ms| ms.saturating_mul(1_000)));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("+00:00"))
}

/// The headers in the table's own nested type, whose fields carry the table's field ids.
fn headers(letters: &[DeadLetter], field: &Field) -> Result<ArrayRef, ArrowError> {
    let DataType::List(element) = field.data_type() else { return Err(other_type(field)) };
    let DataType::Struct(fields) = element.data_type() else { return Err(other_type(field)) };
    let all = || letters.iter().flat_map(|letter| &letter.headers);
    let names: ArrayRef = Arc::new(all().map(|(name, _)| Some(name)).collect::<StringArray>());
    let values: ArrayRef = Arc::new(all().map(|(_, value)| value.as_deref()).collect::<LargeBinaryArray>());
    let structs = StructArray::try_new(fields.clone(), vec![names, values], None)?;
    let offsets = OffsetBuffer::from_lengths(letters.iter().map(|letter| letter.headers.len()));
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, Arc::new(structs), None)?))
}

fn other_type(field: &Field) -> ArrowError {
    ArrowError::SchemaError(format!("column `{}` of the error table has type {}, which is not Sluice's", field.name(), field.data_type()))
}
