//! What is asked: which refused records, and how far to go.

use serde::Deserialize;
use serde_json::Value;
use sluice_deadletter::Entry;
use sluice_ingest::batch::Order;
use sluice_model::TableName;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only tell what would become of the records now.
    DryRun,
    /// Do it.
    Execute,
}

/// What the function is asked; the command line says the same. A key that it does not know is an error: a typing mistake must not select everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Only records for this table: `namespace.table`.
    pub table: Option<String>,
    /// Only records with this reason code.
    pub code: Option<String>,
    /// Only records refused at this time or later (RFC 3339).
    pub since: Option<String>,
    /// Only records refused before this time (RFC 3339).
    pub until: Option<String>,
    /// Only records from these offsets: `topic:partition:from-to`, both included.
    pub offsets: Vec<String>,
    /// The most records that are selected.
    pub limit: Option<usize>,
    /// Whether only to look. Left out, it is: a function changes nothing that it was not asked to.
    pub dry_run: Option<bool>,
    /// Whether records are applied even where newer changes may be overwritten.
    pub overwrite: bool,
}

/// Offsets of a partition, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The first offset.
    pub from: i64,
    /// The last offset.
    pub to: i64,
}

impl Offsets {
    /// Reads `topic:partition:from-to` or `topic:partition:offset`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, range) = text.rsplit_once(':')?;
        let (topic, partition) = rest.rsplit_once(':')?;
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        let partition = partition.parse().ok()?;
        (!topic.is_empty() && from >= 0 && from <= to).then(|| Self { topic: topic.to_owned(), partition, from, to })
    }

    fn holds(&self, entry: &Entry) -> bool {
        let (key, offset) = (&entry.id.key, entry.id.coordinate.offset);
        *key.topic == *self.topic && key.partition == self.partition && (self.from..=self.to).contains(&offset)
    }
}

/// A request that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    table: Option<TableName>,
    code: Option<String>,
    since_us: Option<i64>,
    until_us: Option<i64>,
    offsets: Vec<Offsets>,
    /// The most records that are selected.
    pub limit: usize,
    /// How far to go.
    pub mode: Mode,
    /// Whether newer changes may be overwritten.
    pub order: Order,
}

impl Request {
    /// Reads the function's event.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(event: &Value) -> Result<Self, String> {
        match event {
            Value::Null => Ok(Self::default()),
            event => {
                serde_json::from_value(event.clone()).map_err(|error| format!("the event is no request: {error}; see docs/operations.md"))
            }
        }
    }

    /// The request with all its values read.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn selection(&self) -> Result<Selection, String> {
        let mut wrong: Vec<String> = Vec::new();
        let table = self.table.as_deref().and_then(|text| {
            TableName::parse(text).or_else(|| note(&mut wrong, format!("table: `{text}` is no table name: expected namespace.table")))
        });
        let since_us = instant(self.since.as_deref(), ("since", &mut wrong));
        let until_us = instant(self.until.as_deref(), ("until", &mut wrong));
        let mut offsets = Vec::with_capacity(self.offsets.len());
        for text in &self.offsets {
            let read = Offsets::parse(text);
            offsets.extend(read.or_else(|| note(&mut wrong, format!("offsets: `{text}`: expected topic:partition:from-to"))));
        }
        if self.limit == Some(0) {
            wrong.push("limit: 0 selects nothing".to_owned());
        }
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        Ok(Selection {
            table,
            code: self.code.as_ref().map(|code| code.to_ascii_uppercase()),
            since_us,
            until_us,
            offsets,
            limit: self.limit.unwrap_or(usize::MAX),
            mode: if self.dry_run.unwrap_or(true) { Mode::DryRun } else { Mode::Execute },
            order: if self.overwrite { Order::Overwrite } else { Order::Proven },
        })
    }
}

fn note<T>(wrong: &mut Vec<String>, what: String) -> Option<T> {
    wrong.push(what);
    None
}

fn instant(text: Option<&str>, (name, wrong): (&str, &mut Vec<String>)) -> Option<i64> {
    let text = text?;
    match text.parse::<jiff::Timestamp>() {
        Ok(at) => Some(at.as_microsecond()),
        Err(error) => note(wrong, format!("{name}: `{text}` is no time like 2026-03-01T12:00:00Z: {error}")),
    }
}

impl Selection {
    /// Whether an entry is selected, as far as its record goes.
    #[must_use]
    pub fn selects(&self, entry: &Entry) -> bool {
        let at = entry.id.arrived_at_us;
        self.table.as_ref().is_none_or(|table| entry.target.as_deref() == Some(table.as_str()))
            && self.code.as_ref().is_none_or(|code| *code == entry.code)
            && self.since_us.is_none_or(|since| at >= since)
            && self.until_us.is_none_or(|until| at < until)
            && (self.offsets.is_empty() || self.offsets.iter().any(|offsets| offsets.holds(entry)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_only_looks_unless_it_says_otherwise_and_knows_its_keys() {
        assert_eq!(Request::read(&json!({})).unwrap().selection().unwrap().mode, Mode::DryRun);
        assert_eq!(Request::read(&Value::Null).unwrap().selection().unwrap().mode, Mode::DryRun);
        assert_eq!(Request::read(&json!({"dry_run": false})).unwrap().selection().unwrap().mode, Mode::Execute);
        assert!(Request::read(&json!({"tables": "erp.orders"})).is_err());
        assert!(Request::read(&json!([1])).is_err());
    }

    #[test]
    fn all_that_is_wrong_is_told_together() {
        let request = json!({"table": "orders", "since": "yesterday", "offsets": ["t:0", "t:0:5-4"], "limit": 0});
        let told = Request::read(&request).unwrap().selection().unwrap_err();
        for part in ["table:", "since:", "`t:0`", "`t:0:5-4`", "limit:"] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn offsets_are_ranges_or_single_ones() {
        let range = |from, to| Some(Offsets { topic: "cdc.erp".to_owned(), partition: 3, from, to });
        assert_eq!(Offsets::parse("cdc.erp:3:10-20"), range(10, 20));
        assert_eq!(Offsets::parse("cdc.erp:3:10"), range(10, 10));
        for wrong in ["", "cdc.erp:10", ":3:10", "cdc.erp:x:10", "cdc.erp:3:-1", "cdc.erp:3:20-10"] {
            assert_eq!(Offsets::parse(wrong), None, "{wrong}");
        }
    }
}
