//! Columns as another schema wants them: found by field id at every level, widened where Iceberg allows it, null where they are missing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Fields, SchemaRef, TimeUnit};
use iceberg::spec::TableMetadata;

use crate::TableError;
use crate::arrow::{field_id, required_field_id};

/// The batch as `target` wants it.
pub(crate) fn project_batch(batch: &RecordBatch, target: &SchemaRef) -> Result<RecordBatch, TableError> {
    let columns = project_fields((batch.schema_ref().fields(), batch.columns()), target.fields(), batch.num_rows())?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(target.clone(), columns, &options).map_err(TableError::arrow("rows do not fit the schema"))
}

/// Refuses fields that the target does not have: projecting would leave their values out without a word.
pub(crate) fn require_known(from: &Fields, to: &Fields) -> Result<(), TableError> {
    for field in from {
        let id = required_field_id(field)?;
        let Some(known) = to.iter().find(|known| field_id(known) == Some(id)) else {
            return Err(TableError::Invalid(format!("the table has no column with the field id {id} (`{}`)", field.name())));
        };
        require_known_type(field.data_type(), known.data_type())?;
    }
    Ok(())
}

fn require_known_type(from: &DataType, to: &DataType) -> Result<(), TableError> {
    match (from, to) {
        (DataType::Struct(from), DataType::Struct(to)) => require_known(from, to),
        (DataType::List(from), DataType::List(to)) => require_known_type(from.data_type(), to.data_type()),
        // The entries of a map have no ids; their key and value do.
        (DataType::Map(from, _), DataType::Map(to, _)) => require_known_type(from.data_type(), to.data_type()),
        _ => Ok(()),
    }
}

fn project_fields((from, arrays): (&Fields, &[ArrayRef]), to: &Fields, rows: usize) -> Result<Vec<ArrayRef>, TableError> {
    let mut columns = Vec::with_capacity(to.len());
    for wanted in to {
        let id = required_field_id(wanted)?;
        let found = from.iter().zip(arrays).find(|(field, _)| field_id(field) == Some(id));
        columns.push(match found {
            Some((field, array)) => project(array, field, wanted)?,
            None => new_null_array(wanted.data_type(), rows),
        });
    }
    Ok(columns)
}

fn project(array: &ArrayRef, from: &Field, to: &Field) -> Result<ArrayRef, TableError> {
    if array.data_type() == to.data_type() {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), to.data_type()) {
        (DataType::Struct(inner), DataType::Struct(wanted)) => {
            let structs = array.as_struct();
            let columns = project_fields((inner, structs.columns()), wanted, array.len())?;
            let made = StructArray::try_new_with_length(wanted.clone(), columns, structs.nulls().cloned(), array.len());
            made.map(|made| Arc::new(made) as ArrayRef).map_err(misfit(from))
        }
        (DataType::List(inner), DataType::List(wanted)) => {
            let list = array.as_list::<i32>();
            let values = project(list.values(), inner, wanted)?;
            let made = ListArray::try_new(wanted.clone(), list.offsets().clone(), values, list.nulls().cloned());
            made.map(|made| Arc::new(made) as ArrayRef).map_err(misfit(from))
        }
        (DataType::Map(_, _), wanted @ DataType::Map(_, _)) => project_map(array.as_map(), wanted).map_err(|error| error.named(from)),
        (old, new) if widens(old, new) => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, new, &options).map_err(misfit(from))
        }
        (old, new) => Err(TableError::Unsupported(format!("reading the column `{}` of type {old} as {new}", from.name()))),
    }
}

fn misfit(field: &Field) -> impl FnOnce(arrow_schema::ArrowError) -> TableError {
    TableError::arrow(format!("the column `{}` does not fit the schema", field.name()))
}

/// Keys and values are found by their places: the entries of a map have no ids of their own.
fn project_map(map: &MapArray, wanted: &DataType) -> Result<ArrayRef, MapError> {
    let DataType::Map(wanted, sorted) = wanted else { return Err(MapError::Shape) };
    let (DataType::Struct(to), DataType::Struct(from)) = (wanted.data_type(), map.entries().data_type()) else {
        return Err(MapError::Shape);
    };
    let ([to_key, to_value], [from_key, from_value]) = (to.as_ref(), from.as_ref()) else { return Err(MapError::Shape) };
    let key = project(map.keys(), from_key, to_key).map_err(MapError::Inner)?;
    let value = project(map.values(), from_value, to_value).map_err(MapError::Inner)?;
    let entries = StructArray::try_new(to.clone(), vec![key, value], None).map_err(MapError::Arrow)?;
    let made = MapArray::try_new(wanted.clone(), map.offsets().clone(), entries, map.nulls().cloned(), *sorted).map_err(MapError::Arrow)?;
    Ok(Arc::new(made))
}

enum MapError {
    Shape,
    Arrow(arrow_schema::ArrowError),
    Inner(TableError),
}

impl MapError {
    fn named(self, field: &Field) -> TableError {
        match self {
            Self::Shape => TableError::Invalid(format!("the column `{}` is no sound map", field.name())),
            Self::Arrow(error) => misfit(field)(error),
            Self::Inner(error) => error,
        }
    }
}

/// Whether every value of the one type is a value of the other: Iceberg's promotions, and other carriers of the same values.
fn widens(old: &DataType, new: &DataType) -> bool {
    match (old, new) {
        (DataType::Int8 | DataType::Int16, DataType::Int32)
        | (DataType::Int8 | DataType::Int16 | DataType::Int32, DataType::Int64)
        | (DataType::Float32, DataType::Float64)
        | (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Utf8 | DataType::LargeUtf8)
        | (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, DataType::Binary | DataType::LargeBinary)
        | (DataType::Time32(TimeUnit::Millisecond), DataType::Time64(TimeUnit::Microsecond)) => true,
        (DataType::Decimal128(p, s), DataType::Decimal128(q, t)) => s == t && p <= q,
        (DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Millisecond, a), DataType::Timestamp(TimeUnit::Microsecond, b))
        | (DataType::Timestamp(TimeUnit::Nanosecond, a), DataType::Timestamp(TimeUnit::Nanosecond, b)) => a.is_some() == b.is_some(),
        _ => false,
    }
}

/// The field with that id inside a struct, null where a struct around it is.
pub(crate) fn inside_struct(array: &ArrayRef, id: i32) -> Option<ArrayRef> {
    inside(array, id, None)
}

fn inside(array: &ArrayRef, id: i32, around: Option<&NullBuffer>) -> Option<ArrayRef> {
    let structs = array.as_struct_opt()?;
    let nulls = NullBuffer::union(around, structs.nulls());
    let fields = structs.fields().iter().zip(structs.columns());
    let mut found = fields.filter_map(|(field, child)| {
        if field_id(field) == Some(id) {
            return crate::arrow::with_more_nulls(child, nulls.as_ref()).ok();
        }
        inside(child, id, nulls.as_ref())
    });
    found.next()
}

/// A column with a default for older rows would read as null here; so such tables are refused.
pub(crate) fn check_defaults(metadata: &TableMetadata, target: &SchemaRef) -> Result<(), TableError> {
    let columns = metadata.current_schema().field_id_to_fields();
    let mut open: Vec<&FieldRef> = target.fields().iter().collect();
    while let Some(field) = open.pop() {
        if field_id(field).and_then(|id| columns.get(&id)).is_some_and(|column| column.initial_default.is_some()) {
            return Err(TableError::Unsupported(format!("reading the column `{}`, which has an initial default", field.name())));
        }
        match field.data_type() {
            DataType::Struct(inner) => open.extend(inner.iter()),
            DataType::List(inner) | DataType::Map(inner, _) => open.push(inner),
            _ => {}
        }
    }
    Ok(())
}
