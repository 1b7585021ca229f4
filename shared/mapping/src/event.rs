//! The event that Lambda sends for a batch of Kafka records, written record by record.
//!
//! Shape and limits: AWS Lambda developer guide, "Using Lambda with Apache Kafka" and "Lambda quotas". Bytes of headers are signed there, because
//! Java's are; key and value are base64, and null where Kafka's are.

use std::io::Write as _;

use bytes::Bytes;
use sluice_model::{SourceRecord, TimestampType, TopicPartition};

/// The largest event that Lambda takes, in bytes ("Invocation payload, synchronous: 6 MB").
pub const MAX_EVENT_BYTES: usize = 6 * 1024 * 1024;

/// What bounds an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// Records in it (Lambda's `BatchSize`).
    pub max_records: usize,
    /// Its length in bytes.
    pub max_bytes: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        Self { max_records: 10_000, max_bytes: MAX_EVENT_BYTES }
    }
}

/// An event and the positions that are reached when the function has applied it.
#[derive(Debug, Clone)]
pub struct Event {
    /// The JSON text.
    pub body: Bytes,
    /// The offset behind the last record of each partition.
    pub positions: Vec<(TopicPartition, i64)>,
    /// How many records it has.
    pub records: usize,
}

/// Whether a record was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the event.
    Taken,
    /// It would not fit: the event has to be finished first.
    Full,
}

/// A record, or one that the client cannot read whole.
#[derive(Debug, Clone, Copy)]
pub enum Record<'r> {
    /// A record.
    Readable(&'r SourceRecord<'r>),
    /// A record with a header that cannot be read, and why. It becomes a record that the function refuses, so that it is told and kept.
    OddHeaders(&'r SourceRecord<'r>, &'r str),
}

impl<'r> Record<'r> {
    const fn source(self) -> &'r SourceRecord<'r> {
        match self {
            Self::Readable(record) | Self::OddHeaders(record, _) => record,
        }
    }
}

/// Writes an event.
#[derive(Debug)]
pub struct EventBuilder {
    bootstrap_servers: String,
    limits: EventLimits,
    groups: Vec<Group>,
    records: usize,
    bytes: usize,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Group {
    topic_partition: TopicPartition,
    json: Vec<u8>,
    next_offset: i64,
}

/// What surrounds the groups, without the servers.
const FRAME_BYTES: usize = r#"{"eventSource":"SelfManagedKafka","bootstrapServers":"","records":{}}"#.len();

impl EventBuilder {
    /// A builder of events from these servers.
    #[must_use]
    pub fn new(bootstrap_servers: &str, limits: EventLimits) -> Self {
        let bootstrap_servers = text(bootstrap_servers);
        let bytes = FRAME_BYTES + bootstrap_servers.len();
        Self { bootstrap_servers, limits, groups: Vec::new(), records: 0, bytes, scratch: Vec::new() }
    }

    /// Whether no record is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Adds a record. The first one is always taken: a record that is larger than an event travels alone, and the function tells that it is
    /// too large.
    pub fn push(&mut self, record: Record<'_>) -> Pushed {
        let source = record.source();
        self.scratch.clear();
        write_record(record, &mut self.scratch);
        let group = self.groups.iter().position(|group| group.topic_partition == source.topic_partition);
        let name_bytes = if group.is_some() { 0 } else { text(&source.topic_partition.to_string()).len() + r#"":[],"#.len() };
        let grown = self.bytes + name_bytes + self.scratch.len() + 1;
        if self.records > 0 && (grown > self.limits.max_bytes || self.records >= self.limits.max_records) {
            return Pushed::Full;
        }
        let group = match group {
            Some(index) => &mut self.groups[index],
            None => {
                self.groups.push(Group { topic_partition: source.topic_partition.clone(), json: Vec::new(), next_offset: 0 });
                let last = self.groups.len() - 1;
                &mut self.groups[last]
            }
        };
        if !group.json.is_empty() {
            group.json.push(b',');
        }
        group.json.extend_from_slice(&self.scratch);
        group.next_offset = source.offset.saturating_add(1);
        self.bytes = grown;
        self.records += 1;
        Pushed::Taken
    }

    /// Whether the record that was just taken is the first.
    #[must_use]
    pub const fn has_one(&self) -> bool {
        self.records == 1
    }

    /// Whether another record would surely not be taken.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.records >= self.limits.max_records || self.bytes >= self.limits.max_bytes
    }

    /// The event; the builder is empty then.
    pub fn finish(&mut self) -> Event {
        let mut body = Vec::with_capacity(self.bytes);
        body.extend_from_slice(br#"{"eventSource":"SelfManagedKafka","bootstrapServers":"#);
        body.extend_from_slice(self.bootstrap_servers.as_bytes());
        body.extend_from_slice(br#","records":{"#);
        let mut positions = Vec::with_capacity(self.groups.len());
        for (index, group) in self.groups.drain(..).enumerate() {
            if index > 0 {
                body.push(b',');
            }
            write_text(&group.topic_partition.to_string(), &mut body);
            body.extend_from_slice(b":[");
            body.extend_from_slice(&group.json);
            body.push(b']');
            positions.push((group.topic_partition, group.next_offset));
        }
        body.extend_from_slice(b"}}");
        let records = std::mem::take(&mut self.records);
        self.bytes = FRAME_BYTES + self.bootstrap_servers.len();
        Event { body: Bytes::from(body), positions, records }
    }
}

/// A JSON string.
fn text(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    // A vector takes whatever is written to it, and any text is a JSON string.
    let _ = serde_json::to_writer(out, text);
}

fn write_record(record: Record<'_>, out: &mut Vec<u8>) {
    let source = record.source();
    out.extend_from_slice(br#"{"topic":"#);
    write_text(&source.topic_partition.topic, out);
    let kind = match source.timestamp.kind {
        TimestampType::CreateTime => "CREATE_TIME",
        TimestampType::LogAppendTime => "LOG_APPEND_TIME",
        TimestampType::NoTimestampType => "NO_TIMESTAMP_TYPE",
    };
    let (partition, offset, timestamp) = (source.topic_partition.partition, source.offset, source.timestamp.epoch_ms.unwrap_or(-1));
    // A vector takes whatever is written to it.
    let _ = write!(out, r#","partition":{partition},"offset":{offset},"timestamp":{timestamp},"timestampType":"{kind}","key":"#);
    write_bytes(source.key, out);
    out.extend_from_slice(br#","value":"#);
    write_bytes(source.value, out);
    out.extend_from_slice(br#","headers":"#);
    match record {
        Record::Readable(record) => write_headers(record, out),
        Record::OddHeaders(_, why) => write_text(why, out),
    }
    out.push(b'}');
}

fn write_bytes(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes {
        None => out.extend_from_slice(b"null"),
        Some(bytes) => {
            out.push(b'"');
            base64_simd::STANDARD.encode_append(bytes, out);
            out.push(b'"');
        }
    }
}

fn write_headers(record: &SourceRecord<'_>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, (name, value)) in record.headers.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'{');
        write_text(name, out);
        out.push(b':');
        match value {
            None => out.extend_from_slice(b"null"),
            Some(value) => write_signed(value, out),
        }
        out.push(b'}');
    }
    out.push(b']');
}

fn write_signed(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let _ = write!(out, "{}", byte.cast_signed());
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;
    use sluice_model::RecordTimestamp;

    use super::*;

    fn record<'a>(topic: &str, partition: i32, offset: i64, value: Option<&'a [u8]>) -> SourceRecord<'a> {
        SourceRecord {
            topic_partition: TopicPartition { topic: topic.into(), partition },
            offset,
            timestamp: RecordTimestamp { epoch_ms: Some(1_772_360_130_000), kind: TimestampType::CreateTime },
            key: None,
            value,
            headers: Vec::new(),
            value_schema_id: None,
            key_schema_id: None,
        }
    }

    fn builder(max_records: usize, max_bytes: usize) -> EventBuilder {
        EventBuilder::new("b1:9092,b2:9092", EventLimits { max_records, max_bytes })
    }

    #[test]
    fn an_event_is_that_of_a_mapping_for_kafka_of_ones_own() {
        let mut builder = builder(10, MAX_EVENT_BYTES);
        let headers = vec![(Cow::Borrowed("n\"1"), Some("ë".as_bytes().to_vec())), (Cow::Borrowed("none"), None)];
        let first = SourceRecord { key: Some(b"k"), headers, ..record("t", 0, 7, Some(b"{}")) };
        assert_eq!(builder.push(Record::Readable(&first)), Pushed::Taken);
        assert_eq!(builder.push(Record::Readable(&record("t", 0, 9, None))), Pushed::Taken);
        let event = builder.finish();
        let expected = concat!(
            r#"{"eventSource":"SelfManagedKafka","bootstrapServers":"b1:9092,b2:9092","records":{"t-0":["#,
            r#"{"topic":"t","partition":0,"offset":7,"timestamp":1772360130000,"timestampType":"CREATE_TIME","key":"aw==","value":"e30=","headers":[{"n\"1":[-61,-85]},{"none":null}]},"#,
            r#"{"topic":"t","partition":0,"offset":9,"timestamp":1772360130000,"timestampType":"CREATE_TIME","key":null,"value":null,"headers":[]}]}}"#
        );
        assert_eq!(std::str::from_utf8(&event.body).unwrap(), expected);
        assert_eq!(event.positions, [(TopicPartition { topic: "t".into(), partition: 0 }, 10)]);
        assert!(builder.is_empty());
    }

    #[test]
    fn a_record_with_a_header_that_cannot_be_read_is_refused_by_the_door_and_kept() {
        let mut builder = builder(10, MAX_EVENT_BYTES);
        builder.push(Record::OddHeaders(&record("t", 3, 7, Some(b"{}")), "header 0 has a name that is no UTF-8"));
        let event = builder.finish();
        let batch = sluice_runtime::open_event(&event.body).unwrap();
        assert_eq!(batch.unreadable.len(), 1);
        assert_eq!((batch.unreadable[0].topic_partition.partition, batch.unreadable[0].offset), (3, 7));
    }

    #[test]
    fn a_record_larger_than_an_event_travels_alone() {
        let mut builder = builder(10, 500);
        let (large, small) = (vec![b'x'; 2_000], record("t", 0, 2, Some(b"{}")));
        assert_eq!(builder.push(Record::Readable(&record("t", 0, 1, Some(&large)))), Pushed::Taken);
        assert!(builder.is_full());
        assert_eq!(builder.push(Record::Readable(&small)), Pushed::Full);
        assert_eq!(builder.finish().records, 1);
        assert_eq!(builder.push(Record::Readable(&small)), Pushed::Taken);
    }

    type AnyHeaders = Vec<(String, Option<Vec<u8>>)>;

    /// Topic, partition, key, value, headers.
    fn any_record() -> impl Strategy<Value = (u8, i32, Option<Vec<u8>>, Option<Vec<u8>>, AnyHeaders)> {
        let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
        let headers = prop::collection::vec((any::<String>(), bytes()), 0..3);
        (0_u8..3, 0..3, bytes(), bytes(), headers)
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_the_door_reads(records in prop::collection::vec(any_record(), 1..40), max_bytes in 200_usize..3_000, max_records in 1_usize..20) {
            let mut builder = builder(max_records, max_bytes);
            let sources: Vec<SourceRecord<'_>> = records.iter().enumerate().map(|(offset, (topic, partition, key, value, headers))| SourceRecord {
                key: key.as_deref(),
                headers: headers.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), value.clone())).collect(),
                ..record(&format!("t{topic}"), *partition, offset as i64, value.as_deref())
            }).collect();
            let mut events = Vec::new();
            for source in &sources {
                if builder.push(Record::Readable(source)) == Pushed::Full {
                    events.push(builder.finish());
                    prop_assert_eq!(builder.push(Record::Readable(source)), Pushed::Taken);
                }
            }
            events.push(builder.finish());
            let mut read: Vec<String> = Vec::new();
            for event in &events {
                prop_assert!(event.records <= max_records);
                prop_assert!(event.records == 1 || event.body.len() <= max_bytes);
                let batch = sluice_runtime::open_event(&event.body).unwrap();
                prop_assert!(batch.unreadable.is_empty());
                let records = batch.source_records();
                prop_assert_eq!(records.len(), event.records);
                for (partition, position) in &event.positions {
                    let last = records.iter().filter(|record| record.topic_partition == *partition).map(|record| record.offset).max();
                    prop_assert_eq!(last, Some(position - 1));
                }
                let mut shown: Vec<(i64, String)> = records.iter().map(|record| (record.offset, format!("{record:?}"))).collect();
                shown.sort();
                read.extend(shown.into_iter().map(|(_, text)| text));
            }
            let written: Vec<String> = sources.iter().map(|record| format!("{record:?}")).collect();
            prop_assert_eq!(read, written);
        }
    }
}
