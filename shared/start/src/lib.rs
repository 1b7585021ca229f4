//! What every function needs at its start.
//!
//! [`ConfigFile`] reads the configuration from where `SLUICE_CONFIG` says; [`services`] and [`catalog_secrets`] are what a catalog is opened with.

mod config_file;

use std::sync::Arc;

use async_trait::async_trait;
use sluice_catalog::{RestSecrets, Services};
use sluice_runtime::environment::variable;
use sluice_runtime::{RandomIds, SystemClock};
use sluice_table::Sleep;

pub use config_file::{ConfigFile, ReadError};

/// Sleeps on tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSleep;

#[async_trait]
impl Sleep for TokioSleep {
    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

/// The real clock and real ids.
#[must_use]
pub fn services() -> Services {
    Services { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) }
}

/// The secrets of a REST catalog, from the environment.
#[must_use]
pub fn catalog_secrets() -> RestSecrets {
    RestSecrets { token: variable("SLUICE_CATALOG_TOKEN"), credential: variable("SLUICE_CATALOG_CREDENTIAL") }
}
