//! Time and randomness that a test owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use sluice_model::{Clock, Deadline, IdSource};
use sluice_table::{CommitContext, RetryPolicy, Sleep, WriteOptions};

/// A clock that moves when it is told to.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    #[must_use]
    pub const fn at(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    /// Moves the clock.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Sleeping moves the clock.
#[async_trait]
impl Sleep for ManualClock {
    async fn sleep(&self, ms: u64) {
        self.advance(i64::try_from(ms).unwrap());
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub struct SeededIds(AtomicU64);

impl SeededIds {
    /// A source with that seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// SplitMix64.
    fn next(&self) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl IdSource for SeededIds {
    fn next_u128(&self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// A clock and ids together.
#[derive(Clone)]
pub struct TestServices {
    /// The time.
    pub clock: Arc<ManualClock>,
    /// The ids.
    pub ids: Arc<SeededIds>,
}

impl TestServices {
    /// Services that begin on 2026-03-01 with that seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { clock: Arc::new(ManualClock::at(1_772_323_200_000)), ids: Arc::new(SeededIds::new(seed)) }
    }

    /// For writing files: small ones, two at a time.
    #[must_use]
    pub fn write_options(&self) -> WriteOptions<'_> {
        WriteOptions { ids: self.ids.as_ref(), target_file_bytes: 1 << 20, max_open_files: 2 }
    }

    /// For committing without a deadline.
    #[must_use]
    pub fn commit_context(&self) -> CommitContext<'_> {
        CommitContext {
            clock: self.clock.as_ref(),
            ids: self.ids.as_ref(),
            sleep: self.clock.as_ref(),
            deadline: Deadline::NONE,
            policy: RetryPolicy::default(),
        }
    }
}
