//! What goes wrong with Kafka.

use sluice_model::Class;

/// Kafka, or the way to it, is in trouble. The message never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Kafka: {what}")]
pub struct KafkaError {
    /// What to do about it.
    pub class: Class,
    /// What happened, and what would help.
    pub what: String,
}

impl KafkaError {
    /// Trouble that stays until somebody mends it.
    pub fn fatal(what: impl Into<String>) -> Self {
        Self { class: Class::Fatal, what: what.into() }
    }

    /// Trouble that goes by itself.
    pub fn transient(what: impl Into<String>) -> Self {
        Self { class: Class::Transient, what: what.into() }
    }
}
