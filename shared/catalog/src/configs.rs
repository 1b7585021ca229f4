//! What the catalogs of AWS and the REST catalog are told. These types are there in every build, so that a wrong configuration is found by any.

use serde::Deserialize;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_storage::StorageConfig;

/// How a service of AWS is reached. Credentials come from AWS's usual chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AwsConfig {
    /// The region; `None` takes that of `catalog.storage.region`, then that of the environment.
    pub region: Option<String>,
    /// Another address of the service, such as a VPC endpoint.
    pub endpoint: Option<String>,
}

impl AwsConfig {
    fn take(section: &mut Section, problems: &mut Problems) -> Self {
        Self { region: section.read("region", problems), endpoint: section.read("endpoint", problems) }
    }

    /// Reads a section with nothing else in it.
    pub fn read(mut section: Section, problems: &mut Problems) -> Self {
        let aws = Self::take(&mut section, problems);
        section.finish(problems);
        aws
    }
}

/// `[catalog.glue]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GlueConfig {
    /// Where new tables go, unless their database has a location.
    pub warehouse: Option<String>,
    /// The account whose catalog it is, for another account's; `None` is the account of the credentials.
    pub catalog_id: Option<String>,
    /// How Glue is reached.
    pub aws: AwsConfig,
    /// How the tables' files are reached.
    pub storage: StorageConfig,
}

impl GlueConfig {
    /// Reads `[catalog.glue]`.
    pub fn read(mut section: Section, (warehouse, storage): (Option<String>, StorageConfig), problems: &mut Problems) -> Self {
        let config =
            Self { warehouse, catalog_id: section.read("catalog_id", problems), aws: AwsConfig::take(&mut section, problems), storage };
        section.finish(problems);
        config
    }
}

/// A table bucket of S3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3TablesConfig {
    /// The bucket's ARN.
    pub bucket: String,
    /// How the service is reached.
    pub aws: AwsConfig,
    /// How the tables' files are reached.
    pub storage: StorageConfig,
}

/// How a REST catalog knows who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestAuth {
    /// It does not ask.
    #[default]
    None,
    /// A token, from the environment variable `SLUICE_CATALOG_TOKEN`.
    Bearer,
    /// OAuth2 client credentials, from `SLUICE_CATALOG_CREDENTIAL` (`id:secret`).
    OAuth2,
    /// AWS signatures, with credentials from AWS's usual chain.
    SigV4,
}

/// Secrets of a REST catalog: from the environment, never from a configuration.
#[derive(Clone, Default)]
pub struct RestSecrets {
    /// `SLUICE_CATALOG_TOKEN`.
    pub token: Option<String>,
    /// `SLUICE_CATALOG_CREDENTIAL`: `id:secret`.
    pub credential: Option<String>,
}

/// A secret is not to be printed.
impl std::fmt::Debug for RestSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RestSecrets")
    }
}

/// `[catalog.rest]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestConfig {
    /// The address, up to the `/v1` of the protocol.
    pub uri: String,
    /// The warehouse as the server calls it.
    pub warehouse: Option<String>,
    /// Who asks.
    pub auth: RestAuth,
    /// Where tokens are had; `None` asks the catalog itself (`/v1/oauth/tokens`).
    pub token_uri: Option<String>,
    /// The scope of the token.
    pub scope: String,
    /// The service's name in AWS signatures: `glue`, `s3tables`, `execute-api`.
    pub signing_name: String,
    /// Region and endpoint for the signatures.
    pub aws: AwsConfig,
    /// Where new tables go, each into a folder of its own; `None` leaves it to the server.
    pub location: Option<String>,
    /// Whether to ask the catalog for credentials for each table.
    pub vended_credentials: bool,
    /// The longest that a request may take.
    pub timeout_ms: u64,
    /// How the tables' files are reached, where the catalog says nothing else.
    pub storage: StorageConfig,
}

impl RestConfig {
    /// Reads `[catalog.rest]`.
    pub fn read(mut section: Section, (uri, warehouse, storage): (String, Option<String>, StorageConfig), problems: &mut Problems) -> Self {
        let config = Self {
            uri: uri.trim_end_matches('/').trim_end_matches("/v1").to_owned(),
            warehouse,
            auth: section.read("auth", problems).unwrap_or_default(),
            token_uri: section.read("token_uri", problems),
            scope: section.read("scope", problems).unwrap_or_else(|| "catalog".to_owned()),
            signing_name: section.read("signing_name", problems).unwrap_or_else(|| "execute-api".to_owned()),
            aws: AwsConfig::take(&mut section, problems),
            location: section.read("location", problems),
            vended_credentials: section.read("vended_credentials", problems).unwrap_or(true),
            timeout_ms: section.read("timeout_ms", problems).unwrap_or(30_000),
            storage,
        };
        let plain = config.uri.starts_with("http://") || config.uri.starts_with("https://") || config.uri.is_empty();
        if !plain {
            problems.add(ConfigCode::ConfigInvalid, "catalog.uri", "a REST catalog is at http://… or https://…");
        }
        if config.timeout_ms == 0 {
            problems.add(ConfigCode::ConfigInvalid, &section.path_of("timeout_ms"), "at least 1");
        }
        section.finish(problems);
        config
    }
}
