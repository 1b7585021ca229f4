//! The edge of Sluice: what Lambda hands in, what the operator configured, what time it is.
//!
//! [`door`] reads the event of a Kafka event-source mapping record by record; [`settings`] reads `sluice.toml` and tells all its problems
//! together; [`environment`] is the only place that reads the real clock and makes real ids; [`traces`] sends
//! spans to a collector.

pub mod door;
pub mod environment;
mod quick;
pub mod record;
pub mod settings;
pub mod traces;

pub use door::{DoorBatch, EventError, UnreadableRecord, open_event, reopen};
pub use environment::{RandomIds, SystemClock};
pub use settings::{CommitSettings, ConfigError, ErrorSettings, OnTopicFailure, Settings, SourceSettings};
