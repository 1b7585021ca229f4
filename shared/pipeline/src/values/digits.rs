//! Decimal numbers as the digits they are written with: compared, scaled and rounded without a binary fraction in between.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::settings::OnInexactDecimal;

/// The most digits an Iceberg decimal holds.
pub(crate) const MAX_PRECISION: u8 = 38;
/// Exponents beyond this make no difference to any result: the value is zero, too large or too fine.
const MAX_EXPONENT: i64 = 1 << 40;

/// Which side of zero a number is on; zero counts as positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Positive,
    Negative,
}

/// A number: `0.coefficient × 10^point`, the coefficient without zeros at either end; empty for zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digits<'t> {
    sign: Sign,
    coefficient: Cow<'t, str>,
    point: i64,
}

/// Why digits do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Digits behind the last place that there is.
    TooFine,
    /// Digits in front of the first place that there is.
    TooLarge,
}

impl<'t> Digits<'t> {
    /// Reads `-12.50e3`, also `+1`, `.5` and `5.`; `None` for any other text.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let (sign, unsigned) = match text.as_bytes().first()? {
            b'-' => (Sign::Negative, &text[1..]),
            b'+' => (Sign::Positive, &text[1..]),
            _ => (Sign::Positive, text),
        };
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        Some(Self::from_parts(sign, whole, fraction).shifted(exponent))
    }

    fn from_parts(sign: Sign, whole: &'t str, fraction: &'t str) -> Self {
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() {
            return Self { sign, coefficient: Cow::Borrowed(whole.trim_end_matches('0')), point: whole.len() as i64 };
        }
        if whole.is_empty() {
            let significant = fraction.trim_start_matches('0');
            let point = -((fraction.len() - significant.len()) as i64);
            return Self { sign, coefficient: Cow::Borrowed(significant), point };
        }
        Self { sign, coefficient: Cow::Owned([whole, fraction].concat()), point: whole.len() as i64 }
    }

    /// The number `digits × 10^exponent`; `digits` holds ASCII digits only.
    pub(crate) fn from_unscaled(sign: Sign, digits: &'t str, exponent: i64) -> Self {
        Self::from_parts(sign, digits, "").shifted(exponent)
    }

    fn shifted(mut self, exponent: i64) -> Self {
        if self.is_zero() {
            self.sign = Sign::Positive;
            self.point = 0;
        } else {
            self.point = self.point.saturating_add(exponent);
        }
        self
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.coefficient.is_empty()
    }

    fn is_negative(&self) -> bool {
        self.sign == Sign::Negative
    }

    /// Whether it is a whole number, however large.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_zero() || self.coefficient.len() as i64 <= self.point
    }

    /// The value as a whole number of 64 bits.
    pub(crate) fn to_i64(&self) -> Result<i64, Misfit> {
        if !self.is_whole() {
            return Err(Misfit::TooFine);
        }
        i64::try_from(self.scaled(0, OnInexactDecimal::DeadLetter)?).map_err(|_| Misfit::TooLarge)
    }

    /// The unscaled value of a decimal with that precision and scale.
    pub(crate) fn to_decimal(&self, precision: u8, scale: u8, inexact: OnInexactDecimal) -> Result<i128, Misfit> {
        let unscaled = self.scaled(i64::from(scale), inexact)?;
        if unscaled.unsigned_abs() < 10_u128.pow(u32::from(precision.min(MAX_PRECISION))) { Ok(unscaled) } else { Err(Misfit::TooLarge) }
    }

    /// `value × 10^scale` as a whole number of at most 38 digits.
    fn scaled(&self, scale: i64, inexact: OnInexactDecimal) -> Result<i128, Misfit> {
        if self.is_zero() {
            return Ok(0);
        }
        let kept = self.point.saturating_add(scale);
        if kept > i64::from(MAX_PRECISION) {
            return Err(Misfit::TooLarge);
        }
        let available = self.coefficient.len() as i64;
        let magnitude = if kept >= available {
            parse_u128(&self.coefficient) * 10_u128.pow((kept - available) as u32)
        } else {
            self.rounded(kept, inexact)?
        };
        let magnitude = i128::try_from(magnitude).map_err(|_| Misfit::TooLarge)?;
        Ok(if self.is_negative() { -magnitude } else { magnitude })
    }

    /// The first `kept` digits, rounded as the setting says. The coefficient ends in no zero, so something is always cut off.
    fn rounded(&self, kept: i64, inexact: OnInexactDecimal) -> Result<u128, Misfit> {
        let half_away = match inexact {
            OnInexactDecimal::DeadLetter => return Err(Misfit::TooFine),
            OnInexactDecimal::HalfUp => true,
            OnInexactDecimal::HalfEven => false,
        };
        let Ok(kept) = usize::try_from(kept) else { return Ok(0) };
        let (head, tail) = self.coefficient.split_at(kept);
        let head = parse_u128(head);
        let up = match tail.as_bytes().cmp(b"5".as_slice()) {
            Ordering::Less => false,
            Ordering::Equal => half_away || head % 2 == 1,
            Ordering::Greater => true,
        };
        Ok(head + u128::from(up))
    }

    /// The largest whole number that is not above `value × 10^scale`, at the ends of 128 bits for what is beyond them, and whether it is
    /// just that.
    pub(crate) fn floor(&self, scale: i64) -> (i128, bool) {
        match self.scaled(scale, OnInexactDecimal::DeadLetter) {
            Ok(exact) => (exact, true),
            Err(Misfit::TooLarge) if self.is_negative() => (i128::MIN, false),
            Err(Misfit::TooLarge) => (i128::MAX, false),
            Err(Misfit::TooFine) => {
                let kept = usize::try_from(self.point.saturating_add(scale)).unwrap_or(0);
                let head = self.coefficient.get(..kept).map_or(0, parse_u128);
                let head = i128::try_from(head).unwrap_or(i128::MAX);
                (if self.is_negative() { -head - 1 } else { head }, false)
            }
        }
    }

    /// The number without exponent, with `min_fraction` digits behind the point at least.
    pub(crate) fn to_plain(&self, min_fraction: usize) -> String {
        const MAX_PLAIN_DIGITS: i64 = 4096;
        let mut plain = String::from(if self.is_negative() { "-" } else { "" });
        let point = self.point.clamp(-MAX_PLAIN_DIGITS, MAX_PLAIN_DIGITS);
        let digits = self.coefficient.as_ref();
        let whole = usize::try_from(point).unwrap_or(0);
        match digits.get(..whole) {
            _ if whole == 0 => plain.push('0'),
            Some(head) => plain.push_str(head),
            None => {
                plain.push_str(digits);
                plain.extend(std::iter::repeat_n('0', whole - digits.len()));
            }
        }
        let mut fraction = "0".repeat(usize::try_from(-point).unwrap_or(0));
        fraction.push_str(digits.get(whole..).unwrap_or_default());
        let missing = min_fraction.saturating_sub(fraction.len());
        fraction.extend(std::iter::repeat_n('0', missing));
        if !fraction.is_empty() {
            plain.push('.');
            plain.push_str(&fraction);
        }
        plain
    }

    /// Compares by value.
    pub(crate) fn compare(&self, other: &Digits<'_>) -> Ordering {
        let sign = |number: &Digits<'_>| match (number.is_zero(), number.is_negative()) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let by_magnitude = || (self.point, self.coefficient.as_ref()).cmp(&(other.point, other.coefficient.as_ref()));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => by_magnitude(),
            _ => by_magnitude().reverse(),
        })
    }

    /// A copy that borrows nothing.
    pub(crate) fn into_owned(self) -> Digits<'static> {
        Digits { sign: self.sign, coefficient: Cow::Owned(self.coefficient.into_owned()), point: self.point }
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.bytes().fold(0_i64, |value, byte| (value * 10 + i64::from(byte - b'0')).min(MAX_EXPONENT));
    Some(if negative { -magnitude } else { magnitude })
}

/// At most 38 ASCII digits as a number: 10^38 fits 128 bits.
fn parse_u128(digits: &str) -> u128 {
    digits.bytes().fold(0_u128, |value, byte| value.saturating_mul(10).saturating_add(u128::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_told_by_their_digits() {
        for (text, expected) in [
            ("7.0", Ok(7)),
            ("1e3", Ok(1000)),
            ("-0", Ok(0)),
            ("9223372036854775807", Ok(i64::MAX)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775808", Err(Misfit::TooLarge)),
            ("1.5", Err(Misfit::TooFine)),
            ("120e-1", Ok(12)),
            ("1e999999999999999999999", Err(Misfit::TooLarge)),
            ("1e-999999999999999999999", Err(Misfit::TooFine)),
            ("0e999999999999999999999", Ok(0)),
        ] {
            assert_eq!(Digits::parse(text).unwrap().to_i64(), expected, "{text}");
        }
        for text in ["", "-", ".", "e5", "1e", "1e+", "0x1", "1 ", "１", "1.2.3", "--1", "1,5"] {
            assert_eq!(Digits::parse(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact_or_refused_or_rounded_on_digits() {
        use OnInexactDecimal::{DeadLetter, HalfEven, HalfUp};
        for (text, rounding, expected) in [
            ("1.005", DeadLetter, Err(Misfit::TooFine)),
            ("1.005", HalfUp, Ok(101)),
            ("1.005", HalfEven, Ok(100)),
            ("1.015", HalfEven, Ok(102)),
            ("1.0050001", HalfEven, Ok(101)),
            ("-1.005", HalfUp, Ok(-101)),
            ("-0.001", HalfUp, Ok(0)),
            ("0.0005", HalfUp, Ok(0)),
            ("5.0000", DeadLetter, Ok(500)),
            ("1E+2", DeadLetter, Ok(10000)),
            ("999.995", HalfUp, Err(Misfit::TooLarge)),
            ("999.994", HalfUp, Ok(99999)),
            ("1000", DeadLetter, Err(Misfit::TooLarge)),
        ] {
            assert_eq!(Digits::parse(text).unwrap().to_decimal(5, 2, rounding), expected, "{text}");
        }
        let nines = "9".repeat(38);
        assert_eq!(Digits::parse(&nines).unwrap().to_decimal(38, 0, DeadLetter), Ok(10_i128.pow(38) - 1));
    }

    #[test]
    fn numbers_compare_by_value_and_print_plainly() {
        let compare = |a, b| Digits::parse(a).unwrap().compare(&Digits::parse(b).unwrap());
        assert_eq!(compare("10", "9"), Ordering::Greater);
        assert_eq!(compare("1e1", "10.0"), Ordering::Equal);
        assert_eq!(compare("-10", "-9"), Ordering::Less);
        assert_eq!(compare("-0", "0"), Ordering::Equal);
        assert_eq!(compare("0.5", "0.05"), Ordering::Greater);
        for (text, plain) in [("12.50", "12.5"), ("1e3", "1000"), ("-0.001", "-0.001"), ("0", "0"), ("123e-2", "1.23")] {
            assert_eq!(Digits::parse(text).unwrap().to_plain(0), plain);
        }
        assert_eq!(Digits::from_unscaled(Sign::Negative, "123450", -2).to_plain(2), "-1234.50");
        assert_eq!(Digits::from_unscaled(Sign::Positive, "123", 2).to_plain(0), "12300");
    }
}
