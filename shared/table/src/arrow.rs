//! Between Arrow's fields and Iceberg's: the schema of batches, and columns found by field id.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{Field, SchemaRef};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::Schema;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use sluice_model::TableSchema;

use crate::TableError;

/// The Arrow schema of a table's rows: every field, also the nested ones, carries its field id.
///
/// # Errors
/// [`TableError::Iceberg`] when the schema is not valid.
pub fn arrow_schema(schema: &TableSchema) -> Result<SchemaRef, TableError> {
    // Arrow knows no keys, so that the schema may also be some of a table's columns.
    let keyless = TableSchema { identifier_ids: Vec::new(), ..schema.clone() };
    arrow_schema_of(&crate::schema::to_iceberg(&keyless)?)
}

pub(crate) fn arrow_schema_of(schema: &Schema) -> Result<SchemaRef, TableError> {
    schema_to_arrow_schema(schema).map(Arc::new).map_err(TableError::iceberg("the schema has no Arrow form"))
}

/// The field id in a field's metadata.
#[must_use]
pub fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

pub(crate) fn required_field_id(field: &Field) -> Result<i32, TableError> {
    field_id(field).ok_or_else(|| TableError::Invalid(format!("the column `{}` of a batch has no field id", field.name())))
}

/// The position of the column with that field id.
pub(crate) fn position_of(batch: &RecordBatch, id: i32) -> Option<usize> {
    batch.schema_ref().fields().iter().position(|field| field_id(field) == Some(id))
}

/// The array with the nulls of what is around it added to its own.
pub(crate) fn with_more_nulls(array: &ArrayRef, around: Option<&NullBuffer>) -> Result<ArrayRef, TableError> {
    let nulls = NullBuffer::union(around, array.nulls());
    if nulls.as_ref() == array.nulls() {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data().into_builder().nulls(nulls).build().map_err(TableError::arrow("reading a field of a struct"))?;
    Ok(arrow_array::make_array(data))
}
