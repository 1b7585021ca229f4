//! Debezium after its unwrapping transform (`ExtractNewRecordState`): the value is the row, with fields of the format's own that begin
//! with `__`. A null value is a delete by the record key: with `delete.tombstone.handling.mode = drop | tombstone` it is the delete's only
//! trace.

use sluice_model::tape::{Node, NodeKind};
use sluice_model::{
    ControlKind, DecodedEvent, EventTime, IntegerDates, Operation, ReasonCode, Rejection, RouteFields, Stage, TimeUnit, UnchangedMarker,
};

use crate::debezium::{DebeziumDialect, hints, is_heartbeat_topic, lettered};
use crate::document::{RecordDocument, required_image, route_text};

const OWN_PREFIX: &str = "__";

/// Decodes an unwrapped Debezium event.
///
/// # Errors
/// `TYPE_MISMATCH` when the value is no object, `OP_UNKNOWN` for an `__op` that Debezium does not define.
pub fn decode<'d>(document: &'d RecordDocument<'_>, dialect: DebeziumDialect) -> Result<DecodedEvent<'d>, Rejection> {
    if is_heartbeat_topic(&document.record.topic_partition.topic) {
        return Ok(DecodedEvent::Control(ControlKind::Heartbeat));
    }
    let Some(value) = document.value() else {
        return Ok(DecodedEvent::Change(Box::new(document.change(Operation::Delete))));
    };
    let operation = operation(value)?;
    let mut event = document.change(operation);
    event.hints = hints(dialect, IntegerDates::Days);
    event.route = RouteFields {
        source: route_text(value.get("__name")),
        database: route_text(value.get("__db")),
        schema: route_text(value.get("__schema")),
        table: route_text(value.get("__table")),
    };
    event.version = ["__lsn", "__source_lsn", "__source_ts_ns"].iter().find_map(|name| value.get(name));
    let time = ["__source_ts_ms", "__ts_ms"].iter().find_map(|name| value.get(name)?.number()?.parse().ok());
    event.event_time = time.map(|ms| EventTime::Epoch(ms, TimeUnit::Millis));
    let mut image = required_image(Some(value), document.value_type(), "")?;
    image.own_prefix = Some(OWN_PREFIX);
    image.unchanged = UnchangedMarker::DebeziumPlaceholder;
    match operation {
        Operation::Delete => event.before = Some(image),
        Operation::Truncate => {}
        Operation::Insert | Operation::Snapshot | Operation::Update => event.after = Some(image),
    }
    Ok(DecodedEvent::Change(Box::new(event)))
}

fn operation(value: Node<'_>) -> Result<Operation, Rejection> {
    if value.get("__deleted").is_some_and(is_true) {
        return Ok(Operation::Delete);
    }
    let Some(op) = value.get("__op").filter(|op| !op.is_null()) else { return Ok(Operation::Update) };
    lettered(op).ok_or_else(|| {
        let detail = format!("{} is no operation of Debezium (c, r, u, d, t)", Rejection::quote(op.raw()));
        Rejection::of_field(Stage::Decode, ReasonCode::OpUnknown, "__op", detail)
    })
}

fn is_true(node: Node<'_>) -> bool {
    match node.kind() {
        NodeKind::Bool => node.as_bool() == Some(true),
        NodeKind::String => node.text().as_deref() == Some("true"),
        NodeKind::Null | NodeKind::Number | NodeKind::Array | NodeKind::Object => false,
    }
}
