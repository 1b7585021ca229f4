//! The batch while it is worked on: its units, what each table has to look at, and what was decided.

use std::collections::BTreeMap;

use sluice_model::{BatchTally, Claims, Coordinate, Interval, PartitionKey, Rejection, TableName};

use crate::receive::{self, Unit, UnitKind};

/// The units of an event, and what is derived from them once.
pub struct Batch<'d> {
    /// The units, sorted by topic, partition and coordinate.
    pub units: Vec<Unit<'d>>,
    /// What a data table claims.
    pub claims: Claims,
    /// Unit indices by table.
    pub tables: BTreeMap<TableName, Vec<usize>>,
    /// What is known of them when they are refused records that are tried again.
    pub past: Option<Past>,
}

/// Refused records that are tried again: what they went through.
#[derive(Debug, Clone)]
pub struct Past {
    /// The one partition that all of them came from.
    pub partition: PartitionKey,
    /// Where each unit's record stood in it and when it was refused, in the order of the units.
    pub origins: Vec<Origin>,
    /// Whether they may be applied over newer changes.
    pub order: Order,
    /// Whether anything is changed.
    pub effect: Effect,
}

/// Where and when a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its offset and row.
    pub coordinate: Coordinate,
    /// When it was refused, in milliseconds since 1970.
    pub refused_at_ms: i64,
    /// Whether its table may hold it.
    pub applied: Applied,
}

/// Whether a refused record's table may hold it all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It does not.
    No,
    /// It lay below the table's ledger, where that cannot be told.
    Perhaps,
}

/// What may happen to changes that others may have followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A change is applied only if none of its key was committed with it or after it.
    Proven,
    /// It is applied whatever was.
    Overwrite,
}

/// Whether a batch is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is.
    Applied,
    /// It is only looked at what would become of it.
    Rehearsed,
}

impl<'d> Batch<'d> {
    /// The batch of these units.
    #[must_use]
    pub fn new(units: Vec<Unit<'d>>) -> Self {
        let claims = receive::batch_claims(&units);
        let tables = receive::by_table(&units);
        Self { units, claims, tables, past: None }
    }

    /// The batch of the units of refused records that are tried again.
    #[must_use]
    pub fn again(units: Vec<Unit<'d>>, past: Past) -> Self {
        Self { past: Some(past), ..Self::new(units) }
    }

    /// What a table claims with the batch. Of records that are tried again it claims its own only: they may be routed elsewhere the next time.
    #[must_use]
    pub fn claims_of(&self, table: &TableName) -> Claims {
        if self.past.is_none() {
            return self.claims.clone();
        }
        let mut claims = Claims::default();
        for unit in self.tables.get(table).into_iter().flatten().filter_map(|index| self.units.get(*index)) {
            claims.add(&unit.key, Interval::of_record(unit.coordinate.offset));
        }
        claims
    }

    /// Whether nothing may be changed.
    #[must_use]
    pub fn is_rehearsed(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.effect == Effect::Rehearsed)
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
