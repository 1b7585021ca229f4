//! What is sent: records of three tables, some of them bad, and what each must become. The fate of a record follows from the record alone.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde_json::{Value, json};
use sluice_model::TableName;

use crate::rng::Rng;

/// A data table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tab {
    /// Append, without a key.
    Log,
    /// Upsert by id; the newest offset of a key counts.
    Item,
    /// Upsert by id; the highest version of a key counts.
    Stock,
}

impl Tab {
    pub const ALL: [Self; 3] = [Self::Log, Self::Item, Self::Stock];

    pub const fn short(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Item => "item",
            Self::Stock => "stock",
        }
    }

    pub fn name(self) -> TableName {
        TableName::parse(&format!("erp.{}", self.short())).unwrap()
    }
}

/// The error table.
pub fn error_table() -> TableName {
    TableName::parse("ops.error_records").unwrap()
}

/// What must become of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is applied.
    Row,
    /// It is applied, as a delete.
    Delete,
    /// It is refused.
    Refused,
    /// It is refused until a foreign program has added its column.
    Depends,
}

/// A record of the topic.
#[derive(Clone)]
pub struct Record {
    pub partition: i32,
    pub offset: i64,
    /// `None`: it does not say for which table it is.
    pub tab: Option<Tab>,
    pub fate: Fate,
    pub id: i64,
    /// Orders the changes of a key.
    pub order: i64,
    value: Vec<u8>,
}

/// In which order the ranges of a partition may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As Kafka does it: what comes next begins at or before the first record that is not acknowledged.
    InOrder,
    /// Any range at any time, as redriving and seeking do it. Then a key without a version must change only once.
    AnyOrder,
}

/// All that is sent in a run.
pub struct Topic {
    pub partitions: BTreeMap<i32, Vec<Record>>,
}

impl Topic {
    pub fn random(rng: &mut Rng, delivery: Delivery) -> Self {
        let partitions = (0..1 + rng.below(2)).map(|number| {
            let number = i32::try_from(number).unwrap();
            let mut offset = 0;
            let records = (0..3 + rng.below(5)).map(|_| {
                // A compacted topic has gaps.
                offset += if rng.chance(10) { 2 } else { 1 };
                record(rng, delivery, (number, offset - 1))
            });
            (number, records.collect())
        });
        Self { partitions: partitions.collect() }
    }

    pub fn all(&self) -> impl Iterator<Item = &Record> {
        self.partitions.values().flatten()
    }

    pub fn get(&self, (partition, offset): (i32, i64)) -> Option<&Record> {
        self.partitions.get(&partition)?.iter().find(|record| record.offset == offset)
    }

    /// The offset behind the last record.
    pub fn end(&self, partition: i32) -> i64 {
        self.partitions[&partition].last().map_or(0, |record| record.offset + 1)
    }
}

fn record(rng: &mut Rng, delivery: Delivery, (partition, offset): (i32, i64)) -> Record {
    let tab = Tab::ALL[rng.below(3)];
    let once = delivery == Delivery::AnyOrder && tab == Tab::Item;
    // A key belongs to one partition.
    let id = i64::from(partition) * 1_000 + if tab == Tab::Log || once { offset } else { rng.offset(500, 503) };
    let order = if tab == Tab::Stock { rng.offset(0, 4) * 1_000 + offset } else { offset };
    let mut record = Record { partition, offset, tab: Some(tab), fate: Fate::Row, id, order, value: Vec::new() };
    let mut data = json!({"id": id, "p": partition, "o": offset, "v": order});
    let mut op = "U";
    match rng.below(20) {
        0 => {
            data["id"] = json!("none");
            record.fate = Fate::Refused;
        }
        1 => {
            op = "?";
            record.fate = Fate::Refused;
        }
        2 => {
            record.value = b"{\"meta\": ".to_vec();
            return Record { tab: None, fate: Fate::Refused, ..record };
        }
        3 | 4 if tab == Tab::Log => {
            data["extra"] = json!("x");
            record.fate = Fate::Depends;
        }
        5..9 if tab == Tab::Item && !once => {
            op = "D";
            record.fate = Fate::Delete;
        }
        _ => {}
    }
    record.value = json!({"meta": {"table": tab.short(), "op": op}, "data": data}).to_string().into_bytes();
    record
}

/// The Lambda event of some records.
pub fn event(records: &[&Record]) -> Vec<u8> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in records {
        let value = base64::engine::general_purpose::STANDARD.encode(&record.value);
        let (partition, offset) = (record.partition, record.offset);
        let fields = json!({"topic": "t", "partition": partition, "offset": offset, "timestamp": 1_772_360_130_000_i64, "value": value});
        groups.entry(format!("t-{partition}")).or_default().push(fields);
    }
    serde_json::to_vec(&json!({"eventSource": "aws:kafka", "records": groups})).unwrap()
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { partition, offset, tab, fate, id, order, .. } = self;
        write!(f, "{tab:?} {partition}:{offset} (key {id}, order {order}, {fate:?})")
    }
}
