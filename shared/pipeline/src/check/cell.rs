//! A value of a column, as a rule compares it.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use sluice_model::ColumnType;

use super::Literal;
use crate::values::calendar::{parse_clock, parse_day};
use crate::values::digits::Digits;
use crate::values::time::instant_of_text;

/// A literal, read as the column's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// SQL's null: comparing with it is neither true nor false.
    Null,
    Boolean(bool),
    /// An integer in the column's unit; where the literal lies between two integers, the one before it.
    Scaled {
        floor: i128,
        exact: bool,
    },
    Fraction(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Operand {
    /// Reads a literal as a value of `kind`, or says why that is not possible.
    pub(super) fn new(literal: &Literal, kind: &ColumnType) -> Result<Self, String> {
        let wrong = || format!("{} cannot be compared with a column of type {kind}", describe(literal));
        let read = match (literal, kind) {
            (Literal::Null, _) => Some(Self::Null),
            (Literal::Boolean(value), ColumnType::Boolean) => Some(Self::Boolean(*value)),
            (Literal::Number(digits), _) => number(digits, kind),
            (Literal::Text(text), _) => text_operand(text, kind),
            (Literal::Boolean(_), _) => None,
        };
        read.ok_or_else(wrong)
    }
}

fn describe(literal: &Literal) -> String {
    match literal {
        Literal::Null => "NULL".to_owned(),
        Literal::Boolean(value) => value.to_string(),
        Literal::Number(digits) => digits.clone(),
        Literal::Text(text) => format!("'{text}'"),
    }
}

fn number(digits: &str, kind: &ColumnType) -> Option<Operand> {
    match kind {
        ColumnType::Int | ColumnType::Long => scaled(digits, 0),
        ColumnType::Decimal { scale, .. } => scaled(digits, i64::from(*scale)),
        ColumnType::Float | ColumnType::Double => digits.parse().ok().map(Operand::Fraction),
        ColumnType::Boolean
        | ColumnType::Date
        | ColumnType::Time
        | ColumnType::Timestamp
        | ColumnType::TimestampTz
        | ColumnType::TimestampNs
        | ColumnType::TimestampTzNs
        | ColumnType::String
        | ColumnType::Uuid
        | ColumnType::Fixed(_)
        | ColumnType::Binary
        | ColumnType::Struct(_)
        | ColumnType::List(_)
        | ColumnType::Map(..) => None,
    }
}

fn scaled(digits: &str, scale: i64) -> Option<Operand> {
    let (floor, exact) = Digits::parse(digits)?.floor(scale);
    Some(Operand::Scaled { floor, exact })
}

fn text_operand(text: &str, kind: &ColumnType) -> Option<Operand> {
    const NANOS_PER_MICRO: i128 = 1_000;
    let exact = |value: i128| Operand::Scaled { floor: value, exact: true };
    let instant = |nanos_per_unit: i128| {
        let nanos = instant_of_text(text).or_else(|| Some(i128::from(parse_day(text).ok()?.epoch_day()) * 86_400 * 1_000_000_000))?;
        Some(Operand::Scaled { floor: nanos.div_euclid(nanos_per_unit), exact: nanos.rem_euclid(nanos_per_unit) == 0 })
    };
    match kind {
        ColumnType::String => Some(Operand::Text(text.to_owned())),
        ColumnType::Uuid => {
            let hex: String = text.chars().filter(|character| *character != '-').collect();
            let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
            bytes.filter(|bytes| bytes.len() == 16).map(Operand::Bytes)
        }
        ColumnType::Date => parse_day(text).ok().map(|day| exact(day.epoch_day().into())),
        ColumnType::Time => {
            let clock = parse_clock(text).ok()?;
            let nanos = i128::from(clock.seconds) * 1_000_000_000 + i128::from(clock.nanos);
            Some(Operand::Scaled { floor: nanos.div_euclid(NANOS_PER_MICRO), exact: nanos % NANOS_PER_MICRO == 0 })
        }
        ColumnType::Timestamp | ColumnType::TimestampTz => instant(NANOS_PER_MICRO),
        ColumnType::TimestampNs | ColumnType::TimestampTzNs => instant(1),
        ColumnType::Int | ColumnType::Long | ColumnType::Float | ColumnType::Double | ColumnType::Decimal { .. } => number(text, kind),
        ColumnType::Boolean => match text {
            "true" | "t" => Some(Operand::Boolean(true)),
            "false" | "f" => Some(Operand::Boolean(false)),
            _ => None,
        },
        ColumnType::Fixed(_) | ColumnType::Binary | ColumnType::Struct(_) | ColumnType::List(_) | ColumnType::Map(..) => None,
    }
}

/// How the value in a row stands to an operand; `None` when either is null.
pub(super) fn compare(array: &ArrayRef, row: usize, (kind, operand): (&ColumnType, &Operand)) -> Option<Ordering> {
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    match operand {
        Operand::Null => None,
        Operand::Boolean(value) => array.as_boolean_opt().map(|column| column.value(row).cmp(value)),
        Operand::Scaled { floor, exact } => {
            let order = integer(array, row, kind)?.cmp(floor);
            Some(if *exact { order } else { order.then(Ordering::Less) })
        }
        Operand::Fraction(value) => {
            let own = if *kind == ColumnType::Float {
                f64::from(array.as_primitive_opt::<Float32Type>()?.value(row))
            } else {
                array.as_primitive_opt::<Float64Type>()?.value(row)
            };
            Some(sql_order(own, *value))
        }
        Operand::Text(text) => Some(array.as_string_opt::<i32>()?.value(row).as_bytes().cmp(text.as_bytes())),
        Operand::Bytes(bytes) => Some(array.as_fixed_size_binary_opt()?.value(row).cmp(bytes.as_slice())),
    }
}

/// As in SQL zero has no sign, and NaN is greater than all numbers.
fn sql_order(own: f64, other: f64) -> Ordering {
    own.partial_cmp(&other).unwrap_or_else(|| own.is_nan().cmp(&other.is_nan()))
}

fn integer(array: &ArrayRef, row: usize, kind: &ColumnType) -> Option<i128> {
    Some(match kind {
        ColumnType::Int => array.as_primitive_opt::<Int32Type>()?.value(row).into(),
        ColumnType::Long => array.as_primitive_opt::<Int64Type>()?.value(row).into(),
        ColumnType::Decimal { .. } => array.as_primitive_opt::<Decimal128Type>()?.value(row),
        ColumnType::Date => array.as_primitive_opt::<Date32Type>()?.value(row).into(),
        ColumnType::Time => array.as_primitive_opt::<Time64MicrosecondType>()?.value(row).into(),
        ColumnType::Timestamp | ColumnType::TimestampTz => array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row).into(),
        ColumnType::TimestampNs | ColumnType::TimestampTzNs => array.as_primitive_opt::<TimestampNanosecondType>()?.value(row).into(),
        ColumnType::Boolean
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::String
        | ColumnType::Uuid
        | ColumnType::Fixed(_)
        | ColumnType::Binary
        | ColumnType::Struct(_)
        | ColumnType::List(_)
        | ColumnType::Map(..) => return None,
    })
}

/// Whether a text matches a LIKE pattern: `%` any characters, `_` one, `\` makes the next one itself.
pub(super) fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let tokens = like_tokens(pattern);
    let (mut at, mut token, mut resume) = (0, 0, None);
    while at < text.len() {
        match tokens.get(token) {
            Some(LikeToken::Any) => {
                resume = Some((token, at));
                token += 1;
            }
            Some(LikeToken::One) => (at, token) = (at + 1, token + 1),
            Some(LikeToken::Literal(character)) if *character == text[at] => (at, token) = (at + 1, token + 1),
            Some(LikeToken::Literal(_)) | None => match resume {
                Some((any, from)) => {
                    resume = Some((any, from + 1));
                    (at, token) = (from + 1, any + 1);
                }
                None => return false,
            },
        }
    }
    tokens.get(token..).unwrap_or_default().iter().all(|token| *token == LikeToken::Any)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LikeToken {
    Any,
    One,
    Literal(char),
}

fn like_tokens(pattern: &str) -> Vec<LikeToken> {
    let mut characters = pattern.chars();
    std::iter::from_fn(|| {
        Some(match characters.next()? {
            '%' => LikeToken::Any,
            '_' => LikeToken::One,
            '\\' => LikeToken::Literal(characters.next().unwrap_or('\\')),
            other => LikeToken::Literal(other),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_patterns() {
        for (text, pattern, matches) in [
            ("", "", true),
            ("", "%", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "a_c", true),
            ("abc", "a_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("한글", "__", true),
            ("aXbXc", "a%X%c", true),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "%a%a%a%a%a%a%a%b", false),
        ] {
            assert_eq!(like(text, pattern), matches, "{text} like {pattern}");
        }
    }
}
