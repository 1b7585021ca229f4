//! Arrow cells as JSON, in the spelling of the conformance corpus: exact, and readable.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, TimeUnit};
use base64::Engine as _;
use serde_json::{Map, Value, json};

/// All rows of a batch as JSON objects.
#[must_use]
pub(crate) fn rows(batch: &RecordBatch) -> Vec<Map<String, Value>> {
    (0..batch.num_rows()).map(|row| object(batch.schema_ref().fields(), batch.columns(), row)).collect()
}

fn object(fields: &arrow_schema::Fields, columns: &[ArrayRef], row: usize) -> Map<String, Value> {
    fields.iter().zip(columns).map(|(field, column)| (field.name().clone(), cell(field, column, row))).collect()
}

/// One cell; the field tells a UUID from other sixteen bytes.
#[must_use]
pub(crate) fn cell(field: &Field, array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Decimal128(_, scale) => json!(decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)),
        DataType::Date32 => json!(date(i64::from(array.as_primitive::<Date32Type>().value(row)))),
        DataType::Time64(_) => json!(time_of_day(array.as_primitive::<Time64MicrosecondType>().value(row))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            json!(timestamp((micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000)), 6, zone_text(zone.as_deref())))
        }
        DataType::Timestamp(_, zone) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
            json!(timestamp((nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000)), 9, zone_text(zone.as_deref())))
        }
        DataType::LargeBinary => base64_value(array.as_binary::<i64>().value(row)),
        DataType::Binary => base64_value(array.as_binary::<i32>().value(row)),
        DataType::FixedSizeBinary(16) if is_uuid(field) => json!(uuid_text(array.as_fixed_size_binary().value(row))),
        DataType::FixedSizeBinary(_) => base64_value(array.as_fixed_size_binary().value(row)),
        _ => nested(array, row),
    }
}

fn nested(array: &ArrayRef, row: usize) -> Value {
    match array.data_type() {
        DataType::Struct(fields) => Value::Object(object(fields, array.as_struct().columns(), row)),
        DataType::List(element) => {
            let elements = array.as_list::<i32>().value(row);
            Value::Array((0..elements.len()).map(|index| cell(element, &elements, index)).collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let pair = |index| {
                Value::Array(entries.fields().iter().zip(entries.columns()).map(|(field, column)| cell(field, column, index)).collect())
            };
            Value::Array((0..entries.len()).map(pair).collect())
        }
        other => json!(format!("(a value of type {other} that cannot be shown)")),
    }
}

fn float(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(value)
    }
}

fn decimal(unscaled: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap_or(0);
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn date(days: i64) -> String {
    let epoch = jiff::civil::date(1970, 1, 1);
    epoch.checked_add(jiff::Span::new().days(days)).map_or_else(|_| format!("day {days}"), |date| date.to_string())
}

fn time_of_day(micros: i64) -> String {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    format!("{:02}:{:02}:{:02}.{fraction:06}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Iceberg stores instants in UTC, whatever the zone's spelling.
const fn zone_text(zone: Option<&str>) -> &'static str {
    if zone.is_some() { "+00:00" } else { "" }
}

fn timestamp((seconds, fraction): (i64, i64), digits: usize, zone: &str) -> String {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    format!("{}T{:02}:{:02}:{:02}.{fraction:0digits$}{zone}", date(day), second / 3_600, second / 60 % 60, second % 60)
}

fn base64_value(bytes: &[u8]) -> Value {
    json!({"base64": base64::engine::general_purpose::STANDARD.encode(bytes)})
}

fn is_uuid(field: &Field) -> bool {
    field.extension_type_name() == Some("arrow.uuid")
}

fn uuid_text(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
