//! Arrays under another schema of the same data: stored rows under a schema that has grown, and built rows under the table's own.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};

use crate::arrow_types::field_id;

/// The columns of `stored` in the order and with the types of `fields`: found by field id, else by name, null where there is none.
pub(crate) fn align(stored: &RecordBatch, fields: &Fields) -> Result<Vec<ArrayRef>, ArrowError> {
    let own = stored.schema();
    fields.iter().map(|field| child(field, own.fields(), (stored.columns(), stored.num_rows()))).collect()
}

fn child(field: &FieldRef, own: &Fields, (columns, length): (&[ArrayRef], usize)) -> Result<ArrayRef, ArrowError> {
    match position(field, own).and_then(|at| columns.get(at)) {
        Some(array) => retype(array, field.data_type()),
        None => Ok(new_null_array(field.data_type(), length)),
    }
}

fn position(field: &Field, own: &Fields) -> Option<usize> {
    let id = field_id(field);
    let by_id = own.iter().position(|other| id.is_some() && field_id(other) == id);
    by_id.or_else(|| own.iter().position(|other| other.name() == field.name()))
}

/// The same values under another type: nested fields by id, promoted numbers cast.
pub(crate) fn retype(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), target) {
        (DataType::Struct(own), DataType::Struct(fields)) => Ok(Arc::new(retype_struct(array.as_struct(), own, fields)?)),
        (DataType::List(_), DataType::List(element)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, retype(&values, element.data_type())?, nulls)?))
        }
        (DataType::Map(..), DataType::Map(entries, ordered)) => {
            let DataType::Struct(fields) = entries.data_type() else { return cast(array, target) };
            let (_, offsets, pairs, nulls, _) = array.as_map().clone().into_parts();
            let own = pairs.fields().clone();
            let pairs = retype_struct(&pairs, &own, fields)?;
            Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *ordered)?))
        }
        _ => cast(array, target),
    }
}

fn retype_struct(array: &StructArray, own: &Fields, fields: &Fields) -> Result<StructArray, ArrowError> {
    let length = array.len();
    let columns: Result<Vec<_>, _> = fields.iter().map(|field| child(field, own, (array.columns(), length))).collect();
    StructArray::try_new_with_length(fields.clone(), columns?, array.nulls().cloned(), length)
}
