//! Passwords, keys and certificates: named in the configuration, kept elsewhere, never printed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sluice_model::config::Shape;

use crate::config::Connection;
use crate::error::KafkaError;

/// Reads a variable of the environment; an empty one counts as missing.
pub type Environment<'e> = &'e (dyn Fn(&str) -> Option<String> + Send + Sync);

/// The same for something that lives on.
pub type OwnedEnvironment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where a secret is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretRef {
    /// `{ env = "NAME" }`: a variable of the environment.
    Env(String),
    /// `{ secret = "arn:…" }`: a secret of AWS Secrets Manager, a JSON object of the shape that Lambda's event-source mappings want: `username` and `password`, or
    /// `certificate`, `privateKey` and `privateKeyPassword`.
    Secret(String),
    /// `{ file = "path" }`: a file, such as an orchestrator mounts. A line end at its end is no part of it.
    File(PathBuf),
}

impl SecretRef {
    /// What it is read from.
    pub(crate) const SHAPE: Shape = Shape::OneKeyOf(&["env", "secret", "file"]);

    /// Reads a reference; a relative path starts at `base`. The error never repeats what stood there: it may be the secret itself.
    pub(crate) fn read(value: Value, base: &Path) -> Result<Self, String> {
        let forms = "a secret does not stand in this file: expected { env = \"NAME\" }, { secret = \"arn:aws:secretsmanager:…\" } or { file = \"path\" }";
        match serde_json::from_value(value).map_err(|_| forms.to_owned())? {
            Self::Env(name) if name.is_empty() => Err("the variable needs a name".to_owned()),
            Self::Secret(arn) if !arn.starts_with("arn:") || !arn.contains(":secretsmanager:") => {
                Err("expected the ARN of a secret: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME".to_owned())
            }
            Self::File(path) => Ok(Self::File(base.join(path))),
            other @ (Self::Env(_) | Self::Secret(_)) => Ok(other),
        }
    }
}

impl std::fmt::Display for SecretRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable `{name}`"),
            Self::Secret(arn) => write!(f, "the secret `{arn}`"),
            Self::File(path) => write!(f, "the file `{}`", path.display()),
        }
    }
}

/// What a secret is for. It is also the field that it stands in where several stand in one secret of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A name.
    Username,
    /// Its password.
    Password,
    /// A client's certificate with its chain.
    Certificate,
    /// Its private key.
    Key,
    /// The key's passphrase.
    KeyPassword,
    /// Certificates to trust.
    Authority,
}

impl Field {
    /// The field of AWS's secrets.
    #[must_use]
    pub const fn in_aws_secret(self) -> &'static str {
        match self {
            Self::Username => "username",
            Self::Password => "password",
            Self::Certificate | Self::Authority => "certificate",
            Self::Key => "privateKey",
            Self::KeyPassword => "privateKeyPassword",
        }
    }
}

/// A text that is not to be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// Takes a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// The secrets of a connection, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    texts: BTreeMap<(Field, SecretRef), SecretText>,
}

impl Secrets {
    /// Reads what `connection` names.
    ///
    /// # Errors
    /// [`KafkaError`] when something is missing, or Secrets Manager did not answer.
    pub async fn read(connection: &Connection, environment: Environment<'_>) -> Result<Self, KafkaError> {
        let mut texts = BTreeMap::new();
        // One request for each secret, however many fields are taken from it.
        let mut fetched: BTreeMap<String, Value> = BTreeMap::new();
        for (field, reference) in connection.security.references() {
            let text = match reference {
                SecretRef::Env(name) => environment(name).ok_or_else(|| KafkaError::fatal(format!("{reference} is not set")))?,
                SecretRef::File(path) => from_file(path, reference)?,
                SecretRef::Secret(arn) => {
                    if !fetched.contains_key(arn) {
                        fetched.insert(arn.clone(), parsed(&fetch(arn).await?, reference)?);
                    }
                    from_aws(fetched.get(arn), field, reference)?
                }
            };
            texts.insert((field, reference.clone()), SecretText(text));
        }
        Ok(Self { texts })
    }

    /// The secret that `reference` names.
    ///
    /// # Errors
    /// [`KafkaError`] when it is none of this connection.
    pub fn get(&self, field: Field, reference: &SecretRef) -> Result<&SecretText, KafkaError> {
        self.texts.get(&(field, reference.clone())).ok_or_else(|| KafkaError::fatal(format!("{reference} was not read")))
    }
}

fn from_file(path: &Path, reference: &SecretRef) -> Result<String, KafkaError> {
    let text = std::fs::read_to_string(path).map_err(|error| KafkaError::fatal(format!("{reference} cannot be read: {}", error.kind())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A secret's text as JSON. The message of a parser would repeat parts of it.
fn parsed(text: &str, reference: &SecretRef) -> Result<Value, KafkaError> {
    serde_json::from_str(text).map_err(|_| KafkaError::fatal(format!("{reference} is no JSON object")))
}

fn from_aws(secret: Option<&Value>, field: Field, reference: &SecretRef) -> Result<String, KafkaError> {
    let name = field.in_aws_secret();
    let text = secret.and_then(|secret| secret.get(name)).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| KafkaError::fatal(format!("{reference} has no field `{name}`")))
}

#[cfg(feature = "secrets-manager")]
use crate::secrets_manager::fetch;

/// Reading the configuration says so before: this is for one that was made otherwise.
#[cfg(not(feature = "secrets-manager"))]
async fn fetch(arn: &str) -> Result<String, KafkaError> {
    Err(KafkaError::fatal(format!(
        "the secret `{arn}`: this program was built without Secrets Manager: build it with --features kafka-aws"
    )))
}
