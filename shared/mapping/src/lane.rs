//! A lane: the events of some partitions, one behind the other. The next one is sent only when the last one is applied.

use std::sync::Arc;

use async_trait::async_trait;
use sluice_model::{Clock, IdSource, TopicPartition};
use tokio::sync::{mpsc, watch};

use crate::event::Event;
use crate::function::{Function, FunctionError};
use crate::pending::Pending;
use crate::progress::Progress;

/// Whether the mapping goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It does.
    Run,
    /// What is in the function is waited for; nothing new is sent.
    Stop,
}

/// Where positions are committed.
pub trait Offsets: Send + Sync {
    /// Commits positions: the offset behind the last applied record of each partition. What fails is told later and is harmless: the
    /// records are delivered again, and the tables' ledgers know them.
    fn commit(&self, positions: &[(TopicPartition, i64)]);
}

/// Waiting, so that tests need not.
#[async_trait]
pub trait Rest: Send + Sync {
    /// Returns after that many milliseconds.
    async fn rest(&self, ms: u64);
}

/// How failed invocations are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Attempts of one event; `None` repeats until the mapping is stopped, as an event-source mapping does.
    pub max_attempts: Option<u32>,
    /// The rest before the second attempt, in milliseconds; it doubles.
    pub first_rest_ms: u64,
    /// The longest rest, in milliseconds.
    pub max_rest_ms: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self { max_attempts: None, first_rest_ms: 500, max_rest_ms: 30_000 }
    }
}

impl Retries {
    /// The rest after attempt number `attempt` (1 is the first): between half of it and all of it, by `random`.
    fn rest_ms(&self, attempt: u32, random: u128) -> u64 {
        let doubled = self.first_rest_ms.saturating_mul(1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX));
        let whole = doubled.min(self.max_rest_ms);
        let half = whole / 2;
        half + u64::try_from(random % u128::from(half + 1)).unwrap_or(0)
    }
}

/// What all lanes share.
pub struct LaneTools {
    /// What is invoked.
    pub function: Arc<dyn Function>,
    /// Where positions are committed.
    pub offsets: Arc<dyn Offsets>,
    /// The numbers.
    pub progress: Arc<Progress>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// For jitter.
    pub ids: Arc<dyn IdSource>,
    /// Waiting between attempts.
    pub rest: Arc<dyn Rest>,
    /// How failed invocations are repeated.
    pub retries: Retries,
    /// The time that an invocation has, in milliseconds.
    pub timeout_ms: u64,
}

/// An event failed as often as it may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event of {records} records failed {attempts} times; nothing behind it was committed: {last}")]
pub struct Exhausted {
    /// Its records.
    pub records: usize,
    /// The attempts.
    pub attempts: u32,
    /// The last reason.
    pub last: FunctionError,
}

/// Sends events to the function, in order, until there are no more or the mapping stops.
///
/// # Errors
/// [`Exhausted`] when an event failed as often as it may: nothing behind it was sent.
pub(crate) async fn run(
    tools: Arc<LaneTools>,
    (mut events, pending): (mpsc::Receiver<Event>, Arc<Pending>),
    mut signal: watch::Receiver<Signal>,
) -> Result<(), Exhausted> {
    let result = loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = stopped(&mut signal) => None,
        };
        let Some(event) = event else { break Ok(()) };
        match deliver(&tools, &event, &mut signal).await {
            Ok(Delivery::Applied) => pending.done(),
            // What is behind this event must not be sent either.
            Ok(Delivery::Stopped) => break Ok(()),
            Err(exhausted) => break Err(exhausted),
        }
    };
    pending.forget();
    result
}

/// Ready when the mapping stops. A sender that is gone has stopped it too.
async fn stopped(signal: &mut watch::Receiver<Signal>) {
    let _ = signal.wait_for(|signal| *signal == Signal::Stop).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Applied,
    Stopped,
}

/// Sends one event until it is applied or the mapping stops.
async fn deliver(tools: &LaneTools, event: &Event, signal: &mut watch::Receiver<Signal>) -> Result<Delivery, Exhausted> {
    let mut attempt = 0_u32;
    loop {
        if *signal.borrow() == Signal::Stop {
            return Ok(Delivery::Stopped);
        }
        attempt = attempt.saturating_add(1);
        let started_ms = tools.clock.now_ms();
        match tools.function.invoke(event.body.clone(), tools.timeout_ms).await {
            Ok(account) => {
                tools.offsets.commit(&event.positions);
                tools.progress.applied(event, &account, (started_ms, tools.clock.now_ms()));
                return Ok(Delivery::Applied);
            }
            Err(error) => {
                tracing::warn!(attempt, records = event.records, error = %error, "the function failed; the event is sent again");
                tools.progress.failed(&error.to_string());
                if tools.retries.max_attempts.is_some_and(|most| attempt >= most) {
                    return Err(Exhausted { records: event.records, attempts: attempt, last: error });
                }
            }
        }
        let rest_ms = tools.retries.rest_ms(attempt, tools.ids.next_u128());
        tokio::select! {
            () = tools.rest.rest(rest_ms) => {}
            () = stopped(signal) => return Ok(Delivery::Stopped),
        }
    }
}
