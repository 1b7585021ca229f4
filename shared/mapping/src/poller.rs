//! The loop that polls the consumer. It runs in a thread of its own: librdkafka calls back from inside.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{Offset, Timestamp};
use sluice_model::{Class, Clock, Header, RecordTimestamp, SourceRecord, TimestampType, TopicPartition};
use tokio::runtime::Handle;

use crate::context::{ConsumerError, Context, offsets_list, partition_of};
use crate::ends::{Ends, Quiet};
use crate::event::Record;
use crate::topics::Topics;

/// The longest wait for a record: signals and windows are looked at in between.
const POLL: Duration = Duration::from_millis(100);
/// How long a lane without room holds up the others before its partitions are paused.
const ROOM: Duration = Duration::from_secs(1);
/// How often the ends of partitions are compared with positions.
const LOOK_MS: i64 = 200;
/// How long nothing must have come before a partition that ends in something else than records (transaction markers) counts as read.
const QUIET_MS: i64 = 1_500;

/// When a mapping is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When it is stopped.
    Stopped,
    /// When everything is applied that was there when it began.
    End,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was told to.
    Stopped,
    /// Everything that was there is applied.
    ReachedEnd,
}

pub(crate) struct Poller {
    pub(crate) consumer: Arc<BaseConsumer<Context>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) topics: Topics,
    pub(crate) until: Until,
    pub(crate) runtime: Handle,
}

impl Poller {
    /// Polls until it is told to stop or has reached the end.
    pub(crate) fn run(&self) -> Result<Ending, ConsumerError> {
        let context = self.consumer.context();
        let ends = match self.until {
            Until::Stopped => Ends::default(),
            Until::End => Ends::now(&self.consumer, &self.topics)?,
        };
        let (mut place, mut looked_ms, mut came_ms) = (partition_of("", 0), 0, self.clock.now_ms());
        while !context.stopped() {
            let wait = context.lanes().next_window(self.clock.now_ms(), POLL);
            match self.consumer.poll(wait) {
                Some(Ok(message)) => {
                    came_ms = self.clock.now_ms();
                    self.push(&message, &mut place, came_ms);
                }
                Some(Err(error)) => self.note(error)?,
                None => {}
            }
            if let Some(failure) = context.take_failure() {
                return Err(failure);
            }
            let now_ms = self.clock.now_ms();
            self.hand_on(now_ms)?;
            if self.until == Until::End && now_ms.saturating_sub(looked_ms) >= LOOK_MS {
                looked_ms = now_ms;
                let quiet = if now_ms.saturating_sub(came_ms) >= QUIET_MS { Quiet::Yes } else { Quiet::No };
                if self.has_reached_end(&ends, quiet)? {
                    return Ok(Ending::ReachedEnd);
                }
            }
        }
        Ok(Ending::Stopped)
    }

    fn push(&self, message: &BorrowedMessage<'_>, place: &mut TopicPartition, now_ms: i64) {
        if place.topic.as_ref() != message.topic() {
            *place = partition_of(message.topic(), 0);
        }
        place.partition = message.partition();
        let (headers, odd) = match headers(message) {
            Ok(headers) => (headers, None),
            Err(odd) => (Vec::new(), Some(odd)),
        };
        let source = SourceRecord {
            topic_partition: place.clone(),
            offset: message.offset(),
            timestamp: timestamp(message.timestamp()),
            key: message.key(),
            value: message.payload(),
            headers,
            value_schema_id: None,
            key_schema_id: None,
        };
        let record = odd.as_deref().map_or(Record::Readable(&source), |why| Record::OddHeaders(&source, why));
        self.consumer.context().lanes().push(record, place, now_ms);
    }

    /// What the client tells instead of a record. Most of it passes by itself: the client reconnects.
    fn note(&self, error: KafkaError) -> Result<(), ConsumerError> {
        let code = error.rdkafka_error_code();
        // A topic that is not there yet may be made; all other fatal trouble needs somebody.
        let may_come = matches!(code, Some(RDKafkaErrorCode::UnknownTopicOrPartition));
        let is_fatal = code.is_some_and(|code| sluice_kafka::class::class(code) == Class::Fatal);
        if matches!(error, KafkaError::MessageConsumptionFatal(_)) || (is_fatal && !may_come) {
            return Err(error.into());
        }
        tracing::warn!(%error, "Kafka");
        self.consumer.context().progress().with(|numbers| numbers.trouble = Some(error.to_string()));
        Ok(())
    }

    /// Hands finished events to their lanes. A lane without room is waited for, then paused, so that it does not stop the others.
    fn hand_on(&self, now_ms: i64) -> Result<(), ConsumerError> {
        let context = self.consumer.context();
        context.lanes().tick(now_ms);
        let crowded = context.lanes().crowded();
        for lane in crowded {
            let Some(sender) = context.lanes().sender(lane) else { continue };
            let room = self.runtime.block_on(async { tokio::time::timeout(ROOM, sender.reserve()).await.is_ok() });
            if !room {
                let partitions = context.lanes().partitions_of(lane, context.assigned().unwrap_or_default().into_iter());
                self.consumer.pause(&offsets_list(partitions.iter().map(|partition| (partition.clone(), Offset::Invalid))))?;
                context.lanes().pause(lane, partitions);
            }
            context.lanes().tick(now_ms);
        }
        let resumable = context.lanes().resumable();
        if !resumable.is_empty() {
            let assigned = context.assigned().unwrap_or_default();
            let resumed = resumable.into_iter().filter(|partition| assigned.contains(partition));
            self.consumer.resume(&offsets_list(resumed.map(|partition| (partition, Offset::Invalid))))?;
        }
        Ok(())
    }

    /// Whether everything is applied that was there when the mapping began, by this process and by the others of its group.
    fn has_reached_end(&self, ends: &Ends, quiet: Quiet) -> Result<bool, ConsumerError> {
        if !ends.own_are_read(&self.consumer, quiet)? || self.finish() == Ending::Stopped {
            return Ok(false);
        }
        let own = self.consumer.context().assigned().unwrap_or_default();
        Ok(ends.commit(&self.consumer, &own)?)
    }

    /// Waits until all that was polled is applied, or the mapping is stopped.
    fn finish(&self) -> Ending {
        let context = self.consumer.context();
        while !context.stopped() {
            if context.lanes().drain(ROOM, || context.stopped()) {
                return Ending::ReachedEnd;
            }
        }
        Ending::Stopped
    }
}

fn timestamp(timestamp: Timestamp) -> RecordTimestamp {
    let (epoch_ms, kind) = match timestamp {
        Timestamp::NotAvailable => (None, TimestampType::NoTimestampType),
        Timestamp::CreateTime(ms) => (Some(ms), TimestampType::CreateTime),
        Timestamp::LogAppendTime(ms) => (Some(ms), TimestampType::LogAppendTime),
    };
    RecordTimestamp { epoch_ms: epoch_ms.filter(|ms| *ms >= 0), kind }
}

/// The headers, or why they cannot be read.
fn headers(message: &BorrowedMessage<'_>) -> Result<Vec<Header<'static>>, String> {
    let Some(headers) = message.headers() else { return Ok(Vec::new()) };
    // The client's reader panics at a name that is no UTF-8, which any producer can write.
    let read = |index: usize| std::panic::catch_unwind(AssertUnwindSafe(|| headers.try_get(index)));
    let mut owned = Vec::with_capacity(headers.count());
    for index in 0..headers.count() {
        match read(index) {
            Ok(Some(header)) => owned.push((Cow::Owned(header.key.to_owned()), header.value.map(<[u8]>::to_vec))),
            Ok(None) => {}
            Err(_) => return Err(format!("header {index} has a name that is no UTF-8; the headers of this record could not be read")),
        }
    }
    Ok(owned)
}
