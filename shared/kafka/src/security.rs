//! `security`: how a client and a broker know each other.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use sluice_model::config::{ConfigCode, Problems, Section, Shape, shape_of};

use crate::secrets::{Field, SecretRef};

/// How a client and a broker know each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// Not at all, and everybody on the way reads along.
    Plaintext,
    /// The broker by its certificate, the client too where it has one (mutual TLS).
    Tls(Tls),
    /// The client by name and password.
    Password(Password),
    /// The client by its AWS role; the broker by its certificate.
    MskIam(MskIam),
}

/// Certificates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Certificates (PEM) that the broker's is trusted by; `None` takes the system's.
    pub ca: Option<SecretRef>,
    /// What the client shows.
    pub client: Option<ClientCertificate>,
}

/// What a client shows in mutual TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate with its chain (PEM).
    pub certificate: SecretRef,
    /// Its private key (PEM, PKCS#8).
    pub key: SecretRef,
    /// The key's passphrase.
    pub key_password: Option<SecretRef>,
}

/// Name and password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Password {
    /// How they are told to the broker.
    pub mechanism: Mechanism,
    /// The name.
    pub username: Username,
    /// The password.
    pub password: SecretRef,
    /// What they travel through.
    pub transport: Transport,
}

/// A name is no secret, but AWS keeps it with the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Username {
    /// As it stands in the file.
    Text(String),
    /// Kept elsewhere.
    Kept(SecretRef),
}

/// How a name and a password are told to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// As they are (RFC 4616).
    Plain,
    /// By a proof (RFC 5802) with SHA-256.
    ScramSha256,
    /// The same with SHA-512; what MSK has.
    ScramSha512,
}

impl Mechanism {
    /// Its name in SASL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// What name and password travel through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// An open connection: for tests and closed networks.
    Plaintext,
    /// TLS.
    Tls(Tls),
}

/// MSK's IAM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MskIam {
    /// The cluster's region; `None` takes that of the environment.
    pub region: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Plaintext,
    Tls,
    SaslPlain,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
    MskIam,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TransportKind {
    Plaintext,
    Tls,
}

impl Security {
    /// Reads a section `security`. Relative paths of files start at `base`.
    pub(crate) fn read(mut section: Section, base: &Path, problems: &mut Problems) -> Self {
        let kind = match section.take_as("type", shape_of::<Kind>(), problems).map(serde_json::from_value::<Kind>) {
            Some(Ok(kind)) => kind,
            Some(Err(_)) | None => {
                let types = "expected plaintext, tls, sasl-plain, scram-sha-256, scram-sha-512 or msk-iam";
                problems.add(ConfigCode::ConfigInvalid, &section.path_of("type"), types);
                // What an unknown type would take is unknown too: the other keys are not judged.
                return Self::Plaintext;
            }
        };
        let mut reader = Reader { section, base, problems };
        let security = reader.of(kind);
        reader.section.finish(reader.problems);
        security
    }

    /// Everything of it that is kept elsewhere.
    #[must_use]
    pub fn references(&self) -> Vec<(Field, &SecretRef)> {
        match self {
            Self::Plaintext | Self::MskIam(_) => Vec::new(),
            Self::Tls(tls) => tls.references(),
            Self::Password(password) => {
                let mut found = match &password.transport {
                    Transport::Plaintext => Vec::new(),
                    Transport::Tls(tls) => tls.references(),
                };
                match &password.username {
                    Username::Text(_) => {}
                    Username::Kept(kept) => found.push((Field::Username, kept)),
                }
                found.push((Field::Password, &password.password));
                found
            }
        }
    }
}

impl Tls {
    fn references(&self) -> Vec<(Field, &SecretRef)> {
        let mut found: Vec<(Field, &SecretRef)> = self.ca.iter().map(|ca| (Field::Authority, ca)).collect();
        if let Some(client) = &self.client {
            found.extend([(Field::Certificate, &client.certificate), (Field::Key, &client.key)]);
            found.extend(client.key_password.iter().map(|password| (Field::KeyPassword, password)));
        }
        found
    }
}

struct Reader<'r> {
    section: Section,
    base: &'r Path,
    problems: &'r mut Problems,
}

impl Reader<'_> {
    fn of(&mut self, kind: Kind) -> Security {
        match kind {
            Kind::Plaintext => Security::Plaintext,
            Kind::Tls => Security::Tls(self.tls()),
            Kind::SaslPlain => self.password(Mechanism::Plain),
            Kind::ScramSha256 => self.password(Mechanism::ScramSha256),
            Kind::ScramSha512 => self.password(Mechanism::ScramSha512),
            Kind::MskIam => Security::MskIam(MskIam { region: self.section.read("region", self.problems) }),
        }
    }

    fn tls(&mut self) -> Tls {
        let ca = self.reference("ca");
        let (certificate, key, key_password) = (self.reference("certificate"), self.reference("key"), self.reference("key_password"));
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key, key_password }),
            (None, None) if key_password.is_none() => None,
            (certificate, _) => {
                let missing = if certificate.is_none() { "certificate" } else { "key" };
                self.problem(missing, "mutual TLS needs both: certificate and key");
                None
            }
        };
        Tls { ca, client }
    }

    fn password(&mut self, mechanism: Mechanism) -> Security {
        let username = self.username();
        let given = self.section.take_as("password", SecretRef::SHAPE, self.problems);
        if given.is_none() {
            self.problem("password", "needed: { env = \"NAME\" }, { secret = \"arn:…\" } or { file = \"path\" }");
        }
        let password = given.and_then(|value| self.parsed("password", value));
        let transport = match self.section.read("transport", self.problems) {
            Some(TransportKind::Plaintext) => Transport::Plaintext,
            Some(TransportKind::Tls) | None => Transport::Tls(self.tls()),
        };
        match (username, password) {
            (Some(username), Some(password)) => Security::Password(Password { mechanism, username, password, transport }),
            // There is a problem: nobody sees this.
            (_, _) => Security::Plaintext,
        }
    }

    fn username(&mut self) -> Option<Username> {
        let shape = Shape::Either(Box::new(Shape::Text), Box::new(SecretRef::SHAPE));
        match self.section.take_as("username", shape, self.problems) {
            Some(Value::String(name)) if !name.is_empty() => Some(Username::Text(name)),
            Some(value) => self.parsed("username", value).map(Username::Kept),
            None => {
                self.problem("username", "needed: a name, { env = \"NAME\" } or { secret = \"arn:…\" }");
                None
            }
        }
    }

    fn reference(&mut self, key: &str) -> Option<SecretRef> {
        let value = self.section.take_as(key, SecretRef::SHAPE, self.problems)?;
        self.parsed(key, value)
    }

    fn parsed(&mut self, key: &str, value: Value) -> Option<SecretRef> {
        SecretRef::read(value, self.base).map_err(|what| self.problem(key, &what)).ok()
    }

    fn problem(&mut self, key: &str, message: &str) {
        let path = self.section.path_of(key);
        self.problems.add(ConfigCode::ConfigInvalid, &path, message);
    }
}
