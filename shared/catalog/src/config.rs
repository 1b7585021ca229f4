//! `[catalog]`: which catalog, and where.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sluice_model::config::{ConfigCode, ConfigProblem, Problems, Section};
use sluice_table::{Catalog, TableError};

use crate::{MemoryCatalog, Services, SqlCatalog, SqlOptions};

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
    },
    /// Tables that live as long as the process: for tests.
    Memory {
        /// Where new tables go.
        warehouse: String,
    },
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

impl CatalogConfig {
    /// Reads `[catalog]`. Relative paths start at `base`, the folder of the configuration file.
    ///
    /// # Errors
    /// [`CatalogConfigError`] with all problems.
    pub fn read(value: Value, base: &Path) -> Result<Self, CatalogConfigError> {
        let mut problems = Problems::default();
        let mut section = Section::new("catalog", value, &mut problems);
        let kind: Option<CatalogType> = section.read("type", &mut problems);
        let name: Option<String> = section.read("name", &mut problems);
        let warehouse: Option<String> = section.read("warehouse", &mut problems);
        let uri: Option<String> = section.read("uri", &mut problems);
        section.section("storage", &mut problems).finish(&mut problems);
        section.finish(&mut problems);
        let warehouse = warehouse.map(|warehouse| absolute_location(&warehouse, base));
        let required = |value: Option<String>, key: &str, example: &str, problems: &mut Problems| {
            value.filter(|text| !text.is_empty()).unwrap_or_else(|| {
                problems.add(ConfigCode::ConfigInvalid, &format!("catalog.{key}"), format!("needed, for example {example}"));
                String::new()
            })
        };
        let config = match kind {
            None => {
                problems.add(ConfigCode::ConfigInvalid, "catalog.type", "a catalog needs a type: sql");
                None
            }
            Some(CatalogType::Sql) => Some(Self::Sql {
                name: name.unwrap_or_else(|| "lake".to_owned()),
                warehouse: required(warehouse, "warehouse", "file:///data/warehouse", &mut problems),
                uri: absolute_uri(&required(uri, "uri", "sqlite:///data/catalog.db", &mut problems), base),
            }),
            Some(CatalogType::Memory) => Some(Self::Memory { warehouse: warehouse.unwrap_or_else(|| "memory://warehouse".to_owned()) }),
            Some(CatalogType::Glue | CatalogType::Hive | CatalogType::Rest | CatalogType::S3tables) => {
                problems.add(ConfigCode::ConfigUnsupported, "catalog.type", "this version has the sql catalog");
                None
            }
        };
        match config {
            Some(config) if problems.is_empty() => Ok(config),
            Some(_) | None => Err(CatalogConfigError { problems: problems.into_vec() }),
        }
    }

    /// Opens the catalog.
    ///
    /// # Errors
    /// What the database or the storage said.
    pub async fn open(self, services: Services) -> Result<Arc<dyn Catalog>, TableError> {
        match self {
            Self::Sql { name, warehouse, uri } => {
                let options = SqlOptions { uri, catalog_name: name, warehouse, file_io: None };
                Ok(Arc::new(SqlCatalog::open(options, services).await?))
            }
            Self::Memory { warehouse } => Ok(Arc::new(MemoryCatalog::new(&warehouse, services))),
        }
    }
}

/// A location without a scheme is a folder, relative to the configuration file.
fn absolute_location(location: &str, base: &Path) -> String {
    if location.contains("://") { location.to_owned() } else { format!("file://{}", absolute(location, base)) }
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
        };
        assert_eq!(CatalogConfig::read(value, Path::new("/etc/sluice")), Ok(expected));
    }

    #[test]
    fn all_problems_are_told_together() {
        let error = CatalogConfig::read(json!({"type": "sql", "typo": 1}), Path::new("/")).unwrap_err();
        let paths: Vec<&str> = error.problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["catalog.typo", "catalog.warehouse", "catalog.uri"]);
        let error = CatalogConfig::read(json!({"type": "glue"}), Path::new("/")).unwrap_err();
        assert_eq!(error.problems[0].code, ConfigCode::ConfigUnsupported);
    }
}
