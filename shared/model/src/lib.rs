//! The vocabulary of Sluice.
//!
//! What a record is, where it stands in Kafka, what it asks of a table, why it may be refused, and which coordinates a table
//! has already applied. Everything here is pure: no I/O, no clock, no randomness, no Arrow, Iceberg or AWS. Start reading at
//! [`SourceRecord`] (what comes in), [`ChangeEvent`] (what a codec makes of it) and [`OffsetLedger`] (what makes it exactly once).

pub mod class;
pub mod clock;
pub mod config;
pub mod coordinate;
pub mod declared;
pub mod event;
pub mod ledger;
pub mod mutants;
pub mod partitioning;
pub mod reason;
pub mod schema;
pub mod tally;
pub mod tape;

pub use class::Class;
pub use clock::{Clock, Deadline, IdSource};
pub use coordinate::{Coordinate, Interval, PartitionKey, TopicPartition};
pub use declared::{DeclaredField, DeclaredType, TimeUnit};
pub use event::{
    ChangeEvent, ControlKind, DecimalText, DecodedEvent, EventTime, Header, Image, IntegerDates, Operation, RecordTimestamp, RouteFields,
    SchemaChange, SourceRecord, TimestampType, UnchangedMarker, ValueHints,
};
pub use ledger::{Claims, Coverage, LedgerEntry, LedgerError, OffsetLedger};
pub use partitioning::{SortDirection, SortField, Transform, TransformError, TransformedColumn};
pub use reason::{ReasonCode, Rejection, Stage};
pub use schema::{Column, ColumnType, TableName, TableSchema};
pub use tally::BatchTally;
pub use tape::{BufferedTape, Node, NodeKind, ObjectShape, ParseError, Tape, TapeBuffer};
