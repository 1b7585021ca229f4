//! `[source.kafka]` and `[errors]`: which Kafka, and how it is reached.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sluice_model::config::{ConfigCode, ConfigProblem, Problems, Section, Shape};
use wildmatch::WildMatch;

use crate::properties;
use crate::secrets::SecretRef;
use crate::security::{Mechanism, Password, Security, Transport};

/// What Kafka's part of the configuration says is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct KafkaConfigError {
    /// All problems.
    pub problems: Vec<ConfigProblem>,
}

/// Kafka, as far as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KafkaConfig {
    /// `[source.kafka]`: what `sluice run` reads. In Lambda the event-source mapping reads it.
    pub source: Option<SourceKafka>,
    /// `[errors]`: the topic of dead letters.
    pub error_topic: Option<ErrorTopicConfig>,
}

/// `[source.kafka]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceKafka {
    /// The cluster.
    pub connection: Connection,
    /// Names of topics, or globs (`*`, `?`) over them. Empty when the section only says where the error topic is.
    pub topics: Vec<String>,
    /// The consumer group.
    pub group: String,
}

/// The topic of dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorTopicConfig {
    /// Its cluster.
    pub connection: Connection,
    /// Its name.
    pub topic: String,
}

/// How a cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Some of its brokers: `host:port,host:port`.
    pub brokers: String,
    /// How client and broker know each other.
    pub security: Security,
    /// librdkafka's properties, besides those that Sluice sets.
    pub properties: BTreeMap<String, String>,
}

impl SourceKafka {
    /// Whether a topic is one of ours. Kafka's own topics (`__consumer_offsets`, …) never are.
    #[must_use]
    pub fn has_topic(&self, name: &str) -> bool {
        !name.starts_with("__") && self.topics.iter().any(|pattern| WildMatch::new(pattern).matches(name))
    }

    /// What this program lacks to read it.
    #[must_use]
    pub fn not_built(&self) -> Vec<ConfigProblem> {
        let mut problems = Problems::default();
        self.connection.check_built("source.kafka", "source.kafka.security", &mut problems);
        problems.into_vec()
    }
}

impl KafkaConfig {
    /// Reads Kafka's part of the whole configuration `root`. Relative paths of files start at `base`, the folder of the configuration.
    ///
    /// # Errors
    /// [`KafkaConfigError`] with all problems.
    pub fn read(root: &Value, base: &Path) -> Result<Self, KafkaConfigError> {
        let mut problems = Problems::default();
        let config = Self::read_noting(root, base, &mut problems);
        if problems.is_empty() { Ok(config) } else { Err(KafkaConfigError { problems: problems.into_vec() }) }
    }

    /// Reads what can be read, and adds what is wrong to `problems`.
    pub fn read_noting(root: &Value, base: &Path, problems: &mut Problems) -> Self {
        let source_id = root.pointer("/source/id").and_then(Value::as_str).unwrap_or_default();
        let source = root.pointer("/source/kafka").map(|value| {
            let section = Section::new("source.kafka", value.clone(), problems);
            read_source(section, (source_id, base), problems)
        });
        let error_topic = read_error_topic(root.get("errors"), (source.as_ref(), base), problems);
        let config = Self { source, error_topic };
        config.check_apart(problems);
        config
    }

    /// A source that reads its own dead letters would feed on itself.
    fn check_apart(&self, problems: &mut Problems) {
        let (Some(source), Some(errors)) = (&self.source, &self.error_topic) else { return };
        if source.connection.brokers != errors.connection.brokers {
            return;
        }
        for (index, pattern) in source.topics.iter().enumerate() {
            if WildMatch::new(pattern).matches(&errors.topic) {
                let message = format!("this is the error topic, or matches it: `{}` would be read as a source of itself", errors.topic);
                problems.add(ConfigCode::ConfigInvalid, &format!("source.kafka.topics[{index}]"), message);
            }
        }
    }
}

fn read_source(mut section: Section, (source_id, base): (&str, &Path), problems: &mut Problems) -> SourceKafka {
    let brokers = match section.take_as("brokers", Shape::Text, problems).as_ref().and_then(Value::as_str).map(brokers) {
        Some(Ok(brokers)) => brokers,
        wrong => {
            let message = wrong.and_then(Result::err).unwrap_or_else(|| "needed, for example broker-1:9092,broker-2:9092".to_owned());
            problems.add(ConfigCode::ConfigInvalid, &section.path_of("brokers"), message);
            String::new()
        }
    };
    let topics: Vec<String> = section.parse_list("topics", topic_pattern, problems).unwrap_or_default();
    let group: Option<String> = section.read("group", problems);
    let group = group.filter(|group| !group.is_empty()).unwrap_or_else(|| format!("sluice-{source_id}"));
    let security = read_security(&mut section, base, problems).unwrap_or(Security::Plaintext);
    let properties = properties::read(&mut section, problems);
    section.finish(problems);
    SourceKafka { connection: Connection { brokers, security, properties }, topics, group }
}

/// The keys of `[errors]` that belong to the topic; the others are the error table's.
fn read_error_topic(
    errors: Option<&Value>,
    (source, base): (Option<&SourceKafka>, &Path),
    problems: &mut Problems,
) -> Option<ErrorTopicConfig> {
    let mut section = Section::new("errors", errors?.clone(), problems);
    let topic = section.parse("topic", |text| if text.is_empty() { Ok(String::new()) } else { topic_name(text) }, problems);
    let own_brokers = section.parse("brokers", |text| if text.is_empty() { Ok(String::new()) } else { brokers(text) }, problems);
    let own_security = read_security(&mut section, base, problems);
    let properties = properties::read(&mut section, problems);
    let topic = topic.filter(|topic| !topic.is_empty())?;
    let inherited = source.map(|source| &source.connection);
    let brokers = match (own_brokers.filter(|brokers| !brokers.is_empty()), inherited) {
        (Some(own), _) => own,
        (None, Some(inherited)) => inherited.brokers.clone(),
        (None, None) => {
            problems.add(ConfigCode::ConfigInvalid, "errors.brokers", "needed with errors.topic, here or as source.kafka.brokers");
            String::new()
        }
    };
    // The same cluster is reached in the same way.
    let same = inherited.filter(|inherited| inherited.brokers == brokers).map(|inherited| inherited.security.clone());
    let connection = Connection { brokers, security: own_security.or(same).unwrap_or(Security::Plaintext), properties };
    connection.check_built("errors.topic", "errors.security", problems);
    Some(ErrorTopicConfig { connection, topic })
}

fn read_security(section: &mut Section, base: &Path, problems: &mut Problems) -> Option<Security> {
    let path = section.path_of("security");
    let value = section.take("security")?;
    let inner = Section::new(&path, value, problems);
    Some(Security::read(inner, base, problems))
}

/// `host:port` several times, with commas.
fn brokers(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    for part in &parts {
        let port = part.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/')).map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(port)) if port > 0) {
            return Err(format!("`{part}` is no broker: expected host:port,host:port"));
        }
    }
    Ok(parts.join(","))
}

const TOPIC_RULE: &str = "letters, digits, `.`, `_` and `-`, 249 at most";

/// A name that Kafka takes for a topic (its `Topic.validate`).
fn topic_name(text: &str) -> Result<String, String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let is_name = !text.is_empty() && text.len() <= 249 && text != "." && text != ".." && text.chars().all(legal);
    if is_name { Ok(text.to_owned()) } else { Err(format!("`{text}` is no name of a topic: {TOPIC_RULE}")) }
}

/// A topic's name, with `*` and `?` as in the other globs.
fn topic_pattern(text: &str) -> Result<String, String> {
    let plain = text.replace(['*', '?'], "x");
    topic_name(&plain).map(|_| text.to_owned()).map_err(|_| format!("`{text}` is no topic or glob: {TOPIC_RULE}, `*` and `?`"))
}

/// What a program can be built with, and the feature of the binaries that brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Client,
    Tls,
    Iam,
    SecretsManager,
}

impl Need {
    const fn is_built(self) -> bool {
        match self {
            Self::Client => cfg!(feature = "client"),
            Self::Tls => cfg!(any(feature = "tls", feature = "tls-vendored")),
            Self::Iam => cfg!(feature = "msk-iam"),
            Self::SecretsManager => cfg!(feature = "secrets-manager"),
        }
    }

    const fn feature(self) -> &'static str {
        match self {
            Self::Client | Self::Tls => "kafka",
            Self::Iam | Self::SecretsManager => "kafka,kafka-aws",
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "a Kafka client",
            Self::Tls => "TLS and SCRAM for Kafka",
            Self::Iam => "MSK's IAM",
            Self::SecretsManager => "AWS Secrets Manager",
        }
    }
}

impl Connection {
    /// The first thing that this connection needs and this program was built without.
    fn missing(&self) -> Option<Need> {
        let mut needs = vec![Need::Client];
        match &self.security {
            Security::Plaintext => {}
            Security::Tls(_) => needs.push(Need::Tls),
            Security::Password(Password { transport: Transport::Plaintext, mechanism: Mechanism::Plain, .. }) => {}
            Security::Password(_) => needs.push(Need::Tls),
            Security::MskIam(_) => needs.extend([Need::Tls, Need::Iam]),
        }
        if self.security.references().iter().any(|(_, reference)| matches!(reference, SecretRef::Secret(_))) {
            needs.push(Need::SecretsManager);
        }
        needs.into_iter().find(|need| !need.is_built())
    }

    /// Adds the problem of a connection that needs what this program was built without; `client` is the key that asks for a client at all.
    fn check_built(&self, client: &str, security: &str, problems: &mut Problems) {
        let Some(missing) = self.missing() else { return };
        let path = match missing {
            Need::Client => client,
            Need::Tls | Need::Iam | Need::SecretsManager => security,
        };
        let message = format!("this program was built without {}: build it with --features {}", missing.as_str(), missing.feature());
        problems.add(ConfigCode::ConfigUnsupported, path, message);
    }
}
