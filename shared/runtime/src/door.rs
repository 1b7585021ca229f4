//! The event of a Kafka event-source mapping, MSK or self-managed.
//!
//! The envelope is read loosely and each record by itself, so that one odd record never fails the event. What is no such event is refused
//! with a code: an empty success would hide a wrong trigger. Shape: AWS Lambda developer guide, "Using Lambda with Apache Kafka".

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use sluice_model::{ReasonCode, Rejection, SourceRecord, Stage, TopicPartition};

use crate::quick;
use crate::record::{self, RecordParts};

/// Why an event was refused as a whole. The invocation fails and nothing is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// No JSON.
    #[error("EVENT_MALFORMED: the event is no JSON: {0}")]
    Malformed(String),
    /// No `records`.
    #[error(
        "EVENT_NOT_KAFKA: the event has no `records` object; this function takes events of a Kafka event-source mapping (MSK or self-managed)"
    )]
    NotKafka,
    /// What a mapping writes to its on-failure destination.
    #[error(
        "EVENT_ON_FAILURE_RECORD: this is the record of an on-failure destination; invoke the function with the event in its `payload`, \
         or let Kafka redeliver it"
    )]
    OnFailureRecord,
    /// The batch of an EventBridge pipe.
    #[error("EVENT_PIPES_BATCH: this is the array of an EventBridge pipe; connect the topic by an event-source mapping instead")]
    PipesBatch,
}

/// A record that could not be read: its raw JSON, for the error table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecord<'a> {
    /// Where it says it stands, or what takes the place of that: see [`record::stand_in_coordinate`].
    pub topic_partition: TopicPartition,
    /// Its offset, or the stand-in.
    pub offset: i64,
    /// The raw JSON of the record.
    pub raw: &'a str,
    /// Why it is refused.
    pub rejection: Rejection,
}

/// The records of an event: bytes decoded, sorted by topic, partition and offset.
#[derive(Debug)]
pub struct DoorBatch<'a> {
    /// All keys and values, one behind the other.
    arena: Vec<u8>,
    parts: Vec<RecordParts<'a>>,
    /// The records that could not be read.
    pub unreadable: Vec<UnreadableRecord<'a>>,
}

impl DoorBatch<'_> {
    fn of_size(body_len: usize) -> Self {
        // Base64 carries three bytes in four characters, so the arena never grows.
        Self { arena: Vec::with_capacity(body_len / 4 * 3), parts: Vec::new(), unreadable: Vec::new() }
    }

    fn sort(&mut self) {
        self.parts.sort_by(|a, b| (&a.topic_partition, a.offset).cmp(&(&b.topic_partition, b.offset)));
    }

    /// How many records came in.
    #[must_use]
    pub fn received(&self) -> usize {
        self.parts.len() + self.unreadable.len()
    }

    /// The readable records, borrowed from the batch.
    #[must_use]
    pub fn source_records(&self) -> Vec<SourceRecord<'_>> {
        self.parts.iter().map(|parts| parts.source_record(&self.arena)).collect()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    records: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "KafkaBatchInfo")]
    kafka_batch_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestContext")]
    request_context: Option<&'a RawValue>,
}

/// Opens the raw JSON of records that could not be read when they came, each by itself. Gives the batch, in the order of the texts, and which texts are
/// still refused and why.
#[must_use]
pub fn reopen<'a>(texts: &[&'a str]) -> (DoorBatch<'a>, Vec<Option<Rejection>>) {
    let mut batch = DoorBatch::of_size(texts.iter().map(|text| text.len()).sum());
    let refused = texts.iter().map(|text| match record::parse(text, &mut batch.arena) {
        Ok(parts) => {
            batch.parts.push(parts);
            None
        }
        Err(rejection) => Some(rejection),
    });
    let refused = refused.collect();
    (batch, refused)
}

/// Opens an event.
///
/// # Errors
/// [`EventError`] when it is no event of a Kafka event-source mapping.
pub fn open_event(body: &[u8]) -> Result<DoorBatch<'_>, EventError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return Err(EventError::PipesBatch);
    }
    quick_batch(body).map_or_else(|| tolerant_batch(body), Ok)
}

/// The usual event, in one pass; `None` when anything is odd about it.
fn quick_batch(body: &[u8]) -> Option<DoorBatch<'_>> {
    let mut batch = DoorBatch::of_size(body.len());
    quick::read(body, |group, quick| {
        let raw = quick.raw;
        match record::finish(quick, &mut batch.arena) {
            Ok(parts) => batch.parts.push(parts),
            Err(rejection) => batch.unreadable.push(unreadable(raw, group, rejection)),
        }
        Some(())
    })?;
    batch.sort();
    Some(batch)
}

fn tolerant_batch(body: &[u8]) -> Result<DoorBatch<'_>, EventError> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => EventError::NotKafka,
        _ => EventError::Malformed(error.to_string()),
    })?;
    if envelope.kafka_batch_info.is_some() || (envelope.records.is_none() && envelope.request_context.is_some()) {
        return Err(EventError::OnFailureRecord);
    }
    let records = envelope.records.ok_or(EventError::NotKafka)?;
    let groups: Groups<'_> = serde_json::from_str(records.get()).map_err(|_| EventError::NotKafka)?;
    Ok(read_groups(&groups.0, body.len()))
}

/// The groups of an event in order; a group that stands twice is kept twice.
struct Groups<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Groups<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of record lists")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut groups = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    groups.push((name, map.next_value()?));
                }
                Ok(groups)
            }
        }
        deserializer.deserialize_map(Visitor).map(Groups)
    }
}

/// An object's key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn read_groups<'a>(groups: &[(Cow<'a, str>, &'a RawValue)], body_len: usize) -> DoorBatch<'a> {
    let mut batch = DoorBatch::of_size(body_len);
    for (name, group) in groups {
        match serde_json::from_str::<Vec<&'a RawValue>>(group.get()) {
            Ok(records) => records.into_iter().for_each(|raw| read_record(raw.get(), name, &mut batch)),
            Err(_) => {
                let rejection = Rejection::new(Stage::Door, ReasonCode::MalformedRecord, "expected a list of records");
                batch.unreadable.push(unreadable(group.get(), name, rejection));
            }
        }
    }
    batch.sort();
    batch
}

fn read_record<'a>(raw: &'a str, group: &str, batch: &mut DoorBatch<'a>) {
    match record::parse(raw, &mut batch.arena) {
        Ok(parts) => batch.parts.push(parts),
        Err(rejection) => batch.unreadable.push(unreadable(raw, group, rejection)),
    }
}

fn unreadable<'a>(raw: &'a str, group: &str, rejection: Rejection) -> UnreadableRecord<'a> {
    let (topic_partition, offset) = record::coordinate_of(raw).unwrap_or_else(|| record::stand_in_coordinate(raw, group));
    UnreadableRecord { topic_partition, offset, raw, rejection }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(record: &str) -> String {
        format!(r#"{{"eventSource":"aws:kafka","records":{{"t-0":[{record}]}}}}"#)
    }

    #[test]
    fn what_is_no_kafka_event_is_refused_with_a_code() {
        assert_eq!(open_event(b"{}").err(), Some(EventError::NotKafka));
        assert_eq!(open_event(br#"{"records":[]}"#).err(), Some(EventError::NotKafka));
        assert_eq!(open_event(br#"{"records":null}"#).err(), Some(EventError::NotKafka));
        assert_eq!(open_event(b" [{}]").err(), Some(EventError::PipesBatch));
        assert_eq!(open_event(br#"{"KafkaBatchInfo":{},"payload":{"records":{}}}"#).err(), Some(EventError::OnFailureRecord));
        assert!(matches!(open_event(b"{"), Err(EventError::Malformed(_))));
        assert!(matches!(open_event(b"\xff"), Err(EventError::Malformed(_))));
    }

    #[test]
    fn odd_records_are_read_and_broken_ones_are_kept_raw() {
        let records = [
            r#"{"topic":"t","partition":"0","offset":2,"timestamp":-1,"value":null,"extra":{"a":[1]}}"#,
            r#"{"topic":"t","partition":0,"offset":1,"timestamp":"1772360130000","timestampType":"CREATE_TIME","key":"","headers":null,"value":"e30="}"#,
            r#"{"topic":"t","partition":0,"offset":3,"headers":[{"a":[195,171]},{"b":[-61,-85]},{"c":null},{"d":[]}],"value":"e31="}"#,
            r#"{"topic":"t","partition":0,"offset":4,"value":{"a":1}}"#,
            r#"{"topic":"t","partition":0,"offset":5,"value":"@@"}"#,
            r#"{"topic":"t","partition":0,"value":"e30="}"#,
            r"7",
        ];
        let body = event(&records.join(","));
        let batch = open_event(body.as_bytes()).unwrap();
        assert_eq!(batch.received(), 7);
        let read = batch.source_records();
        assert_eq!(read.iter().map(|record| record.offset).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(read[0].key, Some(b"".as_slice()));
        assert_eq!(read[0].timestamp.epoch_ms, Some(1_772_360_130_000));
        assert_eq!(read[1].timestamp.epoch_ms, None);
        assert_eq!(read[1].value, None);
        assert_eq!(read[2].header_text("a"), Some("ë"));
        assert_eq!(read[2].header_text("b"), Some("ë"));
        assert_eq!(read[2].header_text("c"), None);
        assert_eq!(read[2].header_text("d"), Some(""));
        assert_eq!(read[2].value, Some(b"{}".as_slice()));
        let broken: Vec<_> = batch.unreadable.iter().map(|record| (record.topic_partition.to_string(), record.offset)).collect();
        assert_eq!(broken[..2], [("t-0".to_owned(), 4), ("t-0".to_owned(), 5)]);
        assert_eq!(batch.unreadable[3].raw, "7");
        assert!(batch.unreadable.iter().all(|record| record.rejection.code == ReasonCode::MalformedRecord));
        assert_ne!(broken[2], broken[3], "records without coordinates are told apart by their content");
    }

    #[test]
    fn a_byte_order_mark_and_sloppy_base64_are_taken() {
        let body = format!("\u{feff}{}", event(r#"{"topic":"t","partition":0,"offset":1,"key":"dGVzdA","value":"dGVzdB=="}"#));
        let batch = open_event(body.as_bytes()).unwrap();
        assert_eq!(batch.source_records()[0].key, Some(b"test".as_slice()));
        assert_eq!(batch.source_records()[0].value, Some(b"test".as_slice()));
    }

    fn usual_event() -> String {
        let records = [
            r#"{"topic":"t","partition":0,"offset":2,"timestamp":1772360130000,"timestampType":"CREATE_TIME","key":"dGVzdA==","value":"e30=","headers":[]}"#,
            r#"{"topic":"t","partition":0,"offset":1,"timestamp":-1,"key":null,"value":null,"headers":[{"a":[195,171]},{"b":null}],"x":[1,{"y":true}]}"#,
            r#"{"topic":"u","partition":3,"offset":0,"value":"e30","valueSchemaMetadata":{"schemaId":12},"headers":null}"#,
        ];
        event(&records.join(" , "))
    }

    fn seen(batch: &DoorBatch<'_>) -> String {
        format!("{:?} {:?}", batch.source_records(), batch.unreadable)
    }

    #[test]
    fn the_usual_event_is_read_in_one_pass_as_the_tolerant_reader_reads_it() {
        let body = usual_event();
        let quick = quick_batch(body.as_bytes()).unwrap();
        assert_eq!(quick.source_records().len(), 3);
        assert_eq!(seen(&quick), seen(&tolerant_batch(body.as_bytes()).unwrap()));
    }

    proptest::proptest! {
        #[test]
        fn what_the_quick_reader_takes_it_reads_as_the_tolerant_one_does(
            at in proptest::prelude::any::<proptest::sample::Index>(),
            byte in proptest::sample::select(b"{}[],:\"\\0-9.eEtnuLl= \n\x01\xff".to_vec()),
        ) {
            let mut body = usual_event().into_bytes();
            let at = at.index(body.len());
            body[at] = byte;
            if let Some(quick) = quick_batch(&body) {
                proptest::prop_assert_eq!(Ok(seen(&quick)), tolerant_batch(&body).map(|batch| seen(&batch)));
            }
        }
    }

    #[test]
    fn schema_metadata_is_kept() {
        let record = r#"{"topic":"t","partition":0,"offset":1,"value":"","valueSchemaMetadata":{"schemaId":12,"dataFormat":"AVRO"},"keySchemaMetadata":{"schemaId":"a-b"}}"#;
        let body = event(record);
        let batch = open_event(body.as_bytes()).unwrap();
        let read = batch.source_records();
        assert_eq!(read[0].value_schema_id.as_deref(), Some("12"));
        assert_eq!(read[0].key_schema_id.as_deref(), Some("a-b"));
    }
}
