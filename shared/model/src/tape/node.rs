//! Reading values of a tape.

use std::borrow::Cow;

use super::escapes::unescape;
use super::shapes::ShapeId;
use super::{NodeKind, TapeBuffer, Token};

/// A value inside a [`Tape`](super::Tape) or a [`BufferedTape`](super::BufferedTape). Copying it copies a reference.
#[derive(Debug, Clone, Copy)]
pub struct Node<'t> {
    pub(super) text: &'t str,
    pub(super) buffer: &'t TapeBuffer,
    pub(super) at: u32,
}

/// The fields of an object and their order. Objects of the same shape have the same names at the same places.
#[derive(Debug, Clone, Copy)]
pub struct ObjectShape<'t> {
    buffer: &'t TapeBuffer,
    id: ShapeId,
}

impl PartialEq for ObjectShape<'_> {
    /// Shapes are told apart within a buffer; those of two buffers are never the same.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && std::ptr::eq(self.buffer, other.buffer)
    }
}

impl<'t> ObjectShape<'t> {
    /// Whether a name stands twice.
    #[must_use]
    pub fn repeats(self) -> bool {
        self.buffer.shapes.repeats(self.id)
    }

    /// The names in order, unescaped.
    pub fn names(self) -> impl ExactSizeIterator<Item = &'t str> {
        self.buffer.shapes.fields(self.id).iter().map(move |field| self.buffer.shapes.name(*field))
    }
}

/// The name of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldName<'t> {
    Shape(&'t TapeBuffer, ShapeId),
    Tape(Node<'t>),
}

impl<'t> FieldName<'t> {
    #[inline]
    fn text(self) -> Cow<'t, str> {
        match self {
            Self::Shape(buffer, field) => Cow::Borrowed(buffer.shapes.name(field)),
            Self::Tape(node) => node.string(),
        }
    }

    /// As it stands in the text.
    pub(super) fn quoted(self) -> &'t str {
        match self {
            Self::Shape(buffer, field) => buffer.shapes.quoted(field),
            Self::Tape(node) => node.raw(),
        }
    }
}

/// Where the names of an object's fields are.
#[derive(Debug, Clone)]
enum Names<'t> {
    /// An array has none.
    None,
    Shape(std::slice::Iter<'t, ShapeId>),
    /// Before each value.
    Tape,
}

/// What stands in an object or array.
#[derive(Debug, Clone)]
pub(super) struct Children<'t> {
    /// The next one; its end is `end`.
    next: Node<'t>,
    end: u32,
    names: Names<'t>,
}

impl<'t> Iterator for Children<'t> {
    type Item = (Option<FieldName<'t>>, Node<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut node = self.next;
        if node.at >= self.end {
            return None;
        }
        let name = match &mut self.names {
            Names::None => None,
            Names::Shape(fields) => Some(FieldName::Shape(node.buffer, *fields.next()?)),
            Names::Tape => {
                node = node.at(node.at + 1);
                Some(FieldName::Tape(self.next))
            }
        };
        self.next.at = node.token().next;
        Some((name, node))
    }
}

impl<'t> Node<'t> {
    #[inline]
    pub(super) fn token(self) -> Token {
        self.buffer.tokens[self.at as usize]
    }

    #[inline]
    pub(super) const fn at(self, at: u32) -> Self {
        Self { text: self.text, buffer: self.buffer, at }
    }

    #[inline]
    fn slice(self) -> &'t str {
        let token = self.token();
        &self.text[token.start as usize..token.end as usize]
    }

    /// What kind of value it is.
    #[inline]
    #[must_use]
    pub fn kind(self) -> NodeKind {
        self.token().kind
    }

    /// Whether it is `null`.
    #[inline]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == NodeKind::Null
    }

    /// The truth value of a `true` or `false`.
    #[inline]
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == NodeKind::Bool).then(|| self.slice() == "true")
    }

    /// The digits of a number, as written.
    #[inline]
    #[must_use]
    pub fn number(self) -> Option<&'t str> {
        (self.kind() == NodeKind::Number).then(|| self.slice())
    }

    /// The text of a string, unescaped.
    #[inline]
    #[must_use]
    pub fn text(self) -> Option<Cow<'t, str>> {
        (self.kind() == NodeKind::String).then(|| self.string())
    }

    #[inline]
    fn string(self) -> Cow<'t, str> {
        if self.token().is_escaped() { Cow::Owned(unescape(self.slice())) } else { Cow::Borrowed(self.slice()) }
    }

    /// The values in an object or array; a scalar has none.
    #[inline]
    pub(super) fn children(self) -> Children<'t> {
        let token = self.token();
        let names = match token.kind {
            NodeKind::Object if token.shape == ShapeId::NONE => Names::Tape,
            NodeKind::Object => Names::Shape(self.buffer.shapes.fields(token.shape).iter()),
            NodeKind::Null | NodeKind::Bool | NodeKind::Number | NodeKind::String | NodeKind::Array => Names::None,
        };
        Children { next: self.at(self.at + 1), end: token.next, names }
    }

    /// The elements of an array; none for any other kind.
    #[inline]
    pub fn elements(self) -> impl Iterator<Item = Node<'t>> {
        let is_array = self.kind() == NodeKind::Array;
        self.children().take_while(move |_| is_array).map(|(_, value)| value)
    }

    /// The fields of an object in order, repeated ones included; none for any other kind.
    #[inline]
    pub fn fields(self) -> impl Iterator<Item = (Cow<'t, str>, Node<'t>)> {
        self.children().map_while(|(name, value)| Some((name?.text(), value)))
    }

    /// The shape of an object; `None` when it has too many fields, or names that hardly repeat, and for any other kind.
    #[inline]
    #[must_use]
    pub fn shape(self) -> Option<ObjectShape<'t>> {
        let id = self.token().shape;
        (id != ShapeId::NONE).then_some(ObjectShape { buffer: self.buffer, id })
    }

    /// The values of an object with a shape, in the order of its names; none for any other value.
    #[inline]
    pub fn values(self) -> impl Iterator<Item = Node<'t>> {
        let token = self.token();
        let (mut next, end) = if token.shape == ShapeId::NONE { (0, 0) } else { (self.at + 1, token.next) };
        std::iter::from_fn(move || {
            let node = (next < end).then(|| self.at(next))?;
            next = node.token().next;
            Some(node)
        })
    }

    /// The last field of that name, as most readers do; `None` when there is none or this is no object.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Node<'t>> {
        let shape = self.token().shape;
        if shape == ShapeId::NONE {
            return self.fields().filter(|(field, _)| field == name).last().map(|(_, value)| value);
        }
        let position = self.buffer.shapes.position(shape, name)?;
        self.values().nth(position)
    }

    /// The value at a JSON pointer (RFC 6901) given as its unescaped steps.
    #[must_use]
    pub fn at_path<S: AsRef<str>>(self, steps: &[S]) -> Option<Node<'t>> {
        steps.iter().try_fold(self, |node, step| match node.kind() {
            NodeKind::Object => node.get(step.as_ref()),
            NodeKind::Array => node.elements().nth(step.as_ref().parse().ok()?),
            NodeKind::Null | NodeKind::Bool | NodeKind::Number | NodeKind::String => None,
        })
    }

    /// The byte of the text at which [`Node::raw`] begins. A leading byte order mark does not count.
    #[must_use]
    pub fn offset(self) -> usize {
        let token = self.token();
        token.start as usize - usize::from(token.kind == NodeKind::String)
    }

    /// The source text of the value; strings with their quotes.
    #[inline]
    #[must_use]
    pub fn raw(self) -> &'t str {
        let token = self.token();
        let quote = usize::from(token.kind == NodeKind::String);
        &self.text[token.start as usize - quote..token.end as usize + quote]
    }
}
