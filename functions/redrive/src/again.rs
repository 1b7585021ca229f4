//! From rows of the error table to units, decoded and routed as if their records came now. Pure.

use sluice_deadletter::{DOOR, Entry, QueueRows};
use sluice_ingest::batch::{Applied, Origin};
use sluice_ingest::receive::{Raw, Unit, UnitKind};
use sluice_model::{Coordinate, ReasonCode, RecordTimestamp, Rejection, SourceRecord, Stage, TableName, TimestampType, TopicPartition};
use sluice_runtime::DoorBatch;

/// A row whose record is tried again, and what it is now.
pub struct Draft<'d> {
    /// The row's place among those that were read.
    pub row: usize,
    /// Its unit. Key and coordinate are those of the record until it has a number.
    pub unit: Unit<'d>,
}

impl Draft<'_> {
    /// The table that it is for now, where there is one.
    #[must_use]
    pub const fn table(&self) -> Option<&TableName> {
        match &self.unit.kind {
            UnitKind::Change(table, _) | UnitKind::SchemaChange(table, _) => Some(table),
            UnitKind::Control | UnitKind::Repeated | UnitKind::Rejected(_) => None,
        }
    }
}

/// The records of some rows that could not be read at the door: their JSON, and which rows they are.
#[derive(Debug, Default)]
pub struct DoorTexts<'r> {
    /// The JSON.
    pub texts: Vec<&'r str>,
    /// The rows.
    pub rows: Vec<usize>,
}

/// The texts of those of `rows` that are such records.
#[must_use]
pub fn door_texts<'r>(found: &'r QueueRows, rows: &[usize]) -> DoorTexts<'r> {
    let mut texts = DoorTexts::default();
    for row in rows.iter().filter(|row| is_from_door(found, **row)) {
        let value = found.contents.get(*row).and_then(|content| content.value.as_deref()).unwrap_or_default();
        // It was JSON text when it was written; what is none now is refused by the reader.
        texts.texts.push(std::str::from_utf8(value).unwrap_or_default());
        texts.rows.push(*row);
    }
    texts
}

fn is_from_door(found: &QueueRows, row: usize) -> bool {
    found.entries.get(row).is_some_and(|entry| entry.stage == DOOR)
}

/// What can be read of some rows: their records in the order of the rows, and which row each is of.
pub fn records<'d>(
    found: &'d QueueRows,
    rows: &[usize],
    (texts, door, refused): (&DoorTexts<'d>, &'d DoorBatch<'_>, &[Option<Rejection>]),
) -> (Vec<SourceRecord<'d>>, Vec<usize>) {
    let mut reread = door.source_records().into_iter();
    let mut records = Vec::with_capacity(rows.len());
    let mut of_row = Vec::with_capacity(rows.len());
    for row in rows {
        let (Some(entry), Some(content)) = (found.entries.get(*row), found.contents.get(*row)) else { continue };
        let record = match texts.rows.iter().position(|of| of == row) {
            None => Some(SourceRecord {
                topic_partition: TopicPartition { topic: entry.id.key.topic.clone(), partition: entry.id.key.partition },
                offset: entry.id.coordinate.offset,
                timestamp: RecordTimestamp { epoch_ms: content.record_timestamp_ms, kind: TimestampType::NoTimestampType },
                key: content.key.as_deref(),
                value: content.value.as_deref(),
                headers: content.headers.iter().map(|(name, value)| (name.as_str().into(), value.clone())).collect(),
                value_schema_id: content.schema_id.as_deref().map(Into::into),
                key_schema_id: None,
            }),
            Some(at) if refused.get(at).is_some_and(Option::is_none) => reread.next(),
            Some(_) => None,
        };
        if let Some(record) = record {
            records.push(record);
            of_row.push(*row);
        }
    }
    (records, of_row)
}

/// One draft for each row, in their order. `units` are those of the records, `of_row` says of which row each record is.
#[must_use]
pub fn drafts<'d>(
    found: &QueueRows,
    (units, of_row): (Vec<Vec<Unit<'d>>>, &[usize]),
    (texts, refused): (&DoorTexts<'d>, &[Option<Rejection>]),
) -> Vec<Draft<'d>> {
    let mut drafts = Vec::with_capacity(of_row.len());
    for (units, row) in units.into_iter().zip(of_row) {
        let Some(entry) = found.entries.get(*row) else { continue };
        let whole = units.first().map(|unit| (unit.raw, unit.document, unit.key.clone()));
        let own = units.into_iter().find(|unit| unit.coordinate.row == entry.id.coordinate.row);
        let unit = own.or_else(|| {
            let (raw, document, key) = whole?;
            Some(Unit { key, coordinate: entry.id.coordinate, kind: UnitKind::Rejected(no_such_row(entry)), raw, document })
        });
        drafts.extend(unit.map(|unit| Draft { row: *row, unit }));
    }
    for ((row, text), rejection) in texts.rows.iter().zip(&texts.texts).zip(refused) {
        if let (Some(entry), Some(rejection)) = (found.entries.get(*row), rejection) {
            let kind = UnitKind::Rejected(rejection.clone());
            let unit =
                Unit { key: entry.id.key.clone(), coordinate: entry.id.coordinate, kind, raw: Raw::Unreadable(text), document: None };
            drafts.push(Draft { row: *row, unit });
        }
    }
    drafts.sort_by_key(|draft| draft.row);
    drafts
}

fn no_such_row(entry: &Entry) -> Rejection {
    let detail = format!("the record has no row {} as its format is set now", entry.id.coordinate.row);
    Rejection::new(Stage::Decode, ReasonCode::EmptyValue, detail)
}

/// Where and when the record of a row was refused.
#[must_use]
pub fn origin(entry: &Entry) -> Origin {
    let below = entry.code == sluice_deadletter::BELOW_LEDGER;
    Origin {
        // A record without a coordinate of its own stands at a hash in partition −1, which no ledger has come to: its time tells.
        coordinate: if entry.id.key.partition < 0 { Coordinate::record(0) } else { entry.id.coordinate },
        refused_at_ms: entry.id.arrived_at_us.div_euclid(1_000),
        applied: if below { Applied::Perhaps } else { Applied::No },
    }
}
