//! A catalog in a Hive Metastore, by its Thrift protocol: the tables that Spark's, Flink's and Trino's Hive catalogs see.
//!
//! SASL, and so Kerberos, is not supported: the Thrift client has none.

mod commit;
mod connection;
mod entry;
mod lock;
mod probe;
mod store;
mod types;

use std::sync::Arc;
use std::time::Duration;

use sluice_table::TableError;

use crate::HiveConfig;
use crate::config::storage_error;
use crate::hive_config::address_of;
use crate::pointer::{PointerCatalog, Services};
use connection::Connection;
pub use store::HivePointers;

/// The catalog in a Hive Metastore.
pub type HiveCatalog = PointerCatalog<HivePointers>;

impl PointerCatalog<HivePointers> {
    /// The catalog of a metastore. The first request connects.
    ///
    /// # Errors
    /// [`TableError`] when the address is none, or the warehouse's storage is not known.
    pub async fn open(config: HiveConfig, services: Services) -> Result<Self, TableError> {
        let address = address_of(&config.uri).map_err(TableError::Invalid)?;
        let storage = sluice_storage::open(&config.storage, Arc::clone(&services.clock)).await.map_err(storage_error)?;
        storage.check(&config.warehouse).map_err(storage_error)?;
        let warehouse = config.warehouse.trim_end_matches('/').to_owned();
        let connection = Connection::new(address, config.transport, Duration::from_millis(config.timeout_ms));
        let store = HivePointers::new(connection, config, services.clone());
        Ok(Self::over(store, (storage.file_io, &warehouse), services))
    }
}
