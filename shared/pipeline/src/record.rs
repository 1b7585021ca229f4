//! One record's way into the columns.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use sluice_model::{ChangeEvent, Column, Image, NodeKind, Operation, ReasonCode, Rejection, Stage, TableSchema, UnchangedMarker};

use crate::columns::{Cell, Level, NO_POSITION, Recorder, Slot, Source, UnknownFields, declared_fields, declared_type};
use crate::evolve::Proposal;
use crate::names::NameCase;
use crate::plan::{Mode, Plan, means_key};
use crate::settings::{OnDuplicateField, OnPartialRow, OnTruncate, TableSettings};
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
        Self { settings, plan, case, unknown, recorder, scratch, rows, row_count: 0, keys, key_count: 0, key_column, strict_key }
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
        self.rows.collect(&Cell { node: image.object, declared: image.declared.as_deref() }, &mut self.recorder);
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

    /// Takes key values that the row does not have from the record key, and refuses a row without a key.
    fn complete_key(&mut self, (image, key_image): (&'e Image<'e>, Option<&'e Image<'e>>), unchanged: &[usize]) {
        if self.plan.mode == Mode::Upsert && !self.plan.missing_key.is_empty() {
            let images: Vec<&Image<'_>> = [Some(image), key_image].into_iter().flatten().collect();
            self.refuse_missing_key(&images);
        }
        for index in &self.plan.key {
            let empty = self.rows.slots.get(*index).is_some_and(Option::is_none);
            if empty && let Some(image) = key_image {
                let found = find_field(&mut self.rows, *index, image);
                if let Some(slot) = self.rows.slots.get_mut(*index) {
                    *slot = found;
                }
            }
        }
        for index in &self.strict_key {
            let slot = self.rows.slots.get(*index).copied().flatten();
            let Some(field) = self.rows.fields.get(*index) else { continue };
            let start = self.recorder.fault_count();
            match slot {
                Some(slot) => {
                    check_key(&slot, field.path(), &mut self.recorder);
                    self.recorder.place_faults(start, slot.position);
                }
                None if unchanged.contains(index) => {
                    let detail = "the source did not send the key";
                    self.recorder.refuse(field.path(), Fault::new(ReasonCode::UnavailableValue, detail));
                }
                None => self.recorder.refuse(field.path(), missing_key()),
            }
        }
    }

    /// Key columns that the table does not have: it gets them where it is created, else no record can be applied.
    fn refuse_missing_key(&mut self, images: &[&'e Image<'e>]) {
        for name in &self.plan.missing_key {
            for image in images {
                if !self.recorder.proposes_key(name) {
                    self.propose_key(image);
                }
            }
            if !self.recorder.proposes_key(name) {
                let is_null = images.iter().any(|image| has_null(image, name, self.case));
                self.recorder.refuse_field(&[], name, if is_null { null_key() } else { missing_key() });
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

    /// The key that the row had before, where the before-image has all of it.
    fn write_old_key(&mut self, event: &'e ChangeEvent<'e>) -> Option<usize> {
        let image = event.before.as_ref()?;
        self.check_image(image);
        for index in &self.plan.key {
            let found = find_field(&mut self.rows, *index, image);
            let usable = found.filter(|slot| !slot.cell.node.is_null() && !is_unchanged(image.unchanged, slot.cell.node));
            let slot = self.key_column.get(*index).copied().flatten().and_then(|column| self.keys.slots.get_mut(column));
            if let Some(slot) = slot {
                *slot = usable;
            }
            if usable.is_none() {
                self.keys.slots.fill(None);
                return None;
            }
        }
        self.keys.append_slots(&mut self.scratch, |_, _, _| Source::Record);
        self.key_count += 1;
        let (faults, proposals) = self.scratch.take();
        (faults.is_empty() && proposals.is_empty()).then_some(self.key_count - 1)
    }

    /// A before-image is read in part only; that no field stands twice holds for all of it.
    fn check_image(&mut self, image: &'e Image<'e>) {
        if self.settings.on_duplicate_field == OnDuplicateField::DeadLetter {
            self.recorder.check_duplicates(&[], &Cell { node: image.object, declared: None });
        }
    }

    /// The key of a delete: of each column, the first value that the before-image, the after-image or the record key has.
    fn write_delete(&mut self, event: &'e ChangeEvent<'e>) -> Result<usize, Box<Rejection>> {
        if self.settings.soft_delete.is_some() && self.plan.soft_delete.is_none() {
            let name = self.settings.soft_delete.as_deref().unwrap_or_default();
            let rejection = Rejection::of_field(
                Stage::Convert,
                ReasonCode::UnknownColumn,
                name,
                "soft_delete names a column that the table does not have",
            );
            return Err(Box::new(rejection));
        }
        let images: Vec<&Image<'_>> = [&event.before, &event.after, &event.key].into_iter().flatten().collect();
        for image in &images {
            self.recorder.begin(image);
            self.check_image(image);
            self.collect_key(image);
        }
        self.refuse_missing_key(&images);
        for index in &self.plan.key {
            let column = self.key_column.get(*index).copied().flatten();
            let slot = column.and_then(|column| self.keys.slots.get(column).copied()).flatten();
            let Some(field) = self.rows.fields.get(*index) else { continue };
            match slot {
                Some(slot) => check_key(&slot, field.path(), &mut self.recorder),
                None => self.recorder.refuse(field.path(), missing_key()),
            }
        }
        self.keys.append_slots(&mut self.recorder, |_, _, _| Source::Record);
        self.key_count += 1;
        Ok(self.key_count - 1)
    }

    fn collect_key(&mut self, image: &'e Image<'e>) {
        let declared = declared_fields(image.declared.as_deref());
        let mut filled: Vec<(usize, String)> = Vec::new();
        for (position, (name, node)) in image.object.fields().enumerate() {
            let column = self.rows.find(&name).and_then(|index| self.key_column.get(index).copied().flatten());
            let Some(column) = column.filter(|_| !is_unchanged(image.unchanged, node)) else { continue };
            let earlier = filled.iter().find(|(other, _)| *other == column);
            match (earlier, self.keys.fields.get(column)) {
                (Some((_, first)), Some(field)) if *first != name => self.recorder.collision(field.path(), first, &name),
                _ => {}
            }
            let free = self.keys.slots.get(column).is_some_and(Option::is_none) || earlier.is_some();
            if free && let Some(slot) = self.keys.slots.get_mut(column) {
                let cell = Cell { node, declared: declared_type(declared, position, &name) };
                *slot = Some(Slot { cell, position: position as u32 });
                filled.push((column, name.into_owned()));
            }
        }
    }

    /// A table that is created gets its key columns from deletes as well.
    fn propose_key(&mut self, image: &'e Image<'e>) {
        if self.recorder.new_key.is_empty() || self.plan.missing_key.is_empty() {
            return;
        }
        let declared = declared_fields(image.declared.as_deref());
        for (position, (name, node)) in image.object.fields().enumerate() {
            if means_key(&self.plan.missing_key, &name, self.case) {
                let cell = Cell { node, declared: declared_type(declared, position, &name) };
                self.recorder.propose_column(&[], &name, &cell);
            }
        }
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

/// The last field of an image that fills a column.
fn find_field<'e>(rows: &mut Level<'e>, index: usize, image: &'e Image<'e>) -> Option<Slot<'e>> {
    let declared = declared_fields(image.declared.as_deref());
    let mut found = None;
    for (position, (name, node)) in image.object.fields().enumerate() {
        if rows.find(&name) == Some(index) {
            let cell = Cell { node, declared: declared_type(declared, position, &name) };
            found = Some(Slot { cell, position: NO_POSITION });
        }
    }
    found
}

/// Whether an image has the key column called `key`, and it is null.
fn has_null(image: &Image<'_>, key: &str, case: NameCase) -> bool {
    let key = [key.to_owned()];
    image.object.fields().any(|(name, node)| node.is_null() && means_key(&key, &name, case))
}

fn check_key(slot: &Slot<'_>, path: &[String], recorder: &mut Recorder<'_>) {
    if slot.cell.node.kind() == NodeKind::Null {
        recorder.refuse(path, null_key());
    }
}

fn null_key() -> Fault {
    Fault::new(ReasonCode::KeyNull, "the key is null")
}

fn missing_key() -> Fault {
    Fault::new(ReasonCode::KeyMissing, "neither the row nor the record key has this key column")
}

fn document_text(image: &Image<'_>) -> String {
    let mut text = String::with_capacity(image.object.raw().len());
    image.object.write_compact(&mut text);
    text
}

fn refused(code: ReasonCode, detail: &str) -> Box<Rejection> {
    Box::new(Rejection::new(Stage::Convert, code, detail))
}
