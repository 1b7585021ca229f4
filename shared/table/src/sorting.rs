//! Sorting rows: data by the table's sort order, keys of delete files by themselves.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::SortOptions;
use arrow_select::take::take_record_batch;
use iceberg::spec::{NullOrder, SortDirection, SortOrder};

use crate::TableError;
use crate::partition::source_column;

/// The rows in the table's order; as they are when the order is unsorted.
pub(crate) fn by_order(batch: &RecordBatch, order: &SortOrder) -> Result<RecordBatch, TableError> {
    if order.is_unsorted() {
        return Ok(batch.clone());
    }
    sort(batch, order_columns(batch, order)?)
}

/// The rows' places in the order, as comparable bytes. Those of several batches compare with each other.
pub(crate) fn order_keys(batch: &RecordBatch, order: &SortOrder) -> Result<Rows, TableError> {
    row_keys(order_columns(batch, order)?)
}

fn order_columns(batch: &RecordBatch, order: &SortOrder) -> Result<Vec<(ArrayRef, SortOptions)>, TableError> {
    let mut columns = Vec::with_capacity(order.fields.len());
    for field in &order.fields {
        let column = crate::transform::apply(&field.transform, &source_column(batch, field.source_id)?)?;
        let descending = field.direction == SortDirection::Descending;
        columns.push((column, SortOptions { descending, nulls_first: field.null_order == NullOrder::First }));
    }
    Ok(columns)
}

/// The rows by all their columns, ascending, nulls first.
pub(crate) fn by_all_columns(batch: &RecordBatch) -> Result<RecordBatch, TableError> {
    let wrong = || TableError::arrow("sorting keys");
    if let [column] = batch.columns()
        && column.data_type().is_primitive()
    {
        let sorted = arrow_ord::sort::sort(column, Some(SortOptions::default())).map_err(wrong())?;
        return RecordBatch::try_new(batch.schema(), vec![sorted]).map_err(wrong());
    }
    sort(batch, batch.columns().iter().map(|column| (column.clone(), SortOptions::default())).collect())
}

fn sort(batch: &RecordBatch, by: Vec<(ArrayRef, SortOptions)>) -> Result<RecordBatch, TableError> {
    let rows = row_keys(by)?;
    let count = u32::try_from(batch.num_rows()).map_err(|_| TableError::Invalid("a batch has more rows than 2^32".to_owned()))?;
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    take_record_batch(batch, &UInt32Array::from(order)).map_err(TableError::arrow("sorting rows"))
}

fn row_keys(by: Vec<(ArrayRef, SortOptions)>) -> Result<Rows, TableError> {
    let fields = by.iter().map(|(column, options)| SortField::new_with_options(column.data_type().clone(), *options)).collect();
    let columns: Vec<ArrayRef> = by.into_iter().map(|(column, _)| column).collect();
    let keys = RowConverter::new(fields).and_then(|converter| converter.convert_columns(&columns));
    keys.map_err(TableError::arrow("sorting rows"))
}
