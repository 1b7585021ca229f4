//! Properties: exactness against big integers, the fold against a model, and that no input brings anything down.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use num_bigint::BigInt;
use proptest::prelude::*;
use sluice_model::{ChangeEvent, Image, Operation, TableSchema, UnchangedMarker};

use crate::settings::*;
use crate::testing::*;
use crate::{NameCase, Outcome, TableContext, Truncate, convert, fold};

fn defaults() -> TableOverrides {
    TableOverrides::default()
}

proptest! {
    #[test]
    fn decimals_are_the_digits(negative: bool, whole in "[0-9]{1,25}", fraction in "[0-9]{0,12}", exponent in -12_i64..12, scale in 0_u8..12) {
        let sign = if negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        let text = format!("{sign}{whole}{point}{fraction}e{exponent}");
        let table = schema(&format!("v:decimal(38,{scale})"), &[]);
        let run = run(&[insert(&format!(r#"{{"v": "{text}"}}"#))], Some(&table), &settings(defaults()));
        // value × 10^scale = digits × 10^shift
        let digits: BigInt = format!("{sign}{whole}{fraction}").parse().unwrap();
        let shift = exponent - fraction.len() as i64 + i64::from(scale);
        let ten = BigInt::from(10);
        let power = ten.pow(shift.unsigned_abs() as u32);
        let (expected, rest) = if shift >= 0 { (digits * power, BigInt::ZERO) } else { (&digits / &power, &digits % &power) };
        let fits = expected.magnitude() < ten.pow(38).magnitude();
        match run.codes().first() {
            None => {
                let stored = run.folded.rows.column(0).as_primitive::<Decimal128Type>().value(0);
                prop_assert_eq!(rest, BigInt::ZERO);
                prop_assert_eq!(BigInt::from(stored), expected);
            }
            Some((_, "PRECISION_LOSS")) => prop_assert!(rest != BigInt::ZERO),
            Some((_, "VALUE_OUT_OF_RANGE")) => prop_assert!(!fits),
            Some(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn declared_bytes_are_the_number(bytes in prop::collection::vec(any::<u8>(), 0..18), scale in 0_u8..4) {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let kind = sluice_model::DeclaredType::Decimal { precision: None, scale: i32::from(scale) };
        let field = sluice_model::DeclaredField { name: "v".to_owned(), optional: true, kind };
        let image = declared(&format!(r#"{{"v": "{text}"}}"#), sluice_model::DeclaredType::Struct(vec![field]));
        let event = ChangeEvent { after: Some(image), ..event(Operation::Insert) };
        let table = schema(&format!("v:decimal(38,{scale})"), &[]);
        let run = run(&[event], Some(&table), &settings(defaults()));
        let expected = BigInt::from_signed_bytes_be(&bytes);
        match run.codes().first() {
            None => {
                let stored = run.folded.rows.column(0).as_primitive::<Decimal128Type>().value(0);
                prop_assert_eq!(BigInt::from(stored), expected);
            }
            Some(_) => prop_assert!(expected.magnitude() >= BigInt::from(10).pow(38).magnitude()),
        }
    }

    #[test]
    fn no_scalar_brings_a_column_down(value in scalar(), kind in column_type(), lenient: bool) {
        let coerce = if lenient { Coerce::Lenient } else { Coerce::Strict };
        let settings = settings(TableOverrides { coerce: Some(coerce), time_unit: Some(Some(sluice_model::TimeUnit::Millis)), ..defaults() });
        let table = schema(&format!("v:{}", kind.replace(' ', "~")), &[]);
        run(&[insert(&format!(r#"{{"v": {value}}}"#))], Some(&table), &settings);
    }

    #[test]
    fn no_batch_brings_the_conversion_down(rows in prop::collection::vec(object(), 1..6), columns in prop::collection::vec(column_type(), 1..4), add: bool, exists: bool) {
        let text: Vec<_> = columns.iter().enumerate().map(|(at, kind)| format!("{}:{}", ["a", "b", "C"][at], kind.replace(' ', "~"))).collect();
        let table = schema(&text.join(" "), &[]);
        let on_unknown_column = if add { OnUnknownColumn::Add } else { OnUnknownColumn::Ignore };
        let settings = settings(TableOverrides { on_unknown_column: Some(on_unknown_column), ..defaults() });
        let events: Vec<_> = rows.iter().map(|row| insert(row)).collect();
        let first = run(&events, exists.then_some(&table), &settings);
        // What was accepted once is accepted again, unchanged, by the table as it is then.
        let accepted: Vec<_> = first.converted.accepted().map(|index| events[index].clone()).collect();
        let again = run(&accepted, Some(&first.converted.schema), &settings);
        // Refused records leave no trace: the accepted ones alone give the same schema.
        let alone = run(&accepted, exists.then_some(&table), &settings);
        prop_assert_eq!(alone.columns(), first.columns());
        prop_assert_eq!(alone.rows(), first.rows());
        prop_assert_eq!(again.codes(), vec![]);
        prop_assert_eq!(&again.converted.schema.columns, &first.converted.schema.columns);
        prop_assert_eq!(again.rows(), first.rows());
    }
}

#[derive(Debug, Clone)]
struct AnyEvent {
    operation: Operation,
    before: Option<String>,
    after: Option<String>,
    key: Option<String>,
    marked: bool,
}

fn any_event() -> impl Strategy<Value = AnyEvent> {
    use Operation::{Delete, Insert, Snapshot, Truncate, Update};
    let operation = prop::sample::select(vec![Insert, Snapshot, Update, Update, Delete, Truncate]);
    let image = || prop::option::of(keyed_object());
    (operation, image(), prop::option::weighted(0.9, keyed_object()), image(), any::<bool>())
        .prop_map(|(operation, before, after, key, marked)| AnyEvent { operation, before, after, key, marked })
}

fn keyed_object() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["1", "2", "2.0", "3000000000", "null", "\"x\"", "{}", "\"__debezium_unavailable_value\""]);
    let other = prop_oneof![value(), Just("\"__debezium_unavailable_value\"".to_owned())];
    prop_oneof![
        4 => (key, other).prop_map(|(key, other)| format!(r#"{{"k":{key},"a":{other}}}"#)),
        1 => object(),
    ]
}

impl AnyEvent {
    fn event(&self) -> ChangeEvent<'static> {
        let unchanged = if self.marked { UnchangedMarker::DebeziumPlaceholder } else { UnchangedMarker::Never };
        let read = |json: &Option<String>| json.as_ref().map(|json| Image { unchanged, ..image(json) });
        let names = self.key.iter().map(|_| "k".into()).collect();
        ChangeEvent {
            before: read(&self.before),
            after: read(&self.after),
            key: read(&self.key),
            key_columns: names,
            ..event(self.operation)
        }
    }
}

proptest! {
    #[test]
    fn every_event_of_any_batch_is_decided_once(
        events in prop::collection::vec(any_event(), 1..8),
        kind in column_type(),
        exists: bool,
        soft: bool,
        mode in prop::sample::select(vec![WriteMode::Auto, WriteMode::Append, WriteMode::Upsert, WriteMode::Changelog]),
        unknown in prop::sample::select(vec![OnUnknownColumn::Add, OnUnknownColumn::Ignore, OnUnknownColumn::DeadLetter]),
        relax: bool,
    ) {
        let table = schema(&format!("k:int! a:{} r:string!", kind.replace(' ', "~")), &["k"]);
        let settings = settings(TableOverrides {
            mode: Some(mode),
            on_unknown_column: Some(unknown),
            on_missing_required: Some(if relax { OnMissingRequired::Relax } else { OnMissingRequired::DeadLetter }),
            on_truncate: Some(OnTruncate::DeleteAll),
            soft_delete: soft.then(|| "gone".to_owned()),
            version: Some("b".to_owned()),
            ..defaults()
        });
        let events: Vec<_> = events.iter().map(AnyEvent::event).collect();
        // `run` checks that each event has one outcome and that the rows have the table's schema.
        let run = run(&events, exists.then_some(&table), &settings);
        let keys = run.deleted();
        let mut distinct = keys.clone();
        distinct.dedup();
        prop_assert_eq!(keys, distinct);
        run.converted.lookup_keys().unwrap();
    }
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,6})?",
        "\"[-+0-9.eE:TZ /]{0,32}\"",
        "\"[0-9]{1,5}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,12})?(Z|[+-][0-9]{2}:?[0-9]{2})?\"",
        "\"[0-9]{4}-[0-9]{2}-[0-9]{2}\"",
        "\"[A-Za-z0-9+/=]{0,24}\"",
        "\"\\PC{0,8}\"".prop_map(|text| if text[1..text.len() - 1].contains(['"', '\\']) { "\"\"".to_owned() } else { text }),
        Just("\"-Infinity\"".to_owned()),
        Just("9223372036825200000".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(("[abC]", inner), 0..3).prop_map(|fields| format!(
                "{{{}}}",
                fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(",")
            )),
        ]
    })
}

fn object() -> impl Strategy<Value = String> {
    prop::collection::vec(("[abcABC.]{1,2}", value()), 0..5).prop_map(|fields| {
        format!("{{{}}}", fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(","))
    })
}

fn column_type() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "decimal(9,2)",
        "decimal(38,0)",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "uuid",
        "fixed[3]",
        "binary",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|kind| format!("list<{kind}>")),
            inner.clone().prop_map(|kind| format!("map<string, {kind}>")),
            (inner.clone(), inner).prop_map(|(first, second)| format!("struct<a: {first}, b: {second}>")),
        ]
    })
}

/// A change of the modelled table.
#[derive(Debug, Clone)]
enum Change {
    Put { key: i32, old_key: Option<i32>, value: Option<i32>, version: Option<i64> },
    Delete { key: i32, version: Option<i64> },
    Truncate,
}

fn change() -> impl Strategy<Value = Change> {
    let (key, version) = (0..4_i32, prop::option::of(0..6_i64));
    prop_oneof![
        8 => (key.clone(), prop::option::weighted(0.2, key.clone()), prop::option::weighted(0.7, 0..100_i32), version.clone())
            .prop_map(|(key, old_key, value, version)| Change::Put { key, old_key, value, version }),
        3 => (key, version).prop_map(|(key, version)| Change::Delete { key, version }),
        1 => Just(Change::Truncate),
    ]
}

impl Change {
    fn event(&self) -> ChangeEvent<'static> {
        let number = |version: &Option<i64>| version.map_or("null".to_owned(), |version| version.to_string());
        match self {
            Self::Put { key, old_key, value, version } => {
                let value = value.map_or("\"__debezium_unavailable_value\"".to_owned(), |value| format!("\"{value}\""));
                let after = format!(r#"{{"id": {key}, "v": {value}, "ver": {}}}"#, number(version));
                let before = old_key.map(|old| image(&format!(r#"{{"id": {old}}}"#)));
                ChangeEvent { before, ..marked(&after) }
            }
            Self::Delete { key, version } => delete(&format!(r#"{{"id": {key}, "ver": {}}}"#, number(version))),
            Self::Truncate => event(Operation::Truncate),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    value: String,
    version: Option<i64>,
    gone: Option<bool>,
}

/// The table as a plain map, changed one event after the other.
struct Model {
    rows: BTreeMap<i32, Row>,
    deleted_versions: BTreeMap<i32, Option<i64>>,
    versioned: bool,
    soft: bool,
}

impl Model {
    fn is_stale(&self, key: i32, version: Option<i64>) -> bool {
        let stored = self.rows.get(&key).and_then(|row| row.version);
        let current = self.deleted_versions.get(&key).copied().unwrap_or(stored);
        self.versioned && version.zip(current).is_some_and(|(new, current)| new < current)
    }

    fn remove(&mut self, key: i32, version: Option<i64>) {
        if self.soft {
            if let Some(row) = self.rows.get_mut(&key) {
                row.gone = Some(true);
            }
        } else {
            self.rows.remove(&key);
        }
        self.deleted_versions.insert(key, version);
    }

    fn apply(&mut self, change: &Change) -> &'static str {
        match change {
            Change::Truncate => {
                self.rows.clear();
                self.deleted_versions.clear();
                "delete"
            }
            Change::Delete { key, version } => {
                if self.is_stale(*key, *version) {
                    return "stale";
                }
                let stored = self.rows.get(key).and_then(|row| row.version);
                let known = self.deleted_versions.get(key).copied().unwrap_or(stored);
                self.remove(*key, version.or(known));
                "delete"
            }
            Change::Put { key, old_key, value, version } => {
                if self.is_stale(*key, *version) {
                    return "stale";
                }
                let old_key = old_key.filter(|old| old != key);
                let value = match value {
                    Some(value) => value.to_string(),
                    None => match self.rows.get(&old_key.unwrap_or(*key)) {
                        Some(row) => row.value.clone(),
                        None => return "rejected",
                    },
                };
                if let Some(old) = old_key
                    && !self.is_stale(old, *version)
                {
                    self.remove(old, *version);
                }
                self.deleted_versions.remove(key);
                self.rows.insert(*key, Row { value, version: *version, gone: self.soft.then_some(false) });
                "row"
            }
        }
    }
}

fn table() -> TableSchema {
    schema("id:int! v:string ver:long gone:boolean", &["id"])
}

fn rows_of(batch: &RecordBatch) -> Vec<(i32, Row)> {
    let keys = batch.column(0).as_primitive::<Int32Type>();
    let (values, versions, gone) =
        (batch.column(1).as_string::<i32>(), batch.column(2).as_primitive::<Int64Type>(), batch.column(3).as_boolean());
    let row = |at: usize| Row {
        value: values.value(at).to_owned(),
        version: versions.is_valid(at).then(|| versions.value(at)),
        gone: gone.is_valid(at).then(|| gone.value(at)),
    };
    (0..batch.num_rows()).map(|at| (keys.value(at), row(at))).collect()
}

fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Row => "row",
        Outcome::Delete => "delete",
        Outcome::Control => "control",
        Outcome::Stale => "stale",
        Outcome::Rejected(_) => "rejected",
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]
    #[test]
    fn the_fold_is_one_change_after_the_other(
        initial in prop::collection::btree_map(0..4_i32, prop::option::of(0..6_i64), 0..4),
        changes in prop::collection::vec(change(), 0..12),
        versioned: bool,
        soft: bool,
    ) {
        let table = table();
        let initial_rows: Vec<String> = initial.iter().map(|(key, version)| {
            let version = version.map_or("null".to_owned(), |version| version.to_string());
            format!(r#"{{"id": {key}, "v": "s{key}", "ver": {version}}}"#)
        }).collect();
        let base = stored(&table, &initial_rows.iter().map(String::as_str).collect::<Vec<_>>());
        let settings = settings(TableOverrides {
            version: versioned.then(|| "ver".to_owned()),
            soft_delete: soft.then(|| "gone".to_owned()),
            on_truncate: Some(OnTruncate::DeleteAll),
            ..defaults()
        });
        let events: Vec<_> = changes.iter().map(Change::event).collect();
        let events: Vec<_> = events.iter().collect();
        let converted = convert(&events, &TableContext { schema: Some(&table), settings: &settings, case: NameCase::Lower, ddl_columns: &[], refused: &[] }).unwrap();
        prop_assert!(converted.rejections.is_empty());
        // Only the rows that are asked for are read back.
        let asked: Vec<i32> = converted.lookup_keys().unwrap()
            .map(|keys| keys.column(0).as_primitive::<Int32Type>().values().to_vec()).unwrap_or_default();
        let wanted: Vec<u32> = (0..base.num_rows() as u32).filter(|at| asked.contains(&rows_of(&base)[*at as usize].0)).collect();
        let read = arrow_select::take::take_record_batch(&base, &arrow_array::UInt32Array::from(wanted)).unwrap();
        let folded = fold(&converted, Some(&read)).unwrap();

        let mut model = Model { rows: rows_of(&base).into_iter().collect(), deleted_versions: BTreeMap::new(), versioned, soft };
        let expected: Vec<_> = changes.iter().map(|change| model.apply(change)).collect();
        prop_assert_eq!(folded.outcomes.iter().map(|(_, outcome)| name(outcome)).collect::<Vec<_>>(), expected);

        let mut result: BTreeMap<i32, Row> = rows_of(&base).into_iter().collect();
        if folded.truncate == Truncate::First {
            result.clear();
        }
        for key in folded.delete_keys.iter().flat_map(|keys| keys.column(0).as_primitive::<Int32Type>().values().to_vec()) {
            result.remove(&key);
        }
        for (key, row) in rows_of(&folded.rows) {
            prop_assert!(result.insert(key, row).is_none(), "key {} is written twice or not deleted", key);
        }
        prop_assert_eq!(result, model.rows);
    }
}
