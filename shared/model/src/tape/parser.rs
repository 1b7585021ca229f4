//! The pass over the text that makes the tokens.

use std::ops::Range;

use super::escapes::{hex4, unescape};
use super::shapes::{ShapeId, Shapes};
use super::{NodeKind, ParseError, TapeBuffer, Token};

/// The parent of the root.
const NO_PARENT: u32 = u32::MAX;

/// Appends the tokens of a text that is one JSON value.
pub(super) fn parse(text: &str, buffer: &mut TapeBuffer, max_depth: usize) -> Result<(), ParseError> {
    let first = buffer.tokens.len();
    if buffer.shapes.are_tried() {
        match Parser::new(text, buffer, (max_depth, NamePlace::Shape)).document() {
            Ok(()) => return Ok(()),
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Misfit) => buffer.shapes.note_misfit(),
        }
        buffer.tokens.truncate(first);
    }
    Parser::new(text, buffer, (max_depth, NamePlace::Tape)).document().map_err(|stop| match stop {
        Stop::Refused(error) => error,
        // Without shapes nothing has to fit one.
        Stop::Misfit => ParseError::TooLong,
    })
}

/// Where the names of fields go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamePlace {
    /// Into the shape of their object.
    Shape,
    /// Onto the tape.
    Tape,
}

/// Why the pass ends early.
enum Stop {
    Refused(ParseError),
    /// An object that cannot have a shape.
    Misfit,
}

struct Parser<'a, 'b> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: &'b mut Vec<Token>,
    shapes: &'b mut Shapes,
    names: NamePlace,
    max_depth: usize,
    depth: usize,
    /// The innermost open object or array. Until it is closed, its `next` holds its own parent.
    parent: u32,
    /// Its kind.
    inside: NodeKind,
}

impl<'a, 'b> Parser<'a, 'b> {
    fn new(text: &'a str, buffer: &'b mut TapeBuffer, (max_depth, names): (usize, NamePlace)) -> Self {
        let TapeBuffer { tokens, shapes } = buffer;
        let bytes = text.as_bytes();
        Self { text, bytes, at: 0, tokens, shapes, names, max_depth, depth: 0, parent: NO_PARENT, inside: NodeKind::Array }
    }

    fn document(&mut self) -> Result<(), Stop> {
        loop {
            self.value()?;
            if !self.next_value()? {
                break;
            }
        }
        self.skip_blanks();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.malformed("something follows the value")) }
    }

    /// Reads a scalar, or moves to the first value in an object or array, or behind an empty one.
    #[inline]
    fn value(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek()? {
                byte @ (b'{' | b'[') => {
                    self.open(byte)?;
                    match (byte, self.peek()?) {
                        (b'{', b'}') | (b'[', b']') => {
                            self.close();
                            return Ok(());
                        }
                        (b'{', _) => self.name()?,
                        (_, _) => {}
                    }
                }
                byte => return self.scalar(byte),
            }
        }
    }

    /// Moves from behind a value to the next one, past the ends of objects and arrays. Whether there is one.
    #[inline]
    fn next_value(&mut self) -> Result<bool, Stop> {
        while self.depth > 0 {
            match (self.peek()?, self.inside) {
                (b',', NodeKind::Object) => {
                    self.at += 1;
                    self.peek()?;
                    return self.name().map(|()| true);
                }
                (b',', _) => {
                    self.at += 1;
                    return Ok(true);
                }
                (b'}', NodeKind::Object) | (b']', NodeKind::Array) => self.close(),
                _ => return Err(self.malformed("expected a comma or the end of the object or array")),
            }
        }
        Ok(false)
    }

    /// The next byte that is no blank.
    #[inline]
    fn peek(&mut self) -> Result<u8, Stop> {
        self.skip_blanks();
        self.bytes.get(self.at).copied().ok_or_else(|| self.malformed("the text ends in the middle of a value"))
    }

    /// The index of the next token. [`TapeBuffer::parse`] has seen to it that it fits.
    #[inline]
    const fn count(&self) -> u32 {
        self.tokens.len() as u32
    }

    #[inline]
    fn open(&mut self, byte: u8) -> Result<(), Stop> {
        if self.depth >= self.max_depth {
            return Err(Stop::Refused(ParseError::TooDeep { at: self.at, max_depth: self.max_depth }));
        }
        let (kind, shape) = match (byte, self.names) {
            (b'{', NamePlace::Shape) => (NodeKind::Object, ShapeId::EMPTY),
            (b'{', NamePlace::Tape) => (NodeKind::Object, ShapeId::NONE),
            (_, NamePlace::Shape | NamePlace::Tape) => (NodeKind::Array, ShapeId::NONE),
        };
        let (start, outer) = (self.at as u32, self.parent);
        self.parent = self.count();
        self.tokens.push(Token { start, end: start, next: outer, kind, flags: 0, shape });
        self.depth += 1;
        self.inside = kind;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.at += 1;
        self.depth -= 1;
        let next = self.count();
        let mut flags = 0;
        if let Some(token) = self.tokens.get_mut(self.parent as usize) {
            let own = token.kind == NodeKind::Object && (token.shape == ShapeId::NONE || self.shapes.repeats(token.shape));
            token.flags |= if own { Token::MAY_REPEAT } else { 0 };
            flags = token.flags;
            self.parent = token.next;
            token.end = self.at as u32;
            token.next = next;
        }
        // The root has no parent, and nothing asks what is around it.
        self.inside = self.tokens.get_mut(self.parent as usize).map_or(NodeKind::Array, |token| {
            token.flags |= flags;
            token.kind
        });
    }

    /// The name of a field and the colon behind it: mostly the name that followed the same fields before.
    #[inline]
    fn name(&mut self) -> Result<(), Stop> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.malformed("expected a field name"));
        }
        match (self.names, self.tokens.get_mut(self.parent as usize)) {
            (NamePlace::Shape, Some(object)) => match self.shapes.predicted(object.shape, &self.bytes[self.at..]) {
                Some((shape, length)) => {
                    object.shape = shape;
                    self.at += length;
                }
                None => self.new_name()?,
            },
            (NamePlace::Tape, _) | (NamePlace::Shape, None) => self.string()?,
        }
        self.colon()
    }

    #[cold]
    fn new_name(&mut self) -> Result<(), Stop> {
        let (span, flags) = self.scan()?;
        let (raw, quoted) = (&self.text[span.clone()], &self.text[span.start - 1..span.end + 1]);
        let name = if flags & Token::ESCAPED != 0 { unescape(raw).into() } else { raw.into() };
        let Some(object) = self.tokens.get_mut(self.parent as usize) else { return Ok(()) };
        object.shape = self.shapes.with_field(object.shape, quoted, name).ok_or(Stop::Misfit)?;
        Ok(())
    }

    #[inline]
    fn push(&mut self, kind: NodeKind, span: Range<usize>) {
        let next = self.count() + 1;
        self.tokens.push(Token { start: span.start as u32, end: span.end as u32, next, kind, flags: 0, shape: ShapeId::NONE });
    }

    #[inline]
    fn scalar(&mut self, byte: u8) -> Result<(), Stop> {
        match byte {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true", NodeKind::Bool),
            b'f' => self.word("false", NodeKind::Bool),
            b'n' => self.word("null", NodeKind::Null),
            _ => Err(self.malformed("expected a value")),
        }
    }

    #[inline]
    fn word(&mut self, word: &'static str, kind: NodeKind) -> Result<(), Stop> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.malformed("expected a value"));
        }
        self.push(kind, self.at..self.at + word.len());
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn colon(&mut self) -> Result<(), Stop> {
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b':') {
            return Err(self.malformed("expected a colon"));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), Stop> {
        let start = self.at;
        self.at += usize::from(self.bytes[self.at] == b'-');
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.malformed("expected a digit")),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        self.push(NodeKind::Number, start..self.at);
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Result<(), Stop> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.malformed("expected a digit"));
        }
        self.at += count;
        Ok(())
    }

    #[inline]
    fn string(&mut self) -> Result<(), Stop> {
        let (span, flags) = self.scan()?;
        let next = self.count() + 1;
        self.tokens.push(Token {
            start: span.start as u32,
            end: span.end as u32,
            next,
            kind: NodeKind::String,
            flags,
            shape: ShapeId::NONE,
        });
        Ok(())
    }

    /// Moves behind a string: what stands between its quotes, and whether there are escapes.
    #[inline]
    fn scan(&mut self) -> Result<(Range<usize>, u8), Stop> {
        self.at += 1;
        let start = self.at;
        let mut flags = 0;
        loop {
            match self.find_special() {
                Some(b'"') => break,
                Some(b'\\') => {
                    flags = Token::ESCAPED;
                    self.escape()?;
                }
                Some(_) => return Err(self.malformed("a control character inside a string")),
                None => return Err(self.malformed("a string does not end")),
            }
        }
        self.at += 1;
        Ok((start..self.at - 1, flags))
    }

    /// Moves to the next quote, backslash or control character, eight bytes at a time: most strings are short.
    #[inline]
    fn find_special(&mut self) -> Option<u8> {
        while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let specials = specials(u64::from_le_bytes(*chunk));
            if specials != 0 {
                self.at += specials.trailing_zeros() as usize / 8;
                return self.bytes.get(self.at).copied();
            }
            self.at += 8;
        }
        let rest = self.bytes.get(self.at..)?;
        self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        self.bytes.get(self.at).copied()
    }

    /// Checks the escape at the current backslash and moves behind it.
    fn escape(&mut self) -> Result<(), Stop> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => self.unicode_escape(),
            _ => Err(self.malformed("an unknown escape")),
        }
    }

    fn unicode_escape(&mut self) -> Result<(), Stop> {
        let first = self.hex4(self.at).ok_or_else(|| self.malformed("expected four hexadecimal digits"))?;
        match first {
            0xd800..=0xdbff => match self.hex4(self.at + 6) {
                Some(0xdc00..=0xdfff) => self.at += 12,
                _ => return Err(self.malformed("a lone surrogate")),
            },
            0xdc00..=0xdfff => return Err(self.malformed("a lone surrogate")),
            _ => self.at += 6,
        }
        Ok(())
    }

    /// The value of `\uXXXX` at byte `at`.
    fn hex4(&self, at: usize) -> Option<u32> {
        hex4(self.text, at)
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    const fn malformed(&self, what: &'static str) -> Stop {
        Stop::Refused(ParseError::Malformed { at: self.at, what })
    }
}

/// The high bit of each byte of `word` that is a quote, a backslash or a control character. Bits above the lowest one may be wrong.
const fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let (is_quote, is_backslash) = (quote.wrapping_sub(ONES) & !quote, backslash.wrapping_sub(ONES) & !backslash);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (is_quote | is_backslash | control) & HIGHS
}
