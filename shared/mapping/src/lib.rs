//! An event-source mapping outside AWS.
//!
//! What Lambda's own does, here: a consumer group reads topics; [`event`] writes their records as the events that Lambda sends; a [`lane`] sends the
//! events of some partitions to a [`function`] one behind the other, again and again until it is applied; only then are offsets committed. So a crash at
//! any point makes records come again, and the tables' ledgers know them. [`mapping::run`] is where to start reading.

mod context;
mod ends;
pub mod event;
pub mod function;
pub mod http;
pub mod lane;
mod lanes;
pub mod mapping;
pub mod metrics;
mod pending;
mod poller;
pub mod progress;
pub mod start;
pub mod topics;

pub use context::ConsumerError;
pub use event::EventLimits;
pub use function::{Account, Function, FunctionError};
pub use http::HttpFunction;
pub use lane::{Rest, Retries};
pub use lanes::Batching;
pub use mapping::{MappingError, MappingOptions, MappingServices, run};
pub use poller::{Ending, Until};
pub use progress::{Progress, Snapshot};
/// librdkafka's properties, so that callers need not name the client.
pub use rdkafka::ClientConfig as ConsumerConfig;
pub use start::{CommittedOffsets, OnExpired, Start, StartPlan};
pub use topics::Topics;
