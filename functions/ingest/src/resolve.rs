//! One table's units against one version of the table: which are decided already, which are refused, and what the rest does to the table.

mod apply;
mod missing;
mod order;
mod shape;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use sluice_model::{ChangeEvent, Coverage, DeclaredType, OffsetLedger, ReasonCode, Rejection, Stage, TableName, TableSchema};
use sluice_pipeline::settings::{OnDuplicateField, OnSchemaChange, OnUnavailable, TableSettings};
use sluice_pipeline::{Converted, Outcome, SchemaChange as SchemaVerdict, Truncate as FoldTruncate};
use sluice_table::{BaseUse, RowDelta, TableError, TableOperations, TableVersion, Truncate, ledger, schema};

use apply::Target;
use missing::{Missing, missing};

use crate::Ingest;
use crate::batch::{Batch, Decision};
use crate::receive::UnitKind;
use crate::refusals::Refusals;
use crate::reply::SchemaReport;

/// What resolving one table came to.
#[derive(Default)]
pub struct Resolved {
    /// Units that are decided without a commit.
    pub decided: Vec<(usize, Decision)>,
    /// Units that are refused: they are decided when the error table has them.
    pub refused: Vec<(usize, Rejection)>,
    /// What is to be committed, if anything.
    pub work: Option<Work>,
}

/// A delta that is ready to be written and committed.
pub struct Work {
    /// The table.
    pub operations: Arc<dyn TableOperations>,
    /// The version it was resolved against.
    pub version: TableVersion,
    /// What it does to the table.
    pub delta: RowDelta,
    /// The units that are decided when it is committed.
    pub outcomes: Vec<(usize, Decision)>,
    /// What happens to the schema.
    pub schema: SchemaReport,
}

/// A table in trouble.
pub struct Trouble {
    /// What happened.
    pub error: TableError,
    /// What the settings say about its records when the trouble is fatal.
    pub on_unavailable: OnUnavailable,
}

/// A table is created at most once on the way, so two looks are enough; the third is for one that is dropped in between.
const MAX_LOOKS: usize = 3;

/// Resolves the units of a table against its current version.
///
/// # Errors
/// [`Trouble`] when the table cannot be read or created.
#[tracing::instrument(skip_all, fields(%table))]
pub async fn resolve(ingest: &Ingest, batch: &Batch<'_>, table: &TableName, errors: &dyn Refusals) -> Result<Resolved, Trouble> {
    let units = batch.tables.get(table).map_or(&[][..], Vec::as_slice);
    let from_file = ingest.settings.table(table, &BTreeMap::new());
    let on_unavailable = from_file.as_ref().map_or(OnUnavailable::DeadLetter, |settings| settings.on_unavailable);
    let trouble = |error| Trouble { error, on_unavailable };
    let mut created = SchemaReport::Unchanged;
    for _ in 0..MAX_LOOKS {
        let Some(operations) = ingest.catalog.load(table).await.map_err(trouble)? else {
            match missing(ingest, batch, (table, units), errors).await.map_err(trouble)? {
                Missing::Settled(resolved) => return Ok(*resolved),
                Missing::Created => created = SchemaReport::Created,
            }
            continue;
        };
        let version = operations.refresh().await.map_err(trouble)?;
        let mut resolver = match Resolver::new(ingest, batch, (table, units), version) {
            Ok(resolver) => resolver,
            Err(Refusal::All(rejection)) => return Ok(refuse_all(units, &rejection)),
            Err(Refusal::Trouble(error)) => return Err(trouble(error)),
        };
        return resolver.run(operations, errors, created).await.map_err(trouble);
    }
    Err(trouble(TableError::Missing(table.clone())))
}

/// All units refused for one reason.
#[must_use]
pub fn refuse_all(units: &[usize], rejection: &Rejection) -> Resolved {
    Resolved { refused: units.iter().map(|unit| (*unit, rejection.clone())).collect(), ..Resolved::default() }
}

/// Sorts what became of the events: refusals go to `resolved`, the others are returned with their units.
fn note_outcomes(
    (converted, outcomes): (&Converted, Vec<(usize, Outcome)>),
    open: &[(usize, &ChangeEvent<'_>)],
    resolved: &mut Resolved,
) -> Vec<(usize, Decision)> {
    resolved.refused.extend(converted.rejections.iter().map(|(event, rejection)| (open[*event].0, rejection.clone())));
    let mut decided = Vec::with_capacity(outcomes.len());
    for (event, outcome) in outcomes {
        let unit = open[event].0;
        match outcome {
            Outcome::Row => decided.push((unit, Decision::Row)),
            Outcome::Delete => decided.push((unit, Decision::Delete)),
            Outcome::Control => decided.push((unit, Decision::Control)),
            Outcome::Stale => decided.push((unit, Decision::Stale)),
            Outcome::Rejected(rejection) => resolved.refused.push((unit, rejection)),
        }
    }
    decided
}

fn is_dead_letter(batch: &Batch<'_>, unit: usize, errors: &dyn Refusals) -> bool {
    batch.units.get(unit).is_some_and(|unit| errors.coverage(&unit.key, unit.coordinate) == Coverage::Decided)
}

fn replayed_dead_letters(batch: &Batch<'_>, units: &[usize], errors: &dyn Refusals) -> Vec<(usize, Decision)> {
    units.iter().filter(|unit| is_dead_letter(batch, **unit, errors)).map(|unit| (*unit, Decision::Replayed)).collect()
}

/// The change events of some units; schema changes count as control, and a field that stands twice is a refusal unless the settings say
/// otherwise.
fn changes<'b, 'd>(batch: &'b Batch<'d>, units: &[usize], settings: &TableSettings) -> (Vec<(usize, &'b ChangeEvent<'d>)>, Resolved) {
    let mut resolved = Resolved::default();
    let mut changes = Vec::with_capacity(units.len());
    for index in units {
        let Some(unit) = batch.units.get(*index) else { continue };
        match &unit.kind {
            UnitKind::Change(_, event) => match duplicate(unit, settings) {
                Some(rejection) => resolved.refused.push((*index, rejection)),
                None => changes.push((*index, event.as_ref())),
            },
            UnitKind::SchemaChange(..) => resolved.decided.push((*index, Decision::Control)),
            UnitKind::Control | UnitKind::Repeated | UnitKind::Rejected(_) => {}
        }
    }
    (changes, resolved)
}

fn duplicate(unit: &crate::receive::Unit<'_>, settings: &TableSettings) -> Option<Rejection> {
    match settings.on_duplicate_field {
        OnDuplicateField::Last => None,
        OnDuplicateField::DeadLetter => {
            let field = unit.document?.duplicate_field()?;
            let detail = format!("the field {} stands twice in one object", Rejection::quote(field));
            Some(Rejection::of_field(Stage::Decode, ReasonCode::DuplicateField, field, detail))
        }
    }
}

fn unavailable(problems: &[sluice_model::config::ConfigProblem]) -> Rejection {
    let listed: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Rejection::new(Stage::Table, ReasonCode::TableUnavailable, format!("the table's settings are wrong: {}", listed.join("; ")))
}

/// Why a table's units are not looked at one by one.
enum Refusal {
    All(Rejection),
    Trouble(TableError),
}

/// One table at one version.
struct Resolver<'r, 'd> {
    ingest: &'r Ingest,
    batch: &'r Batch<'d>,
    table: &'r TableName,
    units: &'r [usize],
    version: TableVersion,
    settings: TableSettings,
    schema: TableSchema,
    ledger: OffsetLedger,
}

impl<'r, 'd> Resolver<'r, 'd> {
    fn new(
        ingest: &'r Ingest,
        batch: &'r Batch<'d>,
        (table, units): (&'r TableName, &'r [usize]),
        version: TableVersion,
    ) -> Result<Self, Refusal> {
        let metadata = &version.metadata;
        let properties: BTreeMap<String, String> =
            metadata.properties().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let settings = ingest.settings.table(table, &properties).map_err(|problems| Refusal::All(unavailable(&problems)))?;
        let settings = shape::settings_for(metadata.properties(), settings);
        let uuid = metadata.uuid().to_string();
        if let Some(expected) = settings.uuid.as_ref().filter(|expected| !expected.eq_ignore_ascii_case(&uuid)) {
            let detail = format!("`{table}` has the uuid {uuid}, the settings expect {expected}: another table stands under its name");
            return Err(Refusal::All(Rejection::new(Stage::Table, ReasonCode::TableReplaced, detail)));
        }
        let schema = schema::to_model(metadata).map_err(Refusal::Trouble)?;
        let ledger = ledger::read(metadata).map_err(Refusal::Trouble)?;
        Ok(Self { ingest, batch, table, units, version, settings, schema, ledger })
    }

    async fn run(
        &mut self,
        operations: Arc<dyn TableOperations>,
        errors: &dyn Refusals,
        created: SchemaReport,
    ) -> Result<Resolved, TableError> {
        let (changes, mut resolved) = changes(self.batch, self.units, &self.settings);
        let ddl = self.schema_changes(errors, &mut resolved);
        resolved.decided.extend(self.replayed_control());
        let open = self.open_changes(changes, &ddl.columns, (errors, &mut resolved))?;
        let (open, order_use) = self.in_order(open, &ddl.columns, &mut resolved).await?;
        let applied = self.target(&ddl.columns).apply(&open).await?;
        let mut outcomes = ddl.units;
        outcomes.extend(note_outcomes((&applied.converted, applied.folded.outcomes), &open, &mut resolved));
        if outcomes.is_empty() {
            return Ok(resolved);
        }
        let evolved = evolved(&applied.converted);
        let schema = match (created, &evolved) {
            (SchemaReport::Created, _) => SchemaReport::Created,
            (SchemaReport::Unchanged | SchemaReport::Evolved, Some(_)) => SchemaReport::Evolved,
            (SchemaReport::Unchanged | SchemaReport::Evolved, None) => SchemaReport::Unchanged,
        };
        let rows = Some(applied.folded.rows).filter(|rows| rows.num_rows() > 0);
        let shaped = rows.is_some() && shape::is_open(self.version.metadata.properties());
        let delta = RowDelta {
            base_use: match order_use {
                BaseUse::Rebasable => applied.base_use,
                BaseUse::PinnedToSnapshot => BaseUse::PinnedToSnapshot,
            },
            summary: self.redriven(&outcomes).into_iter().collect(),
            properties: shaped.then(shape::closed).into_iter().collect(),
            rows,
            delete_keys: applied.folded.delete_keys,
            truncate: match applied.folded.truncate {
                FoldTruncate::No => Truncate::Keep,
                FoldTruncate::First => Truncate::All,
            },
            claims: self.batch.claims_of(self.table),
            applies: outcomes.iter().filter_map(|(unit, _)| self.batch.units.get(*unit)).map(|u| (u.key.clone(), u.coordinate)).collect(),
            evolved,
            ..RowDelta::on(&self.version)
        };
        resolved.work = Some(Work { operations, version: self.version.clone(), delta, outcomes, schema });
        Ok(resolved)
    }

    fn target<'t>(&'t self, ddl_columns: &'t [(String, DeclaredType)]) -> Target<'t> {
        let stored = Some((&self.version, &self.schema));
        Target { settings: &self.settings, case: self.ingest.settings.route.case(), ddl_columns, stored }
    }

    /// The changes that are still to be applied: those that were decided before are taken out first, so that they leave no trace in the
    /// schema. What a record becomes is computed afresh; only then is the ledger of its destination asked.
    fn open_changes<'c>(
        &self,
        changes: Vec<(usize, &'c ChangeEvent<'d>)>,
        ddl_columns: &[(String, DeclaredType)],
        (errors, resolved): (&dyn Refusals, &mut Resolved),
    ) -> Result<Vec<(usize, &'c ChangeEvent<'d>)>, TableError> {
        if !changes.iter().any(|(unit, _)| self.coverage(*unit, errors) != Coverage::New) {
            return Ok(changes);
        }
        let converted = self.target(ddl_columns).convert(&changes, &[])?;
        let accepted: HashSet<usize> = converted.accepted().collect();
        let mut open = Vec::with_capacity(changes.len());
        for (event, (unit, change)) in changes.into_iter().enumerate() {
            match (self.coverage(unit, errors), accepted.contains(&event)) {
                (Coverage::New, _) | (_, false) => open.push((unit, change)),
                (Coverage::Decided, true) => resolved.decided.push((unit, Decision::Replayed)),
                (Coverage::BelowFloor, true) => resolved.refused.push((unit, below_ledger())),
            }
        }
        Ok(open)
    }

    /// A dead letter is decided for its data table too: redrive is the way back.
    fn coverage(&self, unit: usize, errors: &dyn Refusals) -> Coverage {
        let Some(unit) = self.batch.units.get(unit) else { return Coverage::New };
        match errors.coverage(&unit.key, unit.coordinate) {
            Coverage::Decided => Coverage::Decided,
            Coverage::New | Coverage::BelowFloor => self.ledger.coverage(&unit.key, unit.coordinate),
        }
    }

    /// Events without a row that an earlier delivery brought: this table's ledger, which claims whole batches, remembers them.
    fn replayed_control(&self) -> Vec<(usize, Decision)> {
        let units = self.batch.units.iter().enumerate();
        let covered = units.filter(|(index, unit)| {
            let without_row = match &unit.kind {
                UnitKind::Control => true,
                UnitKind::SchemaChange(..) => self.units.contains(index),
                UnitKind::Change(..) | UnitKind::Repeated | UnitKind::Rejected(_) => false,
            };
            without_row && self.ledger.coverage(&unit.key, unit.coordinate) == Coverage::Decided
        });
        covered.map(|(index, _)| (index, Decision::Replayed)).collect()
    }

    /// The columns that schema change events add here, and the units of those events.
    fn schema_changes(&self, errors: &dyn Refusals, resolved: &mut Resolved) -> SchemaChanges {
        let mut found = SchemaChanges::default();
        match self.settings.on_schema_change {
            OnSchemaChange::Record => return found,
            OnSchemaChange::Apply => {}
        }
        for index in self.units {
            let Some(UnitKind::SchemaChange(_, change)) = self.batch.units.get(*index).map(|unit| &unit.kind) else { continue };
            let decision = match self.coverage(*index, errors) {
                Coverage::New => None,
                Coverage::Decided | Coverage::BelowFloor => Some(Decision::Replayed),
            };
            resolved.decided.retain(|(unit, _)| unit != index);
            match decision {
                Some(decision) => resolved.decided.push((*index, decision)),
                None => {
                    let known = change.columns.iter().filter_map(|(name, kind)| Some((name.to_string(), kind.clone()?)));
                    found.columns.extend(known);
                    found.units.push((*index, Decision::Control));
                }
            }
        }
        found
    }
}

/// The schema that the table is to get with the delta, where it changes.
fn evolved(converted: &Converted) -> Option<TableSchema> {
    match converted.change {
        SchemaVerdict::Unchanged => None,
        SchemaVerdict::Evolved | SchemaVerdict::Create => Some(converted.schema.clone()),
    }
}

#[derive(Default)]
struct SchemaChanges {
    columns: Vec<(String, DeclaredType)>,
    units: Vec<(usize, Decision)>,
}

fn below_ledger() -> Rejection {
    let detail = "the offset lies below the ledger's floor, where a gap was closed: whether it was applied can no longer be told";
    Rejection::new(Stage::Ledger, ReasonCode::OffsetBelowLedger, detail)
}
