//! From the configuration to functions that are ready.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use sluice_catalog::{CatalogConfig, RestSecrets, Services};
use sluice_maintenance::MaintenanceSettings;
use sluice_model::config::Problems;
use sluice_runtime::environment::secret;
use sluice_runtime::settings::parse_toml;
use sluice_runtime::{ConfigError, RandomIds, Settings, SystemClock};
use sluice_storage::{StorageConfig, StorageError};
use sluice_table::{Sleep, TableError};

use crate::Maintain;

/// Why a function does not start.
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
    /// The catalog cannot be opened.
    #[error("CATALOG_UNAVAILABLE: {0}")]
    Catalog(#[from] TableError),
    /// The storage cannot be opened.
    #[error("STORAGE_UNAVAILABLE: {0}")]
    Storage(#[from] StorageError),
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

/// A configuration that is right as far as can be told without the catalog.
#[derive(Debug, Clone)]
pub struct Configuration {
    settings: MaintenanceSettings,
    catalog: CatalogConfig,
    storage: StorageConfig,
}

impl Configuration {
    /// Reads the file at `path`, all of it: the functions share one file. Relative paths in it start at its folder.
    ///
    /// # Errors
    /// [`StartError`] when it cannot be read or is wrong: then with all problems.
    pub fn read(path: &Path) -> Result<Self, StartError> {
        let unreadable = |source| StartError::Unreadable { path: path.display().to_string(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        Ok(Self::from_value(parse_toml(&text)?, folder)?)
    }

    /// Reads a JSON value of the file's shape. Relative paths start at `base`.
    ///
    /// # Errors
    /// [`ConfigError`] with all problems.
    pub fn from_value(value: Value, base: &Path) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let maintenance = value.get("maintenance").cloned().unwrap_or(Value::Null);
        let settings = MaintenanceSettings::read(maintenance, &mut problems);
        let catalog = CatalogConfig::read(value.get("catalog").cloned().unwrap_or(Value::Null), base);
        let others = Settings::from_value(value).err().map(|error| error.problems).unwrap_or_default();
        match catalog {
            Ok(catalog) if problems.is_empty() && others.is_empty() => Ok(Self { storage: catalog.storage(), settings, catalog }),
            Ok(_) => Err(ConfigError { problems: [others, problems.into_vec()].concat() }),
            Err(catalog) => Err(ConfigError { problems: [catalog.problems, others, problems.into_vec()].concat() }),
        }
    }
}

/// The functions with real time, real ids and the configured catalog and storage.
///
/// # Errors
/// [`StartError`] when one of them cannot be opened.
pub async fn start(configuration: Configuration) -> Result<Maintain, StartError> {
    let services = Services { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) };
    let secrets = RestSecrets { token: secret("SLUICE_CATALOG_TOKEN"), credential: secret("SLUICE_CATALOG_CREDENTIAL") };
    Ok(Maintain {
        stores: Arc::new(sluice_storage::open(&configuration.storage, Arc::new(SystemClock)).await?),
        catalog: configuration.catalog.open(services, secrets).await?,
        settings: configuration.settings,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        sleep: Arc::new(TokioSleep),
    })
}
