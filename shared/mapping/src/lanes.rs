//! From polled records to the events of lanes.
//!
//! A partition always goes to the same lane, so its events stay in order. A lane has one event that is being filled, at most a few that wait, and one
//! in the function. When a lane has a finished event that nobody takes, its partitions are paused, and the others go on.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sluice_model::TopicPartition;
use tokio::sync::mpsc;

use crate::event::{Event, EventBuilder, EventLimits, Pushed, Record};
use crate::pending::Pending;

/// How batches are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// What bounds an event.
    pub limits: EventLimits,
    /// How long a batch waits for more records after its first one, in milliseconds.
    pub window_ms: u64,
}

impl Default for Batching {
    fn default() -> Self {
        // 500 ms is what Lambda takes for Kafka when nothing else is said.
        Self { limits: EventLimits::default(), window_ms: 500 }
    }
}

/// The end of a lane at which records come in.
pub(crate) struct Lane {
    builder: EventBuilder,
    opened_ms: i64,
    finished: VecDeque<Event>,
    sender: mpsc::Sender<Event>,
    pending: Arc<Pending>,
    paused: Option<BTreeSet<TopicPartition>>,
}

/// All lanes.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    window_ms: u64,
}

/// The other end of a lane.
pub(crate) type LaneEnd = (mpsc::Receiver<Event>, Arc<Pending>);

impl Lanes {
    /// So many lanes, and their other ends.
    pub(crate) fn new(count: usize, bootstrap_servers: &str, batching: Batching) -> (Self, Vec<LaneEnd>) {
        let (mut lanes, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..count.max(1) {
            // One event waits while one is in the function.
            let (sender, receiver) = mpsc::channel(1);
            let pending = Arc::new(Pending::default());
            let builder = EventBuilder::new(bootstrap_servers, batching.limits);
            lanes.push(Lane { builder, opened_ms: 0, finished: VecDeque::new(), sender, pending: Arc::clone(&pending), paused: None });
            ends.push((receiver, pending));
        }
        (Self { lanes, window_ms: batching.window_ms }, ends)
    }

    fn of(&self, partition: &TopicPartition) -> usize {
        let topic = partition.topic.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        topic.wrapping_add(usize::try_from(partition.partition).unwrap_or(0)) % self.lanes.len()
    }

    /// Takes a record.
    pub(crate) fn push(&mut self, record: Record<'_>, partition: &TopicPartition, now_ms: i64) {
        let index = self.of(partition);
        let lane = &mut self.lanes[index];
        if lane.builder.push(record) == Pushed::Full {
            lane.close();
            // An empty builder takes any record.
            lane.builder.push(record);
        }
        if lane.builder.has_one() {
            lane.opened_ms = now_ms;
        }
        if lane.builder.is_full() {
            lane.close();
        }
    }

    /// Closes the batches whose window is over, and hands on what there is room for.
    pub(crate) fn tick(&mut self, now_ms: i64) {
        let window_ms = i64::try_from(self.window_ms).unwrap_or(i64::MAX);
        for lane in &mut self.lanes {
            if !lane.builder.is_empty() && now_ms.saturating_sub(lane.opened_ms) >= window_ms {
                lane.close();
            }
            lane.hand_on();
        }
    }

    /// How long until a window ends, at most `most`.
    pub(crate) fn next_window(&self, now_ms: i64, most: Duration) -> Duration {
        let open = self.lanes.iter().filter(|lane| !lane.builder.is_empty());
        let ends = open.map(|lane| lane.opened_ms.saturating_add_unsigned(self.window_ms).saturating_sub(now_ms).max(0).cast_unsigned());
        ends.min().map_or(most, |ms| Duration::from_millis(ms).min(most))
    }

    /// Lanes with a finished event that nobody takes, which are not paused yet.
    pub(crate) fn crowded(&self) -> Vec<usize> {
        let crowded = self.lanes.iter().enumerate().filter(|(_, lane)| lane.paused.is_none() && !lane.finished.is_empty());
        crowded.map(|(index, _)| index).collect()
    }

    /// A sender of that lane, to wait for room at.
    pub(crate) fn sender(&self, lane: usize) -> Option<mpsc::Sender<Event>> {
        self.lanes.get(lane).map(|lane| lane.sender.clone())
    }

    /// Which of these partitions belong to that lane.
    pub(crate) fn partitions_of(&self, lane: usize, all: impl Iterator<Item = TopicPartition>) -> BTreeSet<TopicPartition> {
        all.filter(|partition| self.of(partition) == lane).collect()
    }

    /// Notes that the partitions of a lane are paused.
    pub(crate) fn pause(&mut self, lane: usize, partitions: BTreeSet<TopicPartition>) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.paused = Some(partitions);
        }
    }

    /// The partitions of lanes that have room again; they count as resumed.
    pub(crate) fn resumable(&mut self) -> BTreeSet<TopicPartition> {
        let mut resumed = BTreeSet::new();
        for lane in &mut self.lanes {
            if lane.finished.is_empty() {
                resumed.extend(lane.paused.take().unwrap_or_default());
            }
        }
        resumed
    }

    /// Closes every batch and waits until all of them are applied, at most that long. Tells whether they are.
    pub(crate) fn drain(&mut self, at_most: Duration, mut is_over: impl FnMut() -> bool) -> bool {
        const STEP: Duration = Duration::from_millis(20);
        let steps = at_most.as_millis() / STEP.as_millis();
        for _ in 0..=steps {
            for lane in &mut self.lanes {
                if !lane.builder.is_empty() {
                    lane.close();
                }
                lane.hand_on();
            }
            let waiting = self.lanes.iter().find(|lane| !lane.finished.is_empty() || !lane.pending.is_idle());
            match waiting {
                None => return true,
                Some(_) if is_over() => return false,
                Some(lane) if lane.finished.is_empty() => drop(lane.pending.wait_idle(STEP)),
                Some(_) => std::thread::sleep(STEP),
            }
        }
        false
    }

    /// Forgets what is not handed on yet: these records are delivered again.
    pub(crate) fn forget(&mut self) {
        for lane in &mut self.lanes {
            lane.builder.finish();
            lane.finished.clear();
        }
    }
}

impl Lane {
    fn close(&mut self) {
        self.finished.push_back(self.builder.finish());
    }

    fn hand_on(&mut self) {
        while let Some(event) = self.finished.pop_front() {
            self.pending.add();
            match self.sender.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event) | mpsc::error::TrySendError::Closed(event)) => {
                    self.pending.done();
                    self.finished.push_front(event);
                    return;
                }
            }
        }
    }
}
