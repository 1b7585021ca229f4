//! From which offset a partition is consumed. Pure.

use std::collections::BTreeMap;

use sluice_model::TopicPartition;

/// Where a partition begins for which the group has committed nothing (Lambda's `StartingPosition`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Its first record.
    Earliest,
    /// Behind its last record.
    Latest,
    /// The first record that is not older; milliseconds since 1970.
    Timestamp(i64),
    /// Nowhere: that the group has committed nothing is an error.
    Committed,
}

/// What the group's committed offsets count for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommittedOffsets {
    /// Consumption goes on there.
    Honoured,
    /// When this process first gets a partition, they are passed over.
    Ignored,
}

/// What happens when the broker no longer has the records from which a partition should go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExpired {
    /// The mapping stops and says which records are gone.
    Fail,
    /// The rest is consumed; what is skipped is counted.
    Skip,
}

/// How positions are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPlan {
    /// Where partitions begin.
    pub start: Start,
    /// What committed offsets count for.
    pub committed: CommittedOffsets,
    /// Partitions that begin at a given offset, whatever else is said.
    pub seeks: BTreeMap<TopicPartition, i64>,
    /// What happens to expired positions.
    pub on_expired: OnExpired,
}

impl Default for StartPlan {
    fn default() -> Self {
        Self { start: Start::Earliest, committed: CommittedOffsets::Honoured, seeks: BTreeMap::new(), on_expired: OnExpired::Fail }
    }
}

/// Whether this process has had the partition before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It has not.
    First,
    /// It has; then only committed offsets count.
    Again,
}

/// What the broker says of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The group's committed offset.
    pub committed: Option<i64>,
    /// The first offset that is there.
    pub low: i64,
    /// The offset behind the last record.
    pub high: i64,
    /// The first offset that is not older than the plan's timestamp; `None` when there is none, or none was asked for.
    pub by_time: Option<i64>,
}

/// Where a partition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The offset.
    pub offset: i64,
    /// Records before it that should have been consumed and are gone.
    pub expired: u64,
}

/// No position can be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The plan wants committed offsets.
    #[error(
        "NO_COMMITTED_OFFSET: the group has committed nothing for {partition}; say where it begins with --start earliest, latest or a time"
    )]
    NothingCommitted {
        /// The partition.
        partition: TopicPartition,
    },
    /// Retention was faster.
    #[error(
        "OFFSETS_EXPIRED: {partition} should go on at {wanted}, but the broker begins at {low}: {} records are gone. --on-expired skip goes on without them; \
         nothing was skipped yet",
        low - wanted
    )]
    Expired {
        /// The partition.
        partition: TopicPartition,
        /// Where it should go on.
        wanted: i64,
        /// Where it begins now.
        low: i64,
    },
    /// The topic is not the one that it was.
    #[error(
        "OFFSET_BEYOND_END: {partition} should go on at {wanted}, but it ends at {high}. If the topic was created anew, raise source.epoch in the configuration, so that \
         its offsets are not taken for the old ones, and run once with --reset"
    )]
    BeyondEnd {
        /// The partition.
        partition: TopicPartition,
        /// Where it should go on.
        wanted: i64,
        /// Where it ends.
        high: i64,
    },
}

impl StartPlan {
    /// Where `partition` begins.
    ///
    /// # Errors
    /// [`StartError`] when going on would lose records without a word.
    pub fn position(&self, partition: &TopicPartition, known: Known, turn: Turn) -> Result<Position, StartError> {
        match (self.wanted(partition, known, turn), self.start) {
            (Some(wanted), _) => self.checked(partition, wanted, known),
            (None, Start::Earliest) => Ok(Position { offset: known.low, expired: 0 }),
            (None, Start::Latest) => Ok(Position { offset: known.high, expired: 0 }),
            (None, Start::Timestamp(_)) => Ok(Position { offset: known.by_time.unwrap_or(known.high), expired: 0 }),
            (None, Start::Committed) => Err(StartError::NothingCommitted { partition: partition.clone() }),
        }
    }

    /// The offset that was asked for or committed.
    fn wanted(&self, partition: &TopicPartition, known: Known, turn: Turn) -> Option<i64> {
        match (turn, self.seeks.get(partition), self.committed) {
            (Turn::First, Some(offset), _) => Some(*offset),
            (Turn::First, None, CommittedOffsets::Ignored) => None,
            (Turn::First, None, CommittedOffsets::Honoured) | (Turn::Again, _, _) => known.committed,
        }
    }

    fn checked(&self, partition: &TopicPartition, wanted: i64, known: Known) -> Result<Position, StartError> {
        if wanted > known.high {
            return Err(StartError::BeyondEnd { partition: partition.clone(), wanted, high: known.high });
        }
        if wanted >= known.low {
            return Ok(Position { offset: wanted, expired: 0 });
        }
        match self.on_expired {
            OnExpired::Fail => Err(StartError::Expired { partition: partition.clone(), wanted, low: known.low }),
            OnExpired::Skip => Ok(Position { offset: known.low, expired: (known.low - wanted).cast_unsigned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> TopicPartition {
        TopicPartition { topic: "t".into(), partition: 0 }
    }

    const KNOWN: Known = Known { committed: Some(50), low: 10, high: 100, by_time: Some(70) };
    const FRESH: Known = Known { committed: None, ..KNOWN };

    fn at(plan: &StartPlan, known: Known, turn: Turn) -> Result<i64, StartError> {
        plan.position(&partition(), known, turn).map(|position| position.offset)
    }

    #[test]
    fn committed_offsets_go_before_the_starting_position() {
        for (start, fresh) in [(Start::Earliest, 10), (Start::Latest, 100), (Start::Timestamp(1), 70)] {
            let plan = StartPlan { start, ..StartPlan::default() };
            assert_eq!(at(&plan, KNOWN, Turn::First), Ok(50));
            assert_eq!(at(&plan, FRESH, Turn::First), Ok(fresh));
        }
        let plan = StartPlan { start: Start::Committed, ..StartPlan::default() };
        assert_eq!(at(&plan, KNOWN, Turn::First), Ok(50));
        assert_eq!(at(&plan, FRESH, Turn::First), Err(StartError::NothingCommitted { partition: partition() }));
        let plan = StartPlan { start: Start::Timestamp(1), ..StartPlan::default() };
        assert_eq!(at(&plan, Known { by_time: None, ..FRESH }, Turn::First), Ok(100));
    }

    #[test]
    fn a_reset_and_a_seek_count_once() {
        let plan = StartPlan { committed: CommittedOffsets::Ignored, ..StartPlan::default() };
        assert_eq!(at(&plan, KNOWN, Turn::First), Ok(10));
        assert_eq!(at(&plan, KNOWN, Turn::Again), Ok(50));
        let plan = StartPlan { seeks: BTreeMap::from([(partition(), 30)]), ..StartPlan::default() };
        assert_eq!(at(&plan, KNOWN, Turn::First), Ok(30));
        assert_eq!(at(&plan, KNOWN, Turn::Again), Ok(50));
    }

    #[test]
    fn records_that_are_gone_are_never_skipped_without_a_word() {
        let expired = Known { committed: Some(4), ..KNOWN };
        let plan = StartPlan::default();
        assert_eq!(at(&plan, expired, Turn::Again), Err(StartError::Expired { partition: partition(), wanted: 4, low: 10 }));
        let plan = StartPlan { on_expired: OnExpired::Skip, ..plan };
        assert_eq!(plan.position(&partition(), expired, Turn::Again), Ok(Position { offset: 10, expired: 6 }));
        let anew = Known { committed: Some(500), ..KNOWN };
        assert_eq!(at(&plan, anew, Turn::First), Err(StartError::BeyondEnd { partition: partition(), wanted: 500, high: 100 }));
    }
}
