//! One record's way into the columns.

mod key;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use sluice_model::{ChangeEvent, Column, Image, Operation, ReasonCode, Rejection, Stage, TableSchema, UnchangedMarker};

use crate::columns::{Cell, Level, Recorder, Slot, Source, UnknownFields};
use crate::evolve::Proposal;
use crate::names::{FieldOrder, NameCase};
use crate::plan::{Mode, Plan};
use crate::settings::{OnPartialRow, OnTruncate, TableSettings};
use crate::unchanged::is_unchanged;
use crate::unit::{Action, Row};
use crate::values::{Carrier, ColumnRules, Fault, TableRules};

/// What came of one record.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) action: Option<Action>,
    pub(crate) unchanged: Vec<usize>,
    pub(crate) faults: Vec<Rejection>,
    pub(crate) proposals: Vec<Proposal>,
}

/// Writes records into the columns of one schema.
#[derive(Debug)]
pub(crate) struct RecordWriter<'e, 'r> {
    settings: &'r TableSettings,
    plan: &'r Plan,
    case: NameCase,
    unknown: UnknownFields,
    recorder: Recorder<'r>,
    /// Notes on old keys, which are nobody's fault.
    scratch: Recorder<'r>,
    rows: Level<'e>,
    row_count: usize,
    /// The key columns, then the version column.
    keys: Level<'e>,
    key_count: usize,
    /// The column of the key table for each column of the table.
    key_column: Vec<Option<usize>>,
    /// Key columns without which a record is refused.
    strict_key: Vec<usize>,
    /// The names of the last before-image's fields.
    key_order: FieldOrder,
    /// Where the key stands in the last before-image.
    old_key: Option<key::KeyFields<'e>>,
}

impl<'e, 'r> RecordWriter<'e, 'r> {
    pub(crate) fn new(rules: &'r TableRules<'r>, plan: &'r Plan, schema: &TableSchema, recorder: Recorder<'r>) -> Self {
        let settings = rules.settings;
        let (case, unknown) = (recorder.case, recorder.unknown);
        let column_rules = |column: &Column| ColumnRules::new(settings.column(&column.name));
        let is_strict = |index: &usize| {
            let column = schema.columns.get(*index);
            plan.mode == Mode::Upsert || column.is_some_and(|column| column.required)
        };
        let strict_key: Vec<usize> = plan.key.iter().copied().filter(is_strict).collect();
        let mut columns = schema.columns.clone();
        for index in &strict_key {
            if let Some(column) = columns.get_mut(*index) {
                column.required = false;
            }
        }
        let (key_columns, key_column) = key_table(&columns, plan);
        let scratch = Recorder::new(rules, case, UnknownFields::Ignore);
        let rows = Level::new(&columns, Vec::new(), case, column_rules);
        let keys = Level::new(&key_columns, Vec::new(), case, column_rules);
        Self {
            settings,
            plan,
            case,
            unknown,
            recorder,
            scratch,
            rows,
            row_count: 0,
            keys,
            key_count: 0,
            key_column,
            strict_key,
            key_order: FieldOrder::default(),
            old_key: None,
        }
    }

    /// Converts one record.
    pub(crate) fn write(&mut self, event: &'e ChangeEvent<'e>) -> Outcome {
        self.recorder.hints = event.hints;
        self.scratch.hints = event.hints;
        let mut unchanged = Vec::new();
        let action = self.apply(event, &mut unchanged);
        let (mut faults, proposals) = self.recorder.take();
        let action = match action {
            Ok(action) => Some(action),
            Err(rejection) => {
                faults.push(*rejection);
                None
            }
        };
        Outcome { action, unchanged, faults, proposals }
    }

    fn apply(&mut self, event: &'e ChangeEvent<'e>, unchanged: &mut Vec<usize>) -> Result<Action, Box<Rejection>> {
        match event.operation {
            Operation::Truncate => return self.truncate(),
            Operation::Insert | Operation::Snapshot | Operation::Update | Operation::Delete => {}
        }
        let is_delete = event.operation == Operation::Delete;
        match (self.plan.mode, is_delete) {
            (Mode::NoKey, _) => Err(refused(
                ReasonCode::KeyUnknown,
                "the table has no key to upsert by; key names one, on_missing_key = \"append\" adds rows",
            )),
            (Mode::Append, true) => Err(refused(
                ReasonCode::KeyUnknown,
                "a delete cannot be applied to a table that is only appended to; mode = \"changelog\" keeps it",
            )),
            (Mode::Append, false) => self.write_after(event, unchanged).map(|row| Action::Append(Row::After(row))),
            (Mode::Changelog, false) => self.write_after(event, unchanged).map(|row| Action::Append(Row::After(row))),
            (Mode::Changelog, true) => self.write_deleted(event).map(|row| Action::Append(Row::Deleted(row))),
            (Mode::Upsert, false) => {
                let row = self.write_after(event, unchanged)?;
                let old_key = if event.operation == Operation::Update { self.write_old_key(event) } else { None };
                Ok(Action::Upsert { row, old_key })
            }
            (Mode::Upsert, true) => self.write_delete(event).map(|key| Action::Delete { key }),
        }
    }

    fn truncate(&self) -> Result<Action, Box<Rejection>> {
        match self.settings.on_truncate {
            OnTruncate::Ignore => Ok(Action::Control),
            OnTruncate::DeleteAll => Ok(Action::Truncate),
            OnTruncate::DeadLetter => Err(refused(
                ReasonCode::TruncateNotApplied,
                "the source emptied the table; on_truncate = \"delete-all\" or \"ignore\" decides what to do",
            )),
        }
    }

    fn write_after(&mut self, event: &'e ChangeEvent<'e>, unchanged: &mut Vec<usize>) -> Result<usize, Box<Rejection>> {
        let Some(image) = &event.after else {
            return Err(refused(ReasonCode::MalformedRecord, "the record holds no row"));
        };
        self.recorder.unknown = self.unknown;
        self.collect_row(image);
        self.set_aside_unchanged(image, unchanged);
        self.complete_key((image, event.key.as_ref()), unchanged);
        Ok(self.append_row(event.operation, image, unchanged))
    }

    /// The row that a delete removed, for a changelog.
    fn write_deleted(&mut self, event: &'e ChangeEvent<'e>) -> Result<usize, Box<Rejection>> {
        let Some(image) = [&event.before, &event.after, &event.key].into_iter().flatten().next() else {
            return Err(refused(ReasonCode::KeyMissing, "the delete names no row"));
        };
        self.recorder.unknown = match self.unknown {
            UnknownFields::Refuse => UnknownFields::Ignore,
            UnknownFields::Ignore | UnknownFields::Add => self.unknown,
        };
        let mut unchanged = Vec::new();
        self.collect_row(image);
        self.set_aside_unchanged(image, &mut unchanged);
        unchanged.clear();
        self.complete_key((image, event.key.as_ref()), &unchanged);
        Ok(self.append_row(event.operation, image, &unchanged))
    }

    fn collect_row(&mut self, image: &'e Image<'e>) {
        self.recorder.begin(image);
        if self.plan.document.is_some() {
            let cell = Cell { node: image.object, declared: None };
            self.recorder.check_duplicates(&[], &cell);
        }
        self.rows.collect(&Cell { node: image.object, declared: image.declared }, &mut self.recorder);
    }

    /// Takes values out of their slots that only say that nothing changed.
    fn set_aside_unchanged(&mut self, image: &Image<'_>, unchanged: &mut Vec<usize>) {
        if image.unchanged == UnchangedMarker::Never {
            return;
        }
        for (index, slot) in self.rows.slots.iter_mut().enumerate() {
            let Some(Slot { cell, position }) = *slot else { continue };
            if !is_unchanged(image.unchanged, cell.node) {
                continue;
            }
            *slot = None;
            unchanged.push(index);
            let mergeable = self.plan.mode == Mode::Upsert && self.settings.on_partial_row == OnPartialRow::Merge;
            if !mergeable && let Some(field) = self.rows.fields.get(index) {
                let detail =
                    "the source did not send this value because it did not change, and it is not merged here (mode, on_partial_row)";
                let start = self.recorder.fault_count();
                self.recorder.refuse(field.path(), Fault::new(ReasonCode::UnavailableValue, detail));
                self.recorder.place_faults(start, position);
            }
        }
    }

    fn append_row(&mut self, operation: Operation, image: &Image<'_>, unchanged: &[usize]) -> usize {
        let plan = self.plan;
        self.rows.append_slots(&mut self.recorder, |index, field, recorder| {
            let carrier = if plan.soft_delete == Some(index) {
                Carrier::Bool(false)
            } else if plan.operation == Some(index) {
                Carrier::Text(operation.as_str().into())
            } else if plan.document == Some(index) {
                Carrier::Text(document_text(image).into())
            } else if unchanged.contains(&index) && !plan.key.contains(&index) {
                field.append_filler();
                return Source::Own;
            } else {
                return Source::Record;
            };
            field.append_carrier(&carrier, None, recorder);
            Source::Own
        });
        self.row_count += 1;
        self.row_count - 1
    }

    /// The columns of the rows and of the key table.
    pub(crate) fn finish(mut self) -> Result<(Vec<ArrayRef>, Vec<ArrayRef>), ArrowError> {
        Ok((self.rows.finish()?, self.keys.finish()?))
    }
}

/// The columns of the key table: the key, and the version where it is a column of its own.
fn key_table(columns: &[Column], plan: &Plan) -> (Vec<Column>, Vec<Option<usize>>) {
    let version = plan.version.filter(|index| !plan.key.contains(index));
    let chosen: Vec<usize> = plan.key.iter().copied().chain(version).collect();
    let place = |index: usize| chosen.iter().position(|other| *other == index);
    let key_columns = chosen.iter().filter_map(|index| columns.get(*index)).cloned();
    let optional = key_columns.map(|column| Column { required: false, ..column });
    (optional.collect(), (0..columns.len()).map(place).collect())
}

fn document_text(image: &Image<'_>) -> String {
    let mut text = String::with_capacity(image.object.raw().len());
    image.object.write_compact(&mut text);
    text
}

fn refused(code: ReasonCode, detail: &str) -> Box<Rejection> {
    Box::new(Rejection::new(Stage::Convert, code, detail))
}
