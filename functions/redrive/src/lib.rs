//! The redrive function: records that were refused are tried again through the same pipeline, once their cause is mended.
//!
//! The error table is a queue ([`sluice_deadletter::queue`]). [`Redrive::run`] selects rows ([`select`]), makes batches of them and for each one: decodes and routes
//! the records afresh ([`again`]), queues the rows under numbers, applies the batch by the rounds of ingest with the numbers as its ledger identity, and settles the
//! rows ([`deliver`]). A run that dies is taken up by the next under the same numbers, so that nothing is applied twice. [`reopen`] finds rows whose effect was taken
//! back, [`rewind`] takes a table back. docs/adr/0014-redrive.md says why it is so.

pub mod again;
pub mod deliver;
pub mod error;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod reopen;
pub mod reply;
pub mod request;
pub mod rewind;
pub mod run;
pub mod select;

pub use error::RedriveError;
pub use reply::{Fate, Group, Reply};
pub use request::{Mode, Offsets, Request, Selection};
pub use run::Redrive;
