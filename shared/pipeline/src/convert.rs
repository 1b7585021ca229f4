//! From change events to columns, the table's schema growing on the way.
//!
//! A record that is refused leaves no trace, the columns that it would have added included. Nobody knows beforehand which records will
//! be refused, so the batch is converted in rounds: each round takes the schema that the records accepted so far ask for, and records
//! that ask for something and are refused all the same no longer have a say. A batch that asks for nothing needs one round.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::ArrayRef;
use sluice_model::{ChangeEvent, DeclaredType, Operation, ReasonCode, Rejection, Stage, TableSchema};

use crate::check::MissingColumn;
use crate::columns::{Recorder, UnknownFields};
use crate::converted::{Converted, SchemaChange, Tables};
use crate::evolve::{Proposal, apply_ddl, number_new_columns};
use crate::names::{NameCase, find_column};
use crate::plan::{Intent, Mode, Plan, add_own_columns, adds_columns, means_key};
use crate::record::{Outcome, RecordWriter};
use crate::settings::{OnUnknownColumn, TableSettings};
use crate::unit::{Action, Row, Unit};
use crate::values::TableRules;
use crate::version::Version;

/// Rounds after which records that still ask for something new are refused.
const MAX_ROUNDS: usize = 8;

/// Arrow could not build a column: a defect of this program, or more than 2 GiB in one column. Never the fault of one record.
#[derive(Debug, thiserror::Error)]
#[error("a column could not be built: {0}")]
pub struct ColumnError(#[from] arrow_schema::ArrowError);

/// The table that a batch is for.
#[derive(Debug, Clone, Copy)]
pub struct TableContext<'a> {
    /// Its schema; `None` when it does not exist and is to be created.
    pub schema: Option<&'a TableSchema>,
    /// Its settings.
    pub settings: &'a TableSettings,
    /// How the names of added columns are folded.
    pub case: NameCase,
    /// Columns that DDL events of the batch list, where `on_schema_change` is `apply`.
    pub ddl_columns: &'a [(String, DeclaredType)],
    /// Events that an earlier fold of the same batch refused, and why: they are refused again and have no say in the schema.
    pub refused: &'a [(usize, Rejection)],
}

/// Converts the events of one table. They are sorted by topic, partition, offset and row.
///
/// # Errors
/// [`ColumnError`] when Arrow refuses a column, which no input should bring about.
pub fn convert<'e>(events: &'e [&'e ChangeEvent<'e>], table: &TableContext<'_>) -> Result<Converted, ColumnError> {
    let rules = TableRules::new(table.settings);
    let mut rounds = Rounds::new(events, table);
    loop {
        let intent = rounds.intent();
        let schema = rounds.schema(&intent);
        let pass = Pass::run(&rounds, &rules, (&intent, &schema))?;
        if rounds.settle(&pass, &schema) == Progress::Settled {
            return rounds.finish(pass, &rules, (intent, schema));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Settled,
    Again,
}

/// What the rounds so far have found out.
struct Rounds<'e, 't> {
    events: &'e [&'e ChangeEvent<'e>],
    table: &'t TableContext<'t>,
    /// The table's schema with the columns of DDL events.
    base: TableSchema,
    /// The same with columns renamed, as soon as there is an accepted record.
    renamed: TableSchema,
    /// What records ask of the schema, by event.
    wishes: BTreeMap<usize, Vec<Proposal>>,
    /// Records whose wishes no longer count.
    excluded: BTreeSet<usize>,
    /// Why records were refused when they first were: what they failed at before the schema changed under them.
    first_refusals: BTreeMap<usize, Rejection>,
    round: usize,
}

impl<'e, 't> Rounds<'e, 't> {
    fn new(events: &'e [&'e ChangeEvent<'e>], table: &'t TableContext<'t>) -> Self {
        let base = base_schema(table);
        let mut renamed = base.clone();
        rename_columns(&mut renamed, table);
        let excluded = table.refused.iter().map(|(event, _)| *event).collect();
        let first_refusals = table.refused.iter().cloned().collect();
        Self { events, table, base, renamed, wishes: BTreeMap::new(), excluded, first_refusals, round: 0 }
    }

    fn intent(&self) -> Intent {
        let heard = self.events.iter().enumerate().filter(|(index, _)| !self.excluded.contains(index)).map(|(_, event)| *event);
        let heard: Vec<_> = if self.table.schema.is_none() { heard.collect() } else { Vec::new() };
        Intent::new(self.table.settings, self.table.schema.map(|_| &self.renamed), &heard)
    }

    /// The table's schema with everything that is asked for.
    fn schema(&self, intent: &Intent) -> TableSchema {
        let (settings, case) = (self.table.settings, self.table.case);
        let mut schema = self.renamed.clone();
        for proposal in self.wishes.values().flatten() {
            proposal.apply(&mut schema.columns, case);
        }
        if self.table.schema.is_none() {
            require_key(&mut schema, intent, case);
        }
        if self.table.schema.is_none() || adds_columns(settings) {
            add_own_columns(&mut schema.columns, settings, (intent.mode, case));
        }
        number_new_columns(&mut schema);
        if self.table.schema.is_none() {
            let is_key = |name: &str| means_key(intent.new_key(), name, case);
            schema.identifier_ids = schema.columns.iter().filter(|column| is_key(&column.name)).map(|column| column.id).collect();
        }
        self.stamped(schema)
    }

    /// A schema that the table does not have yet has no id.
    fn stamped(&self, mut schema: TableSchema) -> TableSchema {
        if self.table.schema.is_some_and(|base| base.columns != schema.columns) {
            schema.schema_id = -1;
        }
        schema
    }

    fn recorder<'r>(&self, rules: &'r TableRules<'r>, intent: &'r Intent) -> Recorder<'r> {
        let settings = self.table.settings;
        let creating = self.table.schema.is_none();
        let unknown = match settings.on_unknown_column {
            _ if settings.document.is_some() => UnknownFields::Ignore,
            _ if creating => UnknownFields::Add,
            OnUnknownColumn::Add => UnknownFields::Add,
            OnUnknownColumn::Ignore => UnknownFields::Ignore,
            OnUnknownColumn::DeadLetter => UnknownFields::Refuse,
        };
        let mut recorder = Recorder::new(rules, self.table.case, unknown);
        if creating || unknown == UnknownFields::Add {
            recorder.new_key = intent.new_key();
        }
        recorder
    }

    /// Takes up what the pass asks for, and drops the wishes of records that it refused.
    fn settle(&mut self, pass: &Pass, schema: &TableSchema) -> Progress {
        self.round += 1;
        self.note_refusals(pass);
        let failing = self.failing(pass);
        if !failing.is_empty() {
            for event in failing {
                self.wishes.remove(&event);
                self.excluded.insert(event);
            }
            self.give_up_late(schema);
            return Progress::Again;
        }
        let mut progress = Progress::Settled;
        for (event, outcome) in pass.outcomes.iter().enumerate() {
            if outcome.faults.is_empty() && !outcome.proposals.is_empty() && !self.excluded.contains(&event) {
                progress = self.take_up(event, outcome, schema).max_of(progress);
            }
        }
        progress
    }

    fn note_refusals(&mut self, pass: &Pass) {
        for (event, outcome) in pass.outcomes.iter().enumerate().filter(|(_, outcome)| !outcome.faults.is_empty()) {
            if !self.first_refusals.contains_key(&event)
                && let Some(rejection) = Rejection::merge(outcome.faults.clone())
            {
                self.first_refusals.insert(event, rejection);
            }
        }
    }

    /// No batch gets more rounds than this: then nobody has a say any more.
    fn give_up_late(&mut self, schema: &TableSchema) {
        if self.round > 2 * MAX_ROUNDS {
            for (event, wishes) in std::mem::take(&mut self.wishes) {
                self.first_refusals.entry(event).or_insert_with(|| cannot_evolve(&wishes, schema));
                self.excluded.insert(event);
            }
        }
    }

    fn take_up(&mut self, event: usize, outcome: &Outcome, schema: &TableSchema) -> Progress {
        let wishes = self.wishes.entry(event).or_default();
        let new: Vec<_> = outcome.proposals.iter().filter(|proposal| !wishes.contains(proposal)).cloned().collect();
        if self.round > MAX_ROUNDS || new.is_empty() {
            let had_a_say = !self.wishes.remove(&event).unwrap_or_default().is_empty();
            self.first_refusals.entry(event).or_insert_with(|| cannot_evolve(&outcome.proposals, schema));
            self.excluded.insert(event);
            return if had_a_say { Progress::Again } else { Progress::Settled };
        }
        wishes.extend(new);
        Progress::Again
    }

    /// The records that have a say and are refused: those with faults of their own, else those that only other records' columns do
    /// not suit.
    fn failing(&self, pass: &Pass) -> Vec<usize> {
        let asked: BTreeSet<String> = self.wishes.values().flatten().map(|proposal| proposal.column(self.table.case)).collect();
        let is_victim = |rejection: &Rejection| {
            let column = rejection.field.split('.').next().unwrap_or_default().to_lowercase();
            asked.contains(&column)
        };
        let refused = self.wishes.keys().filter_map(|event| pass.outcomes.get(*event).map(|outcome| (*event, outcome)));
        let refused: Vec<_> = refused.filter(|(_, outcome)| !outcome.faults.is_empty()).collect();
        let own_fault = |outcome: &Outcome| !outcome.faults.iter().all(is_victim);
        let any_own = self.round <= MAX_ROUNDS && refused.iter().any(|(_, outcome)| own_fault(outcome));
        refused.into_iter().filter(|(_, outcome)| !any_own || own_fault(outcome)).map(|(event, _)| event).collect()
    }

    fn finish(mut self, pass: Pass, rules: &TableRules<'_>, (intent, schema): (Intent, TableSchema)) -> Result<Converted, ColumnError> {
        let mut rejections = Vec::new();
        let mut units = Vec::new();
        for (event, outcome) in pass.outcomes.into_iter().enumerate() {
            let first = self.first_refusals.remove(&event);
            let pending = !outcome.proposals.is_empty();
            let refused = Rejection::merge(outcome.faults).or_else(|| pending.then(|| cannot_evolve(&outcome.proposals, &schema)));
            match (refused, outcome.action) {
                (Some(rejection), _) => rejections.push((event, first.unwrap_or(rejection))),
                (None, Some(action)) => units.push(self.unit(event, action, outcome.unchanged)),
                (None, None) => {}
            }
        }
        let (schema, tables) = if units.is_empty() { self.untouched(rules, &intent)? } else { (schema, pass.tables) };
        let change = match self.table.schema {
            None => SchemaChange::Create,
            Some(base) if base.columns == schema.columns => SchemaChange::Unchanged,
            Some(_) => SchemaChange::Evolved,
        };
        let plan = Plan::new(&intent, self.table.settings, (&schema.columns, self.table.case));
        let changers: BTreeSet<usize> = self.wishes.into_keys().collect();
        let on_stale = self.table.settings.on_stale;
        let is_new = self.table.schema.is_none();
        let checks = (self.table.settings.checks.clone(), missing_column(self.table));
        Ok(Converted { schema, change, rejections, units, tables, plan, changers, on_stale, checks, is_new })
    }

    fn unit(&self, event: usize, action: Action, unchanged: Vec<usize>) -> Unit {
        let source = self.events.get(event);
        let version = source.and_then(|event| Version::of_event(event, self.table.settings.version.as_ref()));
        Unit { event, action, unchanged, version }
    }

    /// Without an accepted record only DDL changes the schema.
    fn untouched(&self, rules: &TableRules<'_>, intent: &Intent) -> Result<(TableSchema, Tables), ColumnError> {
        let schema = self.stamped(self.base.clone());
        let plan = Plan::new(intent, self.table.settings, (&schema.columns, self.table.case));
        let writer = RecordWriter::new(rules, &plan, &schema, self.recorder(rules, intent));
        let (rows, keys) = writer.finish()?;
        Ok((schema, Tables { rows, keys }))
    }
}

impl Progress {
    fn max_of(self, other: Self) -> Self {
        if self == Self::Again || other == Self::Again { Self::Again } else { Self::Settled }
    }
}

fn base_schema(table: &TableContext<'_>) -> TableSchema {
    let Some(schema) = table.schema else {
        return TableSchema { schema_id: -1, columns: Vec::new(), identifier_ids: Vec::new(), last_column_id: 0 };
    };
    let mut schema = schema.clone();
    apply_ddl(&mut schema.columns, table.ddl_columns, table.case);
    number_new_columns(&mut schema);
    schema
}

/// `rename_of`: a column keeps its id and gets the new name.
fn rename_columns(schema: &mut TableSchema, table: &TableContext<'_>) {
    for (name, column) in &table.settings.columns {
        let Some(old) = &column.rename_of else { continue };
        let is_taken = find_column(&schema.columns, name, table.case).is_some();
        let index = find_column(&schema.columns, old, table.case).filter(|_| !is_taken);
        if let Some(column) = index.and_then(|index| schema.columns.get_mut(index)) {
            name.clone_into(&mut column.name);
        }
    }
}

fn require_key(schema: &mut TableSchema, intent: &Intent, case: NameCase) {
    for name in intent.new_key() {
        let index = find_column(&schema.columns, name, case);
        if let Some(column) = index.and_then(|index| schema.columns.get_mut(index)) {
            column.required = true;
        }
    }
}

fn cannot_evolve(proposals: &[Proposal], schema: &TableSchema) -> Rejection {
    let (code, path, what) = match proposals.first() {
        Some(Proposal::Widen { path, kind }) => (ReasonCode::ValueOutOfRange, path.join("."), format!("the column cannot become {kind}")),
        Some(Proposal::Relax { path }) => (ReasonCode::RequiredNull, path.join("."), "the column cannot become optional".to_owned()),
        Some(Proposal::Add { parent, name, .. }) => {
            let path = [parent.join("."), name.clone()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
            (ReasonCode::UnknownColumn, path, format!("the column cannot be added to the {} that there are", schema.columns.len()))
        }
        None => (ReasonCode::UnknownColumn, String::new(), "the schema cannot be changed".to_owned()),
    };
    Rejection::of_field(Stage::Convert, code, path, what)
}

/// One conversion of the whole batch with one schema.
struct Pass {
    outcomes: Vec<Outcome>,
    tables: Tables,
}

impl Pass {
    fn run(rounds: &Rounds<'_, '_>, rules: &TableRules<'_>, (intent, schema): (&Intent, &TableSchema)) -> Result<Self, ColumnError> {
        let settings = rounds.table.settings;
        let plan = Plan::new(intent, settings, (&schema.columns, rounds.table.case));
        let mut writer = RecordWriter::new(rules, &plan, schema, rounds.recorder(rules, intent));
        let mut outcomes: Vec<Outcome> = rounds.events.iter().map(|event| writer.write(event)).collect();
        for (event, rejection) in rounds.table.refused {
            if let Some(outcome) = outcomes.get_mut(*event) {
                outcome.faults.push(rejection.clone());
            }
        }
        let (rows, keys) = writer.finish()?;
        let missing =
            intent.mode == Mode::Changelog && plan.operation.is_none() && settings.on_unknown_column == OnUnknownColumn::DeadLetter;
        for (event, outcome) in outcomes.iter_mut().enumerate() {
            let is_truncate = rounds.events.get(event).is_some_and(|event| event.operation == Operation::Truncate);
            if missing && !is_truncate {
                outcome.faults.push(no_operation_column());
            }
        }
        // While the schema still grows a rule could miss a column that another record brings: rules are for the pass that settles it.
        let still_grows = |(event, outcome): (usize, &Outcome)| {
            outcome.faults.is_empty() && !outcome.proposals.is_empty() && !rounds.excluded.contains(&event)
        };
        if !outcomes.iter().enumerate().any(still_grows) {
            check_rows(rounds.table, schema, (&rows, &mut outcomes));
        }
        Ok(Self { outcomes, tables: Tables { rows, keys } })
    }
}

fn no_operation_column() -> Rejection {
    let detail = "changelog mode needs the string column `_op`, which the table does not have";
    Rejection::of_field(Stage::Convert, ReasonCode::UnknownColumn, crate::plan::OPERATION_COLUMN, detail)
}

fn missing_column(table: &TableContext<'_>) -> MissingColumn {
    let grows = table.schema.is_none() || adds_columns(table.settings);
    if grows { MissingColumn::IsNull } else { MissingColumn::IsFault }
}

/// Rows that stand after their event must keep the table's rules.
fn check_rows(table: &TableContext<'_>, schema: &TableSchema, (rows, outcomes): (&[ArrayRef], &mut [Outcome])) {
    let missing = missing_column(table);
    for check in &table.settings.checks {
        let verdict = check.evaluate((&schema.columns, rows), missing);
        // A row that is merged with the one that stands is asked for when it is whole: by the fold.
        let whole = |outcome: &&mut Outcome| outcome.faults.is_empty() && outcome.unchanged.is_empty();
        for outcome in outcomes.iter_mut().filter(whole) {
            let row = match outcome.action {
                Some(Action::Append(Row::After(row)) | Action::Upsert { row, .. }) => row,
                Some(Action::Append(Row::Deleted(_)) | Action::Delete { .. } | Action::Truncate | Action::Control) | None => continue,
            };
            if let Some(detail) = verdict.failure(row) {
                outcome.faults.push(Rejection::new(Stage::Check, ReasonCode::CheckFailed, detail));
            }
        }
    }
}
