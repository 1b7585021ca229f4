//! A house envelope: where its parts stand and how its operations are spelled is configuration.

use sluice_model::tape::{Node, NodeKind};
use sluice_model::{DeclaredType, DecodedEvent, EventTime, Operation, ReasonCode, Rejection, RouteFields, Stage, TimeUnit};

use crate::document::{RecordDocument, field_type, optional_image, required_image, route_text};

/// Where the parts of the envelope stand, and how its operations are spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeDialect {
    /// Pointers to the parts.
    pub fields: EnvelopeFields,
    /// Spellings; the first that has one decides.
    pub operations: Vec<(Operation, Vec<String>)>,
}

/// JSON pointers to the parts of an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeFields {
    /// `{source}`
    pub source: Pointer,
    /// `{table}`
    pub table: Pointer,
    /// The operation's spelling.
    pub operation: Pointer,
    /// The event's time: milliseconds or ISO text.
    pub event_time: Pointer,
    /// What orders changes of one key.
    pub version: Pointer,
    /// The row before the change.
    pub before: Pointer,
    /// The row after the change; for a delete also the row that goes.
    pub data: Pointer,
}

impl Default for EnvelopeFields {
    fn default() -> Self {
        Self {
            source: Pointer::at(&["meta", "source"]),
            table: Pointer::at(&["meta", "table"]),
            operation: Pointer::at(&["meta", "op"]),
            event_time: Pointer::at(&["meta", "ts_ms"]),
            version: Pointer::at(&["meta", "version"]),
            before: Pointer::at(&["before"]),
            data: Pointer::at(&["data"]),
        }
    }
}

/// A JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    steps: Vec<String>,
}

impl Pointer {
    /// The pointer of the given steps, which hold no slash and no tilde.
    fn at(steps: &[&str]) -> Self {
        Self { text: steps.iter().map(|step| format!("/{step}")).collect(), steps: steps.iter().map(|step| (*step).to_owned()).collect() }
    }

    /// Parses a pointer; the empty text points at the whole value.
    ///
    /// # Errors
    /// A sentence when the text does not begin with a slash or has a `~` that is no escape.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no JSON pointer: expected /step/step with ~0 for ~ and ~1 for /");
        if text.is_empty() {
            return Ok(Self { text: String::new(), steps: Vec::new() });
        }
        let steps = text.strip_prefix('/').ok_or_else(wrong)?.split('/').map(unescape_step).collect::<Option<Vec<_>>>();
        Ok(Self { text: text.to_owned(), steps: steps.ok_or_else(wrong)? })
    }

    fn find<'d>(&self, value: Node<'d>) -> Option<Node<'d>> {
        value.at_path(&self.steps)
    }

    /// The declared type of what stands there.
    fn declared<'d>(&self, whole: Option<&'d DeclaredType>) -> Option<&'d DeclaredType> {
        self.steps.iter().try_fold(whole?, |declared, step| {
            if let DeclaredType::List(inner) | DeclaredType::Map(_, inner) = declared {
                return Some(&inner.kind);
            }
            field_type(Some(declared), step)
        })
    }
}

fn unescape_step(step: &str) -> Option<String> {
    let escapes_are_sound = step.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    escapes_are_sound.then(|| step.replace("~1", "/").replace("~0", "~"))
}

/// Decodes an envelope. A null value deletes the row of the record key.
///
/// # Errors
/// `TYPE_MISMATCH` when the value is no object, `OP_UNKNOWN` for a spelling that is not listed, `EMPTY_VALUE` when there is no row.
pub fn decode<'d>(document: &'d RecordDocument<'_>, dialect: &EnvelopeDialect) -> Result<DecodedEvent<'d>, Rejection> {
    let Some(value) = document.value() else {
        return Ok(DecodedEvent::Change(Box::new(document.change(Operation::Delete))));
    };
    required_image(Some(value), None, "")?;
    let fields = &dialect.fields;
    let operation = operation(dialect, fields.operation.find(value))?;
    let mut event = document.change(operation);
    event.route = RouteFields {
        source: route_text(fields.source.find(value)),
        table: route_text(fields.table.find(value)),
        ..RouteFields::default()
    };
    event.event_time = fields.event_time.find(value).and_then(event_time);
    event.version = fields.version.find(value).filter(|version| !version.is_null());
    let declared = document.value_type();
    event.before = optional_image(fields.before.find(value), fields.before.declared(declared));
    let data = fields.data.find(value);
    match operation {
        Operation::Insert | Operation::Snapshot | Operation::Update => {
            event.after = Some(required_image(data, fields.data.declared(declared), &fields.data.text)?)
        }
        Operation::Delete => event.before = event.before.or_else(|| optional_image(data, fields.data.declared(declared))),
        Operation::Truncate => {}
    }
    Ok(DecodedEvent::Change(Box::new(event)))
}

fn operation(dialect: &EnvelopeDialect, node: Option<Node<'_>>) -> Result<Operation, Rejection> {
    let spelled = node.and_then(Node::text);
    let found = spelled.as_deref().and_then(|text| {
        let listed = |(_, spellings): &&(Operation, Vec<String>)| spellings.iter().any(|spelling| spelling == text);
        dialect.operations.iter().find(listed).map(|(operation, _)| *operation)
    });
    found.ok_or_else(|| {
        let what =
            node.map_or_else(|| "there is no operation".to_owned(), |node| format!("{} is not listed", Rejection::quote(node.raw())));
        let detail = format!("{what} in [source.formats.operations]");
        Rejection::of_field(Stage::Decode, ReasonCode::OpUnknown, dialect.fields.operation.text.clone(), detail)
    })
}

fn event_time(node: Node<'_>) -> Option<EventTime<'_>> {
    match node.kind() {
        NodeKind::Number => node.number().and_then(|digits| digits.parse().ok()).map(|ms| EventTime::Epoch(ms, TimeUnit::Millis)),
        NodeKind::String => node.text().map(EventTime::Text),
        NodeKind::Null | NodeKind::Bool | NodeKind::Array | NodeKind::Object => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_follow_rfc_6901() {
        assert_eq!(Pointer::parse("/a~1b/~0c").map(|p| p.steps), Ok(vec!["a/b".to_owned(), "~c".to_owned()]));
        assert_eq!(Pointer::parse("").map(|p| p.steps), Ok(vec![]));
        assert!(Pointer::parse("a/b").is_err());
        assert!(Pointer::parse("/a~2").is_err());
    }
}
