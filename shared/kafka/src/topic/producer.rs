//! The client behind the error topic.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError as Foreign, RDKafkaErrorCode as Code};
use rdkafka::producer::{DeliveryFuture, FutureProducer, Producer as _};
use sluice_deadletter::{DeadLetter, Published};
use sluice_model::Class;

use super::message::{Extent, record, size};
use crate::class::{class, told};
use crate::client::client_config;
use crate::config::Connection;
use crate::error::KafkaError;
use crate::secrets::Secrets;
use crate::tokens::Tokens;

/// Letters that wait for their acknowledgement at once, and their bytes: the client keeps a copy of each.
const WINDOW_LETTERS: usize = 10_000;
const WINDOW_BYTES: usize = 16 * 1024 * 1024;

/// What the configuration may set otherwise.
const DEFAULTS: [(&str, &str); 9] = [
    // A repetition by the client makes no second record. Needs IdempotentWrite before Kafka 2.8, and kafka-cluster:WriteDataIdempotently with MSK's IAM.
    ("enable.idempotence", "true"),
    // A request that nobody answers is repeated on a new connection well before a call is over.
    ("socket.timeout.ms", "8000"),
    ("socket.connection.setup.timeout.ms", "8000"),
    ("reconnect.backoff.max.ms", "1000"),
    // A topic that is missing is said to be after this time, and not made.
    ("topic.metadata.propagation.max.ms", "5000"),
    ("allow.auto.create.topics", "false"),
    // The broker judges what is too large: this is more than an event of Lambda can hold.
    ("message.max.bytes", "8388608"),
    // Batches stay below the usual max.message.bytes of a topic, which holds for a batch.
    ("batch.size", "131072"),
    ("linger.ms", "5"),
];

/// Why letters were not acknowledged.
pub(super) enum Failure {
    /// The broker or the client said so.
    Refused(KafkaError),
    /// Time is over; the last complaint of the client.
    Late(Option<KafkaError>),
}

/// What librdkafka calls back.
struct Context {
    tokens: Tokens,
    last_error: LastError,
}

/// What librdkafka complained about last, or what cannot pass by itself.
type LastError = Arc<Mutex<Option<KafkaError>>>;

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: Foreign, reason: &str) {
        let class = error.rdkafka_error_code().map_or(Class::Transient, class);
        tracing::warn!(%error, reason, "librdkafka");
        let told = KafkaError { class, what: format!("{error}: {reason}") };
        let mut last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        // That all brokers are down follows a password that none of them took: the cause is told, not what came of it.
        if told.class == Class::Fatal || last.as_ref().is_none_or(|last| last.class != Class::Fatal) {
            *last = Some(told);
        }
    }

    fn generate_oauth_token(&self, _config: Option<&str>) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        self.tokens.generate()
    }
}

/// A client of the error topic.
pub(super) struct Producer {
    inner: FutureProducer<Context>,
    last_error: LastError,
}

impl Producer {
    /// Opens a client; connections are made with the first record.
    pub(super) fn open(connection: &Connection, secrets: &Secrets, tokens: Tokens) -> Result<Self, KafkaError> {
        let last_error = LastError::default();
        let context = Context { tokens, last_error: Arc::clone(&last_error) };
        let inner = config(connection, secrets)?.create_with_context(context);
        Ok(Self { inner: inner.map_err(|error| told("opening a client of the error topic", &error))?, last_error })
    }

    /// The number of the topic's partitions. Waits for the answer.
    pub(super) fn partitions(&self, topic: &str, limit: Duration) -> Result<usize, KafkaError> {
        let metadata = self.inner.client().fetch_metadata(Some(topic), limit);
        let metadata = metadata.map_err(|error| self.last_error().unwrap_or_else(|| told("asking for the topic", &error)))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let error = found.and_then(|found| found.error()).map(Code::from);
        match (found, error) {
            (Some(found), None) => Ok(found.partitions().len()),
            (_, error) => Err(refused(error.unwrap_or(Code::UnknownTopicOrPartition))),
        }
    }

    /// Produces the letters, in windows. What was acknowledged is added to `published`, also when it fails.
    pub(super) async fn publish(
        &self,
        (topic, letters): (&str, &[&DeadLetter]),
        limit: Duration,
        published: &mut Published,
    ) -> Result<(), Failure> {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut end = std::pin::pin!(tokio::time::sleep(limit));
        let mut rest = letters;
        while !rest.is_empty() {
            let (window, behind) = rest.split_at(window(rest));
            rest = behind;
            let too_large = self.send(topic, window, (end.as_mut(), published)).await?;
            for letter in too_large {
                self.send_less(topic, letter, (end.as_mut(), published)).await?;
            }
        }
        Ok(())
    }

    /// Sends whole letters at once and awaits each; gives back those that were too large, maybe only together with others of their batch.
    async fn send<'l>(
        &self,
        topic: &str,
        letters: &[&'l DeadLetter],
        (mut end, published): (Pin<&mut tokio::time::Sleep>, &mut Published),
    ) -> Result<Vec<&'l DeadLetter>, Failure> {
        let sent: Vec<(&DeadLetter, Result<DeliveryFuture, Code>)> =
            letters.iter().map(|letter| (*letter, self.enqueue(topic, letter, Extent::Whole))).collect();
        let mut too_large = Vec::new();
        let mut failure = None;
        for (letter, sent) in sent {
            match self.acknowledged(sent, end.as_mut()).await? {
                Ok(()) => published.letters += 1,
                Err(code) if is_size(code) => too_large.push(letter),
                Err(code) => failure = failure.or(Some(code)),
            }
        }
        failure.map_or(Ok(too_large), |code| Err(self.failure(code)))
    }

    /// Sends one letter alone: whole, then with less and less of it.
    async fn send_less(
        &self,
        topic: &str,
        letter: &DeadLetter,
        (mut end, published): (Pin<&mut tokio::time::Sleep>, &mut Published),
    ) -> Result<(), Failure> {
        let mut extent = Some(Extent::Whole);
        while let Some(sending) = extent {
            let sent = self.enqueue(topic, letter, sending);
            match self.acknowledged(sent, end.as_mut()).await? {
                Ok(()) => {
                    published.letters += 1;
                    published.without_value += usize::from(sending != Extent::Whole);
                    return Ok(());
                }
                Err(code) if is_size(code) => extent = sending.less(),
                Err(code) => return Err(self.failure(code)),
            }
        }
        Err(self.failure(Code::MessageSizeTooLarge))
    }

    fn enqueue(&self, topic: &str, letter: &DeadLetter, extent: Extent) -> Result<DeliveryFuture, Code> {
        self.inner.send_result(record(topic, letter, extent)).map_err(|(error, _)| error.rdkafka_error_code().unwrap_or(Code::Fail))
    }

    /// Waits for an acknowledgement until the end.
    async fn acknowledged(
        &self,
        sent: Result<DeliveryFuture, Code>,
        end: Pin<&mut tokio::time::Sleep>,
    ) -> Result<Result<(), Code>, Failure> {
        let delivery = match sent {
            Ok(delivery) => delivery,
            Err(code) => return Ok(Err(code)),
        };
        match select(delivery, end).await {
            Either::Left((Ok(Ok(_)), _)) => Ok(Ok(())),
            Either::Left((Ok(Err((error, _))), _)) => Ok(Err(error.rdkafka_error_code().unwrap_or(Code::Fail))),
            // The client was given up under it.
            Either::Left((Err(_), _)) => Ok(Err(Code::PurgeInflight)),
            Either::Right(((), _)) => Err(Failure::Late(self.last_error())),
        }
    }

    /// What a code of a letter means. Behind a purge is what made the client unusable, such as a missing right.
    fn failure(&self, code: Code) -> Failure {
        let cause = match code {
            Code::PurgeQueue | Code::PurgeInflight | Code::Fatal => self.inner.client().fatal_error().map(|(cause, _)| cause),
            _ => None,
        };
        Failure::Refused(refused(cause.unwrap_or(code)))
    }

    fn last_error(&self) -> Option<KafkaError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn config(connection: &Connection, secrets: &Secrets) -> Result<ClientConfig, KafkaError> {
    let mut config = client_config(connection, secrets)?;
    for (name, value) in DEFAULTS {
        if config.get(name).is_none() {
            config.set(name, value);
        }
    }
    // As Java's clients do: a key has its partition, records without one are spread.
    config.set("acks", "all").set("partitioner", "murmur2_random");
    config.set("message.timeout.ms", super::MAX_PUBLISH_MS.to_string());
    Ok(config)
}

/// How many of the letters are sent together.
fn window(letters: &[&DeadLetter]) -> usize {
    let mut bytes = 0;
    let fitting = letters.iter().take(WINDOW_LETTERS).take_while(|letter| {
        let before = bytes;
        bytes += size(letter);
        before < WINDOW_BYTES
    });
    fitting.count()
}

const fn is_size(code: Code) -> bool {
    matches!(code, Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize)
}

/// What a code means for the error topic, and what to do.
fn refused(code: Code) -> KafkaError {
    let hint = match code {
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => ": create the topic; it is not made by itself",
        Code::TopicAuthorizationFailed => {
            ": allow Write and Describe on the topic (MSK: kafka-cluster:WriteData, kafka-cluster:DescribeTopic)"
        }
        Code::ClusterAuthorizationFailed => {
            ": allow IdempotentWrite on the cluster (MSK: kafka-cluster:WriteDataIdempotently), or set errors.properties.\"enable.idempotence\" = false"
        }
        Code::NotEnoughReplicas | Code::NotEnoughReplicasAfterAppend => ": fewer replicas are in sync than the topic's min.insync.replicas",
        _ => "",
    };
    KafkaError { class: class(code), what: format!("{code}{hint}") }
}
