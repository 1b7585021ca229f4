//! The error topic: each dead letter as a Kafka record, acknowledged by all replicas in sync.
//!
//! The client is opened with the first letter and kept. It is given up after any trouble, and when it has not been used for a while: a function is frozen between
//! invocations, and what it finds when it goes on are connections that a broker or a network has forgotten. Within one call librdkafka alone repeats what can be
//! repeated; the next delivery of the batch is the next try.

mod message;
mod producer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sluice_deadletter::{DeadLetter, ErrorTopic, Published, TopicError};
use sluice_model::{Class, Clock, Deadline};
use tokio::sync::Mutex;

use crate::config::{Connection, ErrorTopicConfig};
use crate::error::KafkaError;
use crate::secrets::{OwnedEnvironment, Secrets};
use crate::tokens::Tokens;
use producer::{Failure, Producer};

/// The longest that one call takes, in milliseconds, whatever the invocation has left.
const MAX_PUBLISH_MS: i64 = 30_000;
/// A client that was not used for so long is replaced: load balancers and NAT gateways of AWS forget a connection after 350 s without a word, and a new one costs
/// some milliseconds.
const MAX_IDLE_MS: i64 = 60_000;
/// The longest that a question for the topic takes.
const CHECK: Duration = Duration::from_secs(10);

/// The error topic on a real cluster.
pub struct KafkaErrorTopic {
    connection: Connection,
    topic: Arc<str>,
    clock: Arc<dyn Clock>,
    environment: OwnedEnvironment,
    tokens: Option<Tokens>,
    open: Mutex<Option<Open>>,
}

struct Open {
    producer: Arc<Producer>,
    used_ms: i64,
}

impl KafkaErrorTopic {
    /// The topic of this configuration. Nothing is opened yet; secrets are read when it is.
    #[must_use]
    pub fn new(config: ErrorTopicConfig, clock: Arc<dyn Clock>, environment: OwnedEnvironment) -> Self {
        let topic = config.topic.into();
        Self { connection: config.connection, topic, clock, environment, tokens: None, open: Mutex::default() }
    }

    /// The same with tokens from elsewhere, for brokers that take OAUTHBEARER.
    #[must_use]
    pub fn with_tokens(self, tokens: Tokens) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Whether the topic is there and can be reached with this configuration; tells its partitions.
    async fn partitions(&self, limit: Duration) -> Result<usize, KafkaError> {
        let producer = self.producer().await?;
        let topic = Arc::clone(&self.topic);
        // librdkafka waits for the answer: not on a thread of the async runtime.
        let asked = tokio::task::spawn_blocking(move || producer.partitions(&topic, limit)).await;
        asked.map_err(|error| KafkaError::transient(format!("the question was not asked: {error}")))?
    }

    /// The client, opened anew where there is none that is likely to work.
    async fn producer(&self) -> Result<Arc<Producer>, KafkaError> {
        let mut open = self.open.lock().await;
        let now_ms = self.clock.now_ms();
        match open.as_mut() {
            Some(warm) if (0..=MAX_IDLE_MS).contains(&(now_ms - warm.used_ms)) => {
                warm.used_ms = now_ms;
                return Ok(Arc::clone(&warm.producer));
            }
            Some(_) | None => give_up(open.take()),
        }
        let environment = self.environment.as_ref();
        let secrets = Secrets::read(&self.connection, environment).await?;
        let tokens = match &self.tokens {
            Some(tokens) => tokens.clone(),
            None => Tokens::of(&self.connection, environment)?,
        };
        let producer = Arc::new(Producer::open(&self.connection, &secrets, tokens)?);
        *open = Some(Open { producer: Arc::clone(&producer), used_ms: now_ms });
        Ok(producer)
    }

    /// The next call opens a new client, unless another call has done so.
    async fn discard(&self, producer: &Arc<Producer>) {
        let mut open = self.open.lock().await;
        if open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.producer, producer)) {
            give_up(open.take());
        }
    }

    fn trouble(&self, error: &KafkaError, published: Published) -> TopicError {
        TopicError { class: error.class, what: format!("`{}`: {}", self.topic, error.what), published }
    }

    /// A record that came from the error topic is not sent there again: it would come back for ever. The error table has it.
    fn is_ours(&self, letter: &DeadLetter) -> bool {
        *letter.key.topic == *self.topic
    }
}

/// Ends a client beside the work: that waits for its threads.
fn give_up(open: Option<Open>) {
    if let Some(open) = open {
        std::thread::spawn(move || drop(open));
    }
}

/// How long a call may take: half of what is left, so that the tables get their time as well.
fn limit(deadline: Deadline, now_ms: i64) -> Duration {
    let limit_ms = (deadline.remaining_ms(now_ms) / 2).min(MAX_PUBLISH_MS);
    Duration::from_millis(u64::try_from(limit_ms).unwrap_or_default())
}

#[async_trait]
impl ErrorTopic for KafkaErrorTopic {
    async fn check(&self) -> Result<Option<String>, TopicError> {
        let partitions = self.partitions(CHECK).await;
        let partitions = partitions.map_err(|error| self.trouble(&error, Published::default()))?;
        Ok(Some(format!("the error topic `{}` can be reached: {partitions} partition(s)", self.topic)))
    }

    async fn publish(&self, letters: &[&DeadLetter], deadline: Deadline) -> Result<Published, TopicError> {
        let letters: Vec<&DeadLetter> = letters.iter().copied().filter(|letter| !self.is_ours(letter)).collect();
        if letters.is_empty() {
            return Ok(Published::default());
        }
        let limit = limit(deadline, self.clock.now_ms());
        let opening = tokio::time::timeout(limit, self.producer()).await;
        let opening = opening.unwrap_or_else(|_| Err(KafkaError::transient(format!("no client within {} ms", limit.as_millis()))));
        let producer = opening.map_err(|error| self.trouble(&error, Published::default()))?;
        let mut published = Published::default();
        match producer.publish((&self.topic, &letters), limit, &mut published).await {
            Ok(()) => Ok(published),
            Err(failure) => {
                self.discard(&producer).await;
                let error = match failure {
                    Failure::Refused(error) => error,
                    Failure::Late(last) => late(limit, (letters.len() - published.letters, letters.len()), last),
                };
                Err(self.trouble(&error, published))
            }
        }
    }
}

/// Time is over: what was sent and not acknowledged may be there or not. What librdkafka complained about last is most likely why.
fn late(limit: Duration, (open, all): (usize, usize), last: Option<KafkaError>) -> KafkaError {
    let what = format!("{open} of {all} letters are not acknowledged within {} ms", limit.as_millis());
    match last {
        Some(KafkaError { class: Class::Fatal, what: last }) => KafkaError::fatal(format!("{what}: {last}")),
        Some(KafkaError { class: Class::Conflict | Class::Transient | Class::Unknown, what: last }) => {
            KafkaError { class: Class::Unknown, what: format!("{what}: {last}") }
        }
        None => KafkaError { class: Class::Unknown, what },
    }
}
