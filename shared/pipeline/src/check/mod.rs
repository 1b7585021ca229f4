//! Integrity rules: SQL predicates over the columns of a row.
//!
//! A rule compares columns with literals, exactly: numbers by their digits, text byte by byte, times as instants. As with SQL's CHECK a
//! rule that is neither true nor false, because a value is null, holds.

mod cell;
mod evaluate;
mod parse;

/// An integrity rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    text: String,
    predicate: Predicate,
}

impl Check {
    /// Parses a rule.
    ///
    /// # Errors
    /// A sentence saying what does not parse, or is not supported.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), predicate: parse::parse(text)? })
    }

    /// The rule as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A predicate.
#[derive(Debug, Clone, PartialEq)]
enum Predicate {
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
    /// `column IS NULL`
    IsNull(String),
    /// `column op literal`
    Compare(String, Comparison, Literal),
    /// `column IN (literal, …)`
    In(String, Vec<Literal>),
    /// `column LIKE pattern`
    Like(String, String),
    /// A boolean column, or TRUE, FALSE and NULL.
    Truth(Option<bool>),
    /// A boolean column by itself.
    Holds(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison with its sides exchanged.
    const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }

    const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Literal {
    Null,
    Boolean(bool),
    /// Digits as written, with a sign.
    Number(String),
    Text(String),
}
