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

/// A text that is compared often: what differs mostly does so in length or in the first bytes, which are one number.
#[derive(Debug, Default)]
struct Label {
    text: String,
    head: u64,
    /// The bits of `head` that count.
    mask: u64,
}

/// The first eight bytes of a text, zeros behind a shorter one.
#[inline]
fn head(text: &[u8]) -> u64 {
    match text.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => text.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)),
    }
}

impl Label {
    fn new(text: String) -> Self {
        let mask = if text.len() >= 8 { u64::MAX } else { (1 << (8 * text.len())) - 1 };
        Self { head: head(text.as_bytes()), mask, text }
    }

    /// Whether `text` begins with this one.
    #[inline]
    fn begins(&self, text: &[u8]) -> bool {
        let own = self.text.as_bytes();
        match (text.first_chunk::<8>(), own.len()) {
            (Some(chunk), length) if (u64::from_le_bytes(*chunk) ^ self.head) & self.mask == 0 => match length {
                0..=8 => true,
                // Two numbers that overlap cover all of it.
                9..=16 => text.get(length - 8..length) == own.get(length - 8..),
                _ => text.starts_with(own),
            },
            (Some(_), _) => false,
            (None, _) => text.starts_with(own),
        }
    }

    #[inline]
    fn is(&self, name: &str, name_head: u64) -> bool {
        name_head == self.head && name.len() == self.text.len() && (name.len() <= 8 || name == self.text)
    }
}

/// A shape is another shape with one more field.
#[derive(Debug, Default)]
struct Shape {
    /// The last field's name as it stands in the text, with its quotes.
    quoted: Label,
    /// The same, unescaped.
    name: Label,
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
            let quoted = &self.of(*id).quoted;
            quoted.begins(text).then_some((*id, quoted.text.len()))
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
        let repeats = base.repeats || base.fields.iter().any(|field| self.name(*field) == name);
        let (quoted, name) = (Label::new(quoted.to_owned()), Label::new(name.into_owned()));
        self.shapes.push(Shape { quoted, name, fields, repeats, next: Vec::new() });
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
        &self.of(field).name.text
    }

    /// The name of a field as it stands in the text, with its quotes.
    pub(super) fn quoted(&self, field: ShapeId) -> &str {
        &self.of(field).quoted.text
    }

    /// The place of the last field of that name.
    #[inline]
    pub(super) fn position(&self, id: ShapeId, name: &str) -> Option<usize> {
        let name_head = head(name.as_bytes());
        self.of(id).fields.iter().rposition(|field| self.of(*field).name.is(name, name_head))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn labels_compare_as_texts_do(label in "[ab]{0,20}", text in "[ab]{0,24}") {
            let own = Label::new(label.clone());
            for text in [text, format!("{label}b"), label.clone()] {
                prop_assert_eq!(own.begins(text.as_bytes()), text.starts_with(&label), "{} {}", label, text);
                prop_assert_eq!(own.is(&text, head(text.as_bytes())), text == label, "{} {}", label, text);
            }
        }
    }
}
