//! The seam of the error topic.

use async_trait::async_trait;
use sluice_model::Class;

use crate::DeadLetter;

/// The error topic could not take the letters.
#[derive(Debug, thiserror::Error)]
#[error("the error topic: {what}")]
pub struct TopicError {
    /// What to do about it.
    pub class: Class,
    /// What happened.
    pub what: String,
}

/// Takes dead letters before the error table does, at least once.
#[async_trait]
pub trait ErrorTopic: Send + Sync {
    /// Produces the letters and waits until all are acknowledged.
    ///
    /// # Errors
    /// [`TopicError`] when one is not acknowledged.
    async fn publish(&self, letters: &[DeadLetter]) -> Result<(), TopicError>;
}

/// No error topic: the error table alone keeps dead letters.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTopic;

#[async_trait]
impl ErrorTopic for NoTopic {
    async fn publish(&self, _letters: &[DeadLetter]) -> Result<(), TopicError> {
        Ok(())
    }
}
