//! Debezium's placeholder for a value that did not change and was not sent.

use sluice_model::{Node, NodeKind, UnchangedMarker};

const PLACEHOLDER: &str = "__debezium_unavailable_value";
const PLACEHOLDER_BASE64: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";

/// Whether the value of a field only says that it did not change.
pub(crate) fn is_unchanged(marker: UnchangedMarker, value: Node<'_>) -> bool {
    match marker {
        UnchangedMarker::Never => false,
        UnchangedMarker::DebeziumPlaceholder => match value.kind() {
            NodeKind::String => is_placeholder(value),
            NodeKind::Array => only(value.elements()).is_some_and(is_placeholder),
            NodeKind::Object => only(value.fields()).is_some_and(|(key, value)| is_placeholder_text(&key) || is_placeholder(value)),
            NodeKind::Null | NodeKind::Bool | NodeKind::Number => false,
        },
    }
}

fn is_placeholder(value: Node<'_>) -> bool {
    value.text().is_some_and(|text| is_placeholder_text(&text))
}

fn is_placeholder_text(text: &str) -> bool {
    text == PLACEHOLDER || text == PLACEHOLDER_BASE64
}

fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next();
    if items.next().is_none() { first } else { None }
}
