//! The seam of the error topic.

use async_trait::async_trait;
use sluice_model::{Class, Deadline};

use crate::DeadLetter;

/// The error topic could not take all letters. Those that it did take stay there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERROR_TOPIC_FAILED: {what}")]
pub struct TopicError {
    /// What to do about it.
    pub class: Class,
    /// What happened.
    pub what: String,
    /// What the topic took before, or besides.
    pub published: Published,
}

/// What the error topic took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Published {
    /// Letters that are acknowledged.
    pub letters: usize,
    /// Of those: letters that were too large for the topic and went without their value.
    pub without_value: usize,
}

/// Takes dead letters before the error table does, at least once.
#[async_trait]
pub trait ErrorTopic: Send + Sync {
    /// Produces the letters and waits until all are acknowledged, until `deadline` at most.
    ///
    /// # Errors
    /// [`TopicError`] when one is not acknowledged.
    async fn publish(&self, letters: &[&DeadLetter], deadline: Deadline) -> Result<Published, TopicError>;

    /// Looks whether letters could be produced, without producing one; a sentence about what was found, `None` where there is nothing to look at.
    ///
    /// # Errors
    /// [`TopicError`] with what to do about it.
    async fn check(&self) -> Result<Option<String>, TopicError> {
        Ok(None)
    }
}

/// No error topic: the error table alone keeps dead letters.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTopic;

#[async_trait]
impl ErrorTopic for NoTopic {
    async fn publish(&self, _letters: &[&DeadLetter], _deadline: Deadline) -> Result<Published, TopicError> {
        Ok(Published::default())
    }
}
