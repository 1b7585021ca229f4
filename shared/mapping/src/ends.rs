//! Where the topics ended when a mapping began, and whether its group has come that far.
//!
//! A process only sees the partitions that the group gives it, and after others were killed it may see few of them for a while. So the end is not
//! reached when its own partitions are: the group must have committed the ends of all partitions.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::Offset;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::error::KafkaError;
use sluice_model::TopicPartition;

use crate::context::{ASK, Context, commit, offset_in, offsets_list, partition_of};
use crate::topics::Topics;

/// The ends of all partitions that have records.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    targets: BTreeMap<TopicPartition, i64>,
}

impl Ends {
    /// The ends now.
    pub(crate) fn now(consumer: &BaseConsumer<Context>, topics: &Topics) -> Result<Self, KafkaError> {
        let metadata = consumer.fetch_metadata(None, ASK)?;
        let mut targets = BTreeMap::new();
        for topic in metadata.topics().iter().filter(|topic| topics.matches(topic.name())) {
            for partition in topic.partitions() {
                let (low, high) = consumer.fetch_watermarks(topic.name(), partition.id(), ASK)?;
                if low < high {
                    targets.insert(partition_of(topic.name(), partition.id()), high);
                }
            }
        }
        Ok(Self { targets })
    }

    /// Whether this process has read its own partitions to their ends. `quiet` says that nothing has come for a while: only then does it count that the
    /// client has fetched up to an end which is no record (a transaction's marker).
    pub(crate) fn own_are_read(&self, consumer: &BaseConsumer<Context>, quiet: Quiet) -> Result<bool, KafkaError> {
        let context = consumer.context();
        let Some(assigned) = context.assigned() else { return Ok(false) };
        let positions = consumer.position()?;
        let numbers = context.progress().snapshot();
        Ok(assigned.iter().all(|partition| {
            let Some(target) = self.targets.get(partition) else { return true };
            let progress = numbers.partitions.get(partition).copied().unwrap_or_default();
            let fetched = match quiet {
                Quiet::Yes => progress.fetched,
                Quiet::No => None,
            };
            [offset_in(&positions, partition), progress.started, fetched].into_iter().flatten().any(|offset| offset >= *target)
        }))
    }

    /// Commits the ends of these partitions, which are read and applied; tells whether the group has committed all ends.
    pub(crate) fn commit(&self, consumer: &BaseConsumer<Context>, own: &BTreeSet<TopicPartition>) -> Result<bool, KafkaError> {
        let numbers = consumer.context().progress().snapshot();
        let reached = own.iter().filter_map(|partition| {
            let applied = numbers.partitions.get(partition)?.applied;
            Some((partition.clone(), applied.unwrap_or(0).max(*self.targets.get(partition)?)))
        });
        commit(consumer, reached, CommitMode::Sync);
        let asked = offsets_list(self.targets.keys().map(|partition| (partition.clone(), Offset::Invalid)));
        let committed = consumer.committed_offsets(asked, ASK)?;
        Ok(self.targets.iter().all(|(partition, target)| offset_in(&committed, partition).is_some_and(|offset| offset >= *target)))
    }
}

/// Whether nothing has come for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quiet {
    Yes,
    No,
}
