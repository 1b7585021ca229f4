//! The usual event, read in one pass.
//!
//! It takes a subset of what [`crate::door`] takes, and takes it in the same way: an event of the shape that AWS sends, without escapes.
//! Whatever is odd, be it valid or not, makes it give up; the tolerant reader then reads the whole event from the start and has the last word.

use std::sync::Arc;

use sluice_model::{RecordTimestamp, TimestampType, TopicPartition};

/// Objects and arrays in fields that are skipped.
const MAX_DEPTH: usize = 32;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A record whose fields were all as usual; keys, values, headers and metadata are still text.
#[derive(Debug)]
pub(crate) struct QuickRecord<'a> {
    /// The record's JSON.
    pub(crate) raw: &'a str,
    pub(crate) topic_partition: TopicPartition,
    pub(crate) offset: i64,
    pub(crate) timestamp: RecordTimestamp,
    /// Base64.
    pub(crate) key: Option<&'a str>,
    /// Base64.
    pub(crate) value: Option<&'a str>,
    /// JSON.
    pub(crate) headers: Option<&'a str>,
    /// JSON.
    pub(crate) value_schema: Option<&'a str>,
    /// JSON.
    pub(crate) key_schema: Option<&'a str>,
}

/// Reads an event and hands each record with the name of its group to `take`, which may give up with `None` as well.
pub(crate) fn read<'a>(body: &'a [u8], take: impl FnMut(&'a str, QuickRecord<'a>) -> Option<()>) -> Option<()> {
    let text = simdutf8::basic::from_utf8(body).ok()?;
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, topic: Arc::from("") };
    reader.envelope(take)?;
    reader.blanks();
    (reader.at == text.len()).then_some(())
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The topic of the last record: mostly that of the next one.
    topic: Arc<str>,
}

/// The fields of a record, as far as they were seen. A field that stands twice is odd.
#[derive(Default)]
struct Seen<'a> {
    topic: Option<&'a str>,
    partition: Option<i64>,
    offset: Option<i64>,
    timestamp: Option<Option<i64>>,
    timestamp_type: Option<Option<&'a str>>,
    key: Option<Option<&'a str>>,
    value: Option<Option<&'a str>>,
    headers: Option<&'a str>,
    value_schema: Option<&'a str>,
    key_schema: Option<&'a str>,
}

/// Fills a field that is still empty.
fn once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    let first = field.is_none();
    *field = Some(value);
    first.then_some(())
}

impl<'a> Reader<'a> {
    fn envelope(&mut self, mut take: impl FnMut(&'a str, QuickRecord<'a>) -> Option<()>) -> Option<()> {
        let mut groups = None;
        self.members(|reader, name| match name {
            "records" => {
                once(&mut groups, ())?;
                reader.members(|reader, group| {
                    reader.elements(|reader| {
                        let record = reader.record()?;
                        take(group, record)
                    })
                })
            }
            "KafkaBatchInfo" | "requestContext" => None,
            _ => reader.skip(0),
        })?;
        groups
    }

    fn record(&mut self) -> Option<QuickRecord<'a>> {
        self.blanks();
        let start = self.at;
        let mut seen = Seen::default();
        self.members(|reader, name| match name {
            "topic" => once(&mut seen.topic, reader.short_text()?),
            "partition" => once(&mut seen.partition, reader.integer()?),
            "offset" => once(&mut seen.offset, reader.integer()?),
            "timestamp" => once(&mut seen.timestamp, reader.or_null(Self::integer)?),
            "timestampType" => once(&mut seen.timestamp_type, reader.or_null(Self::short_text)?),
            "key" => once(&mut seen.key, reader.or_null(Self::short_text)?),
            "value" => once(&mut seen.value, reader.or_null(Self::long_text)?),
            "headers" => once(&mut seen.headers, reader.raw()?),
            "valueSchemaMetadata" => once(&mut seen.value_schema, reader.raw()?),
            "keySchemaMetadata" => once(&mut seen.key_schema, reader.raw()?),
            _ => reader.skip(0),
        })?;
        let raw = self.text.get(start..self.at)?;
        self.finish(raw, &seen)
    }

    fn finish(&mut self, raw: &'a str, seen: &Seen<'a>) -> Option<QuickRecord<'a>> {
        let topic = seen.topic.filter(|topic| !topic.is_empty())?;
        if *self.topic != *topic {
            self.topic = topic.into();
        }
        let partition = i32::try_from(seen.partition?).ok().filter(|partition| *partition >= 0)?;
        Some(QuickRecord {
            raw,
            topic_partition: TopicPartition { topic: Arc::clone(&self.topic), partition },
            offset: seen.offset.filter(|offset| *offset >= 0)?,
            timestamp: RecordTimestamp {
                epoch_ms: seen.timestamp.flatten().filter(|ms| *ms >= 0),
                kind: timestamp_type(seen.timestamp_type.flatten()),
            },
            key: seen.key.flatten(),
            value: seen.value.flatten(),
            headers: seen.headers,
            value_schema: seen.value_schema,
            key_schema: seen.key_schema,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn literal(&mut self, word: &str) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn members(&mut self, mut member: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        self.listed(b'}', |reader| {
            let name = reader.short_text()?;
            reader.expect(b':')?;
            member(reader, name)
        })
    }

    fn elements(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        self.listed(b']', element)
    }

    fn listed(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.blanks();
        if self.peek()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            self.blanks();
            let next = self.peek()?;
            self.at += 1;
            match next {
                b',' => {}
                _ if next == close => return Some(()),
                _ => return None,
            }
        }
    }

    /// A string without escapes, scanned eight bytes at a time.
    fn short_text(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let start = self.at;
        while let Some(word) = self.bytes.get(self.at..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) {
            let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
            let found = matches(word, b'"') | matches(word, b'\\') | control;
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return self.end_text(start);
            }
            self.at += 8;
        }
        while self.peek()? >= 0x20 && !matches!(self.peek()?, b'"' | b'\\') {
            self.at += 1;
        }
        self.end_text(start)
    }

    /// A string without escapes that is probably long.
    fn long_text(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let start = self.at;
        self.at += memchr::memchr2(b'"', b'\\', self.bytes.get(start..)?)?;
        let text = self.end_text(start)?;
        text.bytes().fold(true, |sound, byte| sound & (byte >= 0x20)).then_some(text)
    }

    fn end_text(&mut self, start: usize) -> Option<&'a str> {
        let text = self.text.get(start..self.at)?;
        let ends = self.peek()? == b'"';
        self.at += 1;
        ends.then_some(text)
    }

    /// An integer of at most 18 digits.
    fn integer(&mut self) -> Option<i64> {
        self.blanks();
        let start = self.at;
        self.at += usize::from(self.peek()? == b'-');
        let first = self.at;
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        let digits = self.bytes.get(first..self.at)?;
        let usual = matches!(digits, [b'1'..=b'9', ..]) || (digits == b"0" && first == start);
        if !usual || digits.len() > 18 || matches!(self.peek()?, b'.' | b'e' | b'E') {
            return None;
        }
        let magnitude = digits.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some(if first > start { -magnitude } else { magnitude })
    }

    fn or_null<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        self.blanks();
        if self.literal("null") { Some(None) } else { read(self).map(Some) }
    }

    /// The source text of a value; `null` is taken as text, too.
    fn raw(&mut self) -> Option<&'a str> {
        self.blanks();
        let start = self.at;
        self.skip(0)?;
        self.text.get(start..self.at)
    }

    /// Skips a value and checks its grammar.
    fn skip(&mut self, depth: usize) -> Option<()> {
        self.blanks();
        match self.peek()? {
            b'"' => self.short_text().map(drop),
            b'{' if depth < MAX_DEPTH => self.members(|reader, _| reader.skip(depth + 1)),
            b'[' if depth < MAX_DEPTH => self.elements(|reader| reader.skip(depth + 1)),
            b't' => self.literal("true").then_some(()),
            b'f' => self.literal("false").then_some(()),
            b'n' => self.literal("null").then_some(()),
            _ => self.integer().map(drop),
        }
    }
}

const fn matches(word: u64, byte: u8) -> u64 {
    let zeros = word ^ (ONES * byte as u64);
    zeros.wrapping_sub(ONES) & !zeros & HIGHS
}

pub(crate) fn timestamp_type(name: Option<&str>) -> TimestampType {
    match name {
        Some("CREATE_TIME") => TimestampType::CreateTime,
        Some("LOG_APPEND_TIME") => TimestampType::LogAppendTime,
        Some(_) | None => TimestampType::NoTimestampType,
    }
}
