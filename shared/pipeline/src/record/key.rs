//! The keys of records: completed from the record key, told apart from old ones, and all that a delete has.

use sluice_model::{ChangeEvent, Image, NodeKind, ObjectShape, ReasonCode, Rejection, Stage, UnchangedMarker};

use super::RecordWriter;
use crate::columns::{Cell, Level, NO_POSITION, Recorder, Slot, Source, declared_fields, declared_type};
use crate::names::NameCase;
use crate::plan::{Mode, means_key};
use crate::settings::OnDuplicateField;
use crate::unchanged::is_unchanged;
use crate::values::Fault;

/// The key fields of images of one shape: the place, the name and the column of the key table of each, in order of the places.
#[derive(Debug)]
pub(super) struct KeyFields<'e> {
    shape: ObjectShape<'e>,
    fields: Vec<(usize, &'e str, usize)>,
}

impl<'e> RecordWriter<'e, '_> {
    /// Takes key values that the row does not have from the record key, and refuses a row without a key.
    pub(super) fn complete_key(&mut self, (image, key_image): (&'e Image<'e>, Option<&'e Image<'e>>), unchanged: &[usize]) {
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

    /// The key that the row had before, where the before-image has all of it.
    pub(super) fn write_old_key(&mut self, event: &'e ChangeEvent<'e>) -> Option<usize> {
        let image = event.before.as_ref()?;
        self.check_image(image);
        if !self.collect_old_key_of_known_shape(image) {
            let declared = declared_fields(image.declared);
            for (position, (name, node)) in image.object.fields().enumerate() {
                if let Some(column) = self.old_key_column(position, &name) {
                    let cell = Cell { node, declared: declared_type(declared, position, &name) };
                    self.set_old_key(column, cell, (position, image.unchanged));
                }
            }
        }
        let complete = self.keys.slots.iter().take(self.plan.key.len()).all(Option::is_some);
        if !complete {
            self.keys.slots.fill(None);
            return None;
        }
        self.keys.append_slots(&mut self.scratch, |_, _, _| Source::Record);
        self.key_count += 1;
        let (faults, proposals) = self.scratch.take();
        (faults.is_empty() && proposals.is_empty()).then_some(self.key_count - 1)
    }

    /// The column of the key table that a before-image's field fills, the version column aside.
    fn old_key_column(&mut self, position: usize, name: &str) -> Option<usize> {
        let index = self.rows.find_with(&mut self.key_order, position, name);
        index.filter(|index| self.plan.key.contains(index)).and_then(|index| self.key_column.get(index).copied().flatten())
    }

    fn set_old_key(&mut self, column: usize, cell: Cell<'e>, (position, unchanged): (usize, UnchangedMarker)) {
        if let Some(slot) = self.keys.slots.get_mut(column) {
            let usable = !cell.node.is_null() && !is_unchanged(unchanged, cell.node);
            *slot = usable.then_some(Slot { cell, position: position as u32 });
        }
    }

    /// Takes the key from an image whose shape tells where it is: of a wide row only the key is looked at. Whether it does.
    fn collect_old_key_of_known_shape(&mut self, image: &'e Image<'e>) -> bool {
        let Some(shape) = image.object.shape().filter(|shape| !shape.repeats()) else { return false };
        if self.old_key.as_ref().is_none_or(|known| known.shape != shape) {
            let fields =
                shape.names().enumerate().filter_map(|(position, name)| Some((position, name, self.old_key_column(position, name)?)));
            let fields = fields.collect();
            self.old_key = Some(KeyFields { shape, fields });
        }
        let Some(known) = self.old_key.take() else { return false };
        let declared = declared_fields(image.declared);
        let (mut values, mut passed) = (image.object.values(), 0);
        for (position, name, column) in &known.fields {
            if let Some(node) = values.nth(position - passed) {
                let cell = Cell { node, declared: declared_type(declared, *position, name) };
                self.set_old_key(*column, cell, (*position, image.unchanged));
            }
            passed = position + 1;
        }
        self.old_key = Some(known);
        true
    }

    /// A before-image is read in part only; that no field stands twice holds for all of it.
    fn check_image(&mut self, image: &'e Image<'e>) {
        if self.settings.on_duplicate_field == OnDuplicateField::DeadLetter {
            self.recorder.check_duplicates(&[], &Cell { node: image.object, declared: None });
        }
    }

    /// The key of a delete: of each column, the first value that the before-image, the after-image or the record key has.
    pub(super) fn write_delete(&mut self, event: &'e ChangeEvent<'e>) -> Result<usize, Box<Rejection>> {
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
        let declared = declared_fields(image.declared);
        let mut filled: Vec<(usize, String)> = Vec::new();
        for (position, (name, node)) in image.object.fields().enumerate() {
            let column =
                self.rows.find_with(&mut self.key_order, position, &name).and_then(|index| self.key_column.get(index).copied().flatten());
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
        let declared = declared_fields(image.declared);
        for (position, (name, node)) in image.object.fields().enumerate() {
            if means_key(&self.plan.missing_key, &name, self.case) {
                let cell = Cell { node, declared: declared_type(declared, position, &name) };
                self.recorder.propose_column(&[], &name, &cell);
            }
        }
    }
}

/// The last field of an image that fills a column.
fn find_field<'e>(rows: &mut Level<'e>, index: usize, image: &'e Image<'e>) -> Option<Slot<'e>> {
    let declared = declared_fields(image.declared);
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
