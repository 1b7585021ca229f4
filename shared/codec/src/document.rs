//! A record's value and key, read as JSON documents.

use std::collections::HashMap;
use std::sync::Arc;

use sluice_model::tape::{Node, NodeKind, ParseError, Tape};
use sluice_model::{
    ChangeEvent, ControlEvent, ControlKind, Coordinate, DeclaredType, DecodedEvent, Image, Operation, ReasonCode, Rejection, RouteFields,
    SourceRecord, Stage, UnchangedMarker, ValueHints,
};

use crate::connect;

/// Bounds on a value, checked before and while it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest value that is read, in bytes.
    pub max_value_bytes: usize,
    /// The deepest nesting of objects and arrays.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_value_bytes: 4 * 1024 * 1024, max_depth: 64 }
    }
}

/// Connect schemas seen so far, by their text: they repeat from record to record.
#[derive(Debug, Default)]
pub struct DeclaredCache {
    by_text: HashMap<String, Option<Arc<DeclaredType>>>,
}

impl DeclaredCache {
    /// The most schemas that are kept; beyond it the cache starts anew.
    const MAX_SCHEMAS: usize = 1_000;

    fn declared(&mut self, schema: Node<'_>) -> Option<Arc<DeclaredType>> {
        if let Some(known) = self.by_text.get(schema.raw()) {
            return known.clone();
        }
        if self.by_text.len() >= Self::MAX_SCHEMAS {
            self.by_text.clear();
        }
        let declared = connect::declared_type(schema).map(Arc::new);
        self.by_text.insert(schema.raw().to_owned(), declared.clone());
        declared
    }
}

/// A JSON document and, where it came in Connect's wrapper, its declared type.
#[derive(Debug)]
struct Document<'a> {
    tape: Tape<'a>,
    declared: Option<Arc<DeclaredType>>,
    /// Whether the payload stands below `payload`.
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Wrapped,
}

impl Document<'_> {
    fn root(&self) -> Node<'_> {
        let root = self.tape.root();
        match self.shape {
            Shape::Plain => root,
            Shape::Wrapped => root.get("payload").unwrap_or(root),
        }
    }
}

/// A record with its value and key read.
#[derive(Debug)]
pub struct RecordDocument<'a> {
    /// The record.
    pub record: &'a SourceRecord<'a>,
    value: Option<Document<'a>>,
    key: Option<Document<'a>>,
}

/// Reads the value and the key of a record.
///
/// A null value is a tombstone and no fault. A key that is no JSON object is no key of a row, and no fault either: many sources put
/// something else there.
///
/// # Errors
/// `TOO_LARGE`, `EMPTY_VALUE`, `INVALID_UTF8`, `MALFORMED_JSON`, `TOO_DEEP` about the value.
pub fn read_document<'a>(record: &'a SourceRecord<'a>, limits: Limits, cache: &mut DeclaredCache) -> Result<RecordDocument<'a>, Rejection> {
    let value = match record.value {
        None => None,
        Some(bytes) => read_value(bytes, limits, cache)?,
    };
    let key = record.key.filter(|bytes| bytes.len() <= limits.max_value_bytes).and_then(|bytes| {
        let text = simdutf8::basic::from_utf8(bytes).ok()?;
        let document = wrap(Tape::parse(text, limits.max_depth).ok()?, cache);
        (document.root().kind() == NodeKind::Object).then_some(document)
    });
    Ok(RecordDocument { record, value, key })
}

/// The value's document; `None` where Connect's wrapper holds a null payload, which is a tombstone.
fn read_value<'a>(bytes: &'a [u8], limits: Limits, cache: &mut DeclaredCache) -> Result<Option<Document<'a>>, Rejection> {
    let reject = |code, detail: String| Rejection::new(Stage::Decode, code, detail);
    if bytes.is_empty() {
        return Err(reject(ReasonCode::EmptyValue, "the value has no bytes; only a null value is a tombstone".into()));
    }
    if bytes.len() > limits.max_value_bytes {
        let detail = format!("the value has {} bytes, limits.max_value_bytes is {}", bytes.len(), limits.max_value_bytes);
        return Err(reject(ReasonCode::TooLarge, detail));
    }
    let text = simdutf8::compat::from_utf8(bytes)
        .map_err(|error| reject(ReasonCode::InvalidUtf8, format!("the value is no UTF-8 at byte {}", error.valid_up_to())))?;
    let tape = Tape::parse(text, limits.max_depth).map_err(|error| match error {
        ParseError::Malformed { .. } => reject(ReasonCode::MalformedJson, format!("the value is no JSON: {error}")),
        ParseError::TooDeep { .. } => reject(ReasonCode::TooDeep, format!("the value is {error}")),
        ParseError::TooLong => reject(ReasonCode::TooLarge, format!("the value is {error}")),
    })?;
    if tape.root().is_null() {
        return Err(reject(ReasonCode::EmptyValue, "the value is the JSON text null; only a null value is a tombstone".into()));
    }
    let document = wrap(tape, cache);
    Ok((!document.root().is_null()).then_some(document))
}

/// Recognises Connect's wrapper: an object of exactly `schema` and `payload`.
fn wrap<'a>(tape: Tape<'a>, cache: &mut DeclaredCache) -> Document<'a> {
    let root = tape.root();
    let is_wrapper = root.fields().count() == 2 && root.get("payload").is_some();
    let Some(schema) = root.get("schema").filter(|_| is_wrapper) else {
        return Document { tape, declared: None, shape: Shape::Plain };
    };
    let declared = if schema.kind() == NodeKind::Object { cache.declared(schema) } else { None };
    let shape = if schema.is_null() || declared.is_some() { Shape::Wrapped } else { Shape::Plain };
    Document { tape, declared, shape }
}

impl<'a> RecordDocument<'a> {
    /// The value's root, the wrapper's payload where there is one; `None` for a tombstone.
    #[must_use]
    pub fn value(&self) -> Option<Node<'_>> {
        self.value.as_ref().map(Document::root)
    }

    /// The declared type of the value.
    #[must_use]
    pub fn value_type(&self) -> Option<&Arc<DeclaredType>> {
        self.value.as_ref().and_then(|value| value.declared.as_ref())
    }

    /// The record key as an image, where it is an object.
    #[must_use]
    pub fn key_image(&self) -> Option<Image<'_>> {
        let key = self.key.as_ref()?;
        Some(Image { object: key.root(), declared: key.declared.clone(), unchanged: UnchangedMarker::Never, own_prefix: None })
    }

    /// The path of a field that stands twice in one object of the value.
    #[must_use]
    pub fn duplicate_field(&self) -> Option<String> {
        self.value().and_then(Node::first_duplicate)
    }

    /// A change event of this record with nothing but its place, its key and its operation.
    #[must_use]
    pub fn change(&self, operation: Operation) -> ChangeEvent<'_> {
        let key = self.key_image();
        let key_columns = key.as_ref().map(|image| image.object.fields().map(|(name, _)| name).collect()).unwrap_or_default();
        ChangeEvent {
            topic_partition: self.record.topic_partition.clone(),
            coordinate: Coordinate::record(self.record.offset),
            record_timestamp_ms: self.record.timestamp.epoch_ms,
            operation,
            route: RouteFields::default(),
            before: None,
            after: None,
            key,
            event_time: None,
            version: None,
            key_columns,
            hints: ValueHints::default(),
        }
    }

    /// A control event of this record.
    #[must_use]
    pub fn control<'d>(&'d self, kind: ControlKind<'d>) -> DecodedEvent<'d> {
        DecodedEvent::Control(ControlEvent {
            topic_partition: self.record.topic_partition.clone(),
            coordinate: Coordinate::record(self.record.offset),
            kind,
        })
    }
}

/// A node as text for a route: absent, null, empty and not text are all `None`.
pub(crate) fn route_text(node: Option<Node<'_>>) -> Option<std::borrow::Cow<'_, str>> {
    node.and_then(Node::text).filter(|text| !text.is_empty())
}

/// The type of a field of a declared struct.
pub(crate) fn field_type(declared: Option<&Arc<DeclaredType>>, name: &str) -> Option<Arc<DeclaredType>> {
    let DeclaredType::Struct(fields) = declared?.as_ref() else { return None };
    fields.iter().find(|field| field.name == name).map(|field| Arc::new(field.kind.clone()))
}

/// The image at `node`: it has to be an object.
///
/// # Errors
/// `EMPTY_VALUE` when it is absent or null, `TYPE_MISMATCH` when it is something else.
pub(crate) fn required_image<'d>(node: Option<Node<'d>>, declared: Option<Arc<DeclaredType>>, place: &str) -> Result<Image<'d>, Rejection> {
    match node {
        Some(object) if object.kind() == NodeKind::Object => {
            Ok(Image { object, declared, unchanged: UnchangedMarker::Never, own_prefix: None })
        }
        None => Err(missing_row(place)),
        Some(node) if node.is_null() => Err(missing_row(place)),
        Some(node) => {
            let detail = format!("expected an object with the row's fields, found {}", Rejection::quote(node.raw()));
            Err(Rejection::of_field(Stage::Decode, ReasonCode::TypeMismatch, place, detail))
        }
    }
}

fn missing_row(place: &str) -> Rejection {
    Rejection::of_field(Stage::Decode, ReasonCode::EmptyValue, place, "the event has no row here, and its operation needs one")
}

/// The image at `node` where there is an object; anything else is no image.
pub(crate) fn optional_image(node: Option<Node<'_>>, declared: Option<Arc<DeclaredType>>) -> Option<Image<'_>> {
    let object = node.filter(|node| node.kind() == NodeKind::Object)?;
    Some(Image { object, declared, unchanged: UnchangedMarker::Never, own_prefix: None })
}
