//! From the configuration to a function that is ready.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sluice_catalog::{CatalogConfig, CatalogConfigError, Services};
use sluice_deadletter::NoTopic;
use sluice_runtime::{ConfigError, RandomIds, Settings, SystemClock};
use sluice_table::{Sleep, TableError};

use crate::Ingest;

/// Why the function does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be read.
    #[error("CONFIG_UNREADABLE: {path}: {source}")]
    Unreadable {
        /// Where it was looked for.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The catalog's configuration is wrong.
    #[error(transparent)]
    Catalog(#[from] CatalogConfigError),
    /// The catalog cannot be opened.
    #[error("CATALOG_UNAVAILABLE: {0}")]
    Unavailable(#[from] TableError),
}

/// Sleeps on tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSleep;

#[async_trait]
impl Sleep for TokioSleep {
    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}

/// Reads `sluice.toml` at `path`.
///
/// # Errors
/// [`StartError`] when it cannot be read or is wrong.
pub fn read_settings(path: &Path) -> Result<Settings, StartError> {
    let unreadable = |source| StartError::Unreadable { path: path.display().to_string(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(Settings::from_toml(&text)?)
}

/// The function with real time, real ids and the configured catalog. Relative paths in the configuration start at `base`.
///
/// # Errors
/// [`StartError`] when the catalog's configuration is wrong or the catalog cannot be opened.
pub async fn start(settings: Settings, base: &Path) -> Result<Ingest, StartError> {
    let services = Services { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) };
    let catalog = CatalogConfig::read(settings.catalog.clone(), base)?.open(services).await?;
    Ok(Ingest {
        settings,
        catalog,
        topic: Arc::new(NoTopic),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        sleep: Arc::new(TokioSleep),
    })
}
