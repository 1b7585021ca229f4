//! Builders that turn JSON values into Arrow columns: one pass, no intermediate values.
//!
//! A value that does not fit leaves a null and a fault behind. Its row is refused and never selected, so nothing has to be undone.

mod field;
mod leaf;
mod level;
mod recorder;

pub(crate) use field::FieldBuilder;
pub(crate) use level::{Level, Slot, Source, declared_fields, declared_type};
pub(crate) use recorder::{NO_POSITION, Recorder, UnknownFields};

use sluice_model::{DeclaredType, Node};

/// A value with the type that the data declares for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'e> {
    pub(crate) node: Node<'e>,
    pub(crate) declared: Option<&'e DeclaredType>,
}

/// Whether a value was null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Value,
    Null,
}
