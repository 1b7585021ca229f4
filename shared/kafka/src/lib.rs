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

pub use config::{Connection, ErrorTopicConfig, KafkaConfig, KafkaConfigError, SourceKafka};
pub use error::KafkaError;
pub use secrets::{Environment, SecretRef, SecretText, Secrets};
pub use security::Security;
