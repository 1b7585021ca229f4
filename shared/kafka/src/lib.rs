//! Kafka: its configuration, clients that are secured as configured, and the error topic.
//!
//! [`config`] is compiled always, so that any build of a function finds what is wrong in a configuration. librdkafka comes with the feature `client`; TLS, SCRAM and
//! OAUTHBEARER with `tls` or `tls-vendored`; MSK's IAM with `msk-iam`; secrets named by an ARN with `secrets-manager` (docs/adr/0015-kafka-client.md).

pub mod config;
pub mod error;
mod properties;
pub mod secrets;
pub mod security;

#[cfg(feature = "client")]
pub mod class;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "msk-iam")]
mod msk;
#[cfg(feature = "secrets-manager")]
mod secrets_manager;
#[cfg(feature = "client")]
pub mod tokens;
#[cfg(feature = "client")]
pub mod topic;

use std::sync::Arc;

use sluice_deadletter::{ErrorTopic, NoTopic};
use sluice_model::Clock;

pub use config::{Connection, ErrorTopicConfig, KafkaConfig, KafkaConfigError, SourceKafka};
pub use error::KafkaError;
pub use secrets::{Environment, OwnedEnvironment, SecretRef, SecretText, Secrets};
pub use security::Security;

/// The error topic of the configuration, or none. It is opened with its first letter.
///
/// # Errors
/// [`KafkaError`] when there is one and this program was built without a client; reading the configuration says so before.
pub fn error_topic(
    config: Option<ErrorTopicConfig>,
    clock: Arc<dyn Clock>,
    environment: OwnedEnvironment,
) -> Result<Arc<dyn ErrorTopic>, KafkaError> {
    match config {
        None => Ok(Arc::new(NoTopic)),
        Some(config) => opened(config, clock, environment),
    }
}

#[cfg(feature = "client")]
#[expect(clippy::unnecessary_wraps, reason = "the other build cannot")]
fn opened(config: ErrorTopicConfig, clock: Arc<dyn Clock>, environment: OwnedEnvironment) -> Result<Arc<dyn ErrorTopic>, KafkaError> {
    Ok(Arc::new(topic::KafkaErrorTopic::new(config, clock, environment)))
}

/// Reading the configuration says so before: this is for one that was made otherwise.
#[cfg(not(feature = "client"))]
fn opened(config: ErrorTopicConfig, _clock: Arc<dyn Clock>, _environment: OwnedEnvironment) -> Result<Arc<dyn ErrorTopic>, KafkaError> {
    let ErrorTopicConfig { topic, connection: _ } = config;
    Err(KafkaError::fatal(format!(
        "the error topic `{topic}`: this program was built without a Kafka client: build it with --features kafka"
    )))
}
