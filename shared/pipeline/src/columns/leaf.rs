//! Columns of one value a row.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int32Builder, Int64Builder,
    LargeBinaryBuilder, StringBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder, TimestampNanosecondBuilder,
};
use arrow_schema::DataType;
use sluice_model::{ColumnType, Rejection};

use super::Presence;
use crate::values::bytes::{read_bytes, read_fixed, read_uuid};
use crate::values::decimal::{DecimalType, read_decimal};
use crate::values::number::{FloatFit, out_of_range, read_boolean, read_double, read_float, read_long};
use crate::values::text::read_text;
use crate::values::time::{ColumnPrecision, ColumnZone, TimestampType, read_date, read_time, read_timestamp};
use crate::values::{Carrier, Fault, Read, Reading};

/// Builds a column of one primitive type.
#[derive(Debug)]
pub(crate) enum Leaf {
    Boolean(BooleanBuilder),
    Int(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, DecimalType),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    TimestampMicros(TimestampMicrosecondBuilder, TimestampType),
    TimestampNanos(TimestampNanosecondBuilder, TimestampType),
    Text(StringBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Fixed(FixedSizeBinaryBuilder, usize),
    Binary(LargeBinaryBuilder),
}

/// Why a value was not stored, and the type that would hold it where the column can be widened.
#[derive(Debug)]
pub(crate) struct Misread {
    pub(crate) fault: Fault,
    pub(crate) wider: Option<ColumnType>,
}

impl From<Fault> for Misread {
    fn from(fault: Fault) -> Self {
        Self { fault, wider: None }
    }
}

impl Leaf {
    /// `None` for nested types.
    pub(crate) fn new(kind: &ColumnType, data_type: &DataType) -> Option<Self> {
        let timestamp = |zone, precision| TimestampType { zone, precision };
        Some(match kind {
            ColumnType::Boolean => Self::Boolean(BooleanBuilder::new()),
            ColumnType::Int => Self::Int(Int32Builder::new()),
            ColumnType::Long => Self::Long(Int64Builder::new()),
            ColumnType::Float => Self::Float(Float32Builder::new()),
            ColumnType::Double => Self::Double(Float64Builder::new()),
            ColumnType::Decimal { precision, scale } => {
                let decimal = DecimalType { precision: *precision, scale: *scale };
                Self::Decimal(Decimal128Builder::new().with_data_type(data_type.clone()), decimal)
            }
            ColumnType::Date => Self::Date(Date32Builder::new()),
            ColumnType::Time => Self::Time(Time64MicrosecondBuilder::new()),
            ColumnType::Timestamp => Self::micros(data_type, timestamp(ColumnZone::None, ColumnPrecision::Micros)),
            ColumnType::TimestampTz => Self::micros(data_type, timestamp(ColumnZone::Utc, ColumnPrecision::Micros)),
            ColumnType::TimestampNs => Self::nanos(data_type, timestamp(ColumnZone::None, ColumnPrecision::Nanos)),
            ColumnType::TimestampTzNs => Self::nanos(data_type, timestamp(ColumnZone::Utc, ColumnPrecision::Nanos)),
            ColumnType::String => Self::Text(StringBuilder::new()),
            ColumnType::Uuid => Self::Uuid(FixedSizeBinaryBuilder::new(16)),
            ColumnType::Fixed(length) => {
                let width = i32::try_from(*length).unwrap_or(i32::MAX);
                Self::Fixed(FixedSizeBinaryBuilder::with_capacity(0, width), width as usize)
            }
            ColumnType::Binary => Self::Binary(LargeBinaryBuilder::new()),
            ColumnType::Struct(_) | ColumnType::List(_) | ColumnType::Map(..) => return None,
        })
    }

    fn micros(data_type: &DataType, kind: TimestampType) -> Self {
        Self::TimestampMicros(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()), kind)
    }

    fn nanos(data_type: &DataType, kind: TimestampType) -> Self {
        Self::TimestampNanos(TimestampNanosecondBuilder::new().with_data_type(data_type.clone()), kind)
    }

    /// Appends one value, or null when it is null or does not fit.
    pub(crate) fn append(&mut self, carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<Presence, Misread> {
        match self {
            Self::Boolean(builder) => push(read_boolean(carrier, reading), |value| builder.append_option(value)),
            Self::Int(builder) => append_int(builder, carrier, reading),
            Self::Long(builder) => push(read_long(carrier, reading), |value| builder.append_option(value)),
            Self::Float(builder) => append_float(builder, carrier, reading),
            Self::Double(builder) => push(read_double(carrier, reading), |value| builder.append_option(value)),
            Self::Decimal(builder, kind) => push(read_decimal(carrier, reading, *kind), |value| builder.append_option(value)),
            Self::Date(builder) => push(read_date(carrier, reading), |value| builder.append_option(value)),
            Self::Time(builder) => push(read_time(carrier, reading), |value| builder.append_option(value)),
            Self::TimestampMicros(builder, kind) => push(read_timestamp(carrier, reading, *kind), |value| builder.append_option(value)),
            Self::TimestampNanos(builder, kind) => push(read_timestamp(carrier, reading, *kind), |value| builder.append_option(value)),
            Self::Text(builder) => push(read_text(carrier, reading), |value| builder.append_option(value)),
            Self::Uuid(builder) => push(read_uuid(carrier), |value| append_fixed(builder, value)),
            Self::Fixed(builder, length) => push(read_fixed(carrier, reading, *length), |value| append_fixed(builder, value)),
            Self::Binary(builder) => push(read_bytes(carrier, reading), |value| builder.append_option(value)),
        }
    }

    /// Appends a null that stands for nothing.
    pub(crate) fn append_filler(&mut self) {
        match self {
            Self::Boolean(builder) => builder.append_null(),
            Self::Int(builder) => builder.append_null(),
            Self::Long(builder) => builder.append_null(),
            Self::Float(builder) => builder.append_null(),
            Self::Double(builder) => builder.append_null(),
            Self::Decimal(builder, _) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Time(builder) => builder.append_null(),
            Self::TimestampMicros(builder, _) => builder.append_null(),
            Self::TimestampNanos(builder, _) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Uuid(builder) | Self::Fixed(builder, _) => builder.append_null(),
            Self::Binary(builder) => builder.append_null(),
        }
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::Int(builder) => Arc::new(builder.finish()),
            Self::Long(builder) => Arc::new(builder.finish()),
            Self::Float(builder) => Arc::new(builder.finish()),
            Self::Double(builder) => Arc::new(builder.finish()),
            Self::Decimal(builder, _) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Time(builder) => Arc::new(builder.finish()),
            Self::TimestampMicros(builder, _) => Arc::new(builder.finish()),
            Self::TimestampNanos(builder, _) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Uuid(builder) | Self::Fixed(builder, _) => Arc::new(builder.finish()),
            Self::Binary(builder) => Arc::new(builder.finish()),
        }
    }
}

fn push<T>(read: Read<T>, append: impl FnOnce(Option<T>)) -> Result<Presence, Misread> {
    match read {
        Ok(value) => {
            let presence = if value.is_some() { Presence::Value } else { Presence::Null };
            append(value);
            Ok(presence)
        }
        Err(fault) => {
            append(None);
            Err(fault.into())
        }
    }
}

/// The length was checked when the value was read; a value of another length would only leave a null.
fn append_fixed(builder: &mut FixedSizeBinaryBuilder, value: Option<impl AsRef<[u8]>>) {
    let stored = value.is_some_and(|bytes| builder.append_value(bytes).is_ok());
    if !stored {
        builder.append_null();
    }
}

fn append_int(builder: &mut Int32Builder, carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<Presence, Misread> {
    match read_long(carrier, reading) {
        Ok(Some(long)) => match i32::try_from(long) {
            Ok(value) => push(Ok(Some(value)), |value| builder.append_option(value)),
            Err(_) => {
                builder.append_null();
                Err(Misread { fault: out_of_range(&long.to_string(), "32 bits"), wider: Some(ColumnType::Long) })
            }
        },
        Ok(None) => push(Ok(None), |value| builder.append_option(value)),
        Err(fault) => push(Err(fault), |value| builder.append_option(value)),
    }
}

fn append_float(builder: &mut Float32Builder, carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<Presence, Misread> {
    match read_float(carrier, reading) {
        Ok(Some(FloatFit::NeedsDouble(code))) => {
            builder.append_null();
            let source = match carrier {
                Carrier::Number(text) => Rejection::quote(text),
                other => other.describe(),
            };
            Err(Misread { fault: Fault::new(code, format!("no float holds {source}")), wider: Some(ColumnType::Double) })
        }
        Ok(Some(FloatFit::Fits(value))) => push(Ok(Some(value)), |value| builder.append_option(value)),
        Ok(None) => push(Ok(None), |value| builder.append_option(value)),
        Err(fault) => push(Err(fault), |value| builder.append_option(value)),
    }
}
