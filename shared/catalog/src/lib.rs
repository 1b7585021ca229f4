//! Where tables are registered: adapters of [`sluice_table::Catalog`].
//!
//! [`MemoryCatalog`] is for tests and dry runs, [`SqlCatalog`] for SQLite and PostgreSQL. Both keep a pointer to a table's current metadata file and swap
//! it in one step; what they share is in [`PointerCatalog`](pointer::PointerCatalog).

pub mod config;
pub mod memory;
pub mod pointer;
pub mod sql;
mod sql_errors;
pub mod storage;

pub use config::{CatalogConfig, CatalogConfigError};
pub use memory::MemoryCatalog;
pub use pointer::Services;
pub use sql::{SqlCatalog, SqlOptions};
pub use storage::file_io_for;
