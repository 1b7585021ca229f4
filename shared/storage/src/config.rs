//! `[catalog.storage]`: how the storage is reached. Never a credential: those come from the environment or the instance (AWS's usual chain).

use serde::Deserialize;
use sluice_model::config::{ConfigCode, Problems, Section};

/// How S3 encrypts what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// As the bucket says.
    #[default]
    Bucket,
    /// With keys of S3 (SSE-S3, `AES256`).
    S3,
    /// With a key of KMS.
    Kms,
    /// With a key of KMS, in two layers.
    KmsDsse,
}

/// The storage's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StorageConfig {
    /// For `s3://` locations.
    pub s3: S3Config,
}

/// S3 and what speaks its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Config {
    /// The server, for others than AWS: `http://127.0.0.1:9000`.
    pub endpoint: Option<String>,
    /// The region; `None` takes it from the environment.
    pub region: Option<String>,
    /// `https://host/bucket/key` and not `https://bucket.host/key`.
    pub path_style: bool,
    /// What writes ask for.
    pub encryption: Encryption,
    /// The id or ARN of the KMS key; `None` takes the bucket's or the account's.
    pub kms_key: Option<String>,
    /// How often a request is tried in all.
    pub max_attempts: u32,
    /// The longest that connecting may take.
    pub connect_timeout_ms: u64,
    /// The longest that one try may take.
    pub attempt_timeout_ms: u64,
    /// The longest that a request may take with all its tries and rests.
    pub timeout_ms: u64,
    /// Files larger than this are uploaded in parts of this size: at least 5 MiB. So much is held in memory for each open file.
    pub part_bytes: usize,
}

/// Credentials that a catalog has handed out for one table. Never from a configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The access key's id.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
    /// The session's token, if they are temporary.
    pub session_token: Option<String>,
}

/// A secret is not to be printed.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, …)", self.access_key_id)
    }
}

/// S3 refuses smaller parts.
const LEAST_PART: usize = 5 << 20;
/// S3 refuses larger single uploads.
const LARGEST_PART: usize = 5 << 30;

impl Default for S3Config {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            path_style: false,
            encryption: Encryption::Bucket,
            kms_key: None,
            max_attempts: 4,
            connect_timeout_ms: 3_000,
            attempt_timeout_ms: 20_000,
            timeout_ms: 60_000,
            part_bytes: 16 << 20,
        }
    }
}

impl StorageConfig {
    /// Reads `[catalog.storage]`.
    pub fn read(mut section: Section, problems: &mut Problems) -> Self {
        let given = S3Config::default();
        let s3 = S3Config {
            endpoint: section.parse("endpoint", endpoint, problems),
            region: section.read("region", problems),
            path_style: section.read("path_style", problems).unwrap_or_default(),
            encryption: section.read("encryption", problems).unwrap_or_default(),
            kms_key: section.read("kms_key", problems),
            max_attempts: section.read("max_attempts", problems).unwrap_or(given.max_attempts),
            connect_timeout_ms: section.read("connect_timeout_ms", problems).unwrap_or(given.connect_timeout_ms),
            attempt_timeout_ms: section.read("attempt_timeout_ms", problems).unwrap_or(given.attempt_timeout_ms),
            timeout_ms: section.read("timeout_ms", problems).unwrap_or(given.timeout_ms),
            part_bytes: section.read("part_bytes", problems).unwrap_or(given.part_bytes),
        };
        s3.check(&section, problems);
        section.finish(problems);
        Self { s3 }
    }
}

impl S3Config {
    fn check(&self, section: &Section, problems: &mut Problems) {
        let mut wrong = |key: &str, message: &str| problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), message);
        match (self.encryption, &self.kms_key) {
            (Encryption::Bucket | Encryption::S3, Some(_)) => wrong("kms_key", "goes with encryption = \"kms\" or \"kms-dsse\""),
            (Encryption::Bucket | Encryption::S3 | Encryption::Kms | Encryption::KmsDsse, _) => {}
        }
        if self.max_attempts == 0 {
            wrong("max_attempts", "at least 1");
        }
        if !(LEAST_PART..=LARGEST_PART).contains(&self.part_bytes) {
            wrong("part_bytes", "from 5242880 (5 MiB) to 5368709120 (5 GiB), as S3 asks");
        }
        for (key, value) in [
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("attempt_timeout_ms", self.attempt_timeout_ms),
            ("timeout_ms", self.timeout_ms),
        ] {
            if value == 0 {
                wrong(key, "at least 1");
            }
        }
    }
}

fn endpoint(text: &str) -> Result<String, &'static str> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    Err("a URL, such as https://s3.example.com or http://127.0.0.1:9000")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> (StorageConfig, Vec<String>) {
        let mut problems = Problems::default();
        let section = Section::new("catalog.storage", value, &mut problems);
        let config = StorageConfig::read(section, &mut problems);
        (config, problems.into_vec().into_iter().map(|problem| problem.path).collect())
    }

    #[test]
    fn an_s3_compatible_server() {
        let (config, problems) = read(json!({"endpoint": "http://127.0.0.1:9000/", "region": "eu-central-1", "path_style": true}));
        assert_eq!(problems, Vec::<String>::new());
        let expected = S3Config {
            endpoint: Some("http://127.0.0.1:9000".to_owned()),
            region: Some("eu-central-1".to_owned()),
            path_style: true,
            ..S3Config::default()
        };
        assert_eq!(config.s3, expected);
    }

    #[test]
    fn credentials_and_contradictions_are_refused() {
        let (_, problems) = read(json!({"secret_access_key": "x", "kms_key": "k", "part_bytes": 1, "endpoint": "s3", "timeout_ms": 0}));
        let expected = ["endpoint", "kms_key", "part_bytes", "timeout_ms", "secret_access_key"];
        assert_eq!(problems, expected.map(|key| format!("catalog.storage.{key}")));
    }
}
