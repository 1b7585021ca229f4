//! The real broker: `tests/services/with-kafka.sh`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use sluice_kafka::topic::KafkaErrorTopic;
use sluice_kafka_tests::{TestClock, config, environment};

/// The address of a listener: `""`, `_TLS`, `_MTLS`, `_SASL`, `_SASL_TLS`.
pub fn listener(which: &str) -> String {
    let name = format!("SLUICE_TEST_KAFKA{which}");
    std::env::var(&name).unwrap_or_else(|_| panic!("{name} is not set: run tests/kafka/run.sh"))
}

/// A file of the broker's folder.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(listener("_DIR")).join(name)
}

/// Does something to the broker: `stop`, `kill`, `start`, `pause`, `resume`.
pub fn broker(action: &str) {
    assert!(Command::new(listener("_BROKER")).arg(action).status().unwrap().success(), "{action}");
}

/// A name that no other test has.
pub fn fresh(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{what}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The error topic, and its clock.
pub fn topic(brokers: &str, name: &str, over: Value) -> (KafkaErrorTopic, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    (KafkaErrorTopic::new(config(brokers, name, over), clock.clone(), environment()), clock)
}
