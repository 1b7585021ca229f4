//! Why a record was refused.

use std::fmt;

use serde::Serialize;

/// The bounded vocabulary of dead letters; metrics and queries group by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the documentation; CONFIG and docs/reason-codes.md describe each")]
pub enum ReasonCode {
    RouteMissing,
    RouteNotAllowed,
    RouteConflict,
    TableUnknown,
    TableReplaced,
    TableUnavailable,
    MalformedRecord,
    MalformedJson,
    InvalidUtf8,
    EmptyValue,
    DuplicateField,
    TooDeep,
    TooLarge,
    SchemaIdUnknown,
    WireFormatMismatch,
    TrailingBytes,
    OpUnknown,
    TruncateNotApplied,
    GapEvent,
    KeyMissing,
    KeyNull,
    KeyUnknown,
    RequiredNull,
    UnknownColumn,
    NameCollision,
    TypeMismatch,
    ValueOutOfRange,
    PrecisionLoss,
    ValueNotRepresentable,
    TypeNotRepresentable,
    TimeZoneMissing,
    TimeUnitAmbiguous,
    UnavailableValue,
    PartialRow,
    StaleVersion,
    CheckFailed,
    OffsetBelowLedger,
    Superseded,
    OrderUnknown,
}

impl ReasonCode {
    /// The code as it is written in the error table, in headers and in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RouteMissing => "ROUTE_MISSING",
            Self::RouteNotAllowed => "ROUTE_NOT_ALLOWED",
            Self::RouteConflict => "ROUTE_CONFLICT",
            Self::TableUnknown => "TABLE_UNKNOWN",
            Self::TableReplaced => "TABLE_REPLACED",
            Self::TableUnavailable => "TABLE_UNAVAILABLE",
            Self::MalformedRecord => "MALFORMED_RECORD",
            Self::MalformedJson => "MALFORMED_JSON",
            Self::InvalidUtf8 => "INVALID_UTF8",
            Self::EmptyValue => "EMPTY_VALUE",
            Self::DuplicateField => "DUPLICATE_FIELD",
            Self::TooDeep => "TOO_DEEP",
            Self::TooLarge => "TOO_LARGE",
            Self::SchemaIdUnknown => "SCHEMA_ID_UNKNOWN",
            Self::WireFormatMismatch => "WIRE_FORMAT_MISMATCH",
            Self::TrailingBytes => "TRAILING_BYTES",
            Self::OpUnknown => "OP_UNKNOWN",
            Self::TruncateNotApplied => "TRUNCATE_NOT_APPLIED",
            Self::GapEvent => "GAP_EVENT",
            Self::KeyMissing => "KEY_MISSING",
            Self::KeyNull => "KEY_NULL",
            Self::KeyUnknown => "KEY_UNKNOWN",
            Self::RequiredNull => "REQUIRED_NULL",
            Self::UnknownColumn => "UNKNOWN_COLUMN",
            Self::NameCollision => "NAME_COLLISION",
            Self::TypeMismatch => "TYPE_MISMATCH",
            Self::ValueOutOfRange => "VALUE_OUT_OF_RANGE",
            Self::PrecisionLoss => "PRECISION_LOSS",
            Self::ValueNotRepresentable => "VALUE_NOT_REPRESENTABLE",
            Self::TypeNotRepresentable => "TYPE_NOT_REPRESENTABLE",
            Self::TimeZoneMissing => "TIME_ZONE_MISSING",
            Self::TimeUnitAmbiguous => "TIME_UNIT_AMBIGUOUS",
            Self::UnavailableValue => "UNAVAILABLE_VALUE",
            Self::PartialRow => "PARTIAL_ROW",
            Self::StaleVersion => "STALE_VERSION",
            Self::CheckFailed => "CHECK_FAILED",
            Self::OffsetBelowLedger => "OFFSET_BELOW_LEDGER",
            Self::Superseded => "SUPERSEDED",
            Self::OrderUnknown => "ORDER_UNKNOWN",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The step at which a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The Lambda record itself could not be read.
    Door,
    /// The value could not be decoded.
    Decode,
    /// No table could be named.
    Route,
    /// The table could not take the record.
    Table,
    /// A value does not fit its column.
    Convert,
    /// An integrity rule failed.
    Check,
    /// The change cannot be applied to the rows as they stand.
    Fold,
    /// The ledger refuses the coordinate.
    Ledger,
}

impl Stage {
    /// The stage as it is written in the error table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Door => "door",
            Self::Decode => "decode",
            Self::Route => "route",
            Self::Table => "table",
            Self::Convert => "convert",
            Self::Check => "check",
            Self::Fold => "fold",
            Self::Ledger => "ledger",
        }
    }
}

/// Why a unit was refused: data, not an error. The first fault found decides the code; the others are listed in `detail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// The step at which it was refused.
    pub stage: Stage,
    /// The bounded code.
    pub code: ReasonCode,
    /// The field or column that is at fault, a path with dots for nested ones; empty when it is the whole record.
    pub field: String,
    /// A sentence for the person who has to fix it. It may quote a value, shortened to [`Rejection::MAX_QUOTE_CHARS`].
    pub detail: String,
}

impl Rejection {
    /// How much of a value a detail may quote.
    pub const MAX_QUOTE_CHARS: usize = 80;

    /// A rejection of the whole record.
    pub fn new(stage: Stage, code: ReasonCode, detail: impl Into<String>) -> Self {
        Self { stage, code, field: String::new(), detail: detail.into() }
    }

    /// A rejection for one field or column.
    pub fn of_field(stage: Stage, code: ReasonCode, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { stage, code, field: field.into(), detail: detail.into() }
    }

    /// One rejection out of all that were found in a record: the first one's code and field, the others in its detail.
    /// `None` when there are none.
    #[must_use]
    pub fn merge(rejections: Vec<Self>) -> Option<Self> {
        const MAX_LISTED: usize = 16;
        let mut all = rejections.into_iter();
        let mut first = all.next()?;
        let others: Vec<_> = all.collect();
        for other in others.iter().take(MAX_LISTED) {
            first.detail.push_str(&format!("; also {} {}: {}", other.code, other.field, other.detail));
        }
        if others.len() > MAX_LISTED {
            first.detail.push_str(&format!("; and {} more", others.len() - MAX_LISTED));
        }
        Some(first)
    }

    /// `text` as a quotation that fits a detail: cut at [`Rejection::MAX_QUOTE_CHARS`] characters.
    #[must_use]
    pub fn quote(text: &str) -> String {
        match text.char_indices().nth(Self::MAX_QUOTE_CHARS) {
            Some((end, _)) => format!("`{}…`", &text[..end]),
            None => format!("`{text}`"),
        }
    }
}
