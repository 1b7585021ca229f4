//! The broker of tests/services/with-kafka.sh.

use std::process::Command;
use std::time::Duration;

use futures::StreamExt as _;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers as _, Message as _, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::model::Model;
use crate::records::Record;

pub const PARTITIONS: i32 = 6;

/// The address of its open listener.
pub fn address() -> String {
    std::env::var("SLUICE_TEST_KAFKA").expect("these tests need a broker: tests/stream/run.sh starts one")
}

/// kill, start, pause or resume.
pub fn tell(what: &str) {
    let script = std::env::var("SLUICE_TEST_KAFKA_BROKER").unwrap();
    assert!(Command::new(script).arg(what).status().unwrap().success(), "the broker did not {what}");
}

fn client() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address());
    config
}

/// Makes topics anew.
pub async fn topics(names: &[&str]) {
    let admin: AdminClient<DefaultClientContext> = client().create().unwrap();
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(30)));
    let new: Vec<NewTopic<'_>> = names.iter().map(|name| NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1))).collect();
    for made in admin.create_topics(&new, &options).await.unwrap() {
        made.unwrap();
    }
}

/// All dead letters of a topic: the coordinates and codes in their headers.
pub fn dead_letters(topic: &str) -> Vec<(String, i32, i64, String)> {
    let consumer: BaseConsumer = client().set("group.id", "reader").set("enable.partition.eof", "true").create().unwrap();
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&list).unwrap();
    let (mut letters, mut ended) = (Vec::new(), 0);
    while ended < PARTITIONS {
        match consumer.poll(Duration::from_secs(30)).expect("the broker is silent") {
            Ok(message) => letters.push(letter(&message)),
            Err(KafkaError::PartitionEOF(_)) => ended += 1,
            Err(error) => panic!("{error}"),
        }
    }
    letters
}

fn letter(message: &BorrowedMessage<'_>) -> (String, i32, i64, String) {
    let headers = message.headers().unwrap();
    let text = |name: &str| {
        let value =
            headers.iter().find(|header| header.key == name).and_then(|header| header.value).unwrap_or_else(|| panic!("no header {name}"));
        std::str::from_utf8(value).unwrap().to_owned()
    };
    let (partition, offset) = (text("sluice.error.partition"), text("sluice.error.offset"));
    (text("sluice.error.topic"), partition.parse().unwrap(), offset.parse().unwrap(), text("sluice.error.code"))
}

/// A producer whose records of one key keep their order, whatever happens to the broker.
pub fn producer() -> FutureProducer {
    client()
        .set("enable.idempotence", "true")
        .set("linger.ms", "5")
        .set("message.timeout.ms", "120000")
        .set("partitioner", "murmur2_random")
        .create()
        .unwrap()
}

/// Produces records and tells the model where they stand.
pub async fn produce(producer: &FutureProducer, records: Vec<Record>, model: &mut Model) {
    let mut sent = futures::stream::FuturesOrdered::new();
    for record in records {
        let headers =
            record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }));
        let mut to_send = FutureRecord::<String, Vec<u8>>::to(record.topic).key(&record.key).headers(headers);
        if let Some(value) = &record.value {
            to_send = to_send.payload(value);
        }
        let delivery = loop {
            match producer.send_result(to_send) {
                Ok(delivery) => break delivery,
                // The queue is full.
                Err((_, back)) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    to_send = back;
                }
            }
        };
        sent.push_back(async move { (record, delivery.await) });
    }
    while let Some((record, delivered)) = sent.next().await {
        let delivery = delivered.unwrap().map_err(|(error, _)| error).unwrap();
        model.stands(&record, (delivery.partition, delivery.offset));
    }
}
