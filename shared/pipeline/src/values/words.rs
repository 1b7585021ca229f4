//! The words for what is no number: NaN and the infinities, in any case.

use sluice_model::{ReasonCode, Rejection};

use super::{Fault, Read, Reading};
use crate::settings::{OnInfinity, OnNan};

/// A word that stands where a number is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    NotANumber,
    Infinity,
    NegativeInfinity,
}

impl Word {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        const WORDS: [(&str, Word); 8] = [
            ("nan", Word::NotANumber),
            ("+nan", Word::NotANumber),
            ("-nan", Word::NotANumber),
            ("infinity", Word::Infinity),
            ("+infinity", Word::Infinity),
            ("-infinity", Word::NegativeInfinity),
            ("positive_infinity", Word::Infinity),
            ("negative_infinity", Word::NegativeInfinity),
        ];
        let length_fits = (3..=17).contains(&text.len());
        let found = if length_fits { WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) } else { None };
        found.map(|(_, word)| *word)
    }

    /// What becomes of the word in a column that cannot hold it. `clamped` is the last or first value of the column, where it has one.
    pub(crate) fn in_exact_column<T>(self, reading: &Reading<'_>, clamped: Option<T>) -> Read<T> {
        let settings = reading.table.settings;
        match self {
            Self::NotANumber => match settings.on_nan {
                OnNan::Null => Ok(None),
                OnNan::DeadLetter => Err(self.refused("NaN", "on_nan")),
            },
            Self::Infinity | Self::NegativeInfinity => match (settings.on_infinity, clamped) {
                (OnInfinity::Null, _) => Ok(None),
                (OnInfinity::Clamp, Some(limit)) => Ok(Some(limit)),
                (OnInfinity::Clamp, None) | (OnInfinity::DeadLetter, _) => Err(self.refused("infinity", "on_infinity")),
            },
        }
    }

    fn refused(self, name: &str, setting: &str) -> Fault {
        let detail = format!("the column's type cannot hold {name}; {setting} says what to do with it");
        Fault::new(ReasonCode::ValueNotRepresentable, detail)
    }

    pub(crate) const fn as_f64(self) -> f64 {
        match self {
            Self::NotANumber => f64::NAN,
            Self::Infinity => f64::INFINITY,
            Self::NegativeInfinity => f64::NEG_INFINITY,
        }
    }
}

/// A text where a number is expected and that is none.
pub(crate) fn no_number(text: &str) -> Fault {
    Fault::new(ReasonCode::TypeMismatch, format!("the text {} is no number", Rejection::quote(text)))
}
