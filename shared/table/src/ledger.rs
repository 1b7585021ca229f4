//! Where the offset ledger is in a table: whole in the summary of each snapshot that Sluice makes, and a property per partition.

use std::collections::HashMap;

use iceberg::spec::TableMetadata;
use sluice_model::mutants::{self, Mutant};
use sluice_model::{Claims, Coordinate, Coverage, OffsetLedger, PartitionKey};

use crate::TableError;

/// The table's ledger.
///
/// It is the newest one among the ancestors of the current snapshot, so that a rollback takes it back and foreign snapshots on top do not
/// hide it. When expiry has cut the ancestry before one was found, it is that of the properties. A whole ancestry without a ledger means that Sluice has
/// never written to the table (or that it was emptied and begun anew): then nothing is decided.
///
/// # Errors
/// [`TableError::Ledger`] when what is stored is no ledger.
pub fn read(metadata: &TableMetadata) -> Result<OffsetLedger, TableError> {
    if mutants::is(Mutant::LedgerInPropertiesOnly) {
        return Ok(OffsetLedger::from_properties(metadata.properties().iter())?);
    }
    let mut next = metadata.current_snapshot_id();
    // The bound keeps a circle in broken metadata from hanging us.
    for _ in 0..=metadata.snapshots().len() {
        let Some(id) = next else { return Ok(OffsetLedger::default()) };
        let Some(snapshot) = metadata.snapshot_by_id(id) else {
            if mutants::is(Mutant::LedgerInSummaryOnly) {
                return Ok(OffsetLedger::default());
            }
            return Ok(OffsetLedger::from_properties(metadata.properties().iter())?);
        };
        if let Some(text) = snapshot.summary().additional_properties.get(OffsetLedger::SUMMARY_KEY) {
            return Ok(OffsetLedger::parse(text)?);
        }
        next = snapshot.parent_snapshot_id();
    }
    Err(TableError::Invalid("the snapshots' parents run in a circle".to_owned()))
}

/// What a commit does to the properties.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PropertyChange {
    pub(crate) set: HashMap<String, String>,
    pub(crate) removed: Vec<String>,
}

/// Makes the properties say what `ledger` says. Besides the claimed partitions these are, after a rollback, those that were ahead.
pub(crate) fn property_change(metadata: &TableMetadata, ledger: &OffsetLedger) -> PropertyChange {
    let wanted: HashMap<String, String> = ledger.properties(ledger.entries().map(|(key, _)| key)).into_iter().collect();
    let current = metadata.properties();
    let stale = current.keys().filter(|name| name.starts_with(OffsetLedger::PROPERTY_PREFIX) && !wanted.contains_key(*name));
    let mut removed: Vec<String> = stale.cloned().collect();
    removed.sort_unstable();
    PropertyChange { set: wanted.into_iter().filter(|(name, value)| current.get(name) != Some(value)).collect(), removed }
}

/// What the ledger says of a whole delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeltaCoverage {
    /// Nothing of it was decided.
    New,
    /// All of it was.
    Decided,
    /// Some of it was, or it cannot be told.
    Mixed,
}

/// Looks up what a delta applies; one that applies nothing is judged by its claims.
pub(crate) fn coverage(ledger: &OffsetLedger, applies: &[(PartitionKey, Coordinate)], claims: &Claims) -> DeltaCoverage {
    if applies.is_empty() {
        return if !claims.is_empty() && all_claimed(ledger, claims) { DeltaCoverage::Decided } else { DeltaCoverage::New };
    }
    let decided = applies.iter().filter(|(key, at)| ledger.coverage(key, *at) == Coverage::Decided).count();
    let new = applies.iter().filter(|(key, at)| ledger.coverage(key, *at) == Coverage::New).count();
    match (decided, new) {
        (_, all) if all == applies.len() => DeltaCoverage::New,
        (all, _) if all == applies.len() => DeltaCoverage::Decided,
        _ => DeltaCoverage::Mixed,
    }
}

fn all_claimed(ledger: &OffsetLedger, claims: &Claims) -> bool {
    let entries: HashMap<&PartitionKey, _> = ledger.entries().collect();
    claims.iter().all(|(key, intervals)| {
        let held = entries.get(key).map_or(&[][..], |entry| entry.intervals());
        intervals.iter().all(|wanted| held.iter().any(|own| own.start() <= wanted.start() && wanted.end() <= own.end()))
    })
}
