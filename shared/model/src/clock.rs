//! Time, deadlines and identifiers as arguments, so that tests and the simulation own them.

/// A source of the current time. The only implementation that reads the real clock is in `runtime`.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;
}

/// A source of unique numbers: snapshot ids, file names, commit ids, backoff jitter.
pub trait IdSource: Send + Sync {
    /// 128 random bits. Two calls never return the same value in practice (UUID version 4 quality).
    fn next_u128(&self) -> u128;
}

/// The instant after which an invocation may be stopped without warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    at_ms: Option<i64>,
}

impl Deadline {
    /// No deadline: a local run.
    pub const NONE: Self = Self { at_ms: None };

    /// A deadline at `at_ms` (milliseconds since the epoch), less `reserve_ms` kept back for the reply.
    ///
    /// `cargo lambda watch` sends a deadline that lies in the past; a deadline that has passed at entry says nothing, so it is
    /// taken as unknown.
    #[must_use]
    pub const fn at(at_ms: i64, reserve_ms: i64, now_ms: i64) -> Self {
        if at_ms <= now_ms { Self::NONE } else { Self { at_ms: Some(at_ms.saturating_sub(reserve_ms)) } }
    }

    /// Milliseconds left, `i64::MAX` without a deadline; never negative.
    #[must_use]
    pub fn remaining_ms(&self, now_ms: i64) -> i64 {
        self.at_ms.map_or(i64::MAX, |at| at.saturating_sub(now_ms).max(0))
    }

    /// Whether the deadline has come.
    #[must_use]
    pub fn has_passed(&self, now_ms: i64) -> bool {
        self.remaining_ms(now_ms) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_in_the_past_at_entry_is_unknown() {
        let deadline = Deadline::at(600_000, 10_000, 1_772_360_130_000);
        assert!(!deadline.has_passed(i64::MAX));
    }

    #[test]
    fn the_reserve_is_kept_back() {
        let deadline = Deadline::at(60_000, 10_000, 0);
        assert_eq!(deadline.remaining_ms(0), 50_000);
        assert!(deadline.has_passed(50_000));
        assert!(!deadline.has_passed(49_999));
    }
}
