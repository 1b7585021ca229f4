//! A mapping: one consumer, some lanes, one function.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use sluice_kafka::client::Tokens;
use sluice_model::{Clock, IdSource, TopicPartition};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::context::{ConsumerError, Context, commit};
use crate::function::Function;
use crate::lane::{self, Exhausted, LaneTools, Offsets, Rest, Retries, Signal};
use crate::lanes::{Batching, LaneEnd, Lanes};
use crate::poller::{Ending, Poller, Until};
use crate::progress::Progress;
use crate::start::{OnExpired, StartPlan};
use crate::topics::Topics;

/// Why a mapping ended without being told to. What is not committed is delivered again by the next one.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// Kafka.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// The function.
    #[error("FUNCTION_FAILED: {0}")]
    Exhausted(#[from] Exhausted),
    /// A part of this program ended in a way that it should not.
    #[error("MAPPING_BROKEN: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Which topics, and how they are consumed.
#[derive(Debug, Clone)]
pub struct MappingOptions {
    /// Which topics.
    pub topics: Topics,
    /// How events are cut.
    pub batching: Batching,
    /// Lanes: how many events may be in the function at once.
    pub concurrency: usize,
    /// Where partitions begin.
    pub start: StartPlan,
    /// When the mapping is done.
    pub until: Until,
    /// How failed invocations are repeated.
    pub retries: Retries,
    /// The time that an invocation has, in milliseconds.
    pub timeout_ms: u64,
    /// How long a stop waits for what is in the function, in milliseconds.
    pub grace_ms: u64,
}

/// What a mapping takes from outside.
pub struct MappingServices {
    /// What is invoked.
    pub function: Arc<dyn Function>,
    /// The numbers.
    pub progress: Arc<Progress>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// For jitter.
    pub ids: Arc<dyn IdSource>,
    /// Waiting between attempts.
    pub rest: Arc<dyn Rest>,
}

/// The consumer's own settings; those of the connection are in `connection` already.
fn consumer_config(connection: &ClientConfig, options: &MappingOptions) -> ClientConfig {
    // Behind a gap, going on by itself would lose records without a word.
    let reset = match options.start.on_expired {
        OnExpired::Fail => "error",
        OnExpired::Skip => "earliest",
    };
    let mut config = connection.clone();
    let default = |config: &mut ClientConfig, key: &str, value: &str| {
        if config.get(key).is_none() {
            config.set(key, value);
        }
    };
    default(&mut config, "partition.assignment.strategy", "cooperative-sticky");
    // What is fetched ahead, in KiB: a few events.
    default(&mut config, "queued.max.messages.kbytes", "32768");
    config.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false").set("auto.offset.reset", reset);
    config.set("statistics.interval.ms", "1000");
    config
}

/// Commits without waiting: the broker's answer comes to the context.
struct ConsumerOffsets(Arc<BaseConsumer<Context>>);

impl Offsets for ConsumerOffsets {
    fn commit(&self, positions: &[(TopicPartition, i64)]) {
        commit(&self.0, positions.iter().cloned(), CommitMode::Async);
    }
}

/// Consumes topics and invokes a function with their records until `stop` is ready, or the end is reached.
///
/// # Errors
/// [`MappingError`] when it cannot go on. Offsets of what is not applied are never committed.
pub async fn run(
    (connection, tokens): (&ClientConfig, Tokens),
    options: MappingOptions,
    services: MappingServices,
    stop: impl Future<Output = ()> + Send,
) -> Result<Ending, MappingError> {
    let (signal, signals) = watch::channel(Signal::Run);
    let servers = connection.get("bootstrap.servers").unwrap_or_default().to_owned();
    let (lanes, ends) = Lanes::new(options.concurrency, &servers, options.batching);
    let context = Context::new(lanes, options.start.clone(), (Arc::clone(&services.progress), tokens, signals.clone()));
    let consumer: Arc<BaseConsumer<Context>> =
        Arc::new(consumer_config(connection, &options).create_with_context(context).map_err(ConsumerError::from)?);
    let subscription = options.topics.subscription();
    consumer.subscribe(&subscription.iter().map(String::as_str).collect::<Vec<_>>()).map_err(ConsumerError::from)?;
    let poller = Poller {
        consumer: Arc::clone(&consumer),
        clock: Arc::clone(&services.clock),
        topics: options.topics.clone(),
        until: options.until,
        runtime: Handle::current(),
    };
    let mut lanes = lanes_of(ends, (&options, services), (&consumer, &signals));
    let mut polling = tokio::task::spawn_blocking(move || poller.run());
    let mut stop = std::pin::pin!(stop);
    let first = tokio::select! {
        polled = &mut polling => Outcome::Polled(poll_result(polled)),
        () = &mut stop => Outcome::Stopped,
        ended = lanes.join_next() => Outcome::Lane(ended),
    };
    // The receivers live in the tasks: that nobody listens any more is no trouble.
    let _ = signal.send(Signal::Stop);
    let result = match first {
        Outcome::Polled(result) => result,
        Outcome::Stopped => poll_result(polling.await),
        Outcome::Lane(ended) => {
            let polled = poll_result(polling.await);
            lane_result(ended).and(polled)
        }
    };
    let settled = settle(&mut lanes, options.grace_ms).await;
    drop(lanes);
    close(consumer).await?;
    let ending = result?;
    settled?;
    Ok(ending)
}

enum Outcome {
    Polled(Result<Ending, MappingError>),
    Stopped,
    Lane(Option<Result<Result<(), Exhausted>, tokio::task::JoinError>>),
}

type LaneTasks = JoinSet<Result<(), Exhausted>>;

fn lanes_of(
    ends: Vec<LaneEnd>,
    (options, services): (&MappingOptions, MappingServices),
    (consumer, signals): (&Arc<BaseConsumer<Context>>, &watch::Receiver<Signal>),
) -> LaneTasks {
    let tools = Arc::new(LaneTools {
        function: services.function,
        offsets: Arc::new(ConsumerOffsets(Arc::clone(consumer))),
        progress: services.progress,
        clock: services.clock,
        ids: services.ids,
        rest: services.rest,
        retries: options.retries,
        timeout_ms: options.timeout_ms,
    });
    let mut tasks = JoinSet::new();
    for end in ends {
        tasks.spawn(lane::run(Arc::clone(&tools), end, signals.clone()));
    }
    tasks
}

fn poll_result(polled: Result<Result<Ending, ConsumerError>, tokio::task::JoinError>) -> Result<Ending, MappingError> {
    Ok(polled??)
}

fn lane_result(ended: Option<Result<Result<(), Exhausted>, tokio::task::JoinError>>) -> Result<(), MappingError> {
    match ended {
        None => Ok(()),
        Some(Ok(result)) => result.map_err(MappingError::from),
        Some(Err(error)) => Err(error.into()),
    }
}

/// Waits for what is in the function; what does not end in time is given up, as in a crash: the ledgers know what it did.
async fn settle(lanes: &mut LaneTasks, grace_ms: u64) -> Result<(), MappingError> {
    let all = async {
        let mut first = Ok(());
        while let Some(ended) = lanes.join_next().await {
            first = first.and(lane_result(Some(ended)));
        }
        first
    };
    match tokio::time::timeout(Duration::from_millis(grace_ms), all).await {
        Ok(result) => result,
        Err(_) => {
            tracing::warn!(grace_ms, "the function did not end in time; its event is delivered again");
            lanes.shutdown().await;
            Ok(())
        }
    }
}

/// Commits what is applied, leaves the group and closes the connections.
async fn close(consumer: Arc<BaseConsumer<Context>>) -> Result<(), MappingError> {
    let closing = tokio::task::spawn_blocking(move || {
        let context = consumer.context();
        context.lanes().forget();
        let assigned: Vec<TopicPartition> = context.assigned().unwrap_or_default().into_iter().collect();
        context.commit_applied(&consumer, &assigned);
        // Dropping it leaves the group.
    });
    Ok(closing.await?)
}
