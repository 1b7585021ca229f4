//! From the configuration to functions that are ready.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sluice_catalog::CatalogConfig;
use sluice_maintenance::MaintenanceSettings;
use sluice_model::config::Problems;
use sluice_runtime::{ConfigError, RandomIds, Settings, SystemClock};
use sluice_start::{ConfigFile, ReadError, TokioSleep, catalog_secrets, services};
use sluice_storage::{StorageConfig, StorageError};
use sluice_table::TableError;

use crate::Maintain;

/// Why a function does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
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

/// A configuration that is right as far as can be told without the catalog.
#[derive(Debug, Clone)]
pub struct Configuration {
    settings: MaintenanceSettings,
    catalog: CatalogConfig,
    storage: StorageConfig,
}

impl Configuration {
    /// Reads the configuration at a path, or at `s3://bucket/key`, all of it: the functions share one. Relative paths in it start at its folder.
    ///
    /// # Errors
    /// [`StartError`] when it cannot be read or is wrong: then with all problems.
    pub async fn read(location: &Path) -> Result<Self, StartError> {
        let file = ConfigFile::read(location).await?;
        Ok(Self::from_value(file.parsed()?, &file.folder)?)
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
    Ok(Maintain {
        stores: Arc::new(sluice_storage::open(&configuration.storage, Arc::new(SystemClock)).await?),
        catalog: configuration.catalog.open(services(), catalog_secrets()).await?,
        settings: configuration.settings,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        sleep: Arc::new(TokioSleep),
    })
}
