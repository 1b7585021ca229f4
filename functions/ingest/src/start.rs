//! From the configuration to a function that is ready.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use sluice_catalog::{CatalogConfig, RestSecrets, Services};
use sluice_kafka::{KafkaConfig, KafkaError};
use sluice_runtime::environment::secret;
use sluice_runtime::settings::parse_toml;
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
    /// The catalog cannot be opened.
    #[error("CATALOG_UNAVAILABLE: {0}")]
    Unavailable(#[from] TableError),
    /// The error topic cannot be had.
    #[error("ERROR_TOPIC_FAILED: {0}")]
    Topic(#[from] KafkaError),
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
    settings: Settings,
    catalog: CatalogConfig,
    kafka: KafkaConfig,
}

impl Configuration {
    /// Reads the file at `path`. Relative paths in it start at its folder.
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
    let services = Services { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) };
    let secrets = RestSecrets { token: secret("SLUICE_CATALOG_TOKEN"), credential: secret("SLUICE_CATALOG_CREDENTIAL") };
    let topic = sluice_kafka::error_topic(configuration.kafka.error_topic, Arc::new(SystemClock), Arc::new(secret))?;
    let catalog = configuration.catalog.open(services, secrets).await?;
    Ok(Ingest {
        settings: configuration.settings,
        catalog,
        topic,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        sleep: Arc::new(TokioSleep),
    })
}
