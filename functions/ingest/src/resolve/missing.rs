//! A table that the catalog does not have.

use std::collections::BTreeMap;

use sluice_model::{ChangeEvent, ReasonCode, Rejection, Stage, TableName, TableSchema};
use sluice_pipeline::Outcome;
use sluice_pipeline::settings::{OnMissingTable, TableSettings};
use sluice_table::{TableCreation, TableError};

use super::apply::{Applied, Target};
use super::{Resolved, changes, is_dead_letter, note_outcomes, refuse_all, replayed_dead_letters, shape, unavailable};
use crate::Ingest;
use crate::batch::Batch;
use crate::refusals::Refusals;

/// What became of a table that is not there.
pub(super) enum Missing {
    Settled(Box<Resolved>),
    Created,
}

/// A table that the catalog does not have: its records are refused, or it is made from those that fit together.
pub(super) async fn missing(
    ingest: &Ingest,
    batch: &Batch<'_>,
    (table, units): (&TableName, &[usize]),
    errors: &dyn Refusals,
) -> Result<Missing, TableError> {
    let settings = match ingest.settings.table(table, &BTreeMap::new()) {
        Ok(settings) => settings,
        Err(problems) => return Ok(Missing::Settled(Box::new(refuse_all(units, &unavailable(&problems))))),
    };
    let (changes, mut resolved) = changes(batch, units, &settings);
    match settings.on_missing_table {
        OnMissingTable::DeadLetter => {
            let detail = format!("the catalog has no table `{table}` and on_missing_table is \"dead-letter\"");
            let rejection = Rejection::new(Stage::Table, ReasonCode::TableUnknown, detail);
            resolved.refused.extend(changes.iter().map(|(unit, _)| (*unit, rejection.clone())));
            return Ok(Missing::Settled(Box::new(resolved)));
        }
        OnMissingTable::Create => {}
    }
    let open: Vec<(usize, &ChangeEvent<'_>)> = changes.into_iter().filter(|(unit, _)| !is_dead_letter(batch, *unit, errors)).collect();
    let case = ingest.settings.route.case();
    let target = Target { settings: &settings, case, ddl_columns: &[], stored: None };
    let Applied { converted, folded, .. } = target.apply(&open).await?;
    // A truncate alone names no column to make a table of, and there is nothing to truncate.
    if !batch.is_rehearsed() && !converted.schema.columns.is_empty() && folded.outcomes.iter().any(|(_, outcome)| needs_table(outcome)) {
        let mut creation = creation(converted.schema, &settings);
        if !folded.outcomes.iter().any(|(_, outcome)| *outcome == Outcome::Row) {
            creation.properties.extend([shape::open()]);
        }
        ingest.catalog.create(table, &creation).await?;
        return Ok(Missing::Created);
    }
    let outcomes = note_outcomes((&converted, folded.outcomes), &open, &mut resolved);
    resolved.decided.extend(outcomes);
    resolved.decided.extend(replayed_dead_letters(batch, units, errors));
    Ok(Missing::Settled(Box::new(resolved)))
}

/// Whether an outcome needs a table. A delete finds no row in a new table, but its ledger has to remember it: delivered again after a
/// later insert, it would delete that row.
const fn needs_table(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Row | Outcome::Delete => true,
        Outcome::Control | Outcome::Stale | Outcome::Rejected(_) => false,
    }
}

fn creation(schema: TableSchema, settings: &TableSettings) -> TableCreation {
    TableCreation {
        partition_by: settings.partition_by.clone(),
        sort_by: settings.sort_by.clone(),
        properties: settings.properties.clone(),
        ..TableCreation::of(schema)
    }
}
