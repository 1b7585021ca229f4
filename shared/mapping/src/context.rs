//! What librdkafka calls back: rebalances, statistics, refused commits, tokens.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::statistics::Statistics;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};
use sluice_kafka::client::Tokens;
use sluice_model::TopicPartition;
use tokio::sync::watch;

use crate::lane::Signal;
use crate::lanes::Lanes;
use crate::progress::{PartitionProgress, Progress};
use crate::start::{Known, Start, StartError, StartPlan, Turn};

/// How long the broker may take to answer a question about positions.
pub(crate) const ASK: Duration = Duration::from_secs(30);
/// How long a rebalance waits for events of partitions that are taken away. The group waits meanwhile.
const DRAIN: Duration = Duration::from_secs(60);

/// Why a mapping cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ConsumerError {
    /// Positions cannot be told.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The client says so.
    #[error("KAFKA: {0}")]
    Kafka(#[from] KafkaError),
}

/// The state that callbacks and the poll loop share.
pub(crate) struct Context {
    lanes: Mutex<Lanes>,
    plan: StartPlan,
    had: Mutex<BTreeSet<TopicPartition>>,
    assigned: Mutex<Option<BTreeSet<TopicPartition>>>,
    failure: Mutex<Option<ConsumerError>>,
    progress: Arc<Progress>,
    tokens: Tokens,
    signal: watch::Receiver<Signal>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn partition_of(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition { topic: topic.into(), partition }
}

/// A list for librdkafka.
pub(crate) fn offsets_list(positions: impl IntoIterator<Item = (TopicPartition, Offset)>) -> TopicPartitionList {
    positions.into_iter().map(|(partition, offset)| (partition.topic.to_string(), partition.partition, offset)).collect()
}

fn partitions_in(list: &TopicPartitionList) -> Vec<TopicPartition> {
    list.elements().iter().map(|element| partition_of(element.topic(), element.partition())).collect()
}

impl Context {
    pub(crate) fn new(lanes: Lanes, plan: StartPlan, (progress, tokens, signal): (Arc<Progress>, Tokens, watch::Receiver<Signal>)) -> Self {
        let (had, assigned, failure) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { lanes: Mutex::new(lanes), plan, had, assigned, failure, progress, tokens, signal }
    }

    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        locked(&self.lanes)
    }

    pub(crate) fn stopped(&self) -> bool {
        // A mapping that was dropped has no sender any more.
        *self.signal.borrow() == Signal::Stop || self.signal.has_changed().is_err()
    }

    /// The partitions that this process has; `None` before the group has met.
    pub(crate) fn assigned(&self) -> Option<BTreeSet<TopicPartition>> {
        locked(&self.assigned).clone()
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(crate) fn take_failure(&self) -> Option<ConsumerError> {
        locked(&self.failure).take()
    }

    fn assign(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) -> Result<(), ConsumerError> {
        let partitions = partitions_in(list);
        let positions = self.positions(consumer, &partitions)?;
        tracing::info!(partitions = %shown(&positions), "partitions were given to this process");
        let list = offsets_list(positions.iter().map(|(partition, offset)| (partition.clone(), Offset::Offset(*offset))));
        match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_assign(&list)?,
            RebalanceProtocol::Eager | RebalanceProtocol::None => consumer.assign(&list)?,
        }
        locked(&self.had).extend(partitions.iter().cloned());
        locked(&self.assigned).get_or_insert_default().extend(partitions);
        Ok(())
    }

    /// Where each partition begins. Its end is noted for progress.
    fn positions(&self, consumer: &BaseConsumer<Self>, partitions: &[TopicPartition]) -> Result<Vec<(TopicPartition, i64)>, ConsumerError> {
        let ask = |offset: Offset| offsets_list(partitions.iter().map(|partition| (partition.clone(), offset)));
        let committed = consumer.committed_offsets(ask(Offset::Invalid), ASK)?;
        let by_time = match self.plan.start {
            Start::Timestamp(epoch_ms) => Some(consumer.offsets_for_times(ask(Offset::Offset(epoch_ms)), ASK)?),
            Start::Earliest | Start::Latest | Start::Committed => None,
        };
        let mut positions = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let (low, high) = consumer.fetch_watermarks(&partition.topic, partition.partition, ASK)?;
            let known = Known {
                committed: offset_in(&committed, partition),
                low,
                high,
                by_time: by_time.as_ref().and_then(|list| offset_in(list, partition)),
            };
            let turn = if locked(&self.had).contains(partition) { Turn::Again } else { Turn::First };
            let position = self.plan.position(partition, known, turn)?;
            if position.expired > 0 {
                tracing::error!(%partition, records = position.expired, "records are gone from the broker and were never applied");
            }
            self.progress.with(|numbers| {
                numbers.records_expired += position.expired;
                let progress = PartitionProgress { applied: None, started: Some(position.offset), end: Some(high), fetched: None };
                numbers.partitions.insert(partition.clone(), progress);
            });
            positions.push((partition.clone(), position.offset));
        }
        Ok(positions)
    }

    /// Waits for the events of this process, so that the next owner begins behind them, and lets the partitions go.
    fn revoke(&self, consumer: &BaseConsumer<Self>, list: &TopicPartitionList) -> Result<(), ConsumerError> {
        let partitions = partitions_in(list);
        let held = locked(&self.assigned).as_ref().is_some_and(|assigned| partitions.iter().any(|one| assigned.contains(one)));
        if held && !consumer.assignment_lost() {
            if !self.lanes().drain(DRAIN, || self.stopped()) {
                tracing::warn!(
                    "partitions are taken away while events of theirs are not applied; their next owner gets these records again"
                );
            }
            self.commit_applied(consumer, &partitions);
        }
        match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(list)?,
            RebalanceProtocol::Eager | RebalanceProtocol::None => consumer.unassign()?,
        }
        tracing::info!(count = partitions.len(), "partitions were taken from this process");
        if let Some(assigned) = locked(&self.assigned).as_mut() {
            assigned.retain(|partition| !partitions.contains(partition));
        }
        self.progress.with(|numbers| numbers.partitions.retain(|partition, _| !partitions.contains(partition)));
        Ok(())
    }

    /// Commits what is applied of these partitions and waits for the broker.
    pub(crate) fn commit_applied(&self, consumer: &BaseConsumer<Self>, partitions: &[TopicPartition]) {
        let numbers = self.progress.snapshot();
        let applied = partitions.iter().filter_map(|partition| Some((partition.clone(), numbers.partitions.get(partition)?.applied?)));
        commit(consumer, applied, CommitMode::Sync);
    }
}

/// Commits positions. What fails is harmless: the records come again.
pub(crate) fn commit(consumer: &BaseConsumer<Context>, positions: impl Iterator<Item = (TopicPartition, i64)>, mode: CommitMode) {
    let list = offsets_list(positions.map(|(partition, offset)| (partition, Offset::Offset(offset))));
    if list.count() == 0 {
        return;
    }
    if let Err(error) = consumer.commit(&list, mode) {
        tracing::warn!(%error, "offsets were not committed; the records come again and are recognised");
    }
}

fn shown(positions: &[(TopicPartition, i64)]) -> String {
    positions.iter().map(|(partition, offset)| format!("{partition}@{offset}")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn offset_in(list: &TopicPartitionList, partition: &TopicPartition) -> Option<i64> {
    match list.find_partition(&partition.topic, partition.partition)?.offset() {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}

impl ClientContext for Context {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn stats(&self, statistics: Statistics) {
        self.progress.with(|numbers| {
            for (partition, progress) in &mut numbers.partitions {
                let told = statistics.topics.get(partition.topic.as_ref()).and_then(|topic| topic.partitions.get(&partition.partition));
                let Some(told) = told else { continue };
                // −1001 and the like stand for "not known yet".
                progress.end = Some(told.ls_offset).filter(|end| *end >= 0).or(progress.end);
                let drained = told.fetchq_cnt == 0 && told.next_offset >= 0;
                progress.fetched = if drained { Some(told.next_offset) } else { None };
            }
        });
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "Kafka");
    }

    fn generate_oauth_token(&self, _config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.tokens.generate()
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, code: RDKafkaRespErr, list: &mut TopicPartitionList) {
        self.progress.with(|numbers| numbers.rebalances += 1);
        let result = match code {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assign(consumer, list),
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => self.revoke(consumer, list),
            other => Err(KafkaError::Rebalance(RDKafkaErrorCode::from(other)).into()),
        };
        if let Err(error) = result {
            locked(&self.failure).get_or_insert(error);
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::warn!(%error, "offsets were not committed; the records come again and are recognised");
            self.progress.with(|numbers| numbers.commits_refused += 1);
        }
    }
}
