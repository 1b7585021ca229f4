//! Whole batches: conversion and fold together, after the conformance cases that their names say.

use sluice_model::{ChangeEvent, Column, ColumnType, DeclaredField, DeclaredType, EventTime, Image, Operation, TableSchema, TimeUnit};

use crate::settings::*;
use crate::testing::*;
use crate::{NameCase, SchemaChange, TableContext, convert, fold};

fn none() -> TableOverrides {
    TableOverrides::default()
}

fn add() -> TableSettings {
    settings(TableOverrides { on_unknown_column: Some(OnUnknownColumn::Add), ..none() })
}

fn field(name: &str, kind: DeclaredType) -> DeclaredField {
    DeclaredField { name: name.to_owned(), optional: true, kind }
}

#[test]
fn d54b_a_created_table_takes_what_fits() {
    let settings = settings(TableOverrides { key: Some(vec!["id".to_owned()]), ..none() });
    let events = [insert(r#"{"id": 1, "label": "x", "ok": true}"#), insert(r#"{"id": 2, "label": "y", "ok": null}"#)];
    let run = run(&events, None, &settings);
    assert_eq!(run.columns(), "id:long! label:string ok:boolean");
    assert_eq!(run.converted.change, SchemaChange::Create);
    assert_eq!(run.converted.schema.identifier_ids, [1]);
    assert_eq!(run.rows(), ["1|x|true", "2|y|null"]);
    assert_eq!(run.deleted(), ["1", "2"]);
}

#[test]
fn d44b_a_created_table_takes_the_key_that_the_format_names() {
    let keyed = |json| ChangeEvent { key_columns: vec!["ID".into()], ..insert(json) };
    let run = run(&[keyed(r#"{"ID": 1, "note": "a"}"#), keyed(r#"{"ID": 1, "note": "b"}"#)], None, &settings(none()));
    assert_eq!(run.columns(), "id:long! note:string");
    assert_eq!(run.rows(), ["1|b"]);
}

#[test]
fn d01_declared_types_decide_over_their_carriers() {
    let kind = DeclaredType::Struct(vec![
        field("id", DeclaredType::Int),
        field("amount", DeclaredType::Decimal { precision: Some(10), scale: 2 }),
        field("created_at", DeclaredType::Timestamp(TimeUnit::Micros)),
        field("paid_at", DeclaredType::ZonedText),
        field("due", DeclaredType::Date),
        field("ref", DeclaredType::Uuid),
        field("extra", DeclaredType::JsonText),
        field("gone", DeclaredType::Double),
    ]);
    let json = r#"{"id": 7, "amount": "/h3G", "created_at": 1772360129123456, "paid_at": "2026-03-01T10:15:29.5+02:00", "due": 20543,
        "ref": "7D7F2A4E-6D0F-4F2B-9A55-0C3A54A3B6D1", "extra": "{}", "gone": null}"#;
    let event = ChangeEvent { after: Some(declared(json, kind)), ..event(Operation::Insert) };
    let run = run(&[event], None, &settings(TableOverrides { key: Some(vec!["id".to_owned()]), ..none() }));
    assert_eq!(
        run.columns(),
        "id:int! amount:decimal(10,2) created_at:timestamp paid_at:timestamptz due:date ref:uuid extra:string gone:double"
    );
    assert_eq!(
        run.rows(),
        ["7|-1234.50|2026-03-01T10:15:29.123456|2026-03-01T08:15:29.500Z|2026-03-31|7d7f2a4e6d0f4f2b9a550c3a54a3b6d1|{}|null"]
    );
}

#[test]
fn d32_columns_are_added_widened_and_relaxed_in_one_batch() {
    let table = schema("id:int! w:float amt:decimal(10,2) name:string!", &["id"]);
    let kind = DeclaredType::Struct(vec![
        field("id", DeclaredType::Long),
        field("w", DeclaredType::Double),
        field("amt", DeclaredType::Decimal { precision: Some(12), scale: 2 }),
        field("name", DeclaredType::Text),
        field("email", DeclaredType::Text),
    ]);
    let json = r#"{"id": 5000000000, "w": 1e300, "amt": "AOjUpQ//", "name": null, "email": "e@example.test"}"#;
    let wide = ChangeEvent { after: Some(declared(json, kind)), ..event(Operation::Update) };
    let settings = settings(TableOverrides {
        on_unknown_column: Some(OnUnknownColumn::Add),
        on_missing_required: Some(OnMissingRequired::Relax),
        ..none()
    });
    let run = run(&[wide, insert(r#"{"id": 1, "w": 1.5, "name": "old shape"}"#)], Some(&table), &settings);
    assert_eq!(run.columns(), "id:long! w:double amt:decimal(12,2) name:string email:string");
    assert_eq!(run.converted.change, SchemaChange::Evolved);
    assert_eq!(run.rows(), ["1|1.5|null|old shape|null", "5000000000|1e300|9999999999.99|null|e@example.test"]);
}

#[test]
fn d34_nested_fields_are_added_or_refused() {
    let table = schema("id:int! customer:struct<customer_id:int> lines:list<struct<sku:string>> by_day:map<string,struct<n:int>>", &["id"]);
    let event = || {
        insert(
            r#"{"id": 1, "customer": {"customer_id": 9, "details": {"name": "N", "email": "e"}}, "lines": [{"sku": "a", "qty": 1}],
            "by_day": {"d1": {"n": 1, "m": 2}}}"#,
        )
    };
    let added = run(&[event()], Some(&table), &add());
    assert_eq!(
        added.columns(),
        "id:int! customer:struct<customer_id: int, details: struct<name: string, email: string>> \
         lines:list<struct<sku: string, qty: long>> by_day:map<string, struct<n: int, m: long>>"
    );
    assert_eq!(added.rows(), ["1|{customer_id: 9, details: {name: N, email: e}}|[{sku: a, qty: 1}]|{d1: {n: 1, m: 2}}"]);
    let refused = run(&[event()], Some(&table), &settings(none()));
    assert_eq!(refused.codes(), [(0, "UNKNOWN_COLUMN")]);
    assert_eq!(refused.converted.change, SchemaChange::Unchanged);
}

#[test]
fn d50_a_refused_record_leaves_no_trace_in_the_schema() {
    let table = schema("vbeln:string! netwr:decimal(15,2)", &["vbeln"]);
    let event = || insert(r#"{"VBELN": "0090001234", "NETWR": "1.234,50-", "/BIC/ZREGION": "EMEA", "Z.PLANT": "1000"}"#);
    let refused = run(&[event()], Some(&table), &add());
    assert_eq!((refused.codes(), refused.converted.change), (vec![(0, "TYPE_MISMATCH")], SchemaChange::Unchanged));
    let mut settings = add();
    settings.columns.insert("netwr".to_owned(), ColumnSettings { decimal_mark: Some(','), ..ColumnSettings::default() });
    let added = run(&[event()], Some(&table), &settings);
    assert_eq!(added.columns(), "vbeln:string! netwr:decimal(15,2) _bic_zregion:string z_plant:string");
    assert_eq!(added.rows(), ["0090001234|-1234.50|EMEA|1000"]);
    assert_eq!(added.converted.schema.columns[2].doc.as_deref(), Some("/BIC/ZREGION"));
}

#[test]
fn records_refused_by_a_check_have_no_say_in_the_schema() {
    let table = schema("id:int! n:int", &["id"]);
    let mut settings = add();
    settings.checks = vec![crate::check::Check::parse("n >= 0").unwrap()];
    let events = [insert(r#"{"id": 1, "n": -1, "x": "text"}"#), insert(r#"{"id": 2, "n": 1, "x": {"a": 1}}"#)];
    let run = run(&events, Some(&table), &settings);
    assert_eq!(run.codes(), [(0, "CHECK_FAILED")]);
    assert_eq!(run.columns(), "id:int! n:int x:struct<a: long>");
}

#[test]
fn d35_a_declared_rename_keeps_the_column() {
    let table = schema("id:int! nm:string", &["id"]);
    let mut settings = settings(none());
    settings.columns.insert("full_name".to_owned(), ColumnSettings { rename_of: Some("nm".to_owned()), ..ColumnSettings::default() });
    let renamed = run(&[insert(r#"{"id": 1, "full_name": "N2"}"#)], Some(&table), &settings);
    assert_eq!((renamed.columns(), renamed.converted.change), ("id:int! full_name:string".to_owned(), SchemaChange::Evolved));
    assert_eq!(renamed.converted.schema.columns[1].id, table.columns[1].id);
    let nothing = run(&[insert(r#"{"id": "x"}"#)], Some(&table), &settings);
    assert_eq!((nothing.columns(), nothing.converted.change), ("id:int! nm:string".to_owned(), SchemaChange::Unchanged));
}

#[test]
fn d64_d65_names_find_their_columns_or_collide() {
    let table = schema("id:int! userid:string", &["id"]);
    let events = [insert(r#"{"id": 1, "userId": "a", "userid": "b"}"#), insert(r#"{"ID": 2, "USERID": "c"}"#)];
    let collided = run(&events, Some(&table), &settings(none()));
    assert_eq!((collided.codes(), collided.rows()), (vec![(0, "NAME_COLLISION")], vec!["2|c".to_owned()]));
    let table = schema("id:int!", &["id"]);
    let event = insert(r#"{"id": 1, "_file": "x", "_pos": 1, "A.B": 1, "A": {"B": 2}, "unit price": 1.5, "한글": "k", "9lives": true}"#);
    let added = run(&[event], Some(&table), &add());
    assert_eq!(
        added.columns(),
        "id:int! _file_:string _pos_:long a_b:long a:struct<b: long> unit_price:double 한글:string _9lives:boolean"
    );
    let both_new = run(&[insert(r#"{"id": 1, "A.B": 1, "A B": 2}"#)], Some(&table), &add());
    assert_eq!((both_new.codes(), both_new.columns()), (vec![(0, "NAME_COLLISION")], "id:int!".to_owned()));
}

#[test]
fn d63_a_field_that_stands_twice_is_refused_or_the_last_one_counts() {
    let table = schema("id:int! v:string m:map<string,int>", &["id"]);
    let event = || insert(r#"{"id": 1, "v": "x", "\u0076": "y"}"#);
    assert_eq!(run(&[event()], Some(&table), &settings(none())).codes(), [(0, "DUPLICATE_FIELD")]);
    let last = settings(TableOverrides { on_duplicate_field: Some(OnDuplicateField::Last), ..none() });
    assert_eq!(run(&[event()], Some(&table), &last).rows(), ["1|y|null"]);
    let untyped = insert(r#"{"id": 1, "new": {"a": [], "a": {}}}"#);
    assert_eq!(run(&[untyped], Some(&table), &add()).codes(), [(0, "DUPLICATE_FIELD")]);
    let map = || insert(r#"{"id": 1, "m": {"a": 1, "a": 2}}"#);
    assert_eq!(run(&[map()], Some(&table), &settings(none())).codes(), [(0, "DUPLICATE_FIELD")]);
    assert_eq!(run(&[map()], Some(&table), &last).rows(), ["1|null|{a: 2}"]);
}

#[test]
fn d71_three_faults_of_required_columns_and_keys() {
    let table = schema("id:int! must:string!", &["id"]);
    let events = [
        insert(r#"{"id": 1, "must": null}"#),
        insert(r#"{"id": null, "must": "x"}"#),
        ChangeEvent { after: Some(image(r#"{"must": "x"}"#)), ..event(Operation::Delete) },
        insert(r#"{"id": 4, "must": "y"}"#),
        ChangeEvent { key: Some(image(r#"{"id": 5}"#)), ..insert(r#"{"must": "z"}"#) },
    ];
    let run = run(&events, Some(&table), &settings(none()));
    assert_eq!(run.codes(), [(0, "REQUIRED_NULL"), (1, "KEY_NULL"), (2, "KEY_MISSING")]);
    assert_eq!(run.rows(), ["4|y", "5|z"]);
}

#[test]
fn d73_modes_without_a_key() {
    let table = schema("v:int", &[]);
    let upsert =
        |on_missing_key| settings(TableOverrides { mode: Some(WriteMode::Upsert), on_missing_key: Some(on_missing_key), ..none() });
    let event = || update(r#"{"v": 1}"#, r#"{"v": 2}"#);
    assert_eq!(run(&[event()], Some(&table), &upsert(OnMissingKey::DeadLetter)).codes(), [(0, "KEY_UNKNOWN")]);
    let appended = run(&[event(), delete(r#"{"v": 2}"#)], Some(&table), &upsert(OnMissingKey::Append));
    assert_eq!((appended.rows(), appended.codes()), (vec!["2".to_owned()], vec![(1, "KEY_UNKNOWN")]));
    let changelog = settings(TableOverrides { mode: Some(WriteMode::Changelog), ..none() });
    let events = [insert(r#"{"v": 1}"#), event(), delete(r#"{"v": 2}"#)];
    let logged = run(&events, Some(&schema("v:int _op:string", &[])), &changelog);
    assert_eq!(logged.rows(), ["1|insert", "2|delete", "2|update"]);
    assert_eq!(run(&events, None, &changelog).rows(), ["1|insert", "2|delete", "2|update"]);
    assert_eq!(run(&events, Some(&table), &changelog).codes().len(), 3);
}

#[test]
fn d74_empty_values_take_the_type_that_another_record_gives() {
    let table = schema("id:int!", &["id"]);
    let empty = || insert(r#"{"id": 1, "a": null, "b": [], "c": {}, "d": [null]}"#);
    let events = [empty(), insert(r#"{"id": 2, "a": "x", "b": [1], "c": {"k": 1}, "d": ["y"]}"#)];
    let both = run(&events, Some(&table), &add());
    assert_eq!(both.columns(), "id:int! a:string b:list<long> c:struct<k: long> d:list<string>");
    assert_eq!(both.rows(), ["1|null|[]|{k: null}|[null]", "2|x|[1]|{k: 1}|[y]"]);
    let alone = run(&[empty()], Some(&table), &add());
    assert_eq!((alone.columns(), alone.rows(), alone.codes()), ("id:int!".to_owned(), vec!["1".to_owned()], vec![]));
}

#[test]
fn d75_numbers_join_before_the_table_is_made() {
    let settings = settings(TableOverrides { key: Some(vec!["id".to_owned()]), ..none() });
    let events = [insert(r#"{"id": 1, "price": 10}"#), insert(r#"{"id": 2, "price": 10.5}"#), insert(r#"{"id": 3, "price": "x"}"#)];
    let run = run(&events, None, &settings);
    assert_eq!(run.columns(), "id:long! price:double");
    assert_eq!((run.rows(), run.codes()), (vec!["1|10.0".to_owned(), "2|10.5".to_owned()], vec![(2, "TYPE_MISMATCH")]));
}

#[test]
fn a_key_that_iceberg_forbids_makes_no_table() {
    let settings = settings(TableOverrides { key: Some(vec!["k".to_owned()]), ..none() });
    let fraction = || insert(r#"{"k": 1.5, "v": 1}"#);
    assert_eq!(run(&[fraction()], None, &settings).codes(), [(0, "TYPE_NOT_REPRESENTABLE")]);
    let mixed = run(&[fraction(), insert(r#"{"k": 2, "v": 1}"#)], None, &settings);
    assert_eq!((mixed.codes(), mixed.columns()), (vec![(0, "TYPE_NOT_REPRESENTABLE")], "k:long! v:long".to_owned()));
}

#[test]
fn d25_a_declared_type_that_no_column_can_have_is_refused() {
    let kind =
        DeclaredType::Struct(vec![field("ID", DeclaredType::Int), field("R", DeclaredType::Decimal { precision: Some(64), scale: 127 })]);
    let json = r#"{"ID": 1, "R": "AeeAU0wpaR2vQgiQGE4U6mi6e4uRSTbaCQ05Pk8D7/7eQSzUuY2gAAAAAAAAAAAAAAAAAAAA"}"#;
    let event = || ChangeEvent { after: Some(declared(json, kind.clone())), ..event(Operation::Update) };
    let settings = settings(TableOverrides { key: Some(vec!["id".to_owned()]), ..none() });
    assert_eq!(run(&[event()], None, &settings).codes(), [(0, "TYPE_NOT_REPRESENTABLE")]);
    let table = schema("id:int! r:decimal(10,4)", &["id"]);
    assert_eq!(run(&[event()], Some(&table), &settings).rows(), ["1|8.2500"]);
}

#[test]
fn d66_integers_widen_or_are_refused() {
    let table = schema("id:int! n:int m:long", &["id"]);
    let events = || {
        [
            insert(r#"{"id": 1, "n": 2147483648}"#),
            insert(r#"{"id": 2, "n": 1.5}"#),
            insert(r#"{"id": 3, "n": 7.0}"#),
            insert(r#"{"id": 4, "m": 9223372036854775808}"#),
            insert(r#"{"id": 5, "m": "42"}"#),
        ]
    };
    let promoted = run(&events(), Some(&table), &settings(none()));
    assert_eq!(promoted.columns(), "id:int! n:long m:long");
    assert_eq!(promoted.codes(), [(1, "PRECISION_LOSS"), (3, "VALUE_OUT_OF_RANGE"), (4, "TYPE_MISMATCH")]);
    let kept = run(&events(), Some(&table), &settings(TableOverrides { on_wider_type: Some(OnWiderType::DeadLetter), ..none() }));
    assert_eq!(kept.converted.change, SchemaChange::Unchanged);
    assert_eq!(kept.codes(), [(0, "VALUE_OUT_OF_RANGE"), (1, "PRECISION_LOSS"), (3, "VALUE_OUT_OF_RANGE"), (4, "TYPE_MISMATCH")]);
    assert_eq!(kept.rows(), ["3|7|null"]);
}

#[test]
fn d07_d09_unchanged_values_come_from_the_row_as_it_stands() {
    let table = schema("id:int! a:string b:string t:list<string>", &["id"]);
    let base = stored(&table, &[r#"{"id": 9, "a": "A1", "b": "B1", "t": ["x"]}"#]);
    let gone = "__debezium_unavailable_value";
    let events = [
        marked(&format!(r#"{{"id": 9, "a": "{gone}", "b": "B2", "t": ["{gone}"]}}"#)),
        marked(&format!(r#"{{"id": 9, "a": "A3", "b": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "t": ["{gone}"]}}"#)),
        marked(&format!(r#"{{"id": 8, "a": "{gone}"}}"#)),
    ];
    let merged = run_with(&events, (Some(&table), Some(&base)), &settings(none()));
    assert_eq!(merged.rows(), ["9|A3|B2|[x]"]);
    assert_eq!(merged.codes(), [(2, "UNAVAILABLE_VALUE")]);
    assert_eq!(render(&merged.converted.lookup_keys().unwrap().unwrap()), ["8", "9"]);
    let refused = settings(TableOverrides { on_partial_row: Some(OnPartialRow::DeadLetter), ..none() });
    assert_eq!(run(&events, Some(&table), &refused).codes().len(), 3);
}

#[test]
fn d85_the_last_of_four_operations_on_a_key_stays() {
    let table = schema("id:int! v:string", &["id"]);
    let events = [
        insert(r#"{"id": 1, "v": "1"}"#),
        update(r#"{"id": 1}"#, r#"{"id": 1, "v": "2"}"#),
        delete(r#"{"id": 1, "v": {"not": "read"}}"#),
        insert(r#"{"id": 1, "v": "4"}"#),
        delete(r#"{"id": 2}"#),
    ];
    let run = run(&events, Some(&table), &settings(none()));
    assert_eq!((run.rows(), run.deleted()), (vec!["1|4".to_owned()], vec!["1".to_owned(), "2".to_owned()]));
    assert_eq!(run.converted.lookup_keys().unwrap(), None);
}

#[test]
fn d39_d48_a_changed_key_removes_the_old_row() {
    let table = schema("id:long! name:string", &["id"]);
    let run = run(&[update(r#"{"id": 101, "other": 1}"#, r#"{"id": 201, "name": "n"}"#)], Some(&table), &settings(none()));
    assert_eq!((run.rows(), run.deleted()), (vec!["201|n".to_owned()], vec!["101".to_owned(), "201".to_owned()]));
}

#[test]
fn d48b_a_truncate_removes_what_the_batch_wrote_before() {
    let table = schema("id:int!", &["id"]);
    let events = || [insert(r#"{"id": 1}"#), event(Operation::Truncate), insert(r#"{"id": 2}"#)];
    let all = run(&events(), Some(&table), &settings(TableOverrides { on_truncate: Some(OnTruncate::DeleteAll), ..none() }));
    assert_eq!((all.rows(), all.folded.truncate), (vec!["2".to_owned()], crate::Truncate::First));
    let refused = run(&events(), Some(&table), &settings(none()));
    assert_eq!((refused.rows().len(), refused.codes()), (2, vec![(1, "TRUNCATE_NOT_APPLIED")]));
}

#[test]
fn d30_soft_deletes_mark_the_row() {
    let table = schema("id:int! name:string is_deleted:boolean", &["id"]);
    let base = stored(&table, &[r#"{"id": 4, "name": "X", "is_deleted": false}"#]);
    let settings = settings(TableOverrides { soft_delete: Some("is_deleted".to_owned()), ..none() });
    let events = [delete(r#"{"id": 4, "name": null}"#), delete(r#"{"id": 5}"#)];
    let marked = run_with(&events, (Some(&table), Some(&base)), &settings);
    assert_eq!((marked.rows(), marked.deleted()), (vec!["4|X|true".to_owned()], vec!["4".to_owned()]));
    let back = run_with(&[delete(r#"{"id": 4}"#), insert(r#"{"id": 4, "name": "Z"}"#)], (Some(&table), Some(&base)), &settings);
    assert_eq!(back.rows(), ["4|Z|false"]);
}

#[test]
fn d36_d37_the_highest_version_wins() {
    let table = schema("id:int! v:string __lsn:long", &["id"]);
    let base = stored(&table, &[r#"{"id": 7, "v": "ninth", "__lsn": 9}"#]);
    let mut settings = settings(TableOverrides { version: Some("__lsn".to_owned()), ..none() });
    let events = || {
        [
            insert(r#"{"id": 7, "v": "stale", "__lsn": 4}"#),
            insert(r#"{"id": 7, "v": "tenth", "__lsn": 10}"#),
            delete(r#"{"id": 7, "__lsn": 9}"#),
            delete(r#"{"id": 8, "__lsn": 3}"#),
            insert(r#"{"id": 8, "v": "late", "__lsn": 2}"#),
        ]
    };
    let run_one = run_with(&events(), (Some(&table), Some(&base)), &settings);
    assert_eq!(run_one.rows(), ["7|tenth|10"]);
    let stale = run_one.folded.outcomes.iter().filter(|(_, outcome)| *outcome == crate::Outcome::Stale).count();
    assert_eq!(stale, 3);
    settings.on_stale = OnStale::DeadLetter;
    let refused = run_with(&events(), (Some(&table), Some(&base)), &settings);
    assert_eq!(refused.codes(), [(0, "STALE_VERSION"), (2, "STALE_VERSION"), (4, "STALE_VERSION")]);
}

#[test]
fn d27_a_document_column_takes_the_whole_row() {
    let table = schema("_id:string! doc:string", &["_id"]);
    let settings = settings(TableOverrides { document: Some("doc".to_owned()), ..none() });
    let run = run(&[insert(r#"{"_id": "a", "mix": [ "1", 2 ]}"#)], Some(&table), &settings);
    assert_eq!(run.rows(), [r#"a|{"_id":"a","mix":["1",2]}"#]);
}

#[test]
fn a_formats_own_fields_fill_a_column_and_are_never_unknown() {
    let table = schema("id:int! __op:string", &["id"]);
    let own = Image { own_prefix: Some("__"), ..image(r#"{"id": 1, "__op": "c", "__lsn": 5}"#) };
    let event = ChangeEvent { after: Some(own), ..event(Operation::Insert) };
    let run = run(&[event], Some(&table), &add());
    assert_eq!((run.columns(), run.rows()), ("id:int! __op:string".to_owned(), vec!["1|c".to_owned()]));
}

#[test]
fn d22b_a_ddl_event_adds_columns_without_any_row() {
    let table = schema("id:int! nm:string", &["id"]);
    let ddl = [
        ("ID".to_owned(), DeclaredType::Int),
        ("note".to_owned(), DeclaredType::Text),
        ("x".to_owned(), DeclaredType::VariableScaleDecimal),
    ];
    let settings = settings(none());
    let context = TableContext { schema: Some(&table), settings: &settings, case: NameCase::Lower, ddl_columns: &ddl, refused: &[] };
    let converted = convert(&[], &context).unwrap();
    assert_eq!(converted.change, SchemaChange::Evolved);
    assert_eq!(converted.schema.columns.len(), 3);
    assert_eq!((converted.schema.columns[2].id, converted.schema.last_column_id), (3, 3));
    let folded = fold(&converted, None).unwrap();
    assert_eq!((folded.rows.num_rows(), folded.rows.num_columns()), (0, 3));
}

#[test]
fn a_key_column_can_be_renamed() {
    let table = schema("nr:int! v:int", &["nr"]);
    let mut settings = settings(none());
    settings.columns.insert("id".to_owned(), ColumnSettings { rename_of: Some("nr".to_owned()), ..ColumnSettings::default() });
    let run = run(&[insert(r#"{"id": 1, "v": 2}"#)], Some(&table), &settings);
    assert_eq!((run.columns(), run.deleted()), ("id:int! v:int".to_owned(), vec!["1".to_owned()]));
}

#[test]
fn required_fields_inside_a_struct() {
    let inner = ColumnType::Struct(vec![Column::required(3, "a", ColumnType::Int), Column::optional(4, "b", ColumnType::Int)]);
    let columns = vec![Column::required(1, "id", ColumnType::Int), Column::optional(2, "s", inner)];
    let table = TableSchema { schema_id: 0, columns, identifier_ids: vec![1], last_column_id: 4 };
    let events = || {
        [
            insert(r#"{"id": 1, "s": {"b": 1}}"#),
            insert(r#"{"id": 2, "s": {"a": null}}"#),
            insert(r#"{"id": 3, "s": null}"#),
            insert(r#"{"id": 4, "s": {"a": 1}}"#),
        ]
    };
    let strict = run(&events(), Some(&table), &settings(none()));
    assert_eq!(strict.codes(), [(0, "REQUIRED_NULL"), (1, "REQUIRED_NULL")]);
    assert_eq!(strict.converted.rejections[0].1.field, "s.a");
    assert_eq!(strict.rows(), ["3|null", "4|{a: 1, b: null}"]);
    let relaxed = run(&events(), Some(&table), &settings(TableOverrides { on_missing_required: Some(OnMissingRequired::Relax), ..none() }));
    assert_eq!((relaxed.codes(), relaxed.rows().len()), (vec![], 4));
}

#[test]
fn a_batch_of_nothing_but_truncates_and_deletes_for_a_new_table() {
    let settings = settings(TableOverrides { on_truncate: Some(OnTruncate::DeleteAll), key: Some(vec!["id".to_owned()]), ..none() });
    let truncated = run(&[event(Operation::Truncate)], None, &settings);
    assert_eq!(truncated.folded.truncate, crate::Truncate::First);
    let deleted = run(&[delete(r#"{"id": 1, "x": 2}"#), delete(r#"{"id": null}"#), delete("{}")], None, &settings);
    assert_eq!((deleted.columns(), deleted.deleted()), ("id:long!".to_owned(), vec!["1".to_owned()]));
    assert_eq!(deleted.codes(), [(1, "KEY_NULL"), (2, "KEY_MISSING")]);
}

#[test]
fn the_first_fault_in_field_order_decides() {
    let table = schema("id:int! a:int b:int", &["id"]);
    let run = run(&[insert(r#"{"b": "x", "zz": 1, "a": 1.5}"#)], Some(&table), &settings(none()));
    let rejection = &run.converted.rejections[0].1;
    assert_eq!((rejection.field.as_str(), rejection.code.as_str()), ("b", "TYPE_MISMATCH"));
    let places = ["UNKNOWN_COLUMN zz", "PRECISION_LOSS a", "KEY_MISSING id"].map(|part| rejection.detail.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}", rejection.detail);
}

#[test]
fn stored_rows_are_read_under_the_schema_that_has_grown() {
    let table = schema("id:int! s:struct<a:int> note:string", &["id"]);
    let base = stored(&table, &[r#"{"id": 1, "s": {"a": 5}, "note": "kept"}"#]);
    let gone = "__debezium_unavailable_value";
    let events = [marked(&format!(r#"{{"id": 1, "s": {{"b": 2}}, "note": "{gone}", "extra": 1}}"#)), marked(r#"{"id": 5000000000}"#)];
    let run = run_with(&events, (Some(&table), Some(&base)), &add());
    assert_eq!(run.columns(), "id:long! s:struct<a: int, b: long> note:string extra:long");
    assert_eq!(run.rows(), ["1|{a: null, b: 2}|kept|1", "5000000000|null|null|null"]);
}

#[test]
fn versions_of_events_order_a_batch() {
    let table = schema("id:int! v:string", &["id"]);
    let settings = settings(TableOverrides { version: Some("@event_time".to_owned()), ..none() });
    let at = |time: EventTime<'static>, json| ChangeEvent { event_time: Some(time), ..insert(json) };
    let events = [
        at(EventTime::Epoch(1_772_360_133_000, TimeUnit::Millis), r#"{"id": 1, "v": "newest"}"#),
        at(EventTime::Text("2026-03-01T10:15:31+00:00".into()), r#"{"id": 1, "v": "first"}"#),
        insert(r#"{"id": 2, "v": "no time"}"#),
    ];
    let run = run(&events, Some(&table), &settings);
    assert_eq!(run.rows(), ["1|newest", "2|no time"]);
    assert_eq!(run.converted.lookup_keys().unwrap(), None);
}

#[test]
fn a_record_that_the_fold_refuses_leaves_no_trace_either() {
    let table = schema("id:int! v:string", &["id"]);
    let settings = add();
    let events = [marked(r#"{"id": 1, "v": "__debezium_unavailable_value", "x": "text"}"#), insert(r#"{"id": 2, "x": 5}"#)];
    let events: Vec<_> = events.iter().collect();
    let context = TableContext { schema: Some(&table), settings: &settings, case: NameCase::Lower, ddl_columns: &[], refused: &[] };
    let first = convert(&events, &context).unwrap();
    let refused = fold(&first, None).unwrap().refused_changes(&first);
    assert_eq!(refused.len(), 1);
    let second = convert(&events, &TableContext { refused: &refused, ..context }).unwrap();
    assert_eq!(second.rejections, refused);
    assert_eq!(second.schema.columns[2].kind, ColumnType::Long);
    assert_eq!(render(&fold(&second, None).unwrap().rows), ["2|null|5"]);
}
