//! What comes in, and what a codec makes of it.

use std::borrow::Cow;

use serde::Serialize;

use crate::tape::Node;
use crate::{DeclaredType, TimeUnit, TopicPartition};

/// Kafka's timestamp type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TimestampType {
    /// Set by the producer.
    CreateTime,
    /// Set by the broker.
    LogAppendTime,
    /// Absent or not known.
    NoTimestampType,
}

/// A record's Kafka timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordTimestamp {
    /// Milliseconds since the epoch; `None` where Kafka says −1 or the event has none.
    pub epoch_ms: Option<i64>,
    /// Who set it.
    pub kind: TimestampType,
}

/// A header's name and bytes; the value may be null.
pub type Header<'a> = (Cow<'a, str>, Option<Vec<u8>>);

/// One Kafka record, its bytes borrowed from the batch.
#[derive(Debug, Clone)]
pub struct SourceRecord<'a> {
    /// Where it was read from.
    pub topic_partition: TopicPartition,
    /// Kafka's offset.
    pub offset: i64,
    /// Kafka's timestamp.
    pub timestamp: RecordTimestamp,
    /// The key's bytes; `None` when null or absent.
    pub key: Option<&'a [u8]>,
    /// The value's bytes; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: Vec<Header<'a>>,
    /// `schemaId` of the event-source mapping's `valueSchemaMetadata`, where it was given.
    pub value_schema_id: Option<Cow<'a, str>>,
    /// `schemaId` of the event-source mapping's `keySchemaMetadata`, where it was given.
    pub key_schema_id: Option<Cow<'a, str>>,
}

impl SourceRecord<'_> {
    /// The last header of that name as text, as Kafka's `lastHeader`; `None` when absent, null or not UTF-8.
    #[must_use]
    pub fn header_text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().rev().find(|(key, _)| key == name)?;
        std::str::from_utf8(value.as_deref()?).ok()
    }
}

/// What an event asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// A new row.
    Insert,
    /// A row read by a snapshot of the source.
    Snapshot,
    /// A changed row.
    Update,
    /// A removed row.
    Delete,
    /// All rows removed.
    Truncate,
}

impl Operation {
    /// The meaning as it is written into a changelog's `_op` column.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Snapshot => "snapshot",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Truncate => "truncate",
        }
    }
}

/// A row as it stands in a record: a JSON object, its declared type where the data carries one, and the values that the
/// source left out because they did not change.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// The JSON object.
    pub object: Node<'a>,
    /// The type of `object` when the data carries one: always [`DeclaredType::Struct`].
    pub declared: Option<&'a DeclaredType>,
    /// How unchanged values are marked.
    pub unchanged: UnchangedMarker,
    /// Fields of the format itself (`__op`, `__lsn`, …): they fill a column of that name and are never unknown.
    pub own_prefix: Option<&'static str>,
}

/// How a dialect marks a value that it left out because it did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnchangedMarker {
    /// It never does: an absent column is null.
    Never,
    /// Debezium's `__debezium_unavailable_value`: the whole text, base64 of it, the one element of an array, the one entry of a map.
    DebeziumPlaceholder,
}

/// The event's own time.
#[derive(Debug, Clone, PartialEq)]
pub enum EventTime<'a> {
    /// An integer with its unit.
    Epoch(i64, TimeUnit),
    /// ISO text.
    Text(Cow<'a, str>),
}

/// Route placeholders that an event can fill. `Some(None)`-like distinctions do not matter: absent, null, empty and not text
/// are all [`None`].
#[derive(Debug, Clone, Default)]
pub struct RouteFields<'a> {
    /// `{source}`
    pub source: Option<Cow<'a, str>>,
    /// `{database}`
    pub database: Option<Cow<'a, str>>,
    /// `{schema}`
    pub schema: Option<Cow<'a, str>>,
    /// `{table}`
    pub table: Option<Cow<'a, str>>,
}

/// One change, or one unit of a record that carries several rows.
#[derive(Debug, Clone)]
pub struct ChangeEvent<'a> {
    /// What it asks for.
    pub operation: Operation,
    /// What the route template may use.
    pub route: RouteFields<'a>,
    /// The row before the change, where the dialect gives it.
    pub before: Option<Image<'a>>,
    /// The row after the change; `None` for deletes and truncates.
    pub after: Option<Image<'a>>,
    /// The record key as an object, where it is one.
    pub key: Option<Image<'a>>,
    /// The event's own time (`@event_time`).
    pub event_time: Option<EventTime<'a>>,
    /// The event's own version (`@version`).
    pub version: Option<Node<'a>>,
    /// Names of the key columns that the format gives, for tables that are created; where it gives none, those of the record key count.
    pub key_columns: Vec<Cow<'a, str>>,
    /// How integers in date and time columns are read when nothing else says so.
    pub hints: ValueHints,
}

/// Readings that the format decides for all values of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueHints {
    /// Text in a decimal column without a declared type is base64 of the unscaled bytes (`decimals = "base64"`).
    pub decimal_text: DecimalText,
    /// Integers in date columns count days (Debezium).
    pub integer_dates: IntegerDates,
}

/// What text in a decimal column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecimalText {
    /// Digits.
    Digits,
    /// Base64 of the unscaled big-endian two's complement; the scale is the column's.
    Base64Unscaled,
}

/// What a bare integer in a date column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntegerDates {
    /// Nothing: the unit must be declared.
    Undeclared,
    /// Days since 1970-01-01.
    Days,
}

impl Default for ValueHints {
    fn default() -> Self {
        Self { decimal_text: DecimalText::Digits, integer_dates: IntegerDates::Undeclared }
    }
}

/// The kinds of events that are no rows.
#[derive(Debug, Clone)]
pub enum ControlKind<'a> {
    /// A heartbeat of the connector.
    Heartbeat,
    /// A transaction's begin or end marker.
    Transaction,
    /// A logical message of the source's log.
    Message,
    /// The tombstone that follows a delete event.
    Tombstone,
    /// A change of the source's schema.
    SchemaChange(Box<SchemaChange<'a>>),
}

/// What a DDL event says, as far as it can be applied: the columns that its table has now.
#[derive(Debug, Clone)]
pub struct SchemaChange<'a> {
    /// What the route template may use.
    pub route: RouteFields<'a>,
    /// Column names and types; a type that cannot be told is `None` and is not applied.
    pub columns: Vec<(Cow<'a, str>, Option<DeclaredType>)>,
}

/// What a codec makes of one unit of a record.
#[derive(Debug, Clone)]
pub enum DecodedEvent<'a> {
    /// A change of rows.
    Change(Box<ChangeEvent<'a>>),
    /// No row.
    Control(ControlKind<'a>),
}
