//! The folder of a partition, `region=eu%2Fwest/at_day=2026-11-29`, spelled as Iceberg spells it: names and values URL-encoded.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use iceberg::spec::{Literal, PartitionSpec, PrimitiveLiteral, PrimitiveType, Struct, StructType, Transform, Type};
use uuid::Uuid;

use crate::transform::civil;

/// The path of a partition; empty for an unpartitioned spec.
pub(crate) fn partition_path(spec: &PartitionSpec, kind: &StructType, values: &Struct) -> String {
    let fields = spec.fields().iter().zip(kind.fields()).zip(values.iter());
    let parts = fields.map(|((field, result), value)| {
        let text = value.map_or_else(|| "null".to_owned(), |value| human(&field.transform, &result.field_type, value));
        format!("{}={}", encode(&field.name), encode(&text))
    });
    parts.collect::<Vec<_>>().join("/")
}

fn human(transform: &Transform, kind: &Type, value: &Literal) -> String {
    let Literal::Primitive(primitive) = value else { return "null".to_owned() };
    match (transform, primitive) {
        (Transform::Year, PrimitiveLiteral::Int(years)) => format!("{:04}", 1970 + i64::from(*years)),
        (Transform::Month, PrimitiveLiteral::Int(months)) => {
            let months = i64::from(*months);
            format!("{:04}-{:02}", 1970 + months.div_euclid(12), months.rem_euclid(12) + 1)
        }
        (Transform::Day, PrimitiveLiteral::Int(days)) => date(i64::from(*days)),
        (Transform::Hour, PrimitiveLiteral::Int(hours)) => {
            let hours = i64::from(*hours);
            format!("{}-{:02}", date(hours.div_euclid(24)), hours.rem_euclid(24))
        }
        (Transform::Void, _) => "null".to_owned(),
        _ => plain(kind, primitive),
    }
}

fn plain(kind: &Type, value: &PrimitiveLiteral) -> String {
    let kind = kind.as_primitive_type();
    match value {
        PrimitiveLiteral::Boolean(value) => value.to_string(),
        PrimitiveLiteral::Int(value) if kind == Some(&PrimitiveType::Date) => date(i64::from(*value)),
        PrimitiveLiteral::Int(value) => value.to_string(),
        PrimitiveLiteral::Long(value) => long(kind, *value),
        PrimitiveLiteral::Float(value) => value.to_string(),
        PrimitiveLiteral::Double(value) => value.to_string(),
        PrimitiveLiteral::String(value) => value.clone(),
        PrimitiveLiteral::Binary(bytes) => STANDARD.encode(bytes),
        PrimitiveLiteral::Int128(value) => match kind {
            Some(PrimitiveType::Decimal { scale, .. }) => decimal(*value, *scale as usize),
            _ => value.to_string(),
        },
        PrimitiveLiteral::UInt128(value) => Uuid::from_u128(*value).to_string(),
        PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin => "null".to_owned(),
    }
}

fn long(kind: Option<&PrimitiveType>, value: i64) -> String {
    match kind {
        Some(PrimitiveType::Time) => clock(value, 6),
        Some(PrimitiveType::Timestamp) => timestamp(value, 6),
        Some(PrimitiveType::Timestamptz) => format!("{}+00:00", timestamp(value, 6)),
        Some(PrimitiveType::TimestampNs) => timestamp(value, 9),
        Some(PrimitiveType::TimestamptzNs) => format!("{}+00:00", timestamp(value, 9)),
        _ => value.to_string(),
    }
}

fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

fn timestamp(value: i64, digits: u32) -> String {
    let per_day = 86_400 * 10_i64.pow(digits);
    format!("{}T{}", date(value.div_euclid(per_day)), clock(value.rem_euclid(per_day), digits))
}

/// `HH:MM:SS` and the fraction in groups of three digits, without groups of zeros at its end.
fn clock(value: i64, digits: u32) -> String {
    let unit = 10_i64.pow(digits);
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        let mut shown = format!("{fraction:0width$}", width = digits as usize);
        while shown.ends_with("000") {
            shown.truncate(shown.len() - 3);
        }
        let _ = write!(text, ".{shown}");
    }
    text
}

fn decimal(unscaled: i128, scale: usize) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// As Java's `URLEncoder` with UTF-8.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelled_as_iceberg_spells_them() {
        let of = |transform: &Transform, kind: PrimitiveType, value: Literal| human(transform, &Type::Primitive(kind), &value);
        assert_eq!(of(&Transform::Year, PrimitiveType::Int, Literal::int(56)), "2026");
        assert_eq!(of(&Transform::Month, PrimitiveType::Int, Literal::int(-1)), "1969-12");
        assert_eq!(of(&Transform::Day, PrimitiveType::Date, Literal::date(-1)), "1969-12-31");
        assert_eq!(of(&Transform::Hour, PrimitiveType::Int, Literal::int(-1)), "1969-12-31-23");
        let decimal = PrimitiveType::Decimal { precision: 9, scale: 2 };
        assert_eq!(of(&Transform::Identity, decimal, Literal::decimal(-5)), "-0.05");
        assert_eq!(of(&Transform::Identity, PrimitiveType::Timestamp, Literal::timestamp(-1)), "1969-12-31T23:59:59.999999");
        assert_eq!(of(&Transform::Identity, PrimitiveType::Timestamptz, Literal::timestamptz(1_500_000)), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(of(&Transform::Identity, PrimitiveType::Binary, Literal::binary(vec![255, 254])), "//4=");
        assert_eq!(of(&Transform::Truncate(2), PrimitiveType::String, Literal::string("a/b")), "a/b");
    }

    #[test]
    fn folders_are_url_encoded() {
        assert_eq!(encode("eu/west süd=1 %~*"), "eu%2Fwest+s%C3%BCd%3D1+%25%7E*");
    }
}
