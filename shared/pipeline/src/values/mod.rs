//! From a JSON value to a typed one, exactly or not at all: one file a kind of column.

pub(crate) mod bytes;
pub(crate) mod calendar;
pub(crate) mod decimal;
pub(crate) mod digits;
pub(crate) mod number;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod words;

use std::borrow::Cow;

use jiff::tz::TimeZone;
use sluice_model::{DeclaredType, Node, NodeKind, ReasonCode, Rejection, TimeUnit, ValueHints};

use crate::settings::{BinaryText, Coerce, ColumnSettings, JsonColumn, OnNaiveTimestamp, TableSettings};

/// Why a value does not fit its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ReasonCode,
    pub(crate) detail: String,
}

impl Fault {
    pub(crate) fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// A value of the wrong kind: `what` says what was expected.
    pub(crate) fn mismatch(carrier: &Carrier<'_>, what: &str) -> Self {
        Self::new(ReasonCode::TypeMismatch, format!("{} {}", carrier.describe(), what))
    }
}

/// A value, null, or why it cannot be stored.
pub(crate) type Read<T> = Result<Option<T>, Fault>;

/// A JSON value by what carries it.
#[derive(Debug, Clone)]
pub(crate) enum Carrier<'t> {
    Null,
    Bool(bool),
    Number(&'t str),
    Text(Cow<'t, str>),
    Nested(Node<'t>),
}

impl<'t> Carrier<'t> {
    #[inline]
    pub(crate) fn of(node: Node<'t>) -> Self {
        match node.kind() {
            NodeKind::Null => Self::Null,
            NodeKind::Bool => Self::Bool(node.as_bool() == Some(true)),
            NodeKind::Number => Self::Number(node.number().unwrap_or_default()),
            NodeKind::String => Self::Text(node.text().unwrap_or_default()),
            NodeKind::Array | NodeKind::Object => Self::Nested(node),
        }
    }

    /// The value as a subject of a sentence.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Number(digits) => format!("the number {}", Rejection::quote(digits)),
            Self::Text(text) => format!("the text {}", Rejection::quote(text)),
            Self::Nested(node) if node.kind() == NodeKind::Array => format!("the array {}", Rejection::quote(node.raw())),
            Self::Nested(node) => format!("the object {}", Rejection::quote(node.raw())),
        }
    }
}

/// How text that is not JSON's own is read in one column: the column's settings, which its nested fields share.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnRules {
    pub(crate) time_unit: Option<TimeUnit>,
    pub(crate) binary: Option<BinaryText>,
    pub(crate) json: Option<JsonColumn>,
    pub(crate) decimal_mark: Option<char>,
}

impl ColumnRules {
    pub(crate) fn new(settings: Option<&ColumnSettings>) -> Self {
        let Some(settings) = settings else { return Self::default() };
        Self { time_unit: settings.time_unit, binary: settings.binary, json: settings.json, decimal_mark: settings.decimal_mark }
    }
}

/// How values of a table are read: its settings, with the declared zone looked up.
#[derive(Debug)]
pub(crate) struct TableRules<'a> {
    pub(crate) settings: &'a TableSettings,
    pub(crate) zone: Option<TimeZone>,
}

impl<'a> TableRules<'a> {
    pub(crate) fn new(settings: &'a TableSettings) -> Self {
        let zone = match &settings.on_naive_timestamp {
            OnNaiveTimestamp::DeadLetter => None,
            OnNaiveTimestamp::Zone(name) => TimeZone::get(name).ok(),
        };
        Self { settings, zone }
    }
}

/// All that decides how one value is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) table: &'a TableRules<'a>,
    pub(crate) column: &'a ColumnRules,
    pub(crate) hints: ValueHints,
    pub(crate) declared: Option<&'a DeclaredType>,
}

impl Reading<'_> {
    /// Whether text may stand for a number.
    pub(crate) fn reads_number_text(&self) -> bool {
        self.table.settings.coerce == Coerce::Lenient || self.column.decimal_mark.is_some()
    }
}
