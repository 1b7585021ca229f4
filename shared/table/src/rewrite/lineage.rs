//! Row lineage (format version 3, rule R15): a row that moves to another file keeps its id and the number of the commit that wrote it last, as columns of that file.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};
use iceberg::spec::{FormatVersion, NestedField, NestedFieldRef, PrimitiveType, Schema, TableMetadata, Type};

use crate::TableError;
use crate::arrow::{arrow_schema_of, field_id};
use crate::manifests::LiveEntry;
use crate::reader::project_batch;

const ROW_ID: (i32, &str) = (2_147_483_540, "_row_id");
const LAST_UPDATED: (i32, &str) = (2_147_483_539, "_last_updated_sequence_number");

fn fields() -> [NestedFieldRef; 2] {
    [ROW_ID, LAST_UPDATED].map(|(id, name)| Arc::new(NestedField::optional(id, name, Type::Primitive(PrimitiveType::Long))))
}

/// The columns of files that hold rows of before: those of the table, and where rows have ids, the two that keep their lineage.
///
/// # Errors
/// [`TableError::Iceberg`] when the table has a column of one of their names.
pub(super) fn schema_of_copies(metadata: &TableMetadata) -> Result<Schema, TableError> {
    let schema = metadata.current_schema();
    match metadata.format_version() {
        FormatVersion::V1 | FormatVersion::V2 => Ok(schema.as_ref().clone()),
        FormatVersion::V3 => {
            let all = schema.as_struct().fields().iter().cloned().chain(fields());
            let schema = Schema::builder().with_fields(all).build();
            schema.map_err(TableError::iceberg("adding the columns of row lineage, whose names are Iceberg's own"))
        }
    }
}

/// What the rows of one file have where they say nothing themselves.
pub(super) struct Lineage {
    columns: SchemaRef,
    first_row_id: Option<i64>,
    sequence_number: i64,
}

impl Lineage {
    /// That of a data file; `None` when the table's rows have no ids.
    pub(super) fn of(entry: &LiveEntry, metadata: &TableMetadata) -> Result<Option<Self>, TableError> {
        match metadata.format_version() {
            FormatVersion::V1 | FormatVersion::V2 => Ok(None),
            FormatVersion::V3 => {
                let schema = Schema::builder().with_fields(fields()).build().map_err(TableError::iceberg("the schema of row lineage"))?;
                let (first_row_id, sequence_number) = (entry.first_row_id, entry.sequence_number);
                Ok(Some(Self { columns: arrow_schema_of(&schema)?, first_row_id, sequence_number }))
            }
        }
    }

    /// Rows that begin at `start` in the file, with their lineage. In a snapshot of before an upgrade rows have no ids; they get theirs from the file that they are in next.
    pub(super) fn add(&self, rows: &RecordBatch, start: usize) -> Result<RecordBatch, TableError> {
        let own = project_batch(rows, &self.columns)?;
        let mut inherited = self.first_row_id.map(|first| first.saturating_add_unsigned(start as u64)..);
        let ids = own.column(0).as_primitive::<Int64Type>().iter().map(|own| {
            let next = inherited.as_mut().and_then(Iterator::next);
            own.or(next)
        });
        let ids: ArrayRef = Arc::new(ids.collect::<Int64Array>());
        let updated = own.column(1).as_primitive::<Int64Type>().iter().map(|own| own.unwrap_or(self.sequence_number));
        let updated: ArrayRef = Arc::new(Int64Array::from_iter_values(updated));
        let fields = rows.schema_ref().fields().iter().zip(rows.columns()).filter(|(field, _)| !is_lineage(field));
        let lineage = self.columns.fields().iter().cloned().zip([ids, updated]);
        let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) =
            fields.map(|(field, column)| (field.clone(), column.clone())).chain(lineage).unzip();
        RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).map_err(TableError::arrow("adding the lineage of rows"))
    }
}

fn is_lineage(field: &FieldRef) -> bool {
    [ROW_ID, LAST_UPDATED].iter().any(|(id, _)| field_id(field) == Some(*id))
}
