//! The pass over the text that makes the tokens.

use std::ops::Range;

use super::escapes::hex4;
use super::{NodeKind, ParseError, Token};

/// The parent of the root.
const NO_PARENT: u32 = u32::MAX;

/// Appends the tokens of a text that is one JSON value.
pub(super) fn parse(text: &str, tokens: &mut Vec<Token>, max_depth: usize) -> Result<(), ParseError> {
    let first = tokens.len();
    let bytes = text.as_bytes();
    Parser { text, bytes, at: 0, tokens, first, max_depth, depth: 0, parent: NO_PARENT, inside: NodeKind::Array }.document()
}

/// What the grammar allows next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

struct Parser<'a, 'b> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tokens: &'b mut Vec<Token>,
    /// Where the tokens of this text begin; it is what they count from.
    first: usize,
    max_depth: usize,
    depth: usize,
    /// The innermost open object or array. Until it is closed, its `next` holds its own parent.
    parent: u32,
    /// Its kind.
    inside: NodeKind,
}

impl Parser<'_, '_> {
    fn document(&mut self) -> Result<(), ParseError> {
        let mut expect = Expect::Value;
        loop {
            self.skip_blanks();
            let Some(byte) = self.bytes.get(self.at).copied() else { return Err(self.malformed("the text ends in the middle of a value")) };
            expect = match (expect, byte) {
                (Expect::CommaOrEnd, b',') => {
                    self.at += 1;
                    if self.inside == NodeKind::Object { Expect::Key } else { Expect::Value }
                }
                (Expect::CommaOrEnd | Expect::KeyOrEnd, b'}') if self.inside == NodeKind::Object => self.close(),
                (Expect::CommaOrEnd | Expect::ValueOrEnd, b']') if self.inside == NodeKind::Array => self.close(),
                (Expect::CommaOrEnd, _) => return Err(self.malformed("expected a comma or the end of the object or array")),
                (Expect::Key | Expect::KeyOrEnd, b'"') => {
                    self.string()?;
                    self.colon()?;
                    Expect::Value
                }
                (Expect::Key | Expect::KeyOrEnd, _) => return Err(self.malformed("expected a field name")),
                (Expect::Value | Expect::ValueOrEnd, b'{' | b'[') => self.open(byte)?,
                (Expect::Value | Expect::ValueOrEnd, _) => {
                    self.scalar(byte)?;
                    Expect::CommaOrEnd
                }
            };
            if self.depth == 0 {
                break;
            }
        }
        self.skip_blanks();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.malformed("something follows the value")) }
    }

    /// How many tokens the text has so far.
    #[inline]
    const fn count(&self) -> u32 {
        (self.tokens.len() - self.first) as u32
    }

    #[inline]
    fn open(&mut self, byte: u8) -> Result<Expect, ParseError> {
        if self.depth >= self.max_depth {
            return Err(ParseError::TooDeep { at: self.at, max_depth: self.max_depth });
        }
        let (kind, expect) = if byte == b'{' { (NodeKind::Object, Expect::KeyOrEnd) } else { (NodeKind::Array, Expect::ValueOrEnd) };
        let (start, outer) = (self.at as u32, self.parent);
        self.parent = self.count();
        self.tokens.push(Token { start, end: start, next: outer, kind, escaped: false });
        self.depth += 1;
        self.inside = kind;
        self.at += 1;
        Ok(expect)
    }

    #[inline]
    fn close(&mut self) -> Expect {
        self.at += 1;
        self.depth -= 1;
        let next = self.count();
        if let Some(token) = self.tokens.get_mut(self.first + self.parent as usize) {
            self.parent = token.next;
            token.end = self.at as u32;
            token.next = next;
        }
        // The root has no parent, and nothing asks what is around it.
        self.inside = self.tokens.get(self.first + self.parent as usize).map_or(NodeKind::Array, |token| token.kind);
        Expect::CommaOrEnd
    }

    #[inline]
    fn push(&mut self, kind: NodeKind, span: Range<usize>) {
        let next = self.count() + 1;
        self.tokens.push(Token { start: span.start as u32, end: span.end as u32, next, kind, escaped: false });
    }

    #[inline]
    fn scalar(&mut self, byte: u8) -> Result<(), ParseError> {
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
    fn word(&mut self, word: &'static str, kind: NodeKind) -> Result<(), ParseError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.malformed("expected a value"));
        }
        self.push(kind, self.at..self.at + word.len());
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn colon(&mut self) -> Result<(), ParseError> {
        self.skip_blanks();
        if self.bytes.get(self.at) != Some(&b':') {
            return Err(self.malformed("expected a colon"));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), ParseError> {
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
    fn digits(&mut self) -> Result<(), ParseError> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.malformed("expected a digit"));
        }
        self.at += count;
        Ok(())
    }

    #[inline]
    fn string(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.find_special() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.malformed("a control character inside a string")),
                None => return Err(self.malformed("a string does not end")),
            }
        }
        let next = self.count() + 1;
        self.tokens.push(Token { start: start as u32, end: self.at as u32, next, kind: NodeKind::String, escaped });
        self.at += 1;
        Ok(())
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
    fn escape(&mut self) -> Result<(), ParseError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => self.unicode_escape(),
            _ => Err(self.malformed("an unknown escape")),
        }
    }

    fn unicode_escape(&mut self) -> Result<(), ParseError> {
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

    const fn malformed(&self, what: &'static str) -> ParseError {
        ParseError::Malformed { at: self.at, what }
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
