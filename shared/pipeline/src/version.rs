//! Versions that order the changes of one key, compared by value and not by text.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use sluice_model::{ChangeEvent, EventTime, Node};

use crate::settings::VersionSource;
use crate::values::digits::Digits;
use crate::values::time::{instant_of_epoch, instant_of_text};

/// A version. Those of one column are of one kind; those of different kinds cannot be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Version {
    /// The stored integer of a column, in the column's unit.
    Stored(i128),
    /// A binary fraction of a column.
    Fraction(f64),
    /// A number by its digits.
    Number(Digits<'static>),
    /// Nanoseconds since the epoch.
    Instant(i128),
    /// Text that is neither number nor time.
    Text(String),
}

impl Version {
    /// How this version stands to `other`; `None` when they cannot be compared.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Stored(own), Self::Stored(other)) | (Self::Instant(own), Self::Instant(other)) => Some(own.cmp(other)),
            (Self::Fraction(own), Self::Fraction(other)) => Some(own.total_cmp(other)),
            (Self::Number(own), Self::Number(other)) => Some(own.compare(other)),
            (Self::Text(own), Self::Text(other)) => Some(own.cmp(other)),
            (Self::Stored(_) | Self::Fraction(_) | Self::Number(_) | Self::Instant(_) | Self::Text(_), _) => None,
        }
    }

    fn of_text(text: &str) -> Self {
        if let Some(digits) = Digits::parse(text) {
            return Self::Number(digits.into_owned());
        }
        instant_of_text(text).map_or_else(|| Self::Text(text.to_owned()), Self::Instant)
    }

    fn of_node(node: Node<'_>) -> Option<Self> {
        match (node.number(), node.text()) {
            (Some(digits), _) => Digits::parse(digits).map(|digits| Self::Number(digits.into_owned())),
            (None, Some(text)) => Some(Self::of_text(&text)),
            (None, None) => None,
        }
    }

    /// The version that the event itself carries, where the settings ask for it.
    pub(crate) fn of_event(event: &ChangeEvent<'_>, source: Option<&VersionSource>) -> Option<Self> {
        match source? {
            VersionSource::Column(_) => None,
            VersionSource::EventVersion => event.version.and_then(Self::of_node),
            VersionSource::EventTime => event.event_time.as_ref().map(|time| match time {
                EventTime::Epoch(value, unit) => Self::Instant(instant_of_epoch(*value, *unit)),
                EventTime::Text(text) => Self::of_text(text),
            }),
        }
    }

    /// The version in a row of the version column; `None` for null and for types that have no order of their own.
    pub(crate) fn of_cell(array: &ArrayRef, row: usize) -> Option<Self> {
        if row >= array.len() || array.is_null(row) {
            return None;
        }
        match array.data_type() {
            DataType::Int32 => Some(Self::Stored(array.as_primitive::<Int32Type>().value(row).into())),
            DataType::Int64 => Some(Self::Stored(array.as_primitive::<Int64Type>().value(row).into())),
            DataType::Decimal128(..) => Some(Self::Stored(array.as_primitive::<Decimal128Type>().value(row))),
            DataType::Date32 => Some(Self::Stored(array.as_primitive::<Date32Type>().value(row).into())),
            DataType::Time64(TimeUnit::Microsecond) => Some(Self::Stored(array.as_primitive::<Time64MicrosecondType>().value(row).into())),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Some(Self::Stored(array.as_primitive::<TimestampMicrosecondType>().value(row).into()))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Some(Self::Stored(array.as_primitive::<TimestampNanosecondType>().value(row).into()))
            }
            DataType::Float32 => Some(Self::Fraction(array.as_primitive::<Float32Type>().value(row).into())),
            DataType::Float64 => Some(Self::Fraction(array.as_primitive::<Float64Type>().value(row))),
            DataType::Utf8 => Some(Self::of_text(array.as_string::<i32>().value(row))),
            _ => None,
        }
    }
}

/// Whether a change of version `new` comes too late for a row of version `current`.
pub(crate) fn is_stale(new: Option<&Version>, current: Option<&Version>) -> bool {
    match (new, current) {
        (Some(new), Some(current)) => new.compare(current) == Some(Ordering::Less),
        _ => false,
    }
}
