//! Values of boolean, int, long, float and double columns.

use std::borrow::Cow;

use sluice_model::{DeclaredType, ReasonCode, Rejection};

use super::decimal::{declared_number, external_number};
use super::digits::{Digits, Misfit};
use super::words::{Word, no_number};
use super::{Carrier, Fault, Read, Reading};
use crate::settings::Coerce;

/// Reads a truth value.
pub(crate) fn read_boolean(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<bool> {
    let lenient = reading.table.settings.coerce == Coerce::Lenient;
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Bool(value) => Ok(Some(*value)),
        Carrier::Number(text) if lenient => zero_or_one(text).map(Some).ok_or_else(|| no_boolean(carrier)),
        Carrier::Text(text) if lenient => boolean_word(text).map(Some).ok_or_else(|| no_boolean(carrier)),
        Carrier::Number(_) | Carrier::Text(_) | Carrier::Nested(_) => Err(no_boolean(carrier)),
    }
}

fn no_boolean(carrier: &Carrier<'_>) -> Fault {
    Fault::mismatch(carrier, "is neither true nor false")
}

fn zero_or_one(text: &str) -> Option<bool> {
    match Digits::parse(text)?.to_i64() {
        Ok(0) => Some(false),
        Ok(1) => Some(true),
        Ok(_) | Err(_) => None,
    }
}

fn boolean_word(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_one_of(&["true", "t", "yes", "y", "on", "1"]) {
        return Some(true);
    }
    is_one_of(&["false", "f", "no", "n", "off", "0"]).then_some(false)
}

/// Reads a whole number of 64 bits.
pub(crate) fn read_long(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<i64> {
    if let Carrier::Number(text) = carrier
        && reading.declared != Some(&DeclaredType::UnsignedLong)
    {
        return whole_number(text).map(Some);
    }
    match numeric_text(carrier, reading)? {
        None => Ok(None),
        Some(Numeric::Word(word)) => word.in_exact_column(reading, None),
        Some(Numeric::Text(text)) => whole_number(&text).map(Some),
    }
}

fn whole_number(text: &str) -> Result<i64, Fault> {
    if let Some(value) = plain_integer(text) {
        return Ok(value);
    }
    let digits = Digits::parse(text).ok_or_else(|| no_number(text))?;
    digits.to_i64().map_err(|misfit| match misfit {
        Misfit::TooFine => Fault::new(ReasonCode::PrecisionLoss, format!("{} has a fraction", Rejection::quote(text))),
        Misfit::TooLarge => out_of_range(text, "64 bits"),
    })
}

/// Nearly all numbers are of this form: no fraction, no exponent, 64 bits.
pub(super) fn plain_integer(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = if bytes.first() == Some(&b'-') { (true, &bytes[1..]) } else { (false, bytes) };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// A number that does not fit a type of `size`.
pub(crate) fn out_of_range(text: &str, size: &str) -> Fault {
    Fault::new(ReasonCode::ValueOutOfRange, format!("{} does not fit {size}", Rejection::quote(text)))
}

enum Numeric<'t> {
    Word(Word),
    Text(Cow<'t, str>),
}

/// The number that a value means, as JSON writes it: what a declared type says, or text where text is read.
fn numeric_text<'t>(carrier: &'t Carrier<'_>, reading: &Reading<'_>) -> Result<Option<Numeric<'t>>, Fault> {
    if let Some(digits) = declared_number(carrier, reading)? {
        return Ok(Some(Numeric::Text(Cow::Owned(digits.to_plain(0)))));
    }
    let declared_number = matches!(reading.declared, Some(DeclaredType::Float | DeclaredType::Double));
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Number(text) => Ok(Some(Numeric::Text(Cow::Borrowed(*text)))),
        Carrier::Text(text) => match Word::parse(text) {
            Some(word) if declared_number || reading.reads_number_text() => Ok(Some(Numeric::Word(word))),
            Some(_) | None if reading.reads_number_text() => {
                let number = external_number(text, reading.column.decimal_mark).ok_or_else(|| no_number(text))?;
                Ok(Some(Numeric::Text(number)))
            }
            Some(_) | None => Err(Fault::mismatch(carrier, "is no number; coerce = \"lenient\" reads text as numbers")),
        },
        Carrier::Bool(_) | Carrier::Nested(_) => Err(Fault::mismatch(carrier, "is no number")),
    }
}

/// Reads a 64-bit binary fraction: the nearest one, but a whole number exactly.
pub(crate) fn read_double(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<f64> {
    match float_text(carrier, reading)? {
        None => Ok(None),
        Some(Numeric::Word(word)) => Ok(Some(word.as_f64())),
        Some(Numeric::Text(text)) => nearest_double(&text).map(Some),
    }
}

/// The words are values of a float column, whatever `coerce` says.
fn float_text<'t>(carrier: &'t Carrier<'_>, reading: &Reading<'_>) -> Result<Option<Numeric<'t>>, Fault> {
    if let Carrier::Text(text) = carrier
        && let Some(word) = Word::parse(text)
    {
        return Ok(Some(Numeric::Word(word)));
    }
    numeric_text(carrier, reading)
}

fn nearest_double(text: &str) -> Result<f64, Fault> {
    const LAST_DENSE: f64 = 9_007_199_254_740_992.0;
    let value: f64 = parse_float(text)?;
    if value.is_infinite() {
        return Err(out_of_range(text, "a double"));
    }
    let written_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if written_whole && value.abs() >= LAST_DENSE && !denotes(text, &format!("{value:.0}")) {
        let detail = format!("no double is exactly {}; the nearest one is {value:.0}", Rejection::quote(text));
        return Err(Fault::new(ReasonCode::PrecisionLoss, detail));
    }
    Ok(value)
}

fn parse_float<F: std::str::FromStr>(text: &str) -> Result<F, Fault> {
    let grammatical = Digits::parse(text).is_some();
    text.parse().ok().filter(|_| grammatical).ok_or_else(|| no_number(text))
}

/// Whether two texts are the same number.
fn denotes(text: &str, other: &str) -> bool {
    match (Digits::parse(text), Digits::parse(other)) {
        (Some(number), Some(other)) => number.compare(&other).is_eq(),
        _ => false,
    }
}

/// What a number is for a float column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FloatFit {
    /// A float holds it.
    Fits(f32),
    /// Only a double does: why it is refused where the column is not widened.
    NeedsDouble(ReasonCode),
}

/// Reads a 32-bit binary fraction.
pub(crate) fn read_float(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<FloatFit> {
    let text = match float_text(carrier, reading)? {
        None => return Ok(None),
        Some(Numeric::Word(word)) => return Ok(Some(FloatFit::Fits(word.as_f64() as f32))),
        Some(Numeric::Text(text)) => text,
    };
    let value: f32 = parse_float(&text)?;
    if value.is_infinite() {
        nearest_double(&text)?;
        return Ok(Some(FloatFit::NeedsDouble(ReasonCode::ValueOutOfRange)));
    }
    let survives = reading.declared == Some(&DeclaredType::Float)
        || parse_float::<f64>(&text)?.to_bits() == f64::from(value).to_bits()
        || denotes(&text, &value.to_string());
    Ok(Some(if survives { FloatFit::Fits(value) } else { FloatFit::NeedsDouble(ReasonCode::PrecisionLoss) }))
}
