//! A dead letter as a Kafka record.

use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::FutureRecord;
use sluice_deadletter::{DeadLetter, RawBytes};

/// The longest text of one of our headers, in bytes.
const MAX_HEADER_BYTES: usize = 4_096;

/// How much of a letter is sent: a topic's `max.message.bytes` may be smaller than the source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Key and headers.
    WithoutValue,
    /// Our headers only: key or headers are too large as well.
    HeadersOfOurs,
}

impl Extent {
    /// What is sent when this was too large.
    pub(super) const fn less(self) -> Option<Self> {
        match self {
            Self::Whole => Some(Self::WithoutValue),
            Self::WithoutValue => Some(Self::HeadersOfOurs),
            Self::HeadersOfOurs => None,
        }
    }
}

/// The record of a letter. Its own headers come first, ours behind them: a consumer that asks for the last header of a name gets ours.
pub(super) fn record<'l>(topic: &'l str, letter: &'l DeadLetter, extent: Extent) -> FutureRecord<'l, [u8], [u8]> {
    let key = letter.raw_key.as_ref().map(RawBytes::all);
    let value = letter.raw_value.as_ref().map(RawBytes::all);
    let (key, value, foreign) = match extent {
        Extent::Whole => (key, value, letter.headers.as_slice()),
        Extent::WithoutValue => (key, None, letter.headers.as_slice()),
        Extent::HeadersOfOurs => (None, None, [].as_slice()),
    };
    let headers = ours(letter, extent);
    let mut all = OwnedHeaders::new_with_capacity(foreign.len() + headers.len());
    for (name, value) in foreign {
        all = all.insert(Header { key: name, value: value.as_deref() });
    }
    for (name, value) in &headers {
        all = all.insert(Header { key: name, value: Some(value.as_str()) });
    }
    FutureRecord { topic, partition: None, payload: value, key, timestamp: None, headers: Some(all) }
}

/// Bytes that a letter takes in memory of the client.
pub(super) fn size(letter: &DeadLetter) -> usize {
    let raw = [&letter.raw_key, &letter.raw_value].into_iter().flatten().map(|raw| raw.all().len());
    let headers = letter.headers.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len));
    raw.chain(headers).sum()
}

fn ours(letter: &DeadLetter, extent: Extent) -> Vec<(&'static str, String)> {
    let rejection = &letter.rejection;
    let mut headers = vec![
        ("sluice.error.code", rejection.code.as_str().to_owned()),
        ("sluice.error.stage", rejection.stage.as_str().to_owned()),
        ("sluice.error.detail", cut(&rejection.detail)),
        ("sluice.error.source", letter.key.source.to_string()),
        ("sluice.error.epoch", letter.key.epoch.to_string()),
        ("sluice.error.topic", letter.key.topic.to_string()),
        ("sluice.error.partition", letter.key.partition.to_string()),
        ("sluice.error.offset", letter.coordinate.offset.to_string()),
        ("sluice.error.row", letter.coordinate.row.to_string()),
    ];
    if !rejection.field.is_empty() {
        headers.push(("sluice.error.field", cut(&rejection.field)));
    }
    headers.extend(letter.target.as_ref().map(|table| ("sluice.error.table", table.to_string())));
    headers.extend(letter.record_timestamp_ms.map(|ms| ("sluice.error.timestamp", ms.to_string())));
    let omitted = match extent {
        Extent::Whole => None,
        Extent::WithoutValue => Some("value"),
        Extent::HeadersOfOurs => Some("key,value,headers"),
    };
    headers.extend(omitted.map(|omitted| ("sluice.error.omitted", omitted.to_owned())));
    headers
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_HEADER_BYTES)].to_owned()
}
