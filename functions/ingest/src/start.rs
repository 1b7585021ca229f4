//! From the configuration to a function that is ready.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use sluice_catalog::CatalogConfig;
use sluice_kafka::{KafkaConfig, KafkaError};
use sluice_runtime::environment::variable;
use sluice_runtime::{ConfigError, RandomIds, Settings, SystemClock};
use sluice_start::{ConfigFile, ReadError, TokioSleep, catalog_secrets, services};
use sluice_table::TableError;

use crate::Ingest;

/// Why the function does not start.
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
    Unavailable(#[from] TableError),
    /// The error topic cannot be had.
    #[error("ERROR_TOPIC_FAILED: {0}")]
    Topic(#[from] KafkaError),
}

/// A configuration that is right as far as can be told without the catalog.
#[derive(Debug, Clone)]
pub struct Configuration {
    settings: Settings,
    catalog: CatalogConfig,
    kafka: KafkaConfig,
}

impl Configuration {
    /// Reads the configuration at a path, or at `s3://bucket/key`. Relative paths in it start at its folder.
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
        let catalog = CatalogConfig::read(value.get("catalog").cloned().unwrap_or(Value::Null), base);
        let kafka = KafkaConfig::read(&value, base);
        match (Settings::from_value(value), catalog, kafka) {
            (Ok(settings), Ok(catalog), Ok(kafka)) => Ok(Self { settings, catalog, kafka }),
            (settings, catalog, kafka) => {
                let catalog = catalog.err().map(|error| error.problems);
                let settings = settings.err().map(|error| error.problems);
                let kafka = kafka.err().map(|error| error.problems);
                Err(ConfigError { problems: [catalog, settings, kafka].into_iter().flatten().flatten().collect() })
            }
        }
    }

    /// Which Kafka it names.
    #[must_use]
    pub const fn kafka(&self) -> &KafkaConfig {
        &self.kafka
    }
}

/// The function with real time, real ids and the configured catalog.
///
/// # Errors
/// [`StartError`] when the catalog cannot be opened. The error topic is opened with its first letter.
pub async fn start(configuration: Configuration) -> Result<Ingest, StartError> {
    let topic = sluice_kafka::error_topic(configuration.kafka.error_topic, Arc::new(SystemClock), Arc::new(variable))?;
    let catalog = configuration.catalog.open(services(), catalog_secrets()).await?;
    Ok(Ingest {
        settings: configuration.settings,
        catalog,
        topic,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        sleep: Arc::new(TokioSleep),
    })
}
