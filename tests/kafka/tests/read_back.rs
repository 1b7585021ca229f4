//! Topics made and read by a plain client.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{Offset, TopicPartitionList};

/// A record as a consumer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub partition: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Found {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers.iter().map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
        });
        Self {
            partition: message.partition(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers,
        }
    }

    /// The last header of a name, as text.
    pub fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.iter().rev().find(|(found, _)| found == name)?.1.clone();
        value.map(|value| String::from_utf8(value).unwrap())
    }
}

/// Makes a topic.
pub async fn create(brokers: &str, topic: &str, (partitions, settings): (i32, &[(&str, &str)])) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let new = settings.iter().fold(NewTopic::new(topic, partitions, TopicReplication::Fixed(1)), |new, (name, value)| new.set(name, value));
    let results = admin.create_topics([&new], &AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)))).await.unwrap();
    results.into_iter().for_each(|result| assert!(result.is_ok(), "{result:?}"));
}

/// All records of a topic, partition by partition.
pub fn read_all(brokers: &str, topic: &str) -> Vec<Found> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "reader")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "false")
        .create()
        .unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10)).unwrap();
    let mut found = Vec::new();
    for partition in metadata.topics()[0].partitions() {
        let (low, high) = consumer.fetch_watermarks(topic, partition.id(), Duration::from_secs(10)).unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition.id(), Offset::Offset(low)).unwrap();
        consumer.assign(&list).unwrap();
        let mut next = low;
        while next < high {
            let message =
                consumer.poll(Duration::from_secs(10)).unwrap_or_else(|| panic!("{topic}: nothing after {next} of {high}")).unwrap();
            if message.partition() == partition.id() {
                next = message.offset() + 1;
                found.push(Found::of(&message));
            }
        }
    }
    found
}
