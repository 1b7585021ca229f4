//! Types that travel with the data: a Connect schema, an Avro or Protobuf schema. They decide over the JSON carrier.

use serde::{Deserialize, Serialize};

/// The unit of an integer that means a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Days since 1970-01-01 (dates only).
    #[serde(rename = "d")]
    Days,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanos,
}

/// A declared type. The comments name the carrier in which the value arrives as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeclaredType {
    /// JSON true, false.
    Boolean,
    /// int8, int16, int32, Year: a JSON number.
    Int,
    /// int64: a JSON number.
    Long,
    /// An int64 that holds an unsigned 64-bit number in two's complement: a JSON number.
    UnsignedLong,
    /// float32: a JSON number or one of the words NaN, Infinity, -Infinity.
    Float,
    /// float64, like `Float`.
    Double,
    /// Text, enums: a JSON string.
    Text,
    /// JSON text in a JSON string.
    JsonText,
    /// Bytes: a base64 JSON string.
    Bytes,
    /// Connect's Decimal: the unscaled big-endian two's complement as base64. Without a precision it declares no wider type.
    Decimal {
        /// Declared digits, where known.
        precision: Option<u32>,
        /// Digits behind the point; may be negative or too large for Iceberg.
        scale: i32,
    },
    /// `{"scale": int, "value": base64}`.
    VariableScaleDecimal,
    /// An integer number of days.
    Date,
    /// An integer since midnight.
    Time(TimeUnit),
    /// An integer since the epoch, without a zone.
    Timestamp(TimeUnit),
    /// An integer since the epoch, an instant.
    Instant(TimeUnit),
    /// ISO text with a zone (an instant).
    ZonedText,
    /// ISO time-of-day text with a zone.
    ZonedTimeText,
    /// UUID text.
    Uuid,
    /// Named fields: a JSON object.
    Struct(Vec<DeclaredField>),
    /// A JSON array.
    List(Box<DeclaredField>),
    /// A JSON object with text keys, or an array of pairs.
    Map(Box<DeclaredField>, Box<DeclaredField>),
}

/// A field of a declared struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredField {
    /// The name in the source.
    pub name: String,
    /// Whether the source says that it may be null.
    pub optional: bool,
    /// Its type.
    pub kind: DeclaredType,
}
