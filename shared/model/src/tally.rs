//! The account of one invocation: every unit received ends as exactly one thing (promise R1).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ReasonCode;

/// What became of the units of one invocation.
///
/// A unit is a record, or a row of a record that carries several rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BatchTally {
    /// Units that came in.
    pub received: u64,
    /// Inserts, snapshots and updates that were applied, also when a later change of the batch replaced them.
    pub rows: u64,
    /// Deletes that were applied, also of keys that the table does not hold.
    pub deletes: u64,
    /// Heartbeats, transaction markers, DDL and other events that are no rows.
    pub control: u64,
    /// Changes older than the stored version of their key.
    pub stale: u64,
    /// Coordinates that an earlier invocation (or the same event, twice) had decided.
    pub replayed: u64,
    /// Units refused and kept in the error table.
    pub dead_letters: u64,
    /// Dead letters by code.
    pub dead_letters_by_code: BTreeMap<ReasonCode, u64>,
}

impl BatchTally {
    /// Units received that are accounted for nowhere (positive), or counted twice (negative). Promise R1: always 0.
    #[must_use]
    pub fn unbalanced(&self) -> i64 {
        let decided = self.rows + self.deletes + self.control + self.stale + self.replayed + self.dead_letters;
        self.received.cast_signed() - decided.cast_signed()
    }

    /// Counts one dead letter.
    pub fn count_dead_letter(&mut self, code: ReasonCode) {
        self.dead_letters += 1;
        *self.dead_letters_by_code.entry(code).or_default() += 1;
    }

    /// Adds another account to this one.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.rows += other.rows;
        self.deletes += other.deletes;
        self.control += other.control;
        self.stale += other.stale;
        self.replayed += other.replayed;
        self.dead_letters += other.dead_letters;
        for (code, count) in &other.dead_letters_by_code {
            *self.dead_letters_by_code.entry(*code).or_default() += count;
        }
    }
}
