//! A record's value and key, read as JSON documents.

use std::collections::HashMap;
use std::sync::Arc;

use sluice_model::tape::{BufferedTape, Node, NodeKind, ParseError, TapeBuffer};
use sluice_model::{
    ChangeEvent, DeclaredType, Image, Operation, ReasonCode, Rejection, RouteFields, SourceRecord, Stage, UnchangedMarker, ValueHints,
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
    /// The texts in front of payloads, those of late ones first.
    openings: Vec<Opening>,
}

/// All that stands in front of a payload, `{"schema":{…},"payload":`, and what it declares.
#[derive(Debug)]
struct Opening {
    text: String,
    declared: Arc<DeclaredType>,
}

impl DeclaredCache {
    /// The most schemas that are kept; beyond it the cache starts anew.
    const MAX_SCHEMAS: usize = 1_000;
    /// The most openings that are compared with a text; most differ from it within the first fields.
    const MAX_OPENINGS: usize = 64;

    /// The payload of a text that begins like an earlier one, and its type: the schema, which is most of the text, is compared and not
    /// parsed. Whether the text is sound is for the payload's parser to say.
    fn payload<'a>(&mut self, text: &'a str) -> Option<(&'a str, Arc<DeclaredType>)> {
        let found = self.openings.iter().position(|opening| text.starts_with(&opening.text))?;
        let payload = text.get(self.openings[found].text.len()..)?.trim_end_matches([' ', '\t', '\n', '\r']).strip_suffix('}')?;
        // At the start of a text a byte order mark is passed over; in the middle of one it is none.
        let payload = Some(payload).filter(|payload| !payload.starts_with('\u{feff}'))?;
        let earlier = found.saturating_sub(1);
        self.openings.swap(found, earlier);
        Some((payload, Arc::clone(&self.openings[earlier].declared)))
    }

    fn remember(&mut self, text: &str, declared: &Arc<DeclaredType>) {
        self.openings.truncate(Self::MAX_OPENINGS - 1);
        self.openings.push(Opening { text: text.to_owned(), declared: Arc::clone(declared) });
    }

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
    /// The wrapper's payload, where there is one.
    root: Node<'a>,
    declared: Option<Arc<DeclaredType>>,
}

/// A document that was parsed and is not looked at yet: the buffer of its tokens is still being filled.
#[derive(Debug)]
struct Draft<'a> {
    tape: BufferedTape<'a>,
    declared: Option<Arc<DeclaredType>>,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    /// The payload stands below `payload`.
    Wrapped,
    /// The tape holds the payload alone.
    Unwrapped,
}

impl<'a> Draft<'a> {
    fn root<'t>(&self, tokens: &'t TapeBuffer) -> Node<'t>
    where
        'a: 't,
    {
        let root = tokens.root(&self.tape);
        match self.shape {
            Shape::Plain | Shape::Unwrapped => root,
            Shape::Wrapped => root.get("payload").unwrap_or(root),
        }
    }

    fn open(self, tokens: &'a TapeBuffer) -> Document<'a> {
        Document { root: self.root(tokens), declared: self.declared }
    }

    /// The text in front of the payload, where only the wrapper's end stands behind it.
    fn opening<'t>(&self, text: &'t str, tokens: &TapeBuffer) -> Option<&'t str> {
        let (last, payload) = tokens.root(&self.tape).fields().last()?;
        let is_last = self.shape == Shape::Wrapped && last == "payload" && text.starts_with('{');
        if is_last { text.get(..payload.offset()) } else { None }
    }
}

/// Reads the documents of a batch: schemas that repeat are remembered, all tokens stand in one buffer.
#[derive(Debug)]
pub struct DocumentReader {
    limits: Limits,
    schemas: DeclaredCache,
    tokens: TapeBuffer,
}

impl DocumentReader {
    /// A reader for documents of about so many bytes.
    #[must_use]
    pub fn new(limits: Limits, bytes: usize) -> Self {
        Self { limits, schemas: DeclaredCache::default(), tokens: TapeBuffer::for_bytes(bytes) }
    }

    /// The tokens, when all documents are read.
    #[must_use]
    pub fn finish(self) -> TapeBuffer {
        self.tokens
    }
}

/// A record whose value and key were read; [`RecordDraft::open`] makes them accessible.
#[derive(Debug)]
pub struct RecordDraft<'a> {
    record: &'a SourceRecord<'a>,
    value: Option<Draft<'a>>,
    key: Option<Draft<'a>>,
    duplicate: Option<String>,
}

impl<'a> RecordDraft<'a> {
    /// The record over the tokens of the reader that read it.
    #[must_use]
    pub fn open(self, tokens: &'a TapeBuffer) -> RecordDocument<'a> {
        let open = |draft: Option<Draft<'a>>| draft.map(|draft| draft.open(tokens));
        RecordDocument { record: self.record, value: open(self.value), key: open(self.key), duplicate: self.duplicate }
    }
}

/// A record with its value and key read.
#[derive(Debug)]
pub struct RecordDocument<'a> {
    /// The record.
    pub record: &'a SourceRecord<'a>,
    value: Option<Document<'a>>,
    key: Option<Document<'a>>,
    duplicate: Option<String>,
}

/// Reads the value and the key of a record.
///
/// A null value is a tombstone and no fault. A key that is no JSON object is no key of a row, and no fault either: many sources put
/// something else there.
///
/// # Errors
/// `TOO_LARGE`, `EMPTY_VALUE`, `INVALID_UTF8`, `MALFORMED_JSON`, `TOO_DEEP` about the value.
pub fn read_document<'a>(record: &'a SourceRecord<'a>, reader: &mut DocumentReader) -> Result<RecordDraft<'a>, Rejection> {
    let value = match record.value {
        None => None,
        Some(bytes) => read_value(bytes, reader)?,
    };
    let key = record.key.filter(|bytes| bytes.len() <= reader.limits.max_value_bytes).and_then(|bytes| {
        let text = simdutf8::basic::from_utf8(bytes).ok()?;
        let draft = draft(text, reader).ok()?;
        (draft.root(&reader.tokens).kind() == NodeKind::Object).then_some(draft)
    });
    // Looked for at once, while the text is at hand in the processor's cache.
    let duplicate = value.as_ref().and_then(|value| value.root(&reader.tokens).first_duplicate());
    Ok(RecordDraft { record, value, key, duplicate })
}

/// The value's document; `None` where Connect's wrapper holds a null payload, which is a tombstone.
fn read_value<'a>(bytes: &'a [u8], reader: &mut DocumentReader) -> Result<Option<Draft<'a>>, Rejection> {
    let reject = |code, detail: String| Rejection::new(Stage::Decode, code, detail);
    if bytes.is_empty() {
        return Err(reject(ReasonCode::EmptyValue, "the value has no bytes; only a null value is a tombstone".into()));
    }
    let limit = reader.limits.max_value_bytes;
    if bytes.len() > limit {
        let detail = format!("the value has {} bytes, limits.max_value_bytes is {limit}", bytes.len());
        return Err(reject(ReasonCode::TooLarge, detail));
    }
    let text = simdutf8::compat::from_utf8(bytes)
        .map_err(|error| reject(ReasonCode::InvalidUtf8, format!("the value is no UTF-8 at byte {}", error.valid_up_to())))?;
    let draft = draft(text, reader).map_err(|error| match error {
        ParseError::Malformed { .. } => reject(ReasonCode::MalformedJson, format!("the value is no JSON: {error}")),
        ParseError::TooDeep { .. } => reject(ReasonCode::TooDeep, format!("the value is {error}")),
        ParseError::TooLong => reject(ReasonCode::TooLarge, format!("the value is {error}")),
    })?;
    let is_null = draft.root(&reader.tokens).is_null();
    if is_null && draft.shape == Shape::Plain {
        return Err(reject(ReasonCode::EmptyValue, "the value is the JSON text null; only a null value is a tombstone".into()));
    }
    Ok((!is_null).then_some(draft))
}

fn draft<'a>(text: &'a str, reader: &mut DocumentReader) -> Result<Draft<'a>, ParseError> {
    let max_depth = reader.limits.max_depth;
    if let Some((payload, declared)) = reader.schemas.payload(text)
        // What is wrong with a payload is said of the whole text.
        && let Ok(tape) = reader.tokens.parse(payload, max_depth.saturating_sub(1))
    {
        return Ok(Draft { tape, declared: Some(declared), shape: Shape::Unwrapped });
    }
    let tape = reader.tokens.parse(text, max_depth)?;
    let draft = wrap(tape, reader);
    if let (Some(declared), Some(opening)) = (&draft.declared, draft.opening(text, &reader.tokens)) {
        reader.schemas.remember(opening, declared);
    }
    Ok(draft)
}

/// Recognises Connect's wrapper: an object of exactly `schema` and `payload`.
fn wrap<'a>(tape: BufferedTape<'a>, reader: &mut DocumentReader) -> Draft<'a> {
    let root = reader.tokens.root(&tape);
    let is_wrapper = root.fields().take(3).count() == 2 && root.get("payload").is_some();
    let Some(schema) = root.get("schema").filter(|_| is_wrapper) else {
        return Draft { tape, declared: None, shape: Shape::Plain };
    };
    let declared = if schema.kind() == NodeKind::Object { reader.schemas.declared(schema) } else { None };
    let shape = if schema.is_null() || declared.is_some() { Shape::Wrapped } else { Shape::Plain };
    Draft { tape, declared, shape }
}

impl<'a> RecordDocument<'a> {
    /// The value's root, the wrapper's payload where there is one; `None` for a tombstone.
    #[must_use]
    pub fn value(&self) -> Option<Node<'_>> {
        self.value.as_ref().map(|value| value.root)
    }

    /// The declared type of the value.
    #[must_use]
    pub fn value_type(&self) -> Option<&DeclaredType> {
        self.value.as_ref().and_then(|value| value.declared.as_deref())
    }

    /// The record key as an image, where it is an object.
    #[must_use]
    pub fn key_image(&self) -> Option<Image<'_>> {
        let key = self.key.as_ref()?;
        Some(Image { object: key.root, declared: key.declared.as_deref(), unchanged: UnchangedMarker::Never, own_prefix: None })
    }

    /// The path of a field that stands twice in one object of the value.
    #[must_use]
    pub fn duplicate_field(&self) -> Option<&str> {
        self.duplicate.as_deref()
    }

    /// A change event of this record with nothing but its key and its operation.
    #[must_use]
    pub fn change(&self, operation: Operation) -> ChangeEvent<'_> {
        ChangeEvent {
            operation,
            route: RouteFields::default(),
            before: None,
            after: None,
            key: self.key_image(),
            event_time: None,
            version: None,
            key_columns: Vec::new(),
            hints: ValueHints::default(),
        }
    }
}

/// A node as text for a route: absent, null, empty and not text are all `None`.
pub(crate) fn route_text(node: Option<Node<'_>>) -> Option<std::borrow::Cow<'_, str>> {
    node.and_then(Node::text).filter(|text| !text.is_empty())
}

/// The type of a field of a declared struct.
pub(crate) fn field_type<'d>(declared: Option<&'d DeclaredType>, name: &str) -> Option<&'d DeclaredType> {
    let DeclaredType::Struct(fields) = declared? else { return None };
    fields.iter().find(|field| field.name == name).map(|field| &field.kind)
}

/// The image at `node`: it has to be an object.
///
/// # Errors
/// `EMPTY_VALUE` when it is absent or null, `TYPE_MISMATCH` when it is something else.
pub(crate) fn required_image<'d>(node: Option<Node<'d>>, declared: Option<&'d DeclaredType>, place: &str) -> Result<Image<'d>, Rejection> {
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
pub(crate) fn optional_image<'d>(node: Option<Node<'d>>, declared: Option<&'d DeclaredType>) -> Option<Image<'d>> {
    let object = node.filter(|node| node.kind() == NodeKind::Object)?;
    Some(Image { object, declared, unchanged: UnchangedMarker::Never, own_prefix: None })
}
