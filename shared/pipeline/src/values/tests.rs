//! Values against column types: what each becomes, or why it is refused.

use sluice_model::{ChangeEvent, DecimalText, DeclaredField, DeclaredType, IntegerDates, Operation, TimeUnit, ValueHints};

use crate::settings::*;
use crate::testing::*;

/// What the value becomes in a column of that type, or the reason code.
fn read(value: &str, kind: &str, table: &TableSettings) -> String {
    outcome(insert(&format!(r#"{{"v": {value}}}"#)), kind, table)
}

fn read_declared(value: &str, declared_type: DeclaredType, kind: &str) -> String {
    let field = DeclaredField { name: "v".to_owned(), optional: true, kind: declared_type };
    let image = declared(&format!(r#"{{"v": {value}}}"#), DeclaredType::Struct(vec![field]));
    outcome(ChangeEvent { after: Some(image), ..event(Operation::Insert) }, kind, &strict())
}

fn outcome(event: ChangeEvent<'static>, kind: &str, table: &TableSettings) -> String {
    let table_schema = schema(&format!("v:{}", kind.replace(' ', "~")), &[]);
    let run = run(&[event], Some(&table_schema), table);
    let code = run.codes().first().map(|(_, code)| (*code).to_owned());
    code.unwrap_or_else(|| run.rows().remove(0))
}

/// Nothing is widened, so that a value meets the column as it is.
fn strict() -> TableSettings {
    settings(TableOverrides { on_wider_type: Some(OnWiderType::DeadLetter), ..TableOverrides::default() })
}

fn check(kind: &str, table: &TableSettings, cases: &[(&str, &str)]) {
    for (value, expected) in cases {
        assert_eq!(read(value, kind, table), *expected, "{value} into {kind}");
    }
}

fn check_declared(kind: &str, declared_type: &DeclaredType, cases: &[(&str, &str)]) {
    for (value, expected) in cases {
        assert_eq!(read_declared(value, declared_type.clone(), kind), *expected, "{value} as {declared_type:?} into {kind}");
    }
}

#[test]
fn booleans() {
    check(
        "boolean",
        &strict(),
        &[("true", "true"), ("false", "false"), ("1", MISMATCH), (r#""true""#, MISMATCH), ("{}", MISMATCH), ("null", "null")],
    );
    let lenient = settings(TableOverrides { coerce: Some(Coerce::Lenient), ..TableOverrides::default() });
    check(
        "boolean",
        &lenient,
        &[(r#""YES""#, "true"), (r#""off""#, "false"), ("1", "true"), ("0.0", "false"), ("2", MISMATCH), (r#""ja""#, MISMATCH)],
    );
}

const MISMATCH: &str = "TYPE_MISMATCH";
const RANGE: &str = "VALUE_OUT_OF_RANGE";
const LOSS: &str = "PRECISION_LOSS";
const NONE: &str = "VALUE_NOT_REPRESENTABLE";
const AMBIGUOUS: &str = "TIME_UNIT_AMBIGUOUS";

#[test]
fn whole_numbers() {
    check(
        "int",
        &strict(),
        &[("7.0", "7"), ("1e3", "1000"), ("-2147483648", "-2147483648"), ("2147483648", RANGE), ("1.5", LOSS), (r#""7""#, MISMATCH)],
    );
    check(
        "long",
        &strict(),
        &[
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", RANGE),
            ("-0", "0"),
            ("1e-1", LOSS),
            (r#""NaN""#, MISMATCH),
            ("true", MISMATCH),
        ],
    );
    let lenient = settings(TableOverrides { coerce: Some(Coerce::Lenient), ..TableOverrides::default() });
    check(
        "long",
        &lenient,
        &[(r#""42""#, "42"), (r#""4.2""#, LOSS), (r#""forty""#, MISMATCH), (r#""9223372036854775808""#, RANGE), (r#""""#, MISMATCH)],
    );
}

#[test]
fn carriers_of_declared_types() {
    check_declared("long", &DeclaredType::UnsignedLong, &[("-1", RANGE), ("12", "12")]);
    check_declared("decimal(20,0)", &DeclaredType::UnsignedLong, &[("-1", "18446744073709551615"), ("12", "12")]);
    check_declared("string", &DeclaredType::UnsignedLong, &[("-1", "18446744073709551615")]);
    check_declared("long", &DeclaredType::Time(TimeUnit::Micros), &[("-3020399000000", "-3020399000000")]);
    check_declared("int", &DeclaredType::Date, &[("20512", "20512")]);
    check_declared("long", &DeclaredType::Decimal { precision: None, scale: 2 }, &[(r#""JxA=""#, "100"), (r#""JxE=""#, LOSS)]);
    check_declared("string", &DeclaredType::Decimal { precision: None, scale: 2 }, &[(r#""JxA=""#, "100.00")]);
    check_declared("decimal(7,0)", &DeclaredType::Decimal { precision: None, scale: -2 }, &[(r#""ew==""#, "12300")]);
    let variable = r#"{"scale": 5, "value": "AeJA"}"#;
    check_declared(
        "decimal(38,10)",
        &DeclaredType::VariableScaleDecimal,
        &[(variable, "1.2345600000"), ("{}", MISMATCH), ("null", "null")],
    );
    check_declared("binary", &DeclaredType::Bytes, &[(r#""AQI=""#, "0102")]);
}

#[test]
fn binary_fractions() {
    check(
        "double",
        &strict(),
        &[
            ("0.1", "0.1"),
            ("1e300", "1e300"),
            ("1e400", RANGE),
            ("9007199254740992", "9007199254740992.0"),
            ("9007199254740993", LOSS),
            ("9007199254740993.0", "9007199254740992.0"),
            (r#""-Infinity""#, "-inf"),
            (r#""NaN""#, "NaN"),
            (r#""POSITIVE_INFINITY""#, "inf"),
            (r#""1.5""#, MISMATCH),
        ],
    );
    check(
        "float",
        &strict(),
        &[
            ("0.1", "0.1"),
            ("1.5", "1.5"),
            ("0.10000000149011612", "0.1"),
            ("0.123456789", LOSS),
            ("1e300", RANGE),
            ("1e400", RANGE),
            ("16777217", LOSS),
        ],
    );
    assert_eq!(read("0.123456789", "float", &settings(TableOverrides::default())), "0.123456789");
}

#[test]
fn decimals() {
    check(
        "decimal(10,2)",
        &strict(),
        &[
            ("12.5", "12.50"),
            (r#""1E+2""#, "100.00"),
            (r#""5.0000""#, "5.00"),
            ("1.005", LOSS),
            ("123456789.00", RANGE),
            ("-0.00", "0.00"),
            (r#""1234""#, "1234.00"),
            (r#""abc""#, MISMATCH),
            (r#""""#, MISMATCH),
            (r#""NaN""#, NONE),
            (r#""-infinity""#, NONE),
            ("{}", MISMATCH),
            ("99999999.99", "99999999.99"),
            ("100000000", RANGE),
        ],
    );
    let even = settings(TableOverrides {
        on_inexact_decimal: Some(OnInexactDecimal::HalfEven),
        on_nan: Some(OnNan::Null),
        ..TableOverrides::default()
    });
    check("decimal(4,2)", &even, &[("1.005", "1.00"), ("1.015", "1.02"), ("-1.0051", "-1.01"), ("99.995", RANGE), (r#""nan""#, "null")]);
    let hints = ValueHints { decimal_text: DecimalText::Base64Unscaled, ..ValueHints::default() };
    let base64 = |value: &str| outcome(ChangeEvent { hints, ..insert(&format!(r#"{{"v": {value}}}"#)) }, "decimal(12,2)", &strict());
    assert_eq!((base64(r#""Bt3Q""#).as_str(), base64(r#""4500""#).as_str()), ("4500.00", "-18603.00"));
}

#[test]
fn numbers_in_the_external_form() {
    let mut table = strict();
    table.columns.insert("v".to_owned(), ColumnSettings { decimal_mark: Some(','), ..ColumnSettings::default() });
    check(
        "decimal(10,2)",
        &table,
        &[
            (r#""1.234,50-""#, "-1234.50"),
            (r#""12,5""#, "12.50"),
            (r#""1.23,5""#, MISMATCH),
            (r#""1234567,00""#, "1234567.00"),
            (r#""-""#, MISMATCH),
            (r#"",""#, MISMATCH),
            (r#""1,2,3""#, MISMATCH),
        ],
    );
    check("long", &table, &[(r#""1.234""#, "1234")]);
}

#[test]
fn text() {
    check(
        "string",
        &strict(),
        &[("10.50", "10.50"), (r#""a\u0041""#, "aA"), ("true", MISMATCH), ("{}", MISMATCH), ("[1]", MISMATCH), ("null", "null")],
    );
    let mut table = strict();
    table.columns.insert("v".to_owned(), ColumnSettings { json: Some(JsonColumn::Text), ..ColumnSettings::default() });
    check("string", &table, &[(r#"{ "a" : [ 1.50, {} ] }"#, r#"{"a":[1.50,{}]}"#), (r#""x""#, "x")]);
}

#[test]
fn bytes() {
    check("binary", &strict(), &[(r#""AAEC""#, "000102"), (r#""AAE""#, MISMATCH), (r#""!""#, MISMATCH), ("1", MISMATCH)]);
    check("fixed[2]", &strict(), &[(r#""AAE=""#, "0001"), (r#""AAEC""#, MISMATCH)]);
    let mut table = strict();
    table.columns.insert("v".to_owned(), ColumnSettings { binary: Some(BinaryText::Hex), ..ColumnSettings::default() });
    check("binary", &table, &[(r#""0xDEADbeef""#, "deadbeef"), (r#""00ff""#, "00ff"), (r#""0""#, MISMATCH), (r#""0xg0""#, MISMATCH)]);
    let uuid = r#""7D7F2A4E-6D0F-4F2B-9A55-0C3A54A3B6D1""#;
    check(
        "uuid",
        &strict(),
        &[(uuid, "7d7f2a4e6d0f4f2b9a550c3a54a3b6d1"), (r#""7d7f2a4e6d0f4f2b9a550c3a54a3b6d1""#, MISMATCH), ("5", MISMATCH)],
    );
}

#[test]
fn dates_and_times_of_day() {
    check(
        "date",
        &strict(),
        &[
            (r#""2026-03-01""#, "2026-03-01"),
            (r#""0000-00-00""#, RANGE),
            (r#""2026-03-01T00:00:00""#, MISMATCH),
            ("1", AMBIGUOUS),
            ("true", MISMATCH),
        ],
    );
    let hints = ValueHints { integer_dates: IntegerDates::Days, ..ValueHints::default() };
    let days = |value: &str| outcome(ChangeEvent { hints, ..insert(&format!(r#"{{"v": {value}}}"#)) }, "date", &strict());
    assert_eq!((days("0").as_str(), days("-1").as_str(), days("99999999").as_str()), ("1970-01-01", "1969-12-31", RANGE));
    check_declared("date", &DeclaredType::Date, &[("20512", "2026-02-28")]);
    check_declared("date", &DeclaredType::Timestamp(TimeUnit::Millis), &[("86400000", "1970-01-02"), ("86400001", LOSS)]);
    check(
        "time",
        &strict(),
        &[
            (r#""10:15:30.5""#, "10:15:30.500"),
            (r#""24:00:00""#, RANGE),
            (r#""10:15:30Z""#, MISMATCH),
            (r#""10:15""#, MISMATCH),
            (r#""10:15:30.0000001""#, LOSS),
        ],
    );
    check_declared(
        "time",
        &DeclaredType::Time(TimeUnit::Micros),
        &[("28800000001", "08:00:00.000001"), ("-3020399000000", RANGE), ("86400000000", RANGE)],
    );
    check_declared("time", &DeclaredType::Time(TimeUnit::Nanos), &[("1001", LOSS), ("1000", "00:00:00.000001")]);
}

#[test]
fn timestamps() {
    check(
        "timestamptz",
        &strict(),
        &[
            (r#""2026-04-02 02:45:10+0530""#, "2026-04-01T21:15:10Z"),
            (r#""2026-04-02T06:41:09""#, "TIME_ZONE_MISSING"),
            (r#""2026-06-30T23:59:60Z""#, RANGE),
            (r#""0001-01-01T00:00:00+01:00""#, RANGE),
            ("1772360130", AMBIGUOUS),
            (r#""infinity""#, NONE),
        ],
    );
    check(
        "timestamp",
        &strict(),
        &[
            (r#""2026-04-02T06:41:09Z""#, MISMATCH),
            (r#""10000-01-01T00:00:00""#, RANGE),
            (r#""2026-04-02""#, MISMATCH),
            (r#""2026-04-02 06:41:09.123456000""#, "2026-04-02T06:41:09.123456"),
            (r#""2026-04-02 06:41:09.1234561""#, LOSS),
        ],
    );
    check(
        "timestamp_ns",
        &strict(),
        &[(r#""2026-04-02 06:41:09.123456789""#, "2026-04-02T06:41:09.123456789"), (r#""1600-01-01 00:00:00""#, RANGE)],
    );
    let truncating = settings(TableOverrides {
        on_inexact_time: Some(OnInexactTime::Truncate),
        time_unit: Some(Some(TimeUnit::Nanos)),
        ..TableOverrides::default()
    });
    check(
        "timestamp",
        &truncating,
        &[("-1", "1969-12-31T23:59:59.999999"), (r#""2026-04-02 06:41:09.1234569""#, "2026-04-02T06:41:09.123456")],
    );
    let berlin = settings(TableOverrides {
        on_naive_timestamp: Some(OnNaiveTimestamp::Zone("Europe/Berlin".to_owned())),
        ..TableOverrides::default()
    });
    check(
        "timestamptz",
        &berlin,
        &[
            (r#""2026-01-15T12:00:00""#, "2026-01-15T11:00:00Z"),
            (r#""2026-07-15 12:00:00.5""#, "2026-07-15T10:00:00.500Z"),
            (r#""2026-03-29 02:30:00""#, "2026-03-29T01:30:00Z"),
            (r#""2026-10-25 02:30:00""#, "2026-10-25T00:30:00Z"),
            (r#""1965-01-01 00:00:00.25""#, "1964-12-31T23:00:00.250Z"),
        ],
    );
}

#[test]
fn typed_integers_and_the_infinities_of_timestamps() {
    let micros = DeclaredType::Timestamp(TimeUnit::Micros);
    check_declared(
        "timestamp",
        &micros,
        &[
            ("1772360130123456", "2026-03-01T10:15:30.123456"),
            ("9223372036825200000", NONE),
            ("-9223372036832400000", NONE),
            ("9223372036854775807", NONE),
            ("900000000000000000", RANGE),
        ],
    );
    check_declared("timestamptz", &micros, &[("0", "1970-01-01T00:00:00Z")]);
    check_declared("timestamp", &DeclaredType::Timestamp(TimeUnit::Nanos), &[("1772360130123456789", LOSS)]);
    check_declared("timestamp_ns", &DeclaredType::Timestamp(TimeUnit::Nanos), &[("1772360130123456789", "2026-03-01T10:15:30.123456789")]);
    check_declared("timestamp", &DeclaredType::Date, &[("1", MISMATCH)]);
    check_declared("timestamp", &DeclaredType::ZonedText, &[(r#""2026-03-01T10:15:30Z""#, MISMATCH)]);
    let clamp = settings(TableOverrides {
        on_infinity: Some(OnInfinity::Clamp),
        time_unit: Some(Some(TimeUnit::Micros)),
        ..TableOverrides::default()
    });
    check(
        "timestamp",
        &clamp,
        &[
            ("9223372036825200000", "9999-12-31T23:59:59.999999"),
            ("-9223372036854775808", "0001-01-01T00:00:00"),
            (r#""Infinity""#, "9999-12-31T23:59:59.999999"),
        ],
    );
    check("date", &clamp, &[(r#""-infinity""#, "0001-01-01")]);
    check("decimal(5,2)", &clamp, &[(r#""Infinity""#, NONE)]);
    let null = settings(TableOverrides { on_infinity: Some(OnInfinity::Null), ..TableOverrides::default() });
    check("decimal(5,2)", &null, &[(r#""Infinity""#, "null")]);
}

#[test]
fn a_columns_unit_goes_before_the_tables() {
    let mut table = settings(TableOverrides { time_unit: Some(Some(TimeUnit::Millis)), ..TableOverrides::default() });
    check("timestamptz", &table, &[("1772360130", "1970-01-21T12:19:20.130Z"), ("1.5", LOSS)]);
    table.columns.insert("v".to_owned(), ColumnSettings { time_unit: Some(TimeUnit::Seconds), ..ColumnSettings::default() });
    check("timestamptz", &table, &[("1772360130", "2026-03-01T10:15:30Z")]);
}

#[test]
fn nested_values() {
    check("list<int>", &strict(), &[("[1, null]", "[1, null]"), ("[]", "[]"), ("{}", MISMATCH), ("[1.5]", LOSS), ("null", "null")]);
    check("map<string, int>", &strict(), &[(r#"{"a": 1, "b": null}"#, "{a: 1, b: null}"), ("[]", MISMATCH), ("{}", "{}")]);
    check("map<int, int>", &strict(), &[(r#"{"7": 1}"#, "{7: 1}"), (r#"{"x": 1}"#, MISMATCH)]);
    check(
        "struct<a: int, b: list<struct<c: string>>>",
        &strict(),
        &[(r#"{"A": 1, "b": [{"c": "x"}, null]}"#, "{a: 1, b: [{c: x}, null]}"), (r#"{"d": 1}"#, "UNKNOWN_COLUMN"), ("[]", MISMATCH)],
    );
    let field = |name: &str, kind| Box::new(DeclaredField { name: name.to_owned(), optional: true, kind });
    let pairs = DeclaredType::Map(field("key", DeclaredType::Long), field("value", DeclaredType::Date));
    check_declared(
        "map<long, date>",
        &pairs,
        &[("[[1, 0], [2, null]]", "{1: 1970-01-01, 2: null}"), ("[[1]]", MISMATCH), ("[[null, 1]]", "REQUIRED_NULL")],
    );
    let dates = DeclaredType::List(field("element", DeclaredType::Date));
    check_declared("list<date>", &dates, &[("[0]", "[1970-01-01]")]);
}
