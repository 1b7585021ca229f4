//! How many events are on their way, so that a rebalance can wait for them.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A counter that can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Pending {
    pub(crate) fn add(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub(crate) fn done(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        self.changed.notify_all();
    }

    /// Nothing is on its way any more: the lane has ended.
    pub(crate) fn forget(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.changed.notify_all();
    }

    pub(crate) fn is_idle(&self) -> bool {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) == 0
    }

    /// Waits until nothing is pending, at most that long. Blocks the thread: not for async code.
    pub(crate) fn wait_idle(&self, at_most: Duration) -> bool {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, _) = self.changed.wait_timeout_while(count, at_most, |count| *count > 0).unwrap_or_else(PoisonError::into_inner);
        *count == 0
    }
}
