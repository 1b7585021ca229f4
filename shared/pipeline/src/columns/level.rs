//! The fields of an object and the columns that they fill.

use std::borrow::Cow;
use std::collections::HashSet;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use sluice_model::{Column, DeclaredField, DeclaredType, Node, ObjectShape};

use super::recorder::NO_POSITION;
use super::{Cell, FieldBuilder, Recorder};
use crate::names::{FieldOrder, NameCase, NameIndex};
use crate::values::ColumnRules;

/// The value that a record has for a column, and the place of its field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'e> {
    pub(crate) cell: Cell<'e>,
    pub(crate) position: u32,
}

/// Where a column's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The record's field.
    Record,
    /// It has been appended already.
    Own,
}

/// The builders of a table's columns or of a struct's fields.
#[derive(Debug)]
pub(crate) struct Level<'e> {
    path: Vec<String>,
    pub(crate) fields: Vec<FieldBuilder<'e>>,
    names: NameIndex,
    order: FieldOrder,
    known: Option<KnownShape<'e>>,
    pub(crate) slots: Vec<Option<Slot<'e>>>,
}

/// What the fields of objects of one shape fill. None of them stands twice, and no two fill the same column.
#[derive(Debug)]
struct KnownShape<'e> {
    shape: ObjectShape<'e>,
    /// Each field's name and column.
    fields: Vec<(&'e str, Option<usize>)>,
}

impl<'e> Level<'e> {
    pub(crate) fn new(columns: &[Column], path: Vec<String>, case: NameCase, rules: impl Fn(&Column) -> ColumnRules) -> Self {
        let build = |column: &Column| FieldBuilder::new(column, &path, case, rules(column));
        let fields: Vec<_> = columns.iter().map(build).collect();
        let slots = vec![None; fields.len()];
        Self { path, fields, names: NameIndex::new(columns, case), order: FieldOrder::default(), known: None, slots }
    }

    /// The column that a field called `name` fills.
    pub(crate) fn find(&mut self, name: &str) -> Option<usize> {
        self.names.find(name)
    }

    /// The column that a field fills in an object of another kind than rows, whose fields `order` remembers.
    pub(crate) fn find_with(&mut self, order: &mut FieldOrder, position: usize, name: &str) -> Option<usize> {
        order.find(&mut self.names, position, name)
    }

    /// Puts the object's values into the slots of their columns.
    pub(crate) fn collect(&mut self, cell: &Cell<'e>, recorder: &mut Recorder<'_>) {
        let declared = declared_fields(cell.declared);
        if self.collect_known((cell.node, declared), recorder) {
            return;
        }
        let mut unknown: Vec<Cow<'e, str>> = Vec::new();
        for (position, (name, node)) in cell.node.fields().enumerate() {
            let value = Cell { node, declared: declared_type(declared, position, &name) };
            let start = recorder.fault_count();
            match self.order.find(&mut self.names, position, &name) {
                Some(index) => {
                    let slot = Slot { cell: value, position: position as u32 };
                    let earlier = self.slots.get_mut(index).and_then(|place| place.replace(slot));
                    if let Some(earlier) = earlier {
                        let first = cell.node.fields().nth(earlier.position as usize);
                        recorder.collision(self.path_of(index), &first.map(|(name, _)| name).unwrap_or_default(), &name);
                    }
                }
                None => {
                    if unknown.contains(&name) {
                        let path = [self.path.as_slice(), &[name.to_string()]].concat();
                        recorder.duplicate(&path, &name);
                    }
                    recorder.unknown_field(&self.path, &name, &value);
                    unknown.push(name);
                }
            }
            recorder.place_faults(start, position as u32);
        }
    }

    /// Fills the slots from an object whose shape tells the columns. Whether it does.
    #[inline]
    fn collect_known(&mut self, (object, declared): (Node<'e>, &'e [DeclaredField]), recorder: &mut Recorder<'_>) -> bool {
        let Some(shape) = object.shape() else { return false };
        if self.known.as_ref().is_none_or(|known| known.shape != shape) {
            self.known = self.know(shape);
        }
        let Some(known) = &self.known else { return false };
        for (position, ((name, column), node)) in known.fields.iter().zip(object.values()).enumerate() {
            let cell = Cell { node, declared: declared_type(declared, position, name) };
            match column.map(|index| self.slots.get_mut(index)) {
                Some(place) => place.into_iter().for_each(|place| *place = Some(Slot { cell, position: position as u32 })),
                None => {
                    let start = recorder.fault_count();
                    recorder.unknown_field(&self.path, name, &cell);
                    recorder.place_faults(start, position as u32);
                }
            }
        }
        true
    }

    #[cold]
    fn know(&mut self, shape: ObjectShape<'e>) -> Option<KnownShape<'e>> {
        let fields: Vec<_> = shape.names().map(|name| (name, self.names.find(name))).collect();
        let mut filled = HashSet::new();
        let one_each = fields.iter().filter_map(|(_, column)| *column).all(|column| filled.insert(column));
        (one_each && !shape.repeats()).then_some(KnownShape { shape, fields })
    }

    fn path_of(&self, index: usize) -> &[String] {
        self.fields.get(index).map_or(&self.path, |field| field.path())
    }

    /// Appends the values in the slots, null where a slot is empty. Columns that do not come from the record are appended by `own`.
    pub(crate) fn append_slots(
        &mut self,
        recorder: &mut Recorder<'_>,
        mut own: impl FnMut(usize, &mut FieldBuilder<'e>, &mut Recorder<'_>) -> Source,
    ) {
        for (index, (field, slot)) in self.fields.iter_mut().zip(&mut self.slots).enumerate() {
            let start = recorder.fault_count();
            let slot = slot.take();
            if own(index, field, recorder) == Source::Own {
                continue;
            }
            match slot {
                Some(Slot { cell, position }) => {
                    field.append(&cell, recorder);
                    recorder.place_faults(start, position);
                }
                None => {
                    field.append_absent(recorder);
                    recorder.place_faults(start, NO_POSITION);
                }
            }
        }
    }

    /// Appends the object's fields, its faults in their order.
    pub(crate) fn append(&mut self, cell: &Cell<'e>, recorder: &mut Recorder<'_>) {
        let start = recorder.fault_count();
        self.collect(cell, recorder);
        self.append_slots(recorder, |_, _, _| Source::Record);
        recorder.sort_faults(start);
    }

    pub(crate) fn append_filler(&mut self) {
        for field in &mut self.fields {
            field.append_filler();
        }
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.fields.iter_mut().map(FieldBuilder::finish).collect()
    }
}

pub(crate) fn declared_fields(declared: Option<&DeclaredType>) -> &[DeclaredField] {
    if let Some(DeclaredType::Struct(fields)) = declared { fields } else { &[] }
}

/// The declared type of the field called `name`, which mostly stands at the same place in the schema as in the data.
#[inline]
pub(crate) fn declared_type<'d>(fields: &'d [DeclaredField], position: usize, name: &str) -> Option<&'d DeclaredType> {
    let predicted = fields.get(position).filter(|field| field.name == name);
    let found = predicted.or_else(|| fields.iter().find(|field| field.name == name));
    found.map(|field| &field.kind)
}
