//! For tests only: time and ids that a test owns, small tables and batches, faults, and the contract suites that every implementation of a
//! trait must pass.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

pub mod chaos;
pub mod contract;
pub mod faults;
pub mod foreign;
pub mod objects;
pub mod oracle;
pub mod proxy;
pub mod services;
pub mod tables;
pub mod vectors;

pub use chaos::exactly_once;
pub use contract::{Namespaces, OldMetadata, catalog_contract, catalog_contract_with};
pub use faults::{CommitFault, FaultPlan, FaultyCatalog};
pub use objects::{file_io_contract, object_store_contract};
pub use proxy::{Fault, Proxy, ProxyPlan};
pub use services::{ManualClock, SeededIds, TestServices};
