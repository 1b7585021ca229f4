//! Values of decimal columns: digits in numbers and text, and the binary forms that Connect and Debezium give them.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigInt;
use sluice_model::{DecimalText, DeclaredType, Node, NodeKind, ReasonCode, Rejection};

use super::digits::{Digits, Misfit, Sign};
use super::words::{Word, no_number};
use super::{Carrier, Fault, Read, Reading};
use crate::settings::OnInexactDecimal;

/// Precision and scale of a decimal column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecimalType {
    pub(crate) precision: u8,
    pub(crate) scale: u8,
}

/// More bytes than any number that fits a decimal can need, at any scale in use; longer ones are not worth the arithmetic.
const MAX_UNSCALED_BYTES: usize = 1024;

/// Reads the unscaled value.
pub(crate) fn read_decimal(carrier: &Carrier<'_>, reading: &Reading<'_>, kind: DecimalType) -> Read<i128> {
    if let Some(digits) = declared_number(carrier, reading)? {
        return fit(&digits, reading, kind).map(Some);
    }
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Number(text) => number_text(text, reading, kind).map(Some),
        Carrier::Text(text) => match Word::parse(text) {
            Some(word) => word.in_exact_column(reading, None),
            None => decimal_text(text, reading, kind).map(Some),
        },
        Carrier::Nested(node) if node.kind() == NodeKind::Object && undeclared_base64(reading) => {
            with_unscaled(&variable_scale(*node)?, |digits| fit(digits, reading, kind)).map(Some)
        }
        Carrier::Bool(_) | Carrier::Nested(_) => Err(Fault::mismatch(carrier, "is no number")),
    }
}

fn undeclared_base64(reading: &Reading<'_>) -> bool {
    reading.declared.is_none() && reading.hints.decimal_text == DecimalText::Base64Unscaled
}

fn decimal_text(text: &str, reading: &Reading<'_>, kind: DecimalType) -> Result<i128, Fault> {
    if undeclared_base64(reading) {
        let unscaled = Unscaled { bytes: base64_bytes(text)?, scale: i64::from(kind.scale) };
        return with_unscaled(&unscaled, |digits| fit(digits, reading, kind));
    }
    let number = external_number(text, reading.column.decimal_mark).ok_or_else(|| no_number(text))?;
    number_text(&number, reading, kind)
}

fn number_text(text: &str, reading: &Reading<'_>, kind: DecimalType) -> Result<i128, Fault> {
    if let Some(unscaled) = plain_decimal(text, kind) {
        return Ok(unscaled);
    }
    let digits = Digits::parse(text).ok_or_else(|| no_number(text))?;
    fit(&digits, reading, kind)
}

/// The powers of ten that 128 bits hold.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// The usual form, read without allocating: a sign, digits, a point, no more digits than the scale, all within 18 digits.
fn plain_decimal(text: &str, kind: DecimalType) -> Option<i128> {
    let bytes = text.as_bytes();
    let (negative, digits) = if bytes.first() == Some(&b'-') { (true, &bytes[1..]) } else { (false, bytes) };
    if digits.is_empty() || digits.len() > 18 || !digits[0].is_ascii_digit() || !digits[digits.len() - 1].is_ascii_digit() {
        return None;
    }
    let mut value = 0_i64;
    let mut fraction = None;
    for (at, byte) in digits.iter().enumerate() {
        match (byte, fraction) {
            (b'0'..=b'9', _) => value = value * 10 + i64::from(byte - b'0'),
            (b'.', None) => fraction = Some(digits.len() - at - 1),
            _ => return None,
        }
    }
    let missing = usize::from(kind.scale).checked_sub(fraction.unwrap_or(0))?;
    let unscaled = i128::from(value).checked_mul(*POWERS.get(missing)?)?;
    let fits = unscaled < *POWERS.get(usize::from(kind.precision))?;
    fits.then_some(if negative { -unscaled } else { unscaled })
}

fn fit(digits: &Digits<'_>, reading: &Reading<'_>, kind: DecimalType) -> Result<i128, Fault> {
    let DecimalType { precision, scale } = kind;
    let inexact: OnInexactDecimal = reading.table.settings.on_inexact_decimal;
    digits.to_decimal(precision, scale, inexact).map_err(|misfit| {
        let quoted = Rejection::quote(&digits.to_plain(0));
        match misfit {
            Misfit::TooFine => Fault::new(
                ReasonCode::PrecisionLoss,
                format!("{quoted} has more than {scale} digits behind the point; on_inexact_decimal says how to round"),
            ),
            Misfit::TooLarge => Fault::new(ReasonCode::ValueOutOfRange, format!("{quoted} does not fit decimal({precision},{scale})")),
        }
    })
}

/// The number that a value means by its declared type, where the carrier says something else; `None` for all other values.
pub(crate) fn declared_number(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<Option<Digits<'static>>, Fault> {
    match (reading.declared, carrier) {
        (Some(DeclaredType::Decimal { scale, .. }), Carrier::Text(text)) => {
            let unscaled = Unscaled { bytes: base64_bytes(text)?, scale: i64::from(*scale) };
            with_unscaled(&unscaled, |digits| Ok(digits.clone().into_owned())).map(Some)
        }
        (Some(DeclaredType::VariableScaleDecimal), Carrier::Nested(node)) => {
            with_unscaled(&variable_scale(*node)?, |digits| Ok(digits.clone().into_owned())).map(Some)
        }
        (Some(DeclaredType::UnsignedLong), Carrier::Number(text)) => Ok(unsigned(text)),
        _ => Ok(None),
    }
}

/// The scale at which a declared decimal is written as text.
pub(crate) fn declared_scale(declared: Option<&DeclaredType>) -> usize {
    let Some(DeclaredType::Decimal { scale, .. }) = declared else { return 0 };
    usize::try_from(*scale).unwrap_or(0).min(MAX_UNSCALED_BYTES)
}

/// A negative carrier is the two's complement of a number from 2^63 up.
fn unsigned(text: &str) -> Option<Digits<'static>> {
    let digits = Digits::parse(text)?;
    let value = digits.to_i64().ok().filter(|value| *value < 0)?;
    let plain = (value as u64).to_string();
    Some(Digits::from_unscaled(Sign::Positive, &plain, 0).into_owned())
}

/// Big-endian two's complement and the digits that stand behind the point.
struct Unscaled {
    bytes: Vec<u8>,
    scale: i64,
}

fn with_unscaled<T>(unscaled: &Unscaled, then: impl FnOnce(&Digits<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
    let bytes = significant(&unscaled.bytes);
    if bytes.len() > MAX_UNSCALED_BYTES {
        let detail = format!("a decimal of {} bytes fits no column", bytes.len());
        return Err(Fault::new(ReasonCode::ValueOutOfRange, detail));
    }
    let (is_negative, digits) = match small(bytes) {
        Some(value) => (value < 0, value.unsigned_abs().to_string()),
        None => {
            let value = BigInt::from_signed_bytes_be(bytes);
            (value < BigInt::ZERO, value.magnitude().to_string())
        }
    };
    let sign = if is_negative { Sign::Negative } else { Sign::Positive };
    then(&Digits::from_unscaled(sign, &digits, unscaled.scale.saturating_neg()))
}

/// The bytes without those that only repeat the sign.
fn significant(bytes: &[u8]) -> &[u8] {
    let redundant = |pair: &[u8]| matches!((pair[0], pair[1] & 0x80), (0x00, 0x00) | (0xff, 0x80));
    let skip = bytes.windows(2).take_while(|pair| redundant(pair)).count();
    &bytes[skip..]
}

fn small(bytes: &[u8]) -> Option<i128> {
    const WIDTH: usize = 16;
    let first = bytes.first().copied().unwrap_or(0);
    let mut wide = [if first & 0x80 == 0 { 0 } else { 0xff }; WIDTH];
    wide.get_mut(WIDTH.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

fn base64_bytes(text: &str) -> Result<Vec<u8>, Fault> {
    STANDARD.decode(text).map_err(|_| {
        let detail = format!("the text {} is no base64 of an unscaled decimal", Rejection::quote(text));
        Fault::new(ReasonCode::TypeMismatch, detail)
    })
}

/// Debezium's `{"scale": int, "value": base64}`.
fn variable_scale(node: Node<'_>) -> Result<Unscaled, Fault> {
    let wrong = || Fault::mismatch(&Carrier::of(node), "is no decimal: expected an object with scale and value");
    let scale = node.get("scale").and_then(Node::number).and_then(|text| Digits::parse(text)?.to_i64().ok());
    let value = node.get("value").and_then(Node::text);
    let (Some(scale), Some(value)) = (scale, value) else { return Err(wrong()) };
    Ok(Unscaled { bytes: base64_bytes(&value)?, scale })
}

/// Number text in the form that `mark` declares, as JSON would write it: `1.234,50-` with mark `,` is `-1234.50`.
pub(crate) fn external_number(text: &str, mark: Option<char>) -> Option<Cow<'_, str>> {
    let Some(mark) = mark else { return Some(Cow::Borrowed(text)) };
    let grouping = if mark == ',' { '.' } else { ',' };
    let (sign, unsigned) = match text.strip_suffix('-') {
        Some(unsigned) => ("-", unsigned),
        None => text.strip_prefix('-').map_or(("", text), |unsigned| ("-", unsigned)),
    };
    let (whole, fraction) = unsigned.split_once(mark).unwrap_or((unsigned, ""));
    let mut groups = whole.split(grouping);
    let first = groups.next().unwrap_or_default();
    let mut number = String::with_capacity(text.len() + 1);
    number.push_str(sign);
    number.push_str(first);
    for group in groups {
        let sound = group.len() == 3 && (1..=3).contains(&first.len());
        if !sound {
            return None;
        }
        number.push_str(group);
    }
    if unsigned.contains(mark) {
        number.push('.');
        number.push_str(fraction);
    }
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    (digits_only(&number[sign.len()..].replace('.', "")) && !unsigned.is_empty()).then_some(Cow::Owned(number))
}
