//! Rows to write, put together column by column from where their values stand.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

use super::state::{CellAt, RowState, Sources};
use crate::arrow_types::arrow_schema;
use crate::convert::ColumnError;
use crate::converted::Converted;
use crate::keys::gather;
use crate::reshape::retype;

/// The rows as a batch of the table's schema.
pub(super) fn write_rows(converted: &Converted, sources: &Sources, rows: &[&RowState]) -> Result<RecordBatch, ColumnError> {
    let schema = arrow_schema(&converted.schema);
    let whole: Option<UInt64Array> = rows.iter().map(|row| row.whole().map(|row| Some(row as u64))).collect();
    // Mostly every row is one of the batch as it stands: then they are picked at once.
    let all = whole.as_ref().is_some_and(|whole| whole.values().iter().enumerate().all(|(at, row)| at as u64 == *row));
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let Some(own) = converted.tables.rows.get(index) else { continue };
        let stored = sources.stored.as_ref().and_then(|columns| columns.get(index));
        let column = match &whole {
            Some(_) if all && rows.len() == own.len() => Arc::clone(own),
            Some(whole) => take(own, whole, None)?,
            None => column(own, stored, (index, rows))?,
        };
        columns.push(retype(&column, field.data_type())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

fn column(own: &ArrayRef, stored: Option<&ArrayRef>, (index, rows): (usize, &[&RowState])) -> Result<ArrayRef, ArrowError> {
    const OWN: usize = 0;
    const STORED: usize = 1;
    const TRUE: usize = 2;
    let all_in_order = rows.len() == own.len() && rows.iter().enumerate().all(|(row, state)| state.cell(index) == CellAt::Batch(row));
    if all_in_order {
        return Ok(Arc::clone(own));
    }
    let cells: Vec<(usize, usize)> = rows
        .iter()
        .map(|row| match row.cell(index) {
            CellAt::Batch(row) => (OWN, row),
            CellAt::Stored(row) => (STORED, row),
            CellAt::True => (TRUE, 0),
        })
        .collect();
    if cells.is_empty() {
        return Ok(own.slice(0, 0));
    }
    let nothing = new_null_array(own.data_type(), 0);
    let yes: ArrayRef = if own.data_type() == &DataType::Boolean { Arc::new(BooleanArray::from(vec![true])) } else { Arc::clone(&nothing) };
    gather(&[own, stored.unwrap_or(&nothing), &yes], &cells)
}
