//! Kafka: which records are delivered next, and what is acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use crate::records::{Delivery, Record, Topic};
use crate::rng::Rng;

/// The place of a record: partition and offset.
pub type At = (i32, i64);

/// A batch of records on its way to an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Partition, first offset, and the offset behind the last.
    pub ranges: Vec<(i32, i64, i64)>,
    /// An acknowledgement from before the last rewind does not count.
    generation: u64,
}

impl Batch {
    pub fn records<'t>(&self, topic: &'t Topic) -> Vec<&'t Record> {
        let within = |record: &&Record| {
            self.ranges.iter().any(|(partition, start, end)| record.partition == *partition && (*start..*end).contains(&record.offset))
        };
        topic.all().filter(within).collect()
    }
}

/// The consumer group's state.
#[derive(Debug)]
pub struct Broker {
    delivery: Delivery,
    ends: BTreeMap<i32, i64>,
    positions: BTreeMap<i32, i64>,
    acknowledged: BTreeSet<At>,
    generation: u64,
}

impl Broker {
    pub fn new(topic: &Topic, delivery: Delivery) -> Self {
        let ends: BTreeMap<i32, i64> = topic.partitions.keys().map(|partition| (*partition, topic.end(*partition))).collect();
        let positions = ends.keys().map(|partition| (*partition, 0)).collect();
        Self { delivery, ends, positions, acknowledged: BTreeSet::new(), generation: 0 }
    }

    /// A batch of some partitions. `rebalanced`: it begins at an offset that was acknowledged.
    pub fn next(&self, rng: &mut Rng, rebalanced: impl Fn(&mut Rng) -> bool) -> Option<Batch> {
        let mut ranges = Vec::new();
        for (partition, end) in &self.ends {
            let position = self.positions[partition];
            let start = match self.delivery {
                Delivery::InOrder if rebalanced(rng) => rng.offset(0, position + 1),
                Delivery::InOrder => position,
                Delivery::AnyOrder => rng.offset(0, *end),
            };
            let range = (*partition, start, (start + 1 + rng.offset(0, 5)).min(*end));
            if range.1 < range.2 && rng.chance(70) {
                ranges.push(range);
            }
        }
        (!ranges.is_empty()).then_some(Batch { ranges, generation: self.generation })
    }

    /// What is not acknowledged, `most` offsets of each partition.
    pub fn rest(&self, topic: &Topic, most: i64) -> Option<Batch> {
        let open = |partition: &i32| {
            let first = topic.partitions[partition].iter().find(|record| !self.is_acknowledged(record))?.offset;
            let start = match self.delivery {
                Delivery::InOrder => self.positions[partition],
                Delivery::AnyOrder => first,
            };
            Some((*partition, start, (first + most).min(self.ends[partition])))
        };
        let ranges: Vec<_> = self.ends.keys().filter_map(open).collect();
        (!ranges.is_empty()).then_some(Batch { ranges, generation: self.generation })
    }

    /// Everything from the beginning.
    pub fn everything(&self) -> Batch {
        Batch { ranges: self.ends.iter().map(|(partition, end)| (*partition, 0, *end)).collect(), generation: self.generation }
    }

    fn is_acknowledged(&self, record: &Record) -> bool {
        match self.delivery {
            Delivery::InOrder => record.offset < self.positions[&record.partition],
            Delivery::AnyOrder => self.acknowledged.contains(&(record.partition, record.offset)),
        }
    }

    /// An invocation has answered that the batch is done.
    pub fn acknowledge(&mut self, topic: &Topic, batch: &Batch) {
        if batch.generation != self.generation {
            return;
        }
        self.acknowledged.extend(batch.records(topic).iter().map(|record| (record.partition, record.offset)));
        for (partition, start, end) in &batch.ranges {
            if let Some(position) = self.positions.get_mut(partition).filter(|position| start <= *position) {
                *position = (*position).max(*end);
            }
        }
    }

    /// The records from these offsets on must come again; what is on its way is not acknowledged any more.
    pub fn rewind(&mut self, topic: &Topic, decided: impl Fn(&Record) -> bool) {
        self.generation += 1;
        for record in topic.all().filter(|record| !decided(record)) {
            self.acknowledged.remove(&(record.partition, record.offset));
            if let Some(position) = self.positions.get_mut(&record.partition) {
                *position = (*position).min(record.offset);
            }
        }
    }
}
