//! The ingest function: one Kafka batch becomes one commit per Iceberg table, exactly once, with the bad records in the error table.
//!
//! The path of a batch: [`receive`] makes units of its records; [`resolve`] turns the units of one table into a delta; [`rounds`] writes
//! dead letters first and then commits the tables, again and again until every unit is decided; [`reply`] says what became of them.
//! Start reading at [`Ingest::invoke`].

pub mod batch;
pub mod context;
pub mod error;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod letters;
pub mod receive;
pub mod refusals;
pub mod reply;
#[cfg(feature = "lambda")]
pub mod report;
pub mod resolve;
pub mod rounds;
pub mod start;

pub use context::Ingest;
pub use error::IngestError;
pub use reply::{Reply, TableReport};
