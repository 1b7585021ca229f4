//! From the records of an event to units: decoded and routed, each with its coordinate. Pure; nothing here has seen a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_codec::{DecodedUnit, DocumentReader, Format, RecordDocument, decode, read_document};
use sluice_model::mutants::{self, Mutant};
use sluice_model::{
    ChangeEvent, Claims, ControlKind, Coordinate, DecodedEvent, Interval, PartitionKey, ReasonCode, Rejection, RouteFields, SchemaChange,
    SourceRecord, Stage, TableName, TapeBuffer, TopicPartition,
};
use sluice_pipeline::route::{KnownTables, Route};
use sluice_runtime::{DoorBatch, Settings};

/// What one unit of the batch is, before any table was asked.
#[derive(Debug)]
pub enum UnitKind<'d> {
    /// A change for a table.
    Change(TableName, Box<ChangeEvent<'d>>),
    /// A change of the source's schema, for a table.
    SchemaChange(TableName, Box<SchemaChange<'d>>),
    /// No row.
    Control,
    /// The event holds this coordinate already.
    Repeated,
    /// Refused, and the table that it was for, where that is known.
    Rejected(Rejection),
}

/// The bytes of a unit's record, for the error table.
#[derive(Debug, Clone, Copy)]
pub enum Raw<'d> {
    /// A record that was read.
    Record(&'d SourceRecord<'d>),
    /// The JSON of one that was not.
    Unreadable(&'d str),
}

/// One unit of the batch: a record, or one row of it.
#[derive(Debug)]
pub struct Unit<'d> {
    /// The ledger entry that it belongs to.
    pub key: PartitionKey,
    /// Its place in the partition.
    pub coordinate: Coordinate,
    /// What it is.
    pub kind: UnitKind<'d>,
    /// Its record.
    pub raw: Raw<'d>,
    /// The record's value as a document, where it is one.
    pub document: Option<&'d RecordDocument<'d>>,
}

impl Unit<'_> {
    fn place(&self) -> (&PartitionKey, Coordinate) {
        (&self.key, self.coordinate)
    }
}

/// A record's document, or why it has none.
pub type Read<'d> = Result<(RecordDocument<'d>, &'d Format), Rejection>;

/// Reads the values of all records by the first format that matches each. `tokens` takes their tokens.
pub fn read_all<'d>(records: &'d [SourceRecord<'d>], settings: &'d Settings, tokens: &'d mut TapeBuffer) -> Vec<Read<'d>> {
    let mut reader = DocumentReader::new(settings.limits, records.iter().filter_map(|record| record.value).map(<[u8]>::len).sum());
    let mut formats = TopicFormats { topic: "", formats: Vec::new() };
    let drafts: Vec<Result<_, Rejection>> = records
        .iter()
        .map(|record| {
            let format = formats.of(record, &settings.source.formats).ok_or_else(|| no_format(record))?;
            Ok((read_document(record, &mut reader)?, format))
        })
        .collect();
    *tokens = reader.finish();
    let tokens: &'d TapeBuffer = tokens;
    drafts.into_iter().map(|draft| draft.map(|(draft, format)| (draft.open(tokens), format))).collect()
}

/// The formats that a topic may have: records of one topic follow each other.
struct TopicFormats<'d> {
    topic: &'d str,
    formats: Vec<&'d Format>,
}

impl<'d> TopicFormats<'d> {
    fn of(&mut self, record: &'d SourceRecord<'d>, all: &'d [Format]) -> Option<&'d Format> {
        let topic = record.topic_partition.topic.as_ref();
        if topic != self.topic {
            self.topic = topic;
            self.formats.clear();
            self.formats.extend(all.iter().filter(|format| format.reads_topic(topic)));
        }
        self.formats.iter().find(|format| format.has_headers(record)).copied()
    }
}

fn no_format(record: &SourceRecord<'_>) -> Rejection {
    let detail = format!("no [[source.formats]] matches topic {} and the record's headers", record.topic_partition.topic);
    Rejection::new(Stage::Decode, ReasonCode::RouteMissing, detail)
}

/// All units of the batch, sorted by topic, partition and coordinate.
pub fn units<'d>(batch: &'d DoorBatch<'_>, records: &'d [SourceRecord<'d>], read: &'d [Read<'d>], settings: &Settings) -> Vec<Unit<'d>> {
    let mut keys = Keys::new(settings);
    let mut tables = Tables { route: &settings.route, known: KnownTables::default() };
    let mut units = Vec::with_capacity(batch.received());
    for (record, read) in records.iter().zip(read) {
        add_units((record, read), (keys.of(&record.topic_partition), &mut tables), &mut units);
    }
    units.extend(batch.unreadable.iter().map(|unreadable| Unit {
        key: keys.of(&unreadable.topic_partition).clone(),
        coordinate: Coordinate::record(unreadable.offset),
        kind: UnitKind::Rejected(unreadable.rejection.clone()),
        raw: Raw::Unreadable(unreadable.raw),
        document: None,
    }));
    units.sort_by(|a, b| a.place().cmp(&b.place()));
    mark_repeated(&mut units);
    units
}

/// The units of each record by itself.
pub fn each<'d>(records: &'d [SourceRecord<'d>], read: &'d [Read<'d>], settings: &Settings) -> Vec<Vec<Unit<'d>>> {
    let mut keys = Keys::new(settings);
    let mut tables = Tables { route: &settings.route, known: KnownTables::default() };
    let units = records.iter().zip(read).map(|read| {
        let mut units = Vec::new();
        add_units(read, (keys.of(&read.0.topic_partition), &mut tables), &mut units);
        units
    });
    units.collect()
}

fn add_units<'d>(
    (record, read): (&'d SourceRecord<'d>, &'d Read<'d>),
    (key, tables): (&PartitionKey, &mut Tables<'_>),
    units: &mut Vec<Unit<'d>>,
) {
    match read {
        Ok((document, format)) => units.extend(decode(document, format).map(|unit| routed(unit, document, key, tables))),
        Err(rejection) => units.push(Unit {
            key: key.clone(),
            coordinate: Coordinate::record(record.offset),
            kind: UnitKind::Rejected(rejection.clone()),
            raw: Raw::Record(record),
            document: None,
        }),
    }
}

/// Makes the keys of the ledger: records of one partition follow each other.
struct Keys {
    last: PartitionKey,
}

impl Keys {
    fn new(settings: &Settings) -> Self {
        let (source, epoch) = (Arc::clone(&settings.source.id), settings.source.epoch);
        Self { last: PartitionKey { source, epoch, topic: Arc::from(""), partition: 0 } }
    }

    fn of(&mut self, place: &TopicPartition) -> &PartitionKey {
        if self.last.topic != place.topic {
            self.last.topic = Arc::clone(&place.topic);
        }
        self.last.partition = place.partition;
        &self.last
    }
}

/// The route, and the tables that it has led to.
struct Tables<'r> {
    route: &'r Route,
    known: KnownTables,
}

impl Tables<'_> {
    fn of(&mut self, record: &SourceRecord<'_>, fields: &RouteFields<'_>) -> Result<TableName, Rejection> {
        self.route.table(record, fields, &mut self.known)
    }
}

fn routed<'d>(unit: DecodedUnit<'d>, document: &'d RecordDocument<'d>, key: &PartitionKey, tables: &mut Tables<'_>) -> Unit<'d> {
    let record = document.record;
    let kind = match unit.event {
        Err(rejection) => UnitKind::Rejected(rejection),
        Ok(DecodedEvent::Change(event)) => match tables.of(record, &event.route) {
            Ok(table) => UnitKind::Change(table, event),
            Err(rejection) => UnitKind::Rejected(rejection),
        },
        Ok(DecodedEvent::Control(kind)) => match kind {
            ControlKind::SchemaChange(change) => match tables.of(record, &change.route) {
                Ok(table) => UnitKind::SchemaChange(table, change),
                // A schema change of a table that is not routed here concerns nobody.
                Err(_) => UnitKind::Control,
            },
            ControlKind::Heartbeat | ControlKind::Transaction | ControlKind::Message | ControlKind::Tombstone => UnitKind::Control,
        },
    };
    Unit { key: key.clone(), coordinate: unit.coordinate, kind, raw: Raw::Record(record), document: Some(document) }
}

/// A coordinate that stands twice in one event is applied once. The units are sorted: the same ones follow each other.
fn mark_repeated(units: &mut [Unit<'_>]) {
    let repeated: Vec<usize> = (1..units.len()).filter(|at| units[*at].place() == units[at - 1].place()).collect();
    for at in repeated {
        units[at].kind = UnitKind::Repeated;
    }
}

/// What a data table may claim once the batch's dead letters are safe: every offset of the batch, whatever became of it. Records without
/// a coordinate of their own stand in partition −1 and belong to the error table alone.
#[must_use]
pub fn batch_claims(units: &[Unit<'_>]) -> Claims {
    let mut claims = Claims::default();
    for unit in units.iter().filter(|unit| unit.key.partition >= 0) {
        if mutants::is(Mutant::ForgetPartition) && unit.key != units[0].key {
            continue;
        }
        claims.add(&unit.key, Interval::of_record(unit.coordinate.offset));
    }
    claims
}

/// The units that each table has to look at, by table.
#[must_use]
pub fn by_table(units: &[Unit<'_>]) -> BTreeMap<TableName, Vec<usize>> {
    let mut tables: BTreeMap<TableName, Vec<usize>> = BTreeMap::new();
    for (index, unit) in units.iter().enumerate() {
        match &unit.kind {
            UnitKind::Change(table, _) | UnitKind::SchemaChange(table, _) => match tables.get_mut(table) {
                Some(units) => units.push(index),
                None => drop(tables.insert(table.clone(), vec![index])),
            },
            UnitKind::Control | UnitKind::Repeated | UnitKind::Rejected(_) => {}
        }
    }
    tables
}
