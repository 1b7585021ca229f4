//! Keys as comparable bytes: null equals null, and columns are found by field id.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef};
use iceberg::spec::{DataFile, Datum, NestedField, NestedFieldRef, Schema, TableMetadata, Type};

use super::projection::project_batch;
use crate::TableError;
use crate::arrow::arrow_schema_of;

/// Encodes the key columns of batches.
pub(crate) struct KeyEncoder {
    schema: SchemaRef,
    converter: RowConverter,
}

impl KeyEncoder {
    /// For the columns with these ids, in this order, with the types that they have in the table, or last had before they were dropped.
    pub(crate) fn new(metadata: &TableMetadata, ids: &[i32]) -> Result<Self, TableError> {
        let fields = ids.iter().map(|id| optional_field(metadata, *id)).collect::<Result<Vec<NestedFieldRef>, _>>()?;
        Self::of(fields)
    }

    /// For optional fields, in this order.
    pub(super) fn of(fields: Vec<NestedFieldRef>) -> Result<Self, TableError> {
        let schema = Schema::builder().with_fields(fields).build().map_err(TableError::iceberg("the schema of a key"))?;
        let schema = arrow_schema_of(&schema)?;
        let sorts = schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        Ok(Self { converter: RowConverter::new(sorts).map_err(TableError::arrow("encoding keys"))?, schema })
    }

    /// The keys of a batch's rows; a column that it lacks is null.
    pub(crate) fn encode(&self, batch: &RecordBatch) -> Result<Rows, TableError> {
        self.converter.convert_columns(self.columns(batch)?.columns()).map_err(TableError::arrow("encoding keys"))
    }

    /// The key columns of a batch, as they are; a column that it lacks is null.
    pub(super) fn columns(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        project_batch(batch, &self.schema)
    }

    #[cfg(test)]
    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The type of the key where it is one column.
    pub(super) fn only_type(&self) -> Option<&DataType> {
        let [field] = self.schema.fields().as_ref() else { return None };
        Some(field.data_type())
    }
}

fn optional_field(metadata: &TableMetadata, id: i32) -> Result<NestedFieldRef, TableError> {
    let mut schemas: Vec<_> = metadata.schemas_iter().collect();
    schemas.sort_by_key(|schema| (schema.schema_id() == metadata.current_schema_id(), schema.schema_id()));
    let found = schemas.iter().rev().find_map(|schema| schema.as_struct().field_by_id(id));
    let field =
        found.ok_or_else(|| TableError::Unsupported(format!("a key column with the field id {id}, which is no top-level column")))?;
    // Rows of before the column would have its default, and no reader here gives it to them.
    if field.initial_default.is_some() {
        return Err(TableError::Unsupported(format!("a key column with an initial default (`{}`)", field.name)));
    }
    Ok(Arc::new(NestedField::optional(field.id, &field.name, field.field_type.as_ref().clone())))
}

/// The keys of a lookup.
pub(super) struct LookupKeys {
    ids: Vec<i32>,
    encoder: KeyEncoder,
    keys: HashSet<Box<[u8]>>,
    /// The smallest and the largest value of the first key column, when none is null.
    range: Option<(Datum, Datum)>,
}

impl LookupKeys {
    pub(super) fn new(metadata: &TableMetadata, ids: &[i32], keys: &RecordBatch) -> Result<Self, TableError> {
        let encoder = KeyEncoder::new(metadata, ids)?;
        let rows = encoder.encode(keys)?;
        let keys_encoded = rows.iter().map(|row| row.data().into()).collect();
        Ok(Self { ids: ids.to_vec(), keys: keys_encoded, range: range(metadata, ids, (&encoder, keys))?, encoder })
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = i32> {
        self.ids.iter().copied()
    }

    /// Which rows of a batch have one of the keys.
    pub(super) fn matches(&self, batch: &RecordBatch) -> Result<Vec<bool>, TableError> {
        let rows = self.encoder.encode(batch)?;
        Ok(rows.iter().map(|row| self.keys.contains(row.data())).collect())
    }

    /// Whether a file's bounds leave room for a key. Bounds that cannot be compared (of an older type) do.
    pub(super) fn may_be_in(&self, file: &DataFile) -> bool {
        let (Some((low, high)), Some(id)) = (&self.range, self.ids.first()) else { return true };
        let all_below = file.upper_bounds().get(id).is_some_and(|upper| upper < low);
        let all_above = file.lower_bounds().get(id).is_some_and(|lower| lower > high);
        !all_below && !all_above
    }
}

fn range(
    metadata: &TableMetadata,
    ids: &[i32],
    (encoder, keys): (&KeyEncoder, &RecordBatch),
) -> Result<Option<(Datum, Datum)>, TableError> {
    let Some(id) = ids.first() else { return Ok(None) };
    let Type::Primitive(kind) = optional_field(metadata, *id)?.field_type.as_ref().clone() else { return Ok(None) };
    let projected = project_batch(keys, &encoder.schema)?;
    let first = projected.column(0);
    if first.null_count() > 0 || matches!(kind, iceberg::spec::PrimitiveType::Float | iceberg::spec::PrimitiveType::Double) {
        return Ok(None);
    }
    crate::metrics::exact_bounds(first, &kind)
}
