//! `[catalog]`: which catalog, and where.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "sql")]
use iceberg::io::FileIO;
use serde::Deserialize;
use serde_json::Value;
use sluice_model::config::{ConfigCode, ConfigProblem, Problems, Section};
use sluice_table::{Catalog, TableError};

use sluice_storage::StorageConfig;

use crate::configs::{AwsConfig, GlueConfig, RestConfig, RestSecrets, S3TablesConfig};
use crate::{HiveConfig, MemoryCatalog, Services};

/// `[catalog]` is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct CatalogConfigError {
    /// All problems.
    pub problems: Vec<ConfigProblem>,
}

/// A configured catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogConfig {
    /// A SQL catalog (Iceberg's JDBC catalog layout) in SQLite or PostgreSQL.
    Sql {
        /// The catalog's name inside the database.
        name: String,
        /// Where new tables go.
        warehouse: String,
        /// `sqlite://…` or `postgres://…`
        uri: String,
        /// How the tables' files are reached.
        storage: StorageConfig,
    },
    /// Tables that live as long as the process: for tests.
    Memory {
        /// Where new tables go.
        warehouse: String,
    },
    /// The AWS Glue Data Catalog.
    Glue(GlueConfig),
    /// A Hive Metastore.
    Hive(HiveConfig),
    /// A catalog that speaks Iceberg's REST protocol.
    Rest(RestConfig),
    /// A table bucket of S3.
    S3Tables(S3TablesConfig),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CatalogType {
    Sql,
    Memory,
    Glue,
    Hive,
    Rest,
    S3tables,
}

/// Whether this program was built with a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Built {
    In,
    Without,
}

const SQL: Built = if cfg!(feature = "sql") { Built::In } else { Built::Without };
const GLUE: Built = if cfg!(feature = "glue") { Built::In } else { Built::Without };
const HIVE: Built = if cfg!(feature = "hive") { Built::In } else { Built::Without };
const REST: Built = if cfg!(feature = "rest") { Built::In } else { Built::Without };
const S3TABLES: Built = if cfg!(feature = "s3tables") { Built::In } else { Built::Without };

fn without(feature: &str) -> String {
    format!("this program was built without this catalog: build it with --features {feature}")
}

impl CatalogConfig {
    /// Reads `[catalog]`. Relative paths start at `base`, the folder of the configuration file.
    ///
    /// # Errors
    /// [`CatalogConfigError`] with all problems.
    pub fn read(value: Value, base: &Path) -> Result<Self, CatalogConfigError> {
        let mut problems = Problems::default();
        match Self::read_noting(value, base, &mut problems) {
            Some(config) if problems.is_empty() => Ok(config),
            Some(_) | None => Err(CatalogConfigError { problems: problems.into_vec() }),
        }
    }

    /// Reads what can be read, and adds what is wrong to `problems`.
    pub fn read_noting(value: Value, base: &Path, problems: &mut Problems) -> Option<Self> {
        let mut section = Section::new("catalog", value, problems);
        let kind: Option<CatalogType> = section.read("type", problems);
        let common = Common::read(&mut section, base, problems);
        let config = match kind {
            None => {
                problems.add(ConfigCode::ConfigInvalid, "catalog.type", "a catalog needs a type: sql, glue, hive, rest or s3tables");
                None
            }
            Some(kind) => Self::of(kind, common, (&mut section, problems)),
        };
        section.finish(problems);
        config
    }

    fn of(kind: CatalogType, common: Common, (section, problems): (&mut Section, &mut Problems)) -> Option<Self> {
        let Common { name, warehouse, uri, base, storage } = common;
        match kind {
            CatalogType::Sql => {
                built(SQL, "sql", problems);
                Some(Self::Sql {
                    name: name.unwrap_or_else(|| "lake".to_owned()),
                    warehouse: required(warehouse, "warehouse", "file:///data/warehouse", problems),
                    uri: absolute_uri(&required(uri, "uri", "sqlite:///data/catalog.db", problems), &base),
                    storage,
                })
            }
            CatalogType::Memory => Some(Self::Memory { warehouse: warehouse.unwrap_or_else(|| "memory://warehouse".to_owned()) }),
            CatalogType::Glue => {
                built(GLUE, "glue", problems);
                Some(Self::Glue(GlueConfig::read(section.section("glue", problems), (warehouse, storage), problems)))
            }
            CatalogType::Rest => {
                built(REST, "rest", problems);
                let uri = required(uri, "uri", "https://catalog.example.com/iceberg", problems);
                Some(Self::Rest(RestConfig::read(section.section("rest", problems), (uri, warehouse, storage), problems)))
            }
            CatalogType::S3tables => {
                built(S3TABLES, "s3tables", problems);
                let bucket = required(warehouse, "warehouse", "arn:aws:s3tables:eu-central-1:111122223333:bucket/lake", problems);
                Some(Self::S3Tables(S3TablesConfig {
                    bucket,
                    aws: AwsConfig::read(section.section("s3tables", problems), problems),
                    storage,
                }))
            }
            CatalogType::Hive => {
                built(HIVE, "hive", problems);
                let uri = required(uri, "uri", "thrift://metastore:9083", problems);
                let warehouse = required(warehouse, "warehouse", "s3://bucket/warehouse", problems);
                let begun = HiveConfig { storage, ..HiveConfig::at(uri, warehouse) };
                Some(Self::Hive(HiveConfig::read(section.section("hive", problems), begun, problems)))
            }
        }
    }

    /// How the tables' files are reached.
    #[must_use]
    pub fn storage(&self) -> StorageConfig {
        match self {
            Self::Sql { storage, .. } => storage.clone(),
            Self::Memory { .. } => StorageConfig::default(),
            Self::Glue(config) => config.storage.clone(),
            Self::Hive(config) => config.storage.clone(),
            Self::Rest(config) => config.storage.clone(),
            Self::S3Tables(config) => config.storage.clone(),
        }
    }

    /// Opens the catalog; a REST catalog may need one of the secrets.
    ///
    /// # Errors
    /// What the database or the storage said.
    pub async fn open(self, services: Services, secrets: RestSecrets) -> Result<Arc<dyn Catalog>, TableError> {
        #[cfg(not(feature = "rest"))]
        let _ = secrets;
        match self {
            #[cfg(feature = "sql")]
            Self::Sql { name, warehouse, uri, storage } => {
                let file_io = open_storage(&storage, &warehouse, &services).await?;
                let options = crate::SqlOptions { uri, catalog_name: name, warehouse, file_io: Some(file_io) };
                Ok(Arc::new(crate::SqlCatalog::open(options, services).await?))
            }
            #[cfg(not(feature = "sql"))]
            Self::Sql { .. } => Err(not_built("sql")),
            Self::Memory { warehouse } => Ok(Arc::new(MemoryCatalog::new(&warehouse, services))),
            #[cfg(feature = "glue")]
            Self::Glue(config) => Ok(Arc::new(crate::GlueCatalog::open(config, services).await?)),
            #[cfg(feature = "hive")]
            Self::Hive(config) => Ok(Arc::new(crate::HiveCatalog::open(config, services).await?)),
            #[cfg(feature = "rest")]
            Self::Rest(config) => Ok(Arc::new(crate::RestCatalog::open(config, secrets, services).await?)),
            #[cfg(feature = "s3tables")]
            Self::S3Tables(config) => Ok(Arc::new(crate::S3TablesCatalog::open(config, services).await?)),
            #[cfg(not(feature = "glue"))]
            Self::Glue(_) => Err(not_built("glue")),
            #[cfg(not(feature = "hive"))]
            Self::Hive(_) => Err(not_built("hive")),
            #[cfg(not(feature = "rest"))]
            Self::Rest(_) => Err(not_built("rest")),
            #[cfg(not(feature = "s3tables"))]
            Self::S3Tables(_) => Err(not_built("s3tables")),
        }
    }
}

/// What is common to all catalogs.
struct Common {
    name: Option<String>,
    warehouse: Option<String>,
    uri: Option<String>,
    base: PathBuf,
    storage: StorageConfig,
}

impl Common {
    fn read(section: &mut Section, base: &Path, problems: &mut Problems) -> Self {
        let warehouse: Option<String> = section.read("warehouse", problems);
        Self {
            name: section.read("name", problems),
            warehouse: warehouse.map(|warehouse| absolute_location(&warehouse, base)),
            uri: section.read("uri", problems),
            base: base.to_owned(),
            storage: StorageConfig::read(section.section("storage", problems), problems),
        }
    }
}

fn required(value: Option<String>, key: &str, example: &str, problems: &mut Problems) -> String {
    value.filter(|text| !text.is_empty()).unwrap_or_else(|| {
        problems.add(ConfigCode::ConfigInvalid, &format!("catalog.{key}"), format!("needed, for example {example}"));
        String::new()
    })
}

/// The storage of a warehouse.
#[cfg(feature = "sql")]
async fn open_storage(config: &StorageConfig, warehouse: &str, services: &Services) -> Result<FileIO, TableError> {
    let storage = sluice_storage::open(config, Arc::clone(&services.clock)).await.map_err(storage_error)?;
    storage.check(warehouse).map_err(storage_error)?;
    Ok(storage.file_io)
}

/// Reading the configuration says so before: this is for one that was made otherwise.
#[cfg(not(all(feature = "sql", feature = "glue", feature = "hive", feature = "rest", feature = "s3tables")))]
fn not_built(feature: &str) -> TableError {
    TableError::Unsupported(without(feature))
}

#[cfg(any(feature = "sql", feature = "glue", feature = "hive", feature = "rest", feature = "s3tables"))]
pub(crate) fn storage_error(error: sluice_storage::StorageError) -> TableError {
    TableError::Catalog { class: error.class, what: error.to_string(), source: Some(Box::new(error)) }
}

/// Adds the problem of a catalog that this program was built without.
fn built(here: Built, feature: &str, problems: &mut Problems) {
    match here {
        Built::In => {}
        Built::Without => problems.add(ConfigCode::ConfigUnsupported, "catalog.type", without(feature)),
    }
}

/// A location without a scheme is a folder, relative to the configuration file.
fn absolute_location(location: &str, base: &Path) -> String {
    if location.contains("://") || location.starts_with("arn:") {
        location.to_owned()
    } else {
        format!("file://{}", absolute(location, base))
    }
}

fn absolute_uri(uri: &str, base: &Path) -> String {
    match uri.strip_prefix("sqlite://").filter(|path| !path.is_empty() && !path.starts_with([':', '/'])) {
        Some(path) => format!("sqlite://{}", absolute(path, base)),
        None => uri.to_owned(),
    }
}

fn absolute(path: &str, base: &Path) -> String {
    let joined = base.join(path);
    std::path::absolute(&joined).unwrap_or(joined).display().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn relative_paths_start_at_the_configuration_file() {
        let value = json!({"type": "sql", "warehouse": "lake/warehouse", "uri": "sqlite://lake/catalog.db"});
        let expected = CatalogConfig::Sql {
            name: "lake".to_owned(),
            warehouse: "file:///etc/sluice/lake/warehouse".to_owned(),
            uri: "sqlite:///etc/sluice/lake/catalog.db".to_owned(),
            storage: StorageConfig::default(),
        };
        assert_eq!(CatalogConfig::read(value, Path::new("/etc/sluice")), Ok(expected));
    }

    #[test]
    fn all_problems_are_told_together() {
        let error = CatalogConfig::read(json!({"type": "sql", "typo": 1}), Path::new("/")).unwrap_err();
        let paths: Vec<&str> = error.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["catalog.warehouse", "catalog.uri", "catalog.typo"]);
    }

    #[test]
    fn a_metastore_is_described_by_its_own_section() {
        let wrong = json!({"type": "hive", "uri": "hms:9083", "hive": {"lock": "maybe", "auth": "kerberos", "timeout_ms": 1, "typo": 1}});
        let error = CatalogConfig::read(wrong, Path::new("/")).unwrap_err();
        let paths: Vec<&str> = error.problems.iter().map(|problem| problem.path.as_str()).filter(|path| *path != "catalog.type").collect();
        let expected =
            ["catalog.warehouse", "catalog.uri", "catalog.hive.lock", "catalog.hive.auth", "catalog.hive.timeout_ms", "catalog.hive.typo"];
        assert_eq!(paths, expected);
        let elsewhere = json!({"type": "sql", "uri": "sqlite:///x", "warehouse": "/w", "hive": {}});
        assert_eq!(CatalogConfig::read(elsewhere, Path::new("/")).unwrap_err().problems[0].path, "catalog.hive");
    }

    #[cfg(feature = "hive")]
    #[test]
    fn what_is_not_told_of_a_metastore_is_as_usual() {
        let value =
            json!({"type": "hive", "uri": "thrift://hms:9083", "warehouse": "/w", "hive": {"lock": "never", "transport": "framed"}});
        let expected = HiveConfig {
            lock: crate::HiveLock::Never,
            transport: crate::HiveTransport::Framed,
            ..HiveConfig::at("thrift://hms:9083", "file:///w")
        };
        assert_eq!(CatalogConfig::read(value, Path::new("/")), Ok(CatalogConfig::Hive(expected)));
    }

    #[test]
    fn a_catalog_that_is_not_built_in_names_its_feature() {
        for feature in ["glue", "rest", "s3tables"] {
            let value = json!({"type": feature, "uri": "http://localhost", "warehouse": "arn:aws:s3tables:eu-central-1:1:bucket/b"});
            let value = if feature == "rest" { value } else { json!({"type": feature, "warehouse": value["warehouse"]}) };
            match CatalogConfig::read(value, Path::new("/")) {
                Ok(_) => assert!([GLUE, REST, S3TABLES].contains(&Built::In)),
                Err(error) => {
                    assert_eq!(error.problems[0].code, ConfigCode::ConfigUnsupported);
                    assert!(error.problems[0].message.ends_with(&format!("build it with --features {feature}")));
                }
            }
        }
    }
}
