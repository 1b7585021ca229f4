//! Where tables are registered: adapters of [`sluice_table::Catalog`].
//!
//! [`MemoryCatalog`] is for tests and dry runs; behind features of the same names are `SqlCatalog` (SQLite and PostgreSQL), `GlueCatalog`, `HiveCatalog`, `S3TablesCatalog` and `RestCatalog`. All but the last keep a pointer to a table's current metadata file and swap it in one step; what they share is in
//! [`PointerCatalog`](pointer::PointerCatalog).

pub mod config;
mod configs;
#[cfg(feature = "glue")]
pub mod glue;
#[cfg(feature = "hive")]
pub mod hive;
mod hive_config;
pub mod memory;
pub mod pointer;
#[cfg(feature = "rest")]
pub mod rest;
#[cfg(feature = "s3tables")]
pub mod s3tables;
#[cfg(feature = "sql")]
pub mod sql;
#[cfg(feature = "sql")]
mod sql_errors;
#[cfg(any(feature = "glue", feature = "hive"))]
mod type_text;
mod warehouse;

pub use config::{CatalogConfig, CatalogConfigError};
pub use configs::{AwsConfig, GlueConfig, RestAuth, RestConfig, RestSecrets, S3TablesConfig};
#[cfg(feature = "glue")]
pub use glue::GlueCatalog;
#[cfg(feature = "hive")]
pub use hive::HiveCatalog;
pub use hive_config::{HiveConfig, HiveLock, HiveTransport};
pub use memory::MemoryCatalog;
pub use pointer::Services;
#[cfg(feature = "rest")]
pub use rest::RestCatalog;
#[cfg(feature = "s3tables")]
pub use s3tables::S3TablesCatalog;
#[cfg(feature = "sql")]
pub use sql::{SqlCatalog, SqlOptions};
