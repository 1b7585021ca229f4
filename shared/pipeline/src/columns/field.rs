//! One column or nested field.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};
use sluice_model::{Column, ColumnType, DeclaredType, Node, NodeKind, ReasonCode};

use super::leaf::{Leaf, Misread};
use super::{Cell, Level, Presence, Recorder};
use crate::arrow_types::relaxed_field;
use crate::evolve::wider_declared;
use crate::names::NameCase;
use crate::settings::OnDuplicateField;
use crate::values::{Carrier, ColumnRules, Fault, Reading};

/// Builds one column.
#[derive(Debug)]
pub(crate) struct FieldBuilder<'e> {
    path: Vec<String>,
    required: bool,
    rules: ColumnRules,
    kind: ColumnType,
    field: FieldRef,
    values: Values<'e>,
}

#[derive(Debug)]
enum Values<'e> {
    Leaf(Box<Leaf>),
    Struct(Box<StructValues<'e>>),
    List(Box<ListValues<'e>>),
    Map(Box<MapValues<'e>>),
}

#[derive(Debug)]
struct StructValues<'e> {
    level: Level<'e>,
    validity: NullBufferBuilder,
}

#[derive(Debug)]
struct ListValues<'e> {
    element: FieldBuilder<'e>,
    runs: Runs,
}

#[derive(Debug)]
struct MapValues<'e> {
    key: FieldBuilder<'e>,
    value: FieldBuilder<'e>,
    runs: Runs,
}

/// Where each row's elements end.
#[derive(Debug)]
struct Runs {
    length: usize,
    ends: Vec<i32>,
    validity: NullBufferBuilder,
}

impl Runs {
    fn new() -> Self {
        Self { length: 0, ends: vec![0], validity: NullBufferBuilder::new(0) }
    }

    /// Ends a row; an end that 32 bits cannot hold makes the array's construction fail.
    fn end(&mut self, presence: Presence) {
        self.ends.push(i32::try_from(self.length).unwrap_or(i32::MAX));
        self.validity.append(presence == Presence::Value);
    }

    fn offsets(&mut self) -> OffsetBuffer<i32> {
        self.length = 0;
        OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.ends, vec![0])))
    }
}

impl<'e> FieldBuilder<'e> {
    pub(crate) fn new(column: &Column, parent: &[String], case: NameCase, rules: ColumnRules) -> Self {
        let mut path = parent.to_vec();
        path.push(column.name.clone());
        let field = relaxed_field(column);
        let nested = |column: &Column| FieldBuilder::new(column, &path, case, rules.clone());
        let values = match (&column.kind, Leaf::new(&column.kind, field.data_type())) {
            (_, Some(leaf)) => Values::Leaf(Box::new(leaf)),
            (ColumnType::List(element), None) => Values::List(Box::new(ListValues { element: nested(element), runs: Runs::new() })),
            (ColumnType::Map(key, value), None) => {
                // That a key is never null is checked where it is read: no setting makes it optional.
                let key = Column { required: false, ..key.as_ref().clone() };
                Values::Map(Box::new(MapValues { key: nested(&key), value: nested(value), runs: Runs::new() }))
            }
            (ColumnType::Struct(columns), None) => {
                let level = Level::new(columns, path.clone(), case, |_| rules.clone());
                Values::Struct(Box::new(StructValues { level, validity: NullBufferBuilder::new(0) }))
            }
            (_, None) => Values::Struct(Box::new(StructValues {
                level: Level::new(&[], path.clone(), case, |_| rules.clone()),
                validity: NullBufferBuilder::new(0),
            })),
        };
        Self { path, required: column.required, rules, kind: column.kind.clone(), field, values }
    }

    pub(crate) fn path(&self) -> &[String] {
        &self.path
    }

    /// Appends the value of a field.
    pub(crate) fn append(&mut self, cell: &Cell<'e>, recorder: &mut Recorder<'_>) {
        if let Some(wider) = cell.declared.and_then(|declared| wider_declared(&self.kind, declared))
            && recorder.widen_declared(&self.path, wider)
        {
            return self.append_filler();
        }
        match &mut self.values {
            Values::Leaf(_) => self.append_carrier(&Carrier::of(cell.node), cell.declared, recorder),
            Values::Struct(values) => match cell.node.kind() {
                NodeKind::Object => {
                    values.validity.append_non_null();
                    values.level.append(cell, recorder);
                }
                NodeKind::Null | NodeKind::Bool | NodeKind::Number | NodeKind::String | NodeKind::Array => {
                    self.append_other(cell.node, recorder, "is no object");
                }
            },
            Values::List(values) => match cell.node.kind() {
                NodeKind::Array => values.append(cell, recorder),
                NodeKind::Null | NodeKind::Bool | NodeKind::Number | NodeKind::String | NodeKind::Object => {
                    self.append_other(cell.node, recorder, "is no array");
                }
            },
            Values::Map(values) => match (cell.node.kind(), cell.declared) {
                (NodeKind::Object, _) => values.append_object(cell, &self.path, recorder),
                (NodeKind::Array, Some(DeclaredType::Map(..))) => {
                    if let Err(fault) = values.append_pairs(cell, recorder) {
                        recorder.refuse(&self.path, fault);
                    }
                }
                _ => self.append_other(cell.node, recorder, "is no object of keys and values"),
            },
        }
    }

    /// A value in a nested column that is null, or not of the column's kind.
    fn append_other(&mut self, node: Node<'e>, recorder: &mut Recorder<'_>, what: &str) {
        if node.is_null() {
            self.append_absent(recorder);
        } else {
            recorder.refuse(&self.path, Fault::mismatch(&Carrier::of(node), what));
            self.append_filler();
        }
    }

    /// Appends a value that is not nested.
    pub(crate) fn append_carrier(&mut self, carrier: &Carrier<'_>, declared: Option<&DeclaredType>, recorder: &mut Recorder<'_>) {
        let Values::Leaf(leaf) = &mut self.values else {
            recorder.refuse(&self.path, Fault::mismatch(carrier, "does not fit the column's nested type"));
            return self.append_filler();
        };
        let reading = Reading { table: recorder.table, column: &self.rules, hints: recorder.hints, declared };
        match leaf.append(carrier, &reading) {
            Ok(Presence::Value) => {}
            Ok(Presence::Null) if self.required => recorder.required_null(&self.path),
            Ok(Presence::Null) => {}
            Err(Misread { fault, wider: Some(wider) }) => recorder.widen(&self.path, wider, fault),
            Err(Misread { fault, wider: None }) => recorder.refuse(&self.path, fault),
        }
    }

    /// Appends the null of a field that the record does not have.
    pub(crate) fn append_absent(&mut self, recorder: &mut Recorder<'_>) {
        if self.required {
            recorder.required_null(&self.path);
        }
        self.append_filler();
    }

    /// Appends a null that nobody reads.
    pub(crate) fn append_filler(&mut self) {
        match &mut self.values {
            Values::Leaf(leaf) => leaf.append_filler(),
            Values::Struct(values) => {
                values.validity.append_null();
                values.level.append_filler();
            }
            Values::List(values) => values.runs.end(Presence::Null),
            Values::Map(values) => values.runs.end(Presence::Null),
        }
    }

    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let data_type = self.field.data_type().clone();
        match &mut self.values {
            Values::Leaf(leaf) => Ok(leaf.finish()),
            Values::Struct(values) => values.finish(data_type),
            Values::List(values) => values.finish(data_type),
            Values::Map(values) => values.finish(data_type),
        }
    }
}

impl StructValues<'_> {
    fn finish(&mut self, data_type: DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::Struct(fields) = data_type else { return Err(unexpected("struct")) };
        let (length, children) = (self.validity.len(), self.level.finish()?);
        let validity = self.validity.finish();
        Ok(Arc::new(StructArray::try_new_with_length(fields, children, validity, length)?))
    }
}

impl<'e> ListValues<'e> {
    fn append(&mut self, cell: &Cell<'e>, recorder: &mut Recorder<'_>) {
        let declared = if let Some(DeclaredType::List(element)) = cell.declared { Some(&element.kind) } else { None };
        for node in cell.node.elements() {
            self.element.append(&Cell { node, declared }, recorder);
            self.runs.length += 1;
        }
        self.runs.end(Presence::Value);
    }

    fn finish(&mut self, data_type: DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::List(field) = data_type else { return Err(unexpected("list")) };
        let validity = self.runs.validity.finish();
        Ok(Arc::new(ListArray::try_new(field, self.runs.offsets(), self.element.finish()?, validity)?))
    }
}

impl<'e> MapValues<'e> {
    fn append_object(&mut self, cell: &Cell<'e>, path: &[String], recorder: &mut Recorder<'_>) {
        let (key_type, value_type) = declared_entry(cell.declared);
        let last_counts = recorder.table.settings.on_duplicate_field == OnDuplicateField::Last;
        recorder.check_duplicates(path, cell);
        for (name, node) in cell.node.fields() {
            if last_counts && !is_last(cell.node, &name, node) {
                continue;
            }
            self.key.append_key(&Carrier::Text(name), key_type, recorder);
            self.value.append(&Cell { node, declared: value_type }, recorder);
            self.runs.length += 1;
        }
        self.runs.end(Presence::Value);
    }

    /// The form that Connect gives a map whose keys are no text: an array of pairs.
    fn append_pairs(&mut self, cell: &Cell<'e>, recorder: &mut Recorder<'_>) -> Result<(), Fault> {
        let (key_type, value_type) = declared_entry(cell.declared);
        let mut result = Ok(());
        for pair in cell.node.elements() {
            let mut parts = pair.elements();
            let (Some(key), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
                result = Err(Fault::mismatch(&Carrier::of(pair), "is no pair of a key and a value"));
                continue;
            };
            if key.is_null() {
                result = Err(Fault::new(ReasonCode::RequiredNull, "the key of a map entry is null"));
            }
            self.key.append(&Cell { node: key, declared: key_type }, recorder);
            self.value.append(&Cell { node: value, declared: value_type }, recorder);
            self.runs.length += 1;
        }
        self.runs.end(Presence::Value);
        result
    }

    fn finish(&mut self, data_type: DataType) -> Result<ArrayRef, ArrowError> {
        let DataType::Map(entries, ordered) = data_type else { return Err(unexpected("map")) };
        let DataType::Struct(fields) = entries.data_type().clone() else { return Err(unexpected("map")) };
        let pairs = entry_array(fields, vec![self.key.finish()?, self.value.finish()?])?;
        let validity = self.runs.validity.finish();
        Ok(Arc::new(MapArray::try_new(entries, self.runs.offsets(), pairs, validity, ordered)?))
    }
}

impl FieldBuilder<'_> {
    /// A map's key is text in JSON, whatever its type: text is read as a number where the column's keys are numbers.
    fn append_key(&mut self, text: &Carrier<'_>, declared: Option<&DeclaredType>, recorder: &mut Recorder<'_>) {
        let number = match (&self.kind, text) {
            (ColumnType::Int | ColumnType::Long | ColumnType::Float | ColumnType::Double, Carrier::Text(text)) => Some(text.clone()),
            _ => None,
        };
        match &number {
            Some(digits) => self.append_carrier(&Carrier::Number(digits.as_ref()), declared, recorder),
            None => self.append_carrier(text, declared, recorder),
        }
    }
}

fn entry_array(fields: Fields, columns: Vec<ArrayRef>) -> Result<StructArray, ArrowError> {
    let length = columns.first().map_or(0, |keys| keys.len());
    StructArray::try_new_with_length(fields, columns, None, length)
}

fn declared_entry(declared: Option<&DeclaredType>) -> (Option<&DeclaredType>, Option<&DeclaredType>) {
    if let Some(DeclaredType::Map(key, value)) = declared { (Some(&key.kind), Some(&value.kind)) } else { (None, None) }
}

fn is_last(object: Node<'_>, name: &str, node: Node<'_>) -> bool {
    object.get(name).is_some_and(|last| std::ptr::eq(last.raw(), node.raw()))
}

fn unexpected(kind: &str) -> ArrowError {
    ArrowError::SchemaError(format!("a {kind} column has another Arrow type"))
}
