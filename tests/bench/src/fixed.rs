//! Time and ids that are the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

use sluice_model::{Clock, IdSource};

/// It is always 2026-03-01.
#[derive(Debug)]
pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        1_772_323_200_000
    }
}

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct FixedIds(AtomicU64);

impl IdSource for FixedIds {
    fn next_u128(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
