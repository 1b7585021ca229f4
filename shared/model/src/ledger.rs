//! Which coordinates a table has decided: the offset ledger (promise R2).
//!
//! Per source, epoch, topic and partition: a set of half-open intervals of coordinates, and a floor. A coordinate inside an interval
//! was decided. One at or above the floor that lies in no interval was not, however high the intervals go: a gap may be filled later. One
//! below the floor cannot be told any more: there the ledger was full and its oldest gap was closed. Such a coordinate is neither
//! skipped nor applied, but dead-lettered as `OFFSET_BELOW_LEDGER`.
//!
//! The ledger is stored twice in the commit that it describes: whole in the snapshot's summary, so that a rollback rolls it back, and one
//! table property per partition, so that expiry or a foreign compaction cannot lose it. A property holds at most 4,000 characters in a
//! Hive Metastore, which bounds the intervals.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::mutants::{self, Mutant};
use crate::{Coordinate, Interval, PartitionKey};

/// What a ledger knows of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// Never decided.
    New,
    /// Decided before.
    Decided,
    /// Below the floor: it cannot be told.
    BelowFloor,
}

/// A text that is no ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an offset ledger: {0}")]
pub struct LedgerError(String);

/// The ledger of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerEntry {
    floor: Option<Coordinate>,
    /// Sorted, disjoint, with a gap between each two.
    intervals: Vec<Interval>,
}

impl LedgerEntry {
    /// The most intervals that an entry keeps. With 2 × 19 digits an interval it stays under 4,000 characters.
    pub const MAX_INTERVALS: usize = 80;

    /// What is known of `coordinate`.
    #[must_use]
    pub fn coverage(&self, coordinate: Coordinate) -> Coverage {
        if self.floor.is_some_and(|floor| coordinate < floor) {
            return Coverage::BelowFloor;
        }
        let behind = self.intervals.partition_point(|interval| interval.start() <= coordinate);
        let mutated = mutants::is(Mutant::Watermark) && self.end().is_some_and(|end| coordinate < end);
        let decided = mutated || behind > 0 && self.intervals[behind - 1].contains(coordinate);
        if decided { Coverage::Decided } else { Coverage::New }
    }

    /// Marks an interval as decided. Returns how many gaps had to be closed to stay within [`Self::MAX_INTERVALS`].
    pub fn claim(&mut self, interval: Interval) -> usize {
        let first = self.intervals.partition_point(|own| own.end() < interval.start());
        let last = self.intervals.partition_point(|own| own.start() <= interval.end());
        let joined = self.intervals[first..last].iter().fold(interval, |hull, own| hull.join(own).unwrap_or(hull));
        self.intervals.splice(first..last, [joined]);
        self.close_oldest_gaps()
    }

    fn close_oldest_gaps(&mut self) -> usize {
        let surplus = self.intervals.len().saturating_sub(Self::MAX_INTERVALS);
        if surplus > 0 {
            self.intervals.drain(..surplus);
            self.floor = self.intervals.first().map(Interval::start).max(self.floor);
        }
        surplus
    }

    /// The decided intervals, in order.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Below it nothing can be told.
    #[must_use]
    pub const fn floor(&self) -> Option<Coordinate> {
        self.floor
    }

    /// The end of the highest interval: the next offset that was not seen yet, as a consumer's position.
    #[must_use]
    pub fn end(&self) -> Option<Coordinate> {
        self.intervals.last().map(Interval::end)
    }

    /// The entry as text: `floor|start-end,start-end`, a coordinate being `offset` or `offset.row`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = self.floor.map_or_else(String::new, |floor| floor.to_string());
        text.push('|');
        for (index, interval) in self.intervals.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let _ = write!(text, "{separator}{}-{}", interval.start(), interval.end());
        }
        text
    }

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// [`LedgerError`] when the text is not of that form, or its intervals are not sorted and apart.
    pub fn parse(text: &str) -> Result<Self, LedgerError> {
        let wrong = || LedgerError(text.chars().take(120).collect());
        let (floor, rest) = text.split_once('|').ok_or_else(wrong)?;
        let floor = if floor.is_empty() { None } else { Some(parse_coordinate(floor).ok_or_else(wrong)?) };
        let parts = rest.split(',').filter(|part| !part.is_empty());
        let intervals: Option<Vec<Interval>> = parts.map(parse_interval).collect();
        let intervals = intervals.ok_or_else(wrong)?;
        let sorted = intervals.windows(2).all(|pair| pair[0].end() < pair[1].start());
        if sorted { Ok(Self { floor, intervals }) } else { Err(wrong()) }
    }
}

fn parse_interval(text: &str) -> Option<Interval> {
    let (start, end) = text.split_once('-')?;
    Interval::new(parse_coordinate(start)?, parse_coordinate(end)?)
}

fn parse_coordinate(text: &str) -> Option<Coordinate> {
    match text.split_once('.') {
        Some((offset, row)) => Some(Coordinate::row(offset.parse().ok()?, row.parse().ok()?)),
        None => Some(Coordinate::record(text.parse().ok()?)),
    }
}

/// What a commit marks as decided, by partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    by_partition: BTreeMap<PartitionKey, Vec<Interval>>,
}

impl Claims {
    /// Adds an interval.
    pub fn add(&mut self, key: &PartitionKey, interval: Interval) {
        match self.by_partition.get_mut(key) {
            Some(intervals) => match intervals.last_mut().and_then(|last| Some((last.join(&interval)?, last))) {
                Some((joined, last)) => *last = joined,
                None => intervals.push(interval),
            },
            None => {
                self.by_partition.insert(key.clone(), vec![interval]);
            }
        }
    }

    /// The intervals by partition.
    pub fn iter(&self) -> impl Iterator<Item = (&PartitionKey, &[Interval])> {
        self.by_partition.iter().map(|(key, intervals)| (key, intervals.as_slice()))
    }

    /// Whether nothing is claimed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_partition.is_empty()
    }
}

/// The ledger of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetLedger {
    entries: BTreeMap<PartitionKey, LedgerEntry>,
}

impl OffsetLedger {
    /// Prefix of the table properties that hold the entries.
    pub const PROPERTY_PREFIX: &'static str = "sluice.ledger.";
    /// Key of the snapshot summary that holds the whole ledger.
    pub const SUMMARY_KEY: &'static str = "sluice.ledger";

    /// What is known of a coordinate.
    #[must_use]
    pub fn coverage(&self, key: &PartitionKey, coordinate: Coordinate) -> Coverage {
        if mutants::is(Mutant::OffsetAlone) && self.entries.values().any(|entry| entry.coverage(coordinate) == Coverage::Decided) {
            return Coverage::Decided;
        }
        self.entries.get(key).map_or(Coverage::New, |entry| entry.coverage(coordinate))
    }

    /// Marks all claims as decided. Returns how many gaps were closed.
    pub fn claim(&mut self, claims: &Claims) -> usize {
        let mut closed = 0;
        for (key, intervals) in claims.iter() {
            let entry = self.entries.entry(key.clone()).or_default();
            closed += intervals.iter().map(|interval| entry.claim(*interval)).sum::<usize>();
        }
        closed
    }

    /// The entries.
    pub fn entries(&self) -> impl Iterator<Item = (&PartitionKey, &LedgerEntry)> {
        self.entries.iter()
    }

    /// Sets an entry, for readers of table properties.
    pub fn set(&mut self, key: PartitionKey, entry: LedgerEntry) {
        self.entries.insert(key, entry);
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole ledger as text, for the snapshot summary: one line an entry, `epoch partition source topic entry`, names escaped.
    #[must_use]
    pub fn to_text(&self) -> String {
        let lines = self.entries.iter().map(|(key, entry)| format!("{} {}", key_to_text(key), entry.to_text()));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// [`LedgerError`] when a line is not of that form.
    pub fn parse(text: &str) -> Result<Self, LedgerError> {
        let mut ledger = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (key, entry) = line.rsplit_once(' ').ok_or_else(|| LedgerError(line.to_owned()))?;
            ledger.set(key_from_text(key).ok_or_else(|| LedgerError(line.to_owned()))?, LedgerEntry::parse(entry)?);
        }
        Ok(ledger)
    }

    /// The table properties of the entries of `keys`: name and value.
    pub fn properties<'a>(&'a self, keys: impl Iterator<Item = &'a PartitionKey>) -> Vec<(String, String)> {
        let entries = keys.filter_map(|key| Some((key, self.entries.get(key)?)));
        entries.map(|(key, entry)| (format!("{}{}", Self::PROPERTY_PREFIX, key_to_text(key).replace(' ', "/")), entry.to_text())).collect()
    }

    /// Reads the entries that stand in table properties; other properties are skipped.
    ///
    /// # Errors
    /// [`LedgerError`] when a property has the prefix and is no entry.
    pub fn from_properties<'a>(properties: impl Iterator<Item = (&'a String, &'a String)>) -> Result<Self, LedgerError> {
        let mut ledger = Self::default();
        for (name, value) in properties {
            if let Some(key) = name.strip_prefix(Self::PROPERTY_PREFIX) {
                let key = key_from_text(&key.replace('/', " ")).ok_or_else(|| LedgerError(name.clone()))?;
                ledger.set(key, LedgerEntry::parse(value)?);
            }
        }
        Ok(ledger)
    }
}

fn key_to_text(key: &PartitionKey) -> String {
    format!("{} {} {} {}", key.epoch, key.partition, escape(&key.source), escape(&key.topic))
}

fn key_from_text(text: &str) -> Option<PartitionKey> {
    let mut parts = text.split(' ');
    let epoch = parts.next()?.parse().ok()?;
    let partition = parts.next()?.parse().ok()?;
    let source: Arc<str> = unescape(parts.next()?)?.into();
    let topic: Arc<str> = unescape(parts.next()?)?.into();
    parts.next().is_none().then_some(PartitionKey { source, epoch, topic, partition })
}

/// Percent-encodes everything but the characters that Kafka allows in a topic's name.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key() -> PartitionKey {
        PartitionKey { source: "erp prod/1".into(), epoch: 3, topic: "cdc.unified".into(), partition: 7 }
    }

    fn offsets(start: i64, end: i64) -> Interval {
        Interval::new(Coordinate::record(start), Coordinate::record(end)).unwrap()
    }

    #[test]
    fn a_gap_stays_open_until_it_is_filled() {
        let mut entry = LedgerEntry::default();
        entry.claim(offsets(1, 3));
        entry.claim(offsets(5, 6));
        assert_eq!(entry.coverage(Coordinate::record(3)), Coverage::New);
        assert_eq!(entry.coverage(Coordinate::record(0)), Coverage::New);
        entry.claim(offsets(3, 5));
        assert_eq!(entry.intervals(), [offsets(1, 6)]);
    }

    #[test]
    fn rows_of_a_record_are_decided_one_by_one() {
        let mut entry = LedgerEntry::default();
        entry.claim(Interval::of_row(Coordinate::row(5, 1)));
        assert_eq!(entry.coverage(Coordinate::row(5, 0)), Coverage::New);
        assert_eq!(entry.coverage(Coordinate::row(5, 1)), Coverage::Decided);
        assert_eq!(entry.coverage(Coordinate::row(5, 2)), Coverage::New);
    }

    #[test]
    fn a_full_entry_closes_its_oldest_gap_and_no_longer_tells_what_lies_below() {
        let mut entry = LedgerEntry::default();
        let closed: usize = (0..=LedgerEntry::MAX_INTERVALS as i64).map(|i| entry.claim(offsets(i * 10, i * 10 + 1))).sum();
        assert_eq!(closed, 1);
        assert_eq!(entry.floor(), Some(Coordinate::record(10)));
        assert_eq!(entry.coverage(Coordinate::record(0)), Coverage::BelowFloor);
        assert_eq!(entry.coverage(Coordinate::record(10)), Coverage::Decided);
        assert_eq!(entry.coverage(Coordinate::record(11)), Coverage::New);
    }

    #[test]
    fn an_entry_fits_a_hive_parameter() {
        let mut entry = LedgerEntry::default();
        for i in 0..LedgerEntry::MAX_INTERVALS as i64 {
            entry.claim(offsets(i64::MAX - 1_000 + i * 10, i64::MAX - 1_000 + i * 10 + 1));
        }
        assert!(entry.to_text().len() < 4_000, "{}", entry.to_text().len());
    }

    #[test]
    fn names_of_any_kind_survive_both_forms() {
        let mut ledger = OffsetLedger::default();
        let mut claims = Claims::default();
        claims.add(&key(), offsets(10, 12));
        claims.add(&PartitionKey { source: "a\n\u{e9}%".into(), ..key() }, Interval::of_row(Coordinate::row(4, 2)));
        ledger.claim(&claims);
        assert_eq!(OffsetLedger::parse(&ledger.to_text()).unwrap(), ledger);
        let keys: Vec<_> = ledger.entries().map(|(key, _)| key.clone()).collect();
        let properties: BTreeMap<String, String> = ledger.properties(keys.iter()).into_iter().collect();
        assert_eq!(OffsetLedger::from_properties(properties.iter()).unwrap(), ledger);
    }

    #[test]
    fn texts_that_are_no_entry_are_refused() {
        for text in ["", "1-2", "|2-1", "|1-1", "|1-2,2-3", "|5-6,1-2", "x|", "|1-2,", "|a-b"] {
            let parsed = LedgerEntry::parse(text);
            assert_eq!(parsed.is_ok(), text == "|1-2,", "{text}");
        }
    }

    proptest! {
        /// Against a plain set: whatever is claimed in whatever order, covered means claimed, as long as nothing was closed.
        #[test]
        fn covered_is_exactly_what_was_claimed(claims in prop::collection::vec((0i64..60, 1i64..8), 0..40)) {
            let mut entry = LedgerEntry::default();
            let mut model = BTreeSet::new();
            for (start, length) in claims {
                prop_assert_eq!(entry.claim(offsets(start, start + length)), 0);
                model.extend(start..start + length);
            }
            for offset in 0..80 {
                let expected = if model.contains(&offset) { Coverage::Decided } else { Coverage::New };
                prop_assert_eq!(entry.coverage(Coordinate::record(offset)), expected);
            }
            prop_assert_eq!(LedgerEntry::parse(&entry.to_text()).unwrap(), entry);
        }

        /// Closing gaps never makes a coordinate look decided that was not, nor new that was decided.
        #[test]
        fn a_closed_gap_is_never_mistaken(starts in prop::collection::vec(0i64..100_000, 1..300)) {
            let mut entry = LedgerEntry::default();
            let mut model = BTreeSet::new();
            for start in starts {
                entry.claim(Interval::of_record(start));
                model.insert(start);
                prop_assert!(entry.intervals().len() <= LedgerEntry::MAX_INTERVALS);
            }
            for offset in model.iter().flat_map(|offset| [offset - 1, *offset, offset + 1]) {
                match entry.coverage(Coordinate::record(offset)) {
                    Coverage::Decided => prop_assert!(model.contains(&offset)),
                    Coverage::New => prop_assert!(!model.contains(&offset)),
                    Coverage::BelowFloor => {}
                }
            }
        }
    }
}
