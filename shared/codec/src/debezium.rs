//! Debezium's change event envelope, with or without its embedded Connect schema: `before`, `after`, `source`, `op`, `ts_ms`.
//!
//! Heartbeats, transaction markers, logical messages, schema changes and the tombstone after a delete share its topics and are no rows.

use std::borrow::Cow;

use sluice_model::tape::{Node, NodeKind};
use sluice_model::{
    ControlKind, DecimalText, DeclaredType, DecodedEvent, EventTime, Image, IntegerDates, Operation, ReasonCode, Rejection, RouteFields,
    SchemaChange, Stage, TimeUnit, UnchangedMarker, ValueHints,
};

use crate::document::{RecordDocument, field_type, optional_image, required_image, route_text};

/// What is configured for Debezium formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebeziumDialect {
    /// What text in a decimal column means where no schema says it.
    pub decimals: DecimalText,
}

pub(crate) const fn hints(dialect: DebeziumDialect, integer_dates: IntegerDates) -> ValueHints {
    ValueHints { decimal_text: dialect.decimals, integer_dates }
}

pub(crate) fn is_heartbeat_topic(topic: &str) -> bool {
    topic.starts_with("__debezium-heartbeat")
}

/// Decodes a Debezium event.
///
/// # Errors
/// `OP_UNKNOWN` for an operation that Debezium does not define, `EMPTY_VALUE` when the row that the operation needs is not there.
pub fn decode<'d>(document: &'d RecordDocument<'_>, dialect: DebeziumDialect) -> Result<DecodedEvent<'d>, Rejection> {
    let Some(value) = document.value() else { return Ok(DecodedEvent::Control(ControlKind::Tombstone)) };
    if let Some(kind) = control_kind(&document.record.topic_partition.topic, value) {
        return Ok(DecodedEvent::Control(kind));
    }
    let operation = operation(value)?;
    let source = value.get("source");
    let mut event = document.change(operation);
    event.hints = hints(dialect, IntegerDates::Days);
    event.route = route_fields(source);
    event.version = source.and_then(|source| source.get("lsn")).filter(|lsn| !lsn.is_null());
    event.event_time = event_time(value, source);
    let declared = document.value_type();
    let before = optional_image(value.get("before"), field_type(declared, "before"));
    event.before = before.map(with_placeholder);
    match operation {
        Operation::Insert | Operation::Snapshot | Operation::Update => {
            event.after = Some(with_placeholder(required_image(value.get("after"), field_type(declared, "after"), "after")?));
        }
        Operation::Delete | Operation::Truncate => {}
    }
    Ok(DecodedEvent::Change(Box::new(event)))
}

fn with_placeholder(image: Image<'_>) -> Image<'_> {
    Image { unchanged: UnchangedMarker::DebeziumPlaceholder, ..image }
}

fn operation(value: Node<'_>) -> Result<Operation, Rejection> {
    let op = value.get("op");
    op.and_then(lettered).ok_or_else(|| {
        let found = op.map_or_else(|| "the event has no op".to_owned(), |op| format!("{} is no op", Rejection::quote(op.raw())));
        let detail = format!("{found}; Debezium's are c, r, u, d, t and m");
        Rejection::of_field(Stage::Decode, ReasonCode::OpUnknown, "op", detail)
    })
}

/// The change that one of Debezium's letters stands for.
pub(crate) fn lettered(op: Node<'_>) -> Option<Operation> {
    match op.text()?.as_ref() {
        "c" => Some(Operation::Insert),
        "r" => Some(Operation::Snapshot),
        "u" => Some(Operation::Update),
        "d" => Some(Operation::Delete),
        "t" => Some(Operation::Truncate),
        _ => None,
    }
}

fn route_fields(source: Option<Node<'_>>) -> RouteFields<'_> {
    let field = |name| source.and_then(|source| source.get(name));
    RouteFields {
        source: route_text(field("name")),
        database: route_text(field("db")),
        schema: route_text(field("schema")),
        table: route_text(field("table")),
    }
}

/// When the change was made at the source, else when the connector saw it.
fn event_time<'d>(value: Node<'d>, source: Option<Node<'d>>) -> Option<EventTime<'d>> {
    let at_source = source.and_then(|source| source.get("ts_ms"));
    let ms = at_source.filter(|ms| !ms.is_null()).or_else(|| value.get("ts_ms"))?;
    Some(EventTime::Epoch(ms.number()?.parse().ok()?, TimeUnit::Millis))
}

fn control_kind<'d>(topic: &str, value: Node<'d>) -> Option<ControlKind<'d>> {
    let op = value.get("op");
    if is_heartbeat_topic(topic) {
        return Some(ControlKind::Heartbeat);
    }
    if op.and_then(Node::text).as_deref() == Some("m") {
        return Some(ControlKind::Message);
    }
    if op.is_some() || value.kind() != NodeKind::Object {
        return None;
    }
    if value.get("ddl").is_some() || value.get("tableChanges").is_some() {
        return Some(ControlKind::SchemaChange(Box::new(schema_change(value))));
    }
    let is_boundary = value.get("status").and_then(Node::text).is_some_and(|status| matches!(status.as_ref(), "BEGIN" | "END"));
    if is_boundary && value.get("id").is_some() {
        return Some(ControlKind::Transaction);
    }
    let only_time = value.fields().all(|(name, _)| name == "ts_ms") && value.get("ts_ms").is_some();
    only_time.then_some(ControlKind::Heartbeat)
}

/// The columns that a schema change event lists for the table that its `source` names.
fn schema_change(value: Node<'_>) -> SchemaChange<'_> {
    let route = route_fields(value.get("source"));
    let changes: Vec<Node<'_>> = value.get("tableChanges").map(|list| list.elements().collect()).unwrap_or_default();
    let names_table = |change: &&Node<'_>| {
        let id = change.get("id").and_then(Node::text);
        let last = id.as_deref().and_then(|id| id.rsplit('.').next()).map(|part| part.trim_matches('"').to_owned());
        last.as_deref() == route.table.as_deref()
    };
    let change = changes.iter().find(names_table).or_else(|| changes.first().filter(|_| changes.len() == 1));
    let columns = change.and_then(|change| change.get("table")?.get("columns")).map(|list| list.elements().collect::<Vec<_>>());
    let columns = columns.unwrap_or_default().into_iter().filter_map(|column| Some((column.get("name")?.text()?, ddl_type(column))));
    SchemaChange { columns: columns.collect::<Vec<(Cow<'_, str>, _)>>(), route }
}

fn ddl_type(column: Node<'_>) -> Option<DeclaredType> {
    let integer = |name| column.get(name).and_then(Node::number).and_then(|digits| digits.parse::<i32>().ok());
    match column.get("typeName").and_then(Node::text)?.to_ascii_uppercase().as_str() {
        "INT" | "INTEGER" => Some(DeclaredType::Int),
        "BIGINT" => Some(DeclaredType::Long),
        "VARCHAR" => Some(DeclaredType::Text),
        "DECIMAL" | "NUMERIC" => {
            Some(DeclaredType::Decimal { precision: u32::try_from(integer("length")?).ok(), scale: integer("scale").unwrap_or(0) })
        }
        _ => None,
    }
}
