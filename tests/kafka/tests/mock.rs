//! Faults, on librdkafka's mock cluster.

use std::time::{Duration, Instant};

use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr as Error};
use serde_json::json;
use sluice_deadletter::{ErrorTopic as _, Published};
use sluice_kafka_tests::letter;
use sluice_model::{Class, Deadline};

use crate::broker::topic;
use crate::read_back::read_all;

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> (Cluster, String) {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("dead", 1, 1).unwrap();
    let brokers = cluster.bootstrap_servers();
    (cluster, brokers)
}

#[tokio::test]
async fn what_passes_is_repeated_by_the_client() {
    let (cluster, brokers) = cluster();
    let passing = [
        Error::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        Error::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        Error::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        Error::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
    ];
    cluster.request_errors(RDKafkaApiKey::Produce, &passing);
    let (dead, _clock) = topic(&brokers, "dead", json!({}));
    let published = dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap();
    assert_eq!(published, Published { letters: 1, without_value: 0 });
    assert_eq!(read_all(&brokers, "dead").len(), 1, "and not doubled");
}

#[tokio::test]
async fn a_dead_broker_costs_half_of_what_is_left_and_the_next_call_works() {
    let (cluster, brokers) = cluster();
    let (dead, clock) = topic(&brokers, "dead", json!({}));
    dead.publish(&[&letter(0, None, Some(b"0"))], Deadline::NONE).await.unwrap();
    cluster.broker_down(1).unwrap();
    let started = Instant::now();
    let error = dead.publish(&[&letter(1, None, Some(b"1"))], clock.deadline_in(4_000)).await.unwrap_err();
    assert!((Duration::from_millis(1_900)..Duration::from_millis(4_000)).contains(&started.elapsed()), "{:?}", started.elapsed());
    assert_eq!((error.class, error.published.letters), (Class::Unknown, 0), "{error}");
    assert!(error.what.contains("1 of 1 letters are not acknowledged"), "{error}");
    cluster.broker_up(1).unwrap();
    dead.publish(&[&letter(1, None, Some(b"1"))], clock.deadline_in(20_000)).await.unwrap();
    let values: Vec<_> = read_all(&brokers, "dead").into_iter().map(|found| found.value.unwrap()).collect();
    assert!(values.ends_with(&[b"1".to_vec()]), "{values:?}");
}

#[tokio::test]
async fn without_time_nothing_is_awaited() {
    let (_cluster, brokers) = cluster();
    let (dead, clock) = topic(&brokers, "dead", json!({}));
    let deadline = clock.deadline_in(1);
    clock.jump(10);
    let error = dead.publish(&[&letter(0, None, Some(b"0"))], deadline).await.unwrap_err();
    assert!(matches!(error.class, Class::Unknown | Class::Transient), "{error}");
}

/// Whole with others, whole alone, without its value, with our headers only; then it is said.
#[tokio::test]
async fn a_letter_that_is_too_large_goes_with_less_and_less() {
    for (refusals, omitted) in [(1, None), (2, Some("value")), (3, Some("key,value,headers"))] {
        let (cluster, brokers) = cluster();
        cluster.request_errors(RDKafkaApiKey::Produce, &vec![Error::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE; refusals]);
        let (dead, _clock) = topic(&brokers, "dead", json!({}));
        let published = dead.publish(&[&letter(0, Some(b"k"), Some(b"v"))], Deadline::NONE).await.unwrap();
        assert_eq!(published, Published { letters: 1, without_value: usize::from(omitted.is_some()) }, "{refusals}");
        let found = read_all(&brokers, "dead").remove(0);
        assert_eq!(found.header("sluice.error.omitted").as_deref(), omitted);
        assert_eq!((found.value.is_some(), found.key.is_some()), (refusals == 1, refusals < 3));
        assert_eq!(found.header("sluice.error.offset").as_deref(), Some("0"));
    }
    let (cluster, brokers) = cluster();
    cluster.request_errors(RDKafkaApiKey::Produce, &[Error::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE; 4]);
    let (dead, _clock) = topic(&brokers, "dead", json!({}));
    let error = dead.publish(&[&letter(0, Some(b"k"), Some(b"v"))], Deadline::NONE).await.unwrap_err();
    assert_eq!(error.class, Class::Fatal, "{error}");
}

#[tokio::test]
async fn what_somebody_has_to_mend_is_told_at_once_with_what_to_do() {
    let cases = [
        (Error::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "allow Write and Describe"),
        (Error::RD_KAFKA_RESP_ERR_INVALID_RECORD, ""),
        (Error::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, ""),
    ];
    for (code, hint) in cases {
        let (cluster, brokers) = cluster();
        cluster.request_errors(RDKafkaApiKey::Produce, &[code]);
        let (dead, _clock) = topic(&brokers, "dead", json!({}));
        let started = Instant::now();
        let error = dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap_err();
        assert_eq!(error.class, Class::Fatal, "{error}");
        assert!(error.what.contains(hint) && started.elapsed() < Duration::from_secs(10), "{error}");
        dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap();
    }
}

/// A function whose role may not write idempotently says so, and works once that is switched off.
#[tokio::test]
async fn a_producer_without_the_right_to_idempotence_says_how_to_go_without() {
    let (cluster, brokers) = cluster();
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &[Error::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED; 20]);
    let (dead, clock) = topic(&brokers, "dead", json!({}));
    let error = dead.publish(&[&letter(0, None, Some(b"v"))], clock.deadline_in(8_000)).await.unwrap_err();
    assert_eq!(error.class, Class::Fatal, "{error}");
    assert!(error.what.contains("enable.idempotence"), "{error}");
    let (plain, _clock) = topic(&brokers, "dead", json!({"properties": {"enable.idempotence": false}}));
    plain.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap();
}

/// What was read from the error topic must not come back to it for ever.
#[tokio::test]
async fn a_record_of_the_error_topic_is_not_sent_there_again() {
    let (_cluster, brokers) = cluster();
    let (dead, _clock) = topic(&brokers, "dead", json!({}));
    let mut own = letter(0, None, Some(b"v"));
    own.key.topic = "dead".into();
    assert_eq!(dead.publish(&[&own], Deadline::NONE).await.unwrap(), Published::default());
    assert_eq!(dead.publish(&[&own, &letter(1, None, None)], Deadline::NONE).await.unwrap().letters, 1);
    assert_eq!(read_all(&brokers, "dead").len(), 1);
}
