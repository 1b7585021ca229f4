//! One record of the event, read tolerantly.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::value::RawValue;
use sluice_model::{Header, ReasonCode, RecordTimestamp, Rejection, SourceRecord, Stage, TopicPartition};

use crate::quick::{QuickRecord, timestamp_type};

/// Padding may be missing and the bits behind the last byte may be set: AWS's own sample event has such a key.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A record whose key and value stand in the batch's arena.
#[derive(Debug)]
pub struct RecordParts<'a> {
    pub(crate) topic_partition: TopicPartition,
    pub(crate) offset: i64,
    timestamp: RecordTimestamp,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Vec<Header<'a>>,
    value_schema_id: Option<Cow<'a, str>>,
    key_schema_id: Option<Cow<'a, str>>,
}

impl RecordParts<'_> {
    pub(crate) fn source_record<'b>(&'b self, arena: &'b [u8]) -> SourceRecord<'b> {
        SourceRecord {
            topic_partition: self.topic_partition.clone(),
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.clone().map(|range| &arena[range]),
            value: self.value.clone().map(|range| &arena[range]),
            headers: self.headers.iter().map(|(name, value)| (Cow::Borrowed(name.as_ref()), value.clone())).collect(),
            value_schema_id: self.value_schema_id.as_deref().map(Cow::Borrowed),
            key_schema_id: self.key_schema_id.as_deref().map(Cow::Borrowed),
        }
    }
}

/// The fields as they stand; unknown ones are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow, default)]
    topic: Option<&'a RawValue>,
    #[serde(borrow, default)]
    partition: Option<&'a RawValue>,
    #[serde(borrow, default)]
    offset: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    key: Option<&'a RawValue>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    headers: Option<&'a RawValue>,
    #[serde(borrow, default)]
    value_schema_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    key_schema_metadata: Option<&'a RawValue>,
}

fn refuse(field: &str, detail: impl Into<String>) -> Rejection {
    Rejection::of_field(Stage::Door, ReasonCode::MalformedRecord, field, detail)
}

/// Reads a record; its key and value are appended to `arena`.
pub(crate) fn parse<'a>(raw: &'a str, arena: &mut Vec<u8>) -> Result<RecordParts<'a>, Rejection> {
    let fields: Fields<'a> =
        serde_json::from_str(raw).map_err(|error| refuse("", format!("the record is no object of its fields: {error}")))?;
    let (topic_partition, offset) =
        coordinate(&fields).ok_or_else(|| refuse("", "the record has no readable topic, partition and offset"))?;
    Ok(RecordParts {
        topic_partition,
        offset,
        timestamp: timestamp(&fields),
        headers: headers(fields.headers)?,
        key: bytes(fields.key, "key", arena)?,
        value: bytes(fields.value, "value", arena)?,
        value_schema_id: fields.value_schema_metadata.and_then(schema_id),
        key_schema_id: fields.key_schema_metadata.and_then(schema_id),
    })
}

/// The same for a record whose fields have been told apart.
pub(crate) fn finish<'a>(quick: QuickRecord<'a>, arena: &mut Vec<u8>) -> Result<RecordParts<'a>, Rejection> {
    let json = |text: Option<&'a str>| text.and_then(|text| serde_json::from_str::<&'a RawValue>(text).ok());
    Ok(RecordParts {
        headers: if quick.headers == Some("[]") { Vec::new() } else { headers(json(quick.headers))? },
        key: quick.key.map(|encoded| decoded(encoded, "key", arena)).transpose()?,
        value: quick.value.map(|encoded| decoded(encoded, "value", arena)).transpose()?,
        value_schema_id: json(quick.value_schema).and_then(schema_id),
        key_schema_id: json(quick.key_schema).and_then(schema_id),
        topic_partition: quick.topic_partition,
        offset: quick.offset,
        timestamp: quick.timestamp,
    })
}

/// The coordinate that a record says it has, where it says so.
pub(crate) fn coordinate_of(raw: &str) -> Option<(TopicPartition, i64)> {
    coordinate(&serde_json::from_str(raw).ok()?)
}

/// A coordinate for a record that does not say where it stands: partition −1 of the topic of its group, and a hash of its text as the
/// offset. A second delivery of the same text has the same one, so that it is a replay and no second dead letter.
pub(crate) fn stand_in_coordinate(raw: &str, group: &str) -> (TopicPartition, i64) {
    let topic = group.rsplit_once('-').map_or(group, |(topic, _)| topic);
    let hash = raw.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (TopicPartition { topic: topic.into(), partition: -1 }, (hash >> 1).cast_signed())
}

fn coordinate(fields: &Fields<'_>) -> Option<(TopicPartition, i64)> {
    let topic = text(fields.topic?).filter(|topic| !topic.is_empty())?;
    let partition = i32::try_from(integer(fields.partition?)?).ok().filter(|partition| *partition >= 0)?;
    let offset = integer(fields.offset?).filter(|offset| *offset >= 0)?;
    Some((TopicPartition { topic: topic.as_ref().into(), partition }, offset))
}

fn timestamp(fields: &Fields<'_>) -> RecordTimestamp {
    let kind = timestamp_type(fields.timestamp_type.and_then(text).as_deref());
    let epoch_ms = fields.timestamp.and_then(integer).filter(|ms| *ms >= 0);
    RecordTimestamp { epoch_ms, kind }
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str(raw.get()).ok().map(|Text(text)| text)
}

/// A JSON integer, or text of one.
fn integer(raw: &RawValue) -> Option<i64> {
    raw.get().parse().ok().or_else(|| text(raw)?.parse().ok())
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Decodes base64 text into the arena; absent and null are `None`.
fn bytes(raw: Option<&RawValue>, field: &str, arena: &mut Vec<u8>) -> Result<Option<Range<usize>>, Rejection> {
    let Some(raw) = raw.filter(|raw| !is_null(raw)) else { return Ok(None) };
    let encoded = text(raw).ok_or_else(|| refuse(field, format!("expected base64 text, found {}", Rejection::quote(raw.get()))))?;
    decoded(&encoded, field, arena).map(Some)
}

/// Decodes base64 text into the arena.
fn decoded(encoded: &str, field: &str, arena: &mut Vec<u8>) -> Result<Range<usize>, Rejection> {
    let start = arena.len();
    if base64_simd::STANDARD.decode_append(encoded.as_bytes(), arena).is_ok() {
        return Ok(start..arena.len());
    }
    // What is not written by the book is for the decoder that takes it all the same, or says why not.
    arena.truncate(start);
    match LENIENT.decode_vec(encoded.as_bytes(), arena) {
        Ok(()) => Ok(start..arena.len()),
        Err(error) => {
            arena.truncate(start);
            Err(refuse(field, format!("{} is no base64: {error}", Rejection::quote(encoded))))
        }
    }
}

/// A schema id as text, whether it was sent as text or as a number.
fn schema_id(metadata: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        schema_id: Option<&'a RawValue>,
    }
    let id = serde_json::from_str::<Metadata<'_>>(metadata.get()).ok()?.schema_id?;
    text(id).or_else(|| integer(id).map(|number| Cow::Owned(number.to_string())))
}

/// Headers are a list of objects, each of one name and its bytes, signed or unsigned; a null value is a null header.
fn headers<'a>(raw: Option<&'a RawValue>) -> Result<Vec<Header<'a>>, Rejection> {
    let Some(raw) = raw.filter(|raw| !is_null(raw)) else { return Ok(Vec::new()) };
    let listed: Vec<BTreeMap<&str, &RawValue>> = match serde_json::from_str(raw.get()) {
        Ok(listed) => listed,
        // Names with escapes cannot be borrowed; they are rare enough for a second, owned reading.
        Err(_) => return owned_headers(raw),
    };
    let named = listed.into_iter().flatten();
    named.map(|(name, value)| Ok((Cow::Borrowed(name), header_bytes(name, value)?))).collect()
}

fn owned_headers<'a>(raw: &RawValue) -> Result<Vec<Header<'a>>, Rejection> {
    let listed: Vec<BTreeMap<String, &RawValue>> =
        serde_json::from_str(raw.get()).map_err(|_| refuse("headers", "expected a list of objects, each a name and its bytes"))?;
    let named = listed.into_iter().flatten();
    named.map(|(name, value)| header_bytes(&name, value).map(|bytes| (Cow::Owned(name), bytes))).collect()
}

fn header_bytes(name: &str, raw: &RawValue) -> Result<Option<Vec<u8>>, Rejection> {
    if is_null(raw) {
        return Ok(None);
    }
    if let Ok(numbers) = serde_json::from_str::<Vec<i16>>(raw.get()) {
        // Java's bytes are signed, other serialisers write them unsigned; both mean the same eight bits.
        let bytes: Option<Vec<u8>> = numbers.iter().map(|number| (-128..=255).contains(number).then_some((*number & 0xff) as u8)).collect();
        return bytes.map(Some).ok_or_else(|| refuse("headers", format!("header {} has a number that is no byte", Rejection::quote(name))));
    }
    let decoded = text(raw).and_then(|encoded| LENIENT.decode(encoded.as_bytes()).ok());
    decoded.map(Some).ok_or_else(|| refuse("headers", format!("header {} is neither a list of bytes nor base64", Rejection::quote(name))))
}
