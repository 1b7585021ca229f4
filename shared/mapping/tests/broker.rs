//! The mapping on librdkafka's mock cluster: groups, positions, order, commits, rebalances.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{DefaultProducerContext, FutureProducer, FutureRecord};
use sluice_kafka::client::Tokens;
use sluice_mapping::{
    Account, Batching, CommittedOffsets, ConsumerConfig, Ending, EventLimits, Function, FunctionError, MappingError, MappingOptions,
    MappingServices, OnExpired, Progress, Rest, Retries, Snapshot, Start, StartPlan, Topics, Until,
};
use sluice_model::TopicPartition;
use sluice_runtime::{RandomIds, SystemClock};

const PARTITIONS: i32 = 4;

type Cluster = MockCluster<'static, DefaultProducerContext>;

/// Keeps what it is sent, per partition; fails when it is told to.
#[derive(Default)]
struct Recorder {
    seen: Mutex<BTreeMap<TopicPartition, Vec<i64>>>,
    events: Mutex<Vec<usize>>,
    fail: Mutex<u32>,
    slow_ms: u64,
    /// Events with records of this topic fail.
    stuck_topic: Option<&'static str>,
}

#[async_trait]
impl Function for Recorder {
    async fn invoke(&self, event: Bytes, _timeout_ms: u64) -> Result<Account, FunctionError> {
        tokio::time::sleep(Duration::from_millis(self.slow_ms)).await;
        {
            let mut fail = self.fail.lock().unwrap();
            if *fail > 0 {
                *fail -= 1;
                return Err(FunctionError::Failed("told to".to_owned()));
            }
        }
        let batch = sluice_runtime::open_event(&event).unwrap();
        if batch.source_records().iter().any(|record| Some(record.topic_partition.topic.as_ref()) == self.stuck_topic) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            return Err(FunctionError::Failed("stuck".to_owned()));
        }
        let mut seen = self.seen.lock().unwrap();
        for record in batch.source_records() {
            seen.entry(record.topic_partition.clone()).or_default().push(record.offset);
        }
        self.events.lock().unwrap().push(batch.received());
        Ok(Account::default())
    }
}

struct NoRest;

#[async_trait]
impl Rest for NoRest {
    async fn rest(&self, _ms: u64) {
        tokio::task::yield_now().await;
    }
}

async fn fill(cluster: &Cluster, topic: &str, records: usize) {
    let producer: FutureProducer = ConsumerConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().unwrap();
    for index in 0..records {
        let value = format!("{{\"n\":{index}}}");
        let partition = index as i32 % PARTITIONS;
        let record = FutureRecord::<str, String>::to(topic).partition(partition).payload(&value);
        let sent = producer.send_result(record).map_err(|(error, _)| error).unwrap();
        if index + PARTITIONS as usize >= records {
            sent.await.unwrap().map_err(|(error, _)| error).unwrap();
        }
    }
    rdkafka::producer::Producer::flush(&producer, Duration::from_secs(10)).unwrap();
}

fn cluster(topics: &[&str]) -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    for topic in topics {
        cluster.create_topic(topic, PARTITIONS, 1).unwrap();
    }
    cluster
}

fn connection(cluster: &Cluster) -> ConsumerConfig {
    let mut config = ConsumerConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("group.id", "g").set("session.timeout.ms", "6000");
    config
}

fn options(topics: &[&str]) -> MappingOptions {
    MappingOptions {
        topics: Topics::new(topics.iter().map(|topic| (*topic).to_owned()).collect()),
        batching: Batching { limits: EventLimits { max_records: 37, ..EventLimits::default() }, window_ms: 50 },
        concurrency: 2,
        start: StartPlan::default(),
        until: Until::End,
        retries: Retries::default(),
        timeout_ms: 10_000,
        grace_ms: 2_000,
    }
}

fn services(function: &Arc<Recorder>) -> (Arc<Progress>, MappingServices) {
    let progress = Arc::new(Progress::default());
    let services = MappingServices {
        function: Arc::clone(function) as Arc<dyn Function>,
        progress: Arc::clone(&progress),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        rest: Arc::new(NoRest),
    };
    (progress, services)
}

async fn run(cluster: &Cluster, options: MappingOptions, function: &Arc<Recorder>) -> (Result<Ending, MappingError>, Snapshot) {
    let (progress, services) = services(function);
    let connection = connection(cluster);
    let ended = sluice_mapping::run((&connection, Tokens::default()), options, services, std::future::pending());
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap();
    (ended, progress.snapshot())
}

fn all(records: usize) -> Vec<Vec<i64>> {
    let per_partition = records / PARTITIONS as usize;
    vec![(0..per_partition as i64).collect(); PARTITIONS as usize]
}

fn seen(function: &Recorder) -> Vec<Vec<i64>> {
    function.seen.lock().unwrap().values().cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_is_sent_once_and_in_order_and_the_next_run_goes_on() {
    let cluster = cluster(&["a", "b"]);
    fill(&cluster, "a", 400).await;
    fill(&cluster, "b", 400).await;
    let function = Arc::new(Recorder::default());
    let (ended, numbers) = run(&cluster, options(&["?"]), &function).await;
    assert_eq!(ended.unwrap(), Ending::ReachedEnd);
    assert_eq!(seen(&function), [all(400), all(400)].concat());
    assert_eq!((numbers.records, numbers.failures), (800, 0));
    assert!(function.events.lock().unwrap().iter().all(|records| *records <= 37));

    fill(&cluster, "a", 40).await;
    let again = Arc::new(Recorder::default());
    let (ended, numbers) = run(&cluster, options(&["a", "b"]), &again).await;
    assert_eq!(ended.unwrap(), Ending::ReachedEnd);
    assert_eq!(numbers.records, 40);
    assert_eq!(seen(&again), vec![(100..110).collect::<Vec<i64>>(); 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_event_is_sent_again_and_nothing_overtakes_it() {
    let cluster = cluster(&["a"]);
    fill(&cluster, "a", 200).await;
    let function = Arc::new(Recorder { fail: Mutex::new(5), ..Recorder::default() });
    let (ended, numbers) = run(&cluster, options(&["a"]), &function).await;
    assert_eq!(ended.unwrap(), Ending::ReachedEnd);
    assert_eq!(seen(&function), all(200));
    assert_eq!(numbers.failures, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_fails_too_often_ends_the_mapping_and_commits_nothing() {
    let cluster = cluster(&["a"]);
    fill(&cluster, "a", 200).await;
    let function = Arc::new(Recorder { fail: Mutex::new(u32::MAX), ..Recorder::default() });
    let retries = Retries { max_attempts: Some(3), ..Retries::default() };
    let (ended, numbers) = run(&cluster, MappingOptions { retries, ..options(&["a"]) }, &function).await;
    assert!(matches!(ended, Err(MappingError::Exhausted(_))), "{ended:?}");
    assert_eq!(numbers.records, 0);
    let function = Arc::new(Recorder::default());
    run(&cluster, options(&["a"]), &function).await.0.unwrap();
    assert_eq!(seen(&function), all(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_and_a_seek_begin_where_they_say() {
    let cluster = cluster(&["a"]);
    fill(&cluster, "a", 200).await;
    run(&cluster, options(&["a"]), &Arc::new(Recorder::default())).await.0.unwrap();
    let function = Arc::new(Recorder::default());
    let start = StartPlan { committed: CommittedOffsets::Ignored, ..StartPlan::default() };
    run(&cluster, MappingOptions { start, ..options(&["a"]) }, &function).await.0.unwrap();
    assert_eq!(seen(&function), all(200));
    let function = Arc::new(Recorder::default());
    let seeks = BTreeMap::from([(TopicPartition { topic: "a".into(), partition: 2 }, 30)]);
    let start = StartPlan { seeks, ..StartPlan::default() };
    run(&cluster, MappingOptions { start, ..options(&["a"]) }, &function).await.0.unwrap();
    assert_eq!(seen(&function), [(30..50).collect::<Vec<i64>>()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_lose_records_without_a_word_is_an_error() {
    let cluster = cluster(&["a"]);
    fill(&cluster, "a", 40).await;
    let start = StartPlan { start: Start::Committed, ..StartPlan::default() };
    let (ended, _) = run(&cluster, MappingOptions { start, ..options(&["a"]) }, &Arc::new(Recorder::default())).await;
    assert!(ended.unwrap_err().to_string().contains("NO_COMMITTED_OFFSET"));
    let seeks = BTreeMap::from([(TopicPartition { topic: "a".into(), partition: 2 }, 3_000)]);
    let start = StartPlan { seeks, on_expired: OnExpired::Skip, ..StartPlan::default() };
    let (ended, _) = run(&cluster, MappingOptions { start, ..options(&["a"]) }, &Arc::new(Recorder::default())).await;
    assert!(ended.unwrap_err().to_string().contains("OFFSET_BEYOND_END"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_the_function_and_the_next_run_goes_on_behind_it() {
    let cluster = cluster(&["a"]);
    fill(&cluster, "a", 400).await;
    let function = Arc::new(Recorder { slow_ms: 30, ..Recorder::default() });
    let (progress, services) = services(&function);
    let enough = Arc::clone(&progress);
    let stop = async move {
        while enough.snapshot().events < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let options_here = MappingOptions { until: Until::Stopped, ..options(&["a"]) };
    let ended = sluice_mapping::run((&connection(&cluster), Tokens::default()), options_here, services, stop).await;
    assert_eq!(ended.unwrap(), Ending::Stopped);
    let before: usize = seen(&function).iter().map(Vec::len).sum();
    assert_eq!(progress.snapshot().records as usize, before, "what the function has applied is committed");
    let rest = Arc::new(Recorder::default());
    run(&cluster, options(&["a"]), &rest).await.0.unwrap();
    let after: usize = seen(&rest).iter().map(Vec::len).sum();
    assert_eq!(before + after, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_is_stuck_is_paused_and_the_others_go_on() {
    let cluster = cluster(&["a", "e"]);
    // Far more records than a lane holds, so that the stuck one is crowded.
    fill(&cluster, "a", 4_000).await;
    fill(&cluster, "e", 4_000).await;
    let function = Arc::new(Recorder { stuck_topic: Some("e"), ..Recorder::default() });
    let (progress, services) = services(&function);
    let enough = Arc::clone(&progress);
    let stop = async move {
        let all = async {
            while enough.snapshot().records < 4_000 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(60), all).await;
    };
    // Eight partitions on eight lanes: by the sum of their characters and numbers no lane has partitions of both topics.
    let options = MappingOptions { until: Until::Stopped, concurrency: 8, ..options(&["a", "e"]) };
    let ended = sluice_mapping::run((&connection(&cluster), Tokens::default()), options, services, stop).await;
    assert_eq!(ended.unwrap(), Ending::Stopped);
    assert_eq!(seen(&function), all(4_000));
    assert!(progress.snapshot().failures > 0);
}
