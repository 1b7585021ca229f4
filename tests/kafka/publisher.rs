//! A process with a warm client, to be frozen and thawed by a test: `publisher BROKERS TOPIC` reads a word a line. `letter` produces one within ten seconds, `hour` moves
//! its clock on by an hour; each is answered by `ok` and the milliseconds that it took, or by `error` and what happened.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::BufRead as _;
use std::sync::Arc;

use serde_json::json;
use sluice_deadletter::ErrorTopic as _;
use sluice_kafka::topic::KafkaErrorTopic;
use sluice_kafka_tests::{TestClock, config, environment, letter};
use sluice_model::Clock as _;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, brokers, name] = arguments.as_slice() else { panic!("publisher BROKERS TOPIC") };
    let clock = Arc::new(TestClock::default());
    let topic = KafkaErrorTopic::new(config(brokers, name, json!({})), clock.clone(), environment());
    for (line, offset) in std::io::stdin().lock().lines().zip(0..) {
        let started_ms = clock.now_ms();
        match line.unwrap().as_str() {
            "hour" => {
                clock.jump(3_600_000);
                println!("ok 0");
            }
            _ => match topic.publish(&[&letter(offset, None, Some(b"value"))], clock.deadline_in(20_000)).await {
                Ok(_) => println!("ok {}", clock.now_ms() - started_ms),
                Err(error) => println!("error {error}"),
            },
        }
    }
}
