//! Keys as bytes that are equal when the keys are, wherever the key stands.

use arrow_array::{Array, ArrayRef};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;

use crate::converted::Tables;
use crate::plan::Plan;
use crate::unit::KeyAt;

/// The keys of a batch, and those of the stored rows.
#[derive(Debug)]
pub(crate) struct Keys {
    rows: Rows,
    keys: Rows,
    stored: Option<Rows>,
}

impl Keys {
    /// `stored` holds the table's columns of the rows that were read back.
    pub(crate) fn new(tables: &Tables, plan: &Plan, stored: Option<&[ArrayRef]>) -> Result<Self, ArrowError> {
        let pick = |columns: &[ArrayRef]| plan.key.iter().filter_map(|index| columns.get(*index).cloned()).collect::<Vec<_>>();
        let own: Vec<ArrayRef> = tables.keys.iter().take(plan.key.len()).cloned().collect();
        let converter = RowConverter::new(own.iter().map(|column| SortField::new(column.data_type().clone())).collect())?;
        Ok(Self {
            rows: converter.convert_columns(&pick(&tables.rows))?,
            keys: converter.convert_columns(&own)?,
            stored: stored.map(|columns| converter.convert_columns(&pick(columns))).transpose()?,
        })
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.num_rows()
    }

    pub(crate) fn key_count(&self) -> usize {
        self.keys.num_rows()
    }

    pub(crate) fn bytes(&self, key: KeyAt) -> &[u8] {
        match key {
            KeyAt::Row(row) => self.rows.row(row).data(),
            KeyAt::Key(row) => self.keys.row(row).data(),
        }
    }

    pub(crate) fn stored(&self) -> impl Iterator<Item = &[u8]> {
        self.stored.iter().flat_map(|rows| rows.iter().map(|row| row.data()))
    }
}

/// Picks `(array, row)` cells out of arrays of one type.
pub(crate) fn gather(arrays: &[&ArrayRef], cells: &[(usize, usize)]) -> Result<ArrayRef, ArrowError> {
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    interleave(&arrays, cells)
}
