//! The fuzz targets: each takes any bytes and checks what must hold for all of them. None may panic.

use std::collections::BTreeMap;

use sluice_codec::{DocumentReader, Format, Limits, decode, read_document, read_formats};
use sluice_model::config::{Problems, Section};
use sluice_model::tape::{NodeKind, Tape};
use sluice_model::{
    ChangeEvent, Column, ColumnType, DecodedEvent, OffsetLedger, RecordTimestamp, SourceRecord, TableSchema, TimestampType, TopicPartition,
};
use sluice_pipeline::settings::{TableOverrides, TableSettings};
use sluice_pipeline::type_text::parse_column_type;
use sluice_pipeline::{NameCase, TableContext, convert, fold};
use sluice_runtime::{Settings, open_event};

/// A target: it panics when something does not hold for the bytes.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 7] =
    [("door", door), ("tape", tape), ("codec", codec), ("rows", rows), ("config", config), ("checks", checks), ("ledger", ledger)];

/// The event door: every record of an event is either readable or kept raw.
pub fn door(data: &[u8]) {
    if let Ok(batch) = open_event(data) {
        let records = batch.source_records();
        assert_eq!(records.len() + batch.unreadable.len(), batch.received());
        assert!(records.windows(2).all(|pair| (&pair[0].topic_partition, pair[0].offset) <= (&pair[1].topic_partition, pair[1].offset)));
    }
}

/// The JSON tape reads what serde_json reads, and refuses what it refuses.
pub fn tape(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ours = Tape::parse(text, 100);
    let theirs: Result<&serde_json::value::RawValue, _> = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    if let Ok(tape) = &ours {
        assert!(theirs.is_ok(), "serde_json refuses {text:?}");
        let mut compact = String::new();
        tape.root().write_compact(&mut compact);
        assert!(Tape::parse(&compact, 100).is_ok(), "{compact:?} of {text:?}");
        let _ = tape.root().first_duplicate();
        walk(tape.root());
    }
}

fn walk(node: sluice_model::Node<'_>) {
    match node.kind() {
        NodeKind::Object => node.fields().for_each(|(_, value)| walk(value)),
        NodeKind::Array => node.elements().for_each(walk),
        NodeKind::String => assert!(node.text().is_some()),
        NodeKind::Number => assert!(node.number().is_some()),
        NodeKind::Bool => assert!(node.as_bool().is_some()),
        NodeKind::Null => assert!(node.is_null()),
    }
}

fn formats() -> Vec<Format> {
    let mut problems = Problems::default();
    let sections =
        ["envelope", "debezium", "debezium-flat", "row"].map(|name| Section::new("f", serde_json::json!({"type": name}), &mut problems));
    read_formats(sections.into(), &std::collections::BTreeSet::new(), &mut problems)
}

fn record<'a>(value: Option<&'a [u8]>, key: Option<&'a [u8]>) -> SourceRecord<'a> {
    SourceRecord {
        topic_partition: TopicPartition { topic: "t".into(), partition: 0 },
        offset: 7,
        timestamp: RecordTimestamp { epoch_ms: None, kind: TimestampType::NoTimestampType },
        key,
        value,
        headers: Vec::new(),
        value_schema_id: None,
        key_schema_id: None,
    }
}

/// Each dialect: the first byte cuts the rest into key and value.
pub fn codec(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*cut).min(rest.len()));
    let record = record(Some(value), Some(key));
    let mut reader = DocumentReader::new(Limits::default(), data.len());
    let Ok(draft) = read_document(&record, &mut reader) else { return };
    let tokens = reader.finish();
    let document = draft.open(&tokens);
    for format in formats() {
        let mut units = decode(&document, &format).peekable();
        assert!(units.peek().is_some() && units.all(|unit| unit.coordinate.offset == 7));
    }
}

const KINDS: [&str; 8] =
    ["long", "decimal(10,2)", "timestamptz", "string", "double", "list<int>", "struct<a: int, b: date>", "map<string, fixed[2]>"];

/// Rows into a table: the first byte chooses columns, the second settings, the rest is a value for every dialect.
pub fn rows(data: &[u8]) {
    let [columns, choices, rest @ ..] = data else { return };
    let record = record(Some(rest), Some(br#"{"id":1}"#));
    let mut reader = DocumentReader::new(Limits::default(), data.len());
    let Ok(draft) = read_document(&record, &mut reader) else { return };
    let tokens = reader.finish();
    let document = draft.open(&tokens);
    let schema = schema(*columns);
    let settings = settings(*choices);
    for format in formats() {
        for unit in decode(&document, &format) {
            if let Ok(DecodedEvent::Change(event)) = unit.event {
                apply(&[&event, &event], &schema, &settings);
                apply(&[&event], &None, &settings);
            }
        }
    }
}

fn schema(choice: u8) -> Option<TableSchema> {
    let kinds = KINDS.iter().enumerate().filter(|(bit, _)| choice & (1 << bit) != 0);
    let id = Column::required(1, "id", ColumnType::Long);
    let rest = (10..)
        .step_by(10)
        .zip(kinds)
        .filter_map(|(id, (_, text))| Some(Column::optional(id, text.get(..1)?, parse_column_type(text).ok()?)));
    Some(TableSchema { schema_id: 0, columns: std::iter::once(id).chain(rest).collect(), identifier_ids: vec![1], last_column_id: 100 })
}

fn settings(choice: u8) -> TableSettings {
    let choose = |bit: u8, yes: &str, no: &str| if choice & (1 << bit) == 0 { no.to_owned() } else { yes.to_owned() };
    let properties: BTreeMap<String, String> = BTreeMap::from([
        ("sluice.on_unknown_column".to_owned(), choose(0, "add", "dead-letter")),
        ("sluice.coerce".to_owned(), choose(1, "lenient", "strict")),
        ("sluice.mode".to_owned(), choose(2, "append", "auto")),
        ("sluice.on_inexact_decimal".to_owned(), choose(3, "half-even", "dead-letter")),
        ("sluice.on_infinity".to_owned(), choose(4, "clamp", "null")),
        ("sluice.time_unit".to_owned(), choose(5, "ns", "")),
        ("sluice.on_duplicate_field".to_owned(), choose(6, "last", "dead-letter")),
        ("sluice.on_naive_timestamp".to_owned(), choose(7, "Europe/Berlin", "dead-letter")),
    ]);
    TableSettings::resolve(&[&TableOverrides::from_properties(properties.iter(), &mut Problems::default())])
}

fn apply(events: &[&ChangeEvent<'_>], schema: &Option<TableSchema>, settings: &TableSettings) {
    let context = TableContext { schema: schema.as_ref(), settings, case: NameCase::Lower, ddl_columns: &[], refused: &[] };
    let converted = convert(events, &context).unwrap_or_else(|error| unreachable(&error));
    assert_eq!(converted.accepted().count() + converted.rejections.len(), events.len());
    let folded = fold(&converted, None).unwrap_or_else(|error| unreachable(&error));
    assert_eq!(folded.outcomes.len(), converted.accepted().count());
}

#[expect(clippy::panic, reason = "a fuzz target reports by panicking")]
fn unreachable<T>(error: &sluice_pipeline::ColumnError) -> T {
    panic!("Arrow refused a column: {error}")
}

/// The configuration: any text is read or refused with its problems; integrity rules and route templates are inside.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = Settings::from_toml(text);
    let _ = sluice_pipeline::check::Check::parse(text);
    let _ = parse_column_type(text);
    let _ = sluice_model::TransformedColumn::parse(text);
}

/// An integrity rule: what can be parsed can be asked about every kind of column and about nulls.
pub fn checks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if sluice_pipeline::check::Check::parse(text).is_err() {
        return;
    }
    const ROWS: [&[u8]; 2] =
        [br#"{"id":1,"l":5,"d":"1.25","t":"2026-03-01T08:00:00Z","s":"x_y%","m":{"a":"AAE="}}"#, br#"{"id":2,"l":null,"s":""}"#];
    let properties = BTreeMap::from([("sluice.checks".to_owned(), serde_json::json!([text]).to_string())]);
    let settings = TableSettings::resolve(&[&TableOverrides::from_properties(properties.iter(), &mut Problems::default())]);
    assert_eq!(settings.checks.len(), 1, "{text:?} is a rule");
    for row in ROWS {
        let record = record(Some(row), None);
        let mut reader = DocumentReader::new(Limits::default(), row.len());
        let Ok(draft) = read_document(&record, &mut reader) else { return };
        let tokens = reader.finish();
        let document = draft.open(&tokens);
        for unit in formats().iter().flat_map(|format| decode(&document, format)) {
            if let Ok(DecodedEvent::Change(event)) = unit.event {
                apply(&[&event], &schema(0b1000_1111), &settings);
            }
        }
    }
}

/// A stored ledger: what is read is written back the same.
pub fn ledger(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(ledger) = OffsetLedger::parse(text) {
        assert_eq!(OffsetLedger::parse(&ledger.to_text()).ok(), Some(ledger));
    }
}
