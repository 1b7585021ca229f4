//! The batch while it is worked on: its units, what each table has to look at, and what was decided.

use std::collections::BTreeMap;

use sluice_model::{BatchTally, Claims, Rejection, TableName};

use crate::receive::{self, Unit, UnitKind};

/// The units of an event, and what is derived from them once.
pub struct Batch<'d> {
    /// The units, sorted by topic, partition and coordinate.
    pub units: Vec<Unit<'d>>,
    /// What a data table claims.
    pub claims: Claims,
    /// Unit indices by table.
    pub tables: BTreeMap<TableName, Vec<usize>>,
}

impl<'d> Batch<'d> {
    /// The batch of these units.
    #[must_use]
    pub fn new(units: Vec<Unit<'d>>) -> Self {
        let claims = receive::batch_claims(&units);
        let tables = receive::by_table(&units);
        Self { units, claims, tables }
    }
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing yet.
    Open,
    /// Applied as a row.
    Row,
    /// Applied as a delete.
    Delete,
    /// No row.
    Control,
    /// Older than the stored version.
    Stale,
    /// Decided by an earlier invocation, or twice in this event.
    Replayed,
    /// Refused; in the error table.
    DeadLetter(Rejection),
}

/// The decisions of all units of a batch.
#[derive(Debug)]
pub struct Decisions {
    by_unit: Vec<Decision>,
}

impl Decisions {
    /// The decisions that need no table.
    #[must_use]
    pub fn of(batch: &Batch<'_>) -> Self {
        let initial = batch.units.iter().map(|unit| match &unit.kind {
            UnitKind::Control => Decision::Control,
            UnitKind::Repeated => Decision::Replayed,
            UnitKind::Change(..) | UnitKind::SchemaChange(..) | UnitKind::Rejected(_) => Decision::Open,
        });
        Self { by_unit: initial.collect() }
    }

    /// Decides a unit.
    pub fn set(&mut self, unit: usize, decision: Decision) {
        if let Some(slot) = self.by_unit.get_mut(unit) {
            *slot = decision;
        }
    }

    /// What became of a unit.
    #[must_use]
    pub fn get(&self, unit: usize) -> &Decision {
        self.by_unit.get(unit).unwrap_or(&Decision::Open)
    }

    /// The account of these units.
    #[must_use]
    pub fn tally(&self) -> BatchTally {
        Self::tally_of(self.by_unit.iter())
    }

    /// The account of some units.
    pub fn tally_of<'s>(decisions: impl Iterator<Item = &'s Decision>) -> BatchTally {
        let mut tally = BatchTally::default();
        for decision in decisions {
            tally.received += 1;
            match decision {
                Decision::Open => {}
                Decision::Row => tally.rows += 1,
                Decision::Delete => tally.deletes += 1,
                Decision::Control => tally.control += 1,
                Decision::Stale => tally.stale += 1,
                Decision::Replayed => tally.replayed += 1,
                Decision::DeadLetter(rejection) => tally.count_dead_letter(rejection.code),
            }
        }
        tally
    }
}
