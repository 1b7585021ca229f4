//! Splitting rows by partition, quickly: the partition values of all rows at once, then one sort of their row-encoded form.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_row::{RowConverter, SortField};
use arrow_select::take::take_record_batch;
use iceberg::arrow::arrow_primitive_to_literal;
use iceberg::spec::{Literal, PartitionSpec, PrimitiveType, Schema, Struct, StructType, Type};

use crate::TableError;
use crate::arrow::position_of;
use crate::partition_path::partition_path;

/// A partition spec bound to a schema.
pub(crate) struct Partitioning {
    pub(crate) spec: PartitionSpec,
    kind: StructType,
}

/// The rows of one partition.
pub(crate) struct PartitionRows {
    pub(crate) values: Struct,
    pub(crate) path: String,
    pub(crate) rows: RecordBatch,
}

impl Partitioning {
    pub(crate) fn new(spec: &PartitionSpec, schema: &Schema) -> Result<Self, TableError> {
        let kind = spec.partition_type(schema).map_err(TableError::iceberg("the partition spec does not fit the schema"))?;
        for field in kind.fields() {
            check_kept(&field.field_type, &field.name)?;
        }
        Ok(Self { spec: spec.clone(), kind })
    }

    /// The rows by partition, in the order in which the partitions first appear. Rows keep their order.
    pub(crate) fn split(&self, batch: &RecordBatch) -> Result<Vec<PartitionRows>, TableError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        if self.spec.is_unpartitioned() {
            return Ok(vec![self.whole(batch)]);
        }
        let columns = self.columns(batch)?;
        let groups = group(&columns)?;
        groups.iter().map(|rows| self.part(batch, &columns, rows)).collect()
    }

    /// An unpartitioned spec may still have fields: void ones, whose values are null.
    fn whole(&self, batch: &RecordBatch) -> PartitionRows {
        let nulls: Vec<Option<Literal>> = self.spec.fields().iter().map(|_| None).collect();
        let values = Struct::from_iter(nulls);
        PartitionRows { path: partition_path(&self.spec, &self.kind, &values), values, rows: batch.clone() }
    }

    fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, TableError> {
        let fields = self.spec.fields().iter();
        fields.map(|field| crate::transform::apply(&field.transform, &source_column(batch, field.source_id)?)).collect()
    }

    fn part(&self, batch: &RecordBatch, columns: &[ArrayRef], rows: &[u32]) -> Result<PartitionRows, TableError> {
        let first = rows.first().copied().unwrap_or(0) as usize;
        let values = self.values(columns, first)?;
        let path = partition_path(&self.spec, &self.kind, &values);
        let rows = if rows.len() == batch.num_rows() {
            batch.clone()
        } else {
            take_record_batch(batch, &UInt32Array::from(rows.to_vec())).map_err(TableError::arrow("splitting rows by partition"))?
        };
        Ok(PartitionRows { values, path, rows })
    }

    fn values(&self, columns: &[ArrayRef], row: usize) -> Result<Struct, TableError> {
        let mut values: Vec<Option<Literal>> = Vec::with_capacity(columns.len());
        for (column, field) in columns.iter().zip(self.kind.fields()) {
            let one = column.slice(row, 1);
            let literals = arrow_primitive_to_literal(&one, &field.field_type).map_err(TableError::iceberg("reading a partition value"))?;
            values.push(literals.into_iter().next().flatten());
        }
        Ok(Struct::from_iter(values))
    }
}

/// Refuses partition values that iceberg 0.10 cannot write into manifests, or, worse, not read again: bucket them.
pub(crate) fn check_kept(kind: &Type, name: &str) -> Result<(), TableError> {
    let lost = matches!(kind, Type::Primitive(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs | PrimitiveType::Uuid));
    if lost { Err(TableError::Unsupported(format!("the partition field `{name}` with values of type {kind}"))) } else { Ok(()) }
}

/// The column with that field id, also inside structs: a row whose struct is null has no value.
pub(crate) fn source_column(batch: &RecordBatch, id: i32) -> Result<ArrayRef, TableError> {
    if let Some(position) = position_of(batch, id) {
        return Ok(batch.column(position).clone());
    }
    let columns = batch.schema_ref().fields().iter().zip(batch.columns());
    let found = columns.filter_map(|(_, column)| crate::reader::inside_struct(column, id)).next();
    found.ok_or_else(|| TableError::Invalid(format!("a batch lacks the column with the field id {id}")))
}

/// The row numbers of equal rows, in order of first appearance.
fn group(columns: &[ArrayRef]) -> Result<Vec<Vec<u32>>, TableError> {
    let wrong = || TableError::arrow("grouping rows by partition");
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let converter = RowConverter::new(fields).map_err(wrong())?;
    let rows = converter.convert_columns(columns).map_err(wrong())?;
    let mut index: HashMap<&[u8], usize> = HashMap::new();
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let number = u32::try_from(number).map_err(|_| TableError::Invalid("a batch has more rows than 2^32".to_owned()))?;
        let at = *index.entry(row.data()).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(number);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use sluice_model::{Column, ColumnType, TableSchema, TransformedColumn};

    use super::*;
    use crate::creation::{TableCreation, tests::metadata_of};

    #[test]
    fn null_and_empty_are_two_partitions() {
        let columns = vec![Column::required(1, "id", ColumnType::Long), Column::optional(2, "region", ColumnType::String)];
        let schema = TableSchema { schema_id: -1, columns, identifier_ids: vec![], last_column_id: 2 };
        let mut creation = TableCreation::of(schema.clone());
        creation.partition_by.push(TransformedColumn::parse("region").unwrap());
        let metadata = metadata_of(&creation);
        let partitioning = Partitioning::new(metadata.default_partition_spec(), metadata.current_schema()).unwrap();
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let regions: ArrayRef = Arc::new(StringArray::from(vec![Some(""), None, Some("a/b"), Some("")]));
        let batch = RecordBatch::try_new(crate::arrow::arrow_schema(&schema).unwrap(), vec![ids, regions]).unwrap();
        let parts = partitioning.split(&batch).unwrap();
        let seen: Vec<(&str, usize)> = parts.iter().map(|part| (part.path.as_str(), part.rows.num_rows())).collect();
        assert_eq!(seen, [("region=", 2), ("region=null", 1), ("region=a%2Fb", 1)]);
        assert_ne!(parts[0].values, parts[1].values);
    }
}
