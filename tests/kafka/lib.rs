//! What the tests of the error topic share; see `tests/`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sluice_deadletter::{DeadLetter, RawBytes, Repetition};
use sluice_kafka::{ErrorTopicConfig, KafkaConfig};
use sluice_model::{Clock, Coordinate, Deadline, Interval, Operation, PartitionKey, ReasonCode, Rejection, Stage, TableName};

/// A clock that a test moves: the system's, and `ahead` of it.
#[derive(Debug, Default)]
pub struct TestClock {
    ahead_ms: AtomicI64,
}

impl TestClock {
    /// Moves it.
    pub fn jump(&self, ms: i64) {
        self.ahead_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// A deadline after `ms` milliseconds.
    #[must_use]
    pub fn deadline_in(&self, ms: i64) -> Deadline {
        Deadline::at(self.now_ms() + ms, 0, self.now_ms())
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_millis()).unwrap() + self.ahead_ms.load(Ordering::SeqCst)
    }
}

/// A letter of record `offset` of partition 3 of `cdc.erp`, with this key and value.
#[must_use]
pub fn letter(offset: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> DeadLetter {
    let raw = |bytes: &[u8]| RawBytes::cut(bytes, 16);
    DeadLetter {
        key: PartitionKey { source: "erp-prod".into(), epoch: 2, topic: "cdc.erp".into(), partition: 3 },
        coordinate: Coordinate::record(offset),
        claim: Interval::of_record(offset),
        record_timestamp_ms: Some(1_772_360_130_000),
        rejection: Rejection::of_field(Stage::Convert, ReasonCode::TypeMismatch, "total", "expected a number, found \"x\""),
        target: Some(TableName::of("erp", "orders")),
        operation: Some(Operation::Insert),
        raw_key: key.map(raw),
        raw_value: value.map(raw),
        headers: Vec::new(),
        schema_id: None,
        repetition: Repetition::First,
    }
}

/// The error topic `topic` on these brokers, as the configuration describes it. `over` is laid over `[errors]`.
///
/// # Panics
/// When the configuration is wrong.
#[must_use]
pub fn config(brokers: &str, topic: &str, over: Value) -> ErrorTopicConfig {
    let mut errors = json!({"topic": topic, "brokers": brokers});
    let Value::Object(over) = over else { panic!("{over} is no section") };
    errors.as_object_mut().unwrap().extend(over);
    KafkaConfig::read(&json!({"errors": errors}), Path::new("/")).unwrap().error_topic.unwrap()
}

/// The environment of the tests: the real one, and the passwords of the broker's users.
#[must_use]
pub fn environment() -> sluice_kafka::OwnedEnvironment {
    Arc::new(|name: &str| match name {
        "TEST_USER" => Some("sluice".to_owned()),
        "TEST_PASSWORD" => Some("sluice-secret".to_owned()),
        "TEST_WRONG_PASSWORD" => Some("hunter2".to_owned()),
        "TEST_KEY_PASSWORD" => Some("key-secret".to_owned()),
        name => std::env::var(name).ok(),
    })
}
