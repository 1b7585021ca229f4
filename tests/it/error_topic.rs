//! What the error topic is given, and what its trouble does to a batch.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use sluice_deadletter::{DeadLetter, ErrorTopic, Published, TopicError};
use sluice_model::{Class, Deadline, ReasonCode};

use crate::lake::{Lake, config, event, sent};

/// Keeps what it was given; takes the first `takes` letters of each call.
struct Recording {
    takes: usize,
    given: Mutex<Vec<DeadLetter>>,
}

impl Recording {
    fn taking(takes: usize) -> Arc<Self> {
        Arc::new(Self { takes, given: Mutex::default() })
    }

    fn given(&self) -> Vec<DeadLetter> {
        std::mem::take(&mut *self.given.lock().unwrap())
    }
}

#[async_trait]
impl ErrorTopic for Recording {
    async fn publish(&self, letters: &[&DeadLetter], _deadline: Deadline) -> Result<Published, TopicError> {
        self.given.lock().unwrap().extend(letters.iter().map(|letter| (*letter).clone()));
        let published = Published { letters: letters.len().min(self.takes), without_value: 0 };
        if published.letters == letters.len() {
            return Ok(published);
        }
        Err(TopicError { class: Class::Transient, what: "no broker".to_owned(), published })
    }
}

fn lake(over: Value, topic: &Arc<Recording>) -> Lake {
    let mut lake = Lake::new(config(over));
    lake.ingest.topic = topic.clone();
    lake
}

#[tokio::test]
async fn the_topic_gets_what_the_table_has_to_cut() {
    let topic = Recording::taking(usize::MAX);
    let lake = lake(json!({"errors": {"max_raw_bytes": 10}}), &topic);
    let reply = lake.invoke(&event(&[sent(0, "a", "nonsense", json!({"id": 1}))])).await.unwrap();
    assert_eq!((reply.error_topic.published, reply.tally.dead_letters), (1, 1));
    let letters = topic.given();
    let value = letters[0].raw_value.as_ref().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(value.all()).unwrap()["data"], json!({"id": 1}));
    assert_eq!((value.kept().len(), value.is_cut()), (10, true));
    assert_eq!(letters[0].rejection.code, ReasonCode::OpUnknown);
}

#[tokio::test]
async fn a_letter_that_the_table_holds_is_not_published_again() {
    let topic = Recording::taking(usize::MAX);
    let lake = lake(json!({}), &topic);
    let bad = event(&[sent(0, "a", "nonsense", json!({"id": 1}))]);
    lake.invoke(&bad).await.unwrap();
    assert_eq!(topic.given().len(), 1);
    let again = lake.invoke(&bad).await.unwrap();
    assert_eq!((again.tally.replayed, again.error_topic.published), (1, 0));
    assert!(topic.given().is_empty());
    let more =
        lake.invoke(&event(&[sent(0, "a", "nonsense", json!({"id": 1})), sent(1, "a", "nonsense", json!({"id": 1}))])).await.unwrap();
    assert_eq!((more.tally.replayed, more.tally.dead_letters, more.error_topic.published), (1, 1, 1));
    assert_eq!(topic.given()[0].coordinate.offset, 1);
}

#[tokio::test]
async fn continue_keeps_in_the_table_what_the_topic_did_not_take() {
    let topic = Recording::taking(1);
    let lake = lake(json!({"errors": {"on_failure": "continue"}}), &topic);
    let records: Vec<_> =
        (0..3).map(|offset| sent(offset, "a", "nonsense", json!({"id": 1}))).chain([sent(3, "a", "I", json!({"id": 1}))]).collect();
    let reply = lake.invoke(&event(&records)).await.unwrap();
    assert_eq!((reply.tally.dead_letters, reply.tally.rows), (3, 1));
    assert_eq!((reply.error_topic.published, reply.error_topic.failed), (1, 2));
    assert_eq!(serde_json::to_value(&reply).unwrap()["error_topic"], json!({"published": 1, "without_value": 0, "failed": 2}));
    assert_eq!(lake.content().await["ops.error_records"].len(), 3);
}

#[tokio::test]
async fn block_fails_the_batch_and_says_what_the_topic_took() {
    let topic = Recording::taking(1);
    let lake = lake(json!({"errors": {"on_failure": "block"}}), &topic);
    let records: Vec<_> = (0..3).map(|offset| sent(offset, "a", "nonsense", json!({"id": 1}))).collect();
    let error = lake.invoke(&event(&records)).await.unwrap_err();
    assert_eq!((error.class(), error.error_topic().published), (Class::Transient, 1));
    assert!(error.to_string().starts_with("ERROR_TOPIC_FAILED: "), "{error}");
    assert!(lake.ingest.catalog.tables().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_batch_without_dead_letters_does_not_ask_the_topic() {
    let topic = Recording::taking(0);
    let reply = lake(json!({}), &topic).invoke(&event(&[sent(0, "a", "I", json!({"id": 1}))])).await.unwrap();
    assert_eq!(serde_json::to_value(&reply).unwrap().get("error_topic"), None);
}
