//! Fills the topics of the stream tests: `feed RECORDS [BAD_PERCENT] [RECORDS_PER_S] [NAMESPACE_PREFIX]`. The brokers are those of SLUICE_TEST_KAFKA.
//! Prints the configuration that reads them.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[path = "tests/records.rs"]
mod records;
#[path = "tests/rng.rs"]
mod rng;

use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use records::Record;
use rng::Rng;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let [count, bad_percent, per_s] = [0, 1, 2].map(|index| arguments.get(index).copied().unwrap_or(0));
    let brokers = std::env::var("SLUICE_TEST_KAFKA")?;
    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", &brokers);
    make_topics(&client).await?;
    let producer: BaseProducer = client.set("linger.ms", "10").set("queue.buffering.max.messages", "1000000").create()?;
    let started = Instant::now();
    let mut rng = Rng(5);
    for n in 0..count {
        send(&producer, &spoilt(records::record(&mut rng, n), bad_percent, &mut rng))?;
        if per_s > 0 && n.is_multiple_of(100) {
            let due = Duration::from_micros(n * 1_000_000 / per_s);
            producer.poll(due.saturating_sub(started.elapsed()));
        }
    }
    producer.flush(Duration::from_secs(60))?;
    print!("{}", records::config(&brokers));
    Ok(())
}

/// The record as it is, or spoilt: the generator's own bad ones are left out, so that the share is exact.
fn spoilt(record: Record, bad_percent: u64, rng: &mut Rng) -> Record {
    let is_bad = matches!(record.fate, records::Fate::Refused(_));
    if rng.below(100) < bad_percent {
        Record { value: Some(br#"{"meta": {"table": "orders", "op": "#.to_vec()), headers: Vec::new(), ..record }
    } else if is_bad {
        Record { value: None, topic: "cdc.crm", headers: Vec::new(), ..record }
    } else {
        record
    }
}

async fn make_topics(client: &ClientConfig) -> Result<(), Failure> {
    let admin: AdminClient<DefaultClientContext> = client.create()?;
    let topics: Vec<NewTopic<'_>> =
        records::TOPICS.iter().chain([&records::ERROR_TOPIC]).map(|name| NewTopic::new(name, 6, TopicReplication::Fixed(1))).collect();
    for made in admin.create_topics(&topics, &AdminOptions::new()).await? {
        match made {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((topic, code)) => return Err(format!("{topic}: {code}").into()),
        }
    }
    Ok(())
}

fn send(producer: &BaseProducer, record: &Record) -> Result<(), Failure> {
    loop {
        let headers =
            record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }));
        let mut to_send = BaseRecord::<String, Vec<u8>>::to(record.topic).key(&record.key).headers(headers);
        if let Some(value) = &record.value {
            to_send = to_send.payload(value);
        }
        match producer.send(to_send) {
            Ok(()) => break,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                producer.poll(Duration::from_millis(50));
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
    producer.poll(Duration::ZERO);
    Ok(())
}
