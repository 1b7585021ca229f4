//! Bytes to change events.
//!
//! A record's value is first read by its encoding ([`document`]: JSON, with Connect's `{"schema", "payload"}` wrapper), then by its
//! dialect: one file each, behind [`Dialect`]. A new dialect is one file plus one arm of that enum. Nothing here knows a table: what comes
//! out is what the record says, and how its values are written ([`sluice_model::DeclaredType`]).

pub mod connect;
pub mod debezium;
pub mod debezium_flat;
pub mod document;
pub mod envelope;
pub mod format;
pub mod row;

pub use document::{DocumentReader, Limits, RecordDocument, RecordDraft, read_document};
pub use format::{Dialect, Encoding, Format, read_formats};

use sluice_model::{Coordinate, DecodedEvent, Rejection};

/// One unit of a record: its coordinate and what it is, or why it is refused.
#[derive(Debug)]
pub struct DecodedUnit<'d> {
    /// The record's offset and the unit's row.
    pub coordinate: Coordinate,
    /// The event, or the rejection.
    pub event: Result<DecodedEvent<'d>, Rejection>,
}

/// Decodes a record that has been read: one unit for most dialects, several for those that carry several rows in a record.
pub fn decode<'d>(document: &'d RecordDocument<'_>, format: &Format) -> impl Iterator<Item = DecodedUnit<'d>> + use<'d> {
    let event = match &format.dialect {
        Dialect::Envelope(dialect) => envelope::decode(document, dialect),
        Dialect::Debezium(dialect) => debezium::decode(document, *dialect),
        Dialect::DebeziumFlat(dialect) => debezium_flat::decode(document, *dialect),
        Dialect::Row => row::decode(document),
    };
    std::iter::once(DecodedUnit { coordinate: Coordinate::record(document.record.offset), event })
}
