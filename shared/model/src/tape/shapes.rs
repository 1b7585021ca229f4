//! The shapes of objects: which fields, in which order. Records of one source repeat them, so that a name is read once and compared from then
//! on, and what was found out about a shape (a field's place, that no field stands twice) holds for all its objects.

use std::borrow::Cow;

/// A shape's number in its [`Shapes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeId(u16);

impl ShapeId {
    /// No shape: the object's names stand on the tape.
    pub(super) const NONE: Self = Self(0);
    /// An object without fields.
    pub(super) const EMPTY: Self = Self(1);
}

/// The most shapes that are told apart; an object's fields make one each.
const MAX_SHAPES: usize = 8_192;
/// The most fields of an object with a shape.
const MAX_FIELDS: usize = 512;
/// The most fields that may follow the same fields: beyond it the names are data, and no shape will repeat.
const MAX_BRANCHES: usize = 16;
/// So many texts may have objects without a shape before shapes are no longer tried.
pub(super) const MAX_MISFITS: usize = 64;

/// A shape is another shape with one more field.
#[derive(Debug, Default)]
struct Shape {
    /// The last field's name as it stands in the text, with its quotes.
    quoted: String,
    /// The same, unescaped.
    name: String,
    /// For each field the shape that ends with it.
    fields: Vec<ShapeId>,
    /// Whether a name stands twice.
    repeats: bool,
    /// The shapes with one field more.
    next: Vec<ShapeId>,
}

/// All shapes of some texts.
#[derive(Debug)]
pub(super) struct Shapes {
    shapes: Vec<Shape>,
    misfits: usize,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { shapes: vec![Shape::default(), Shape::default()], misfits: 0 }
    }
}

impl Shapes {
    #[inline]
    fn of(&self, id: ShapeId) -> &Shape {
        &self.shapes[usize::from(id.0)]
    }

    /// Whether texts still have shapes.
    pub(super) const fn are_tried(&self) -> bool {
        self.misfits < MAX_MISFITS
    }

    /// A text turned out to have an object without a shape.
    pub(super) const fn note_misfit(&mut self) {
        self.misfits += 1;
    }

    /// The shape with the field whose quoted name `text` begins with, and that name's length; `None` when there is none yet.
    #[inline]
    pub(super) fn predicted(&self, from: ShapeId, text: &[u8]) -> Option<(ShapeId, usize)> {
        self.of(from).next.iter().find_map(|id| {
            let quoted = self.of(*id).quoted.as_bytes();
            text.starts_with(quoted).then_some((*id, quoted.len()))
        })
    }

    /// The shape with one more field; `None` when a limit is reached.
    pub(super) fn with_field(&mut self, from: ShapeId, quoted: &str, name: Cow<'_, str>) -> Option<ShapeId> {
        let base = self.of(from);
        if self.shapes.len() >= MAX_SHAPES || base.fields.len() >= MAX_FIELDS || base.next.len() >= MAX_BRANCHES {
            return None;
        }
        let id = ShapeId(u16::try_from(self.shapes.len()).ok()?);
        let fields = base.fields.iter().copied().chain([id]).collect();
        let repeats = base.repeats || base.fields.iter().any(|field| self.of(*field).name == name);
        self.shapes.push(Shape { quoted: quoted.to_owned(), name: name.into_owned(), fields, repeats, next: Vec::new() });
        self.shapes[usize::from(from.0)].next.push(id);
        Some(id)
    }

    /// Whether a name stands twice.
    #[inline]
    pub(super) fn repeats(&self, id: ShapeId) -> bool {
        self.of(id).repeats
    }

    /// The shape's fields, for [`Shapes::name`].
    #[inline]
    pub(super) fn fields(&self, id: ShapeId) -> &[ShapeId] {
        &self.of(id).fields
    }

    /// The name of a field.
    #[inline]
    pub(super) fn name(&self, field: ShapeId) -> &str {
        &self.of(field).name
    }

    /// The name of a field as it stands in the text, with its quotes.
    pub(super) fn quoted(&self, field: ShapeId) -> &str {
        &self.of(field).quoted
    }

    /// The place of the last field of that name.
    #[inline]
    pub(super) fn position(&self, id: ShapeId, name: &str) -> Option<usize> {
        self.of(id).fields.iter().rposition(|field| self.name(*field) == name)
    }
}
