//! What refused records cost: `error_path BROKERS` applies batches of which 0 %, 1 % and 100 % are bad, with the error table alone and with an error topic as well, in turns, and prints
//! medians: milliseconds of the clock, and of CPU time of this process (the broker's is its own). The catalog is in memory, so the table's share is what it costs to write, not to wait.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use sluice_catalog::{MemoryCatalog, Services};
use sluice_deadletter::{ErrorTopic, NoTopic};
use sluice_ingest::Ingest;
use sluice_kafka::topic::KafkaErrorTopic;
use sluice_kafka_tests::{config, environment};
use sluice_model::Deadline;
use sluice_runtime::{RandomIds, Settings, SystemClock};
use sluice_start::TokioSleep;

const RECORDS: i64 = 5_000;
const ROUNDS: usize = 15;
const TOPIC: &str = "error-path";

/// One way to run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    bad_percent: i64,
    topic: &'static str,
}

/// The Lambda event of a round: values of about 300 bytes, the bad ones spread.
fn event(round: usize, bad_percent: i64) -> Vec<u8> {
    let first = i64::try_from(round).unwrap() * RECORDS;
    let records = (first..first + RECORDS).map(|offset| {
        let is_bad = (offset * 37) % 100 < bad_percent;
        let data = json!({"id": offset, "customer": format!("customer {}", offset % 977), "total": offset % 10_000, "note": "x".repeat(160)});
        let value = json!({"meta": {"table": "orders", "op": if is_bad { "nonsense" } else { "I" }, "source": "erp"}, "data": data}).to_string();
        json!({"topic": "cdc.erp", "partition": 0, "offset": offset, "timestamp": 1_772_360_130_000_i64, "key": base64(offset.to_string().as_bytes()), "value": base64(value.as_bytes())})
    });
    serde_json::to_vec(&json!({"eventSource": "aws:kafka", "records": {"cdc.erp-0": records.collect::<Vec<_>>()}})).unwrap()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn ingest(topic: Arc<dyn ErrorTopic>) -> Ingest {
    let settings = json!({
        "catalog": {"type": "memory"},
        "source": {"id": "erp", "formats": [{"type": "envelope"}]},
        "route": {"table": "erp.{table}"},
        "table_defaults": {"on_missing_table": "create", "key": ["id"]},
    });
    let services = Services { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) };
    Ingest {
        settings: Settings::from_value(settings).unwrap(),
        catalog: Arc::new(MemoryCatalog::new("memory://warehouse", services)),
        topic,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        sleep: Arc::new(TokioSleep),
    }
}

fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

async fn create(brokers: &str) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    admin.create_topics([&NewTopic::new(TOPIC, 6, TopicReplication::Fixed(1))], &AdminOptions::new()).await.unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let brokers = std::env::args().nth(1).expect("error_path BROKERS");
    create(&brokers).await;
    let mut ways: Vec<(Way, Ingest)> = Vec::new();
    for bad_percent in [0, 1, 100] {
        ways.push((Way { bad_percent, topic: "table only" }, ingest(Arc::new(NoTopic))));
        let topic = KafkaErrorTopic::new(config(&brokers, TOPIC, json!({})), Arc::new(SystemClock), environment());
        ways.push((Way { bad_percent, topic: "table and topic" }, ingest(Arc::new(topic))));
    }
    let mut measured: BTreeMap<Way, Vec<(f64, f64)>> = BTreeMap::new();
    for round in 0..ROUNDS {
        for (way, ingest) in &ways {
            let event = event(round, way.bad_percent);
            let (started, cpu) = (Instant::now(), cpu_ms());
            let reply = ingest.invoke(&event, Deadline::NONE).await.unwrap();
            let took = (started.elapsed().as_secs_f64() * 1e3, cpu_ms() - cpu);
            let expected = u64::try_from(RECORDS * way.bad_percent / 100).unwrap();
            assert_eq!(reply.tally.dead_letters, expected);
            // The first round opens tables and clients.
            if round > 0 {
                measured.entry(*way).or_default().push(took);
            }
        }
    }
    println!("{RECORDS} records a batch, medians of {} batches", ROUNDS - 1);
    for (way, times) in measured {
        let (wall, cpu) = times.into_iter().unzip();
        println!("{:>3} % bad, {:<15}: {:7.1} ms, {:7.1} ms of CPU", way.bad_percent, way.topic, median(wall), median(cpu));
    }
}
