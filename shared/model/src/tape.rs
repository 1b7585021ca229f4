//! A strict JSON reader that keeps every digit.
//!
//! One pass over the text makes a flat tape of tokens that point back into it: nothing is copied, numbers keep their digits, strings
//! are unescaped on demand, depth costs no stack. Grammar: RFC 8259, with lone surrogates refused (RFC 8259 section 8.2 leaves them
//! open). Fields may repeat: [`Node::first_duplicate`] finds them, because what to do about it is a setting of the table.
//! Why not a library: see docs/adr/0003-own-json-tape.md.

mod duplicates;
mod escapes;
mod parser;

use std::borrow::Cow;
use std::ops::Range;

use escapes::unescape;

/// What kind of value a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number; its digits are kept as they are written.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    /// First byte of the value in the text; a string starts behind its quote.
    start: u32,
    /// Byte behind the value; a string ends before its quote.
    end: u32,
    /// Index of the first token behind this value and all that it contains.
    next: u32,
    kind: NodeKind,
    /// A string with a backslash in it.
    escaped: bool,
}

/// Why a text is no JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text breaks the grammar.
    #[error("{what} at byte {at}")]
    Malformed {
        /// Byte offset into the text.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// Objects and arrays are nested deeper than allowed.
    #[error("nested deeper than {max_depth} levels at byte {at}")]
    TooDeep {
        /// Byte offset into the text.
        at: usize,
        /// The limit.
        max_depth: usize,
    },
    /// The text is longer than a tape can address (4 GiB).
    #[error("longer than 4 GiB")]
    TooLong,
}

/// Roughly how much text a token stands for.
const BYTES_A_TOKEN: usize = 8;

/// A parsed text.
#[derive(Debug, Clone)]
pub struct Tape<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

impl<'a> Tape<'a> {
    /// Parses one JSON value that fills the whole text, a leading byte order mark and surrounding blanks aside.
    ///
    /// # Errors
    /// [`ParseError`] when the text is not exactly one JSON value, or is nested deeper than `max_depth` objects and arrays.
    pub fn parse(text: &'a str, max_depth: usize) -> Result<Self, ParseError> {
        let mut buffer = TapeBuffer::for_bytes(text.len());
        let parsed = buffer.parse(text, max_depth)?;
        Ok(Self { text: parsed.text, tokens: buffer.tokens })
    }

    /// The value.
    #[inline]
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node { text: self.text, tokens: &self.tokens, at: 0 }
    }
}

/// The tokens of many texts: one allocation for all records of a batch.
#[derive(Debug, Default)]
pub struct TapeBuffer {
    tokens: Vec<Token>,
}

/// A parsed text whose tokens are in a [`TapeBuffer`].
#[derive(Debug, Clone)]
pub struct BufferedTape<'a> {
    text: &'a str,
    tokens: Range<usize>,
}

impl TapeBuffer {
    /// A buffer for texts of so many bytes; it grows where they have more tokens than usual.
    #[must_use]
    pub fn for_bytes(bytes: usize) -> Self {
        Self { tokens: Vec::with_capacity(bytes / BYTES_A_TOKEN + 8) }
    }

    /// Parses as [`Tape::parse`] does.
    ///
    /// # Errors
    /// As [`Tape::parse`]; the buffer is as it was then.
    pub fn parse<'a>(&mut self, text: &'a str, max_depth: usize) -> Result<BufferedTape<'a>, ParseError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if u32::try_from(text.len()).is_err() {
            return Err(ParseError::TooLong);
        }
        let first = self.tokens.len();
        let parsed = parser::parse(text, &mut self.tokens, max_depth);
        if parsed.is_err() {
            self.tokens.truncate(first);
        }
        parsed.map(|()| BufferedTape { text, tokens: first..self.tokens.len() })
    }

    /// The value of a text that this buffer has parsed.
    ///
    /// # Panics
    /// When another buffer has parsed it.
    #[must_use]
    pub fn root<'t>(&'t self, tape: &BufferedTape<'t>) -> Node<'t> {
        Node { text: tape.text, tokens: &self.tokens[tape.tokens.clone()], at: 0 }
    }
}

/// A value inside a [`Tape`] or a [`BufferedTape`]. Copying it copies a reference.
#[derive(Debug, Clone, Copy)]
pub struct Node<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
}

impl<'t> Node<'t> {
    #[inline]
    fn token(self) -> Token {
        self.tokens[self.at]
    }

    #[inline]
    fn slice(self) -> &'t str {
        let token = self.token();
        &self.text[token.start as usize..token.end as usize]
    }

    #[inline]
    const fn at(self, at: usize) -> Self {
        Self { text: self.text, tokens: self.tokens, at }
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
        if self.token().escaped { Cow::Owned(unescape(self.slice())) } else { Cow::Borrowed(self.slice()) }
    }

    #[inline]
    fn string_is(self, text: &str) -> bool {
        let token = self.token();
        // Most names differ in length already, which the tape tells without a look at the text.
        match token.escaped {
            true => unescape(self.slice()) == text,
            false => (token.end - token.start) as usize == text.len() && self.slice() == text,
        }
    }

    /// The elements of an array; none for any other kind.
    #[inline]
    pub fn elements(self) -> impl Iterator<Item = Node<'t>> {
        let start = if self.kind() == NodeKind::Array { self.at + 1 } else { self.token().next as usize };
        self.siblings(start)
    }

    /// The fields of an object in order, repeated ones included; none for any other kind.
    #[inline]
    pub fn fields(self) -> impl Iterator<Item = (Cow<'t, str>, Node<'t>)> {
        self.raw_fields().map(|(name, value)| (name.string(), value))
    }

    #[inline]
    fn raw_fields(self) -> impl Iterator<Item = (Node<'t>, Node<'t>)> {
        let start = if self.kind() == NodeKind::Object { self.at + 1 } else { self.token().next as usize };
        let mut children = self.siblings(start);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    #[inline]
    fn siblings(self, start: usize) -> impl Iterator<Item = Node<'t>> {
        let end = self.token().next as usize;
        let mut next = start;
        std::iter::from_fn(move || {
            let node = (next < end).then(|| self.at(next))?;
            next = node.token().next as usize;
            Some(node)
        })
    }

    /// The last field of that name, as most readers do; `None` when there is none or this is no object.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Node<'t>> {
        if self.kind() != NodeKind::Object {
            return None;
        }
        let (mut at, end) = (self.at + 1, self.token().next as usize);
        let mut found = None;
        while at < end {
            let (key, value) = (self.at(at), self.at(at + 1));
            if key.string_is(name) {
                found = Some(value);
            }
            at = value.token().next as usize;
        }
        found
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

    /// Appends the source text of the value without the blanks between its tokens.
    pub fn write_compact(self, out: &mut String) {
        let mut open: Vec<(usize, char)> = Vec::new();
        let end = self.token().next as usize;
        let mut at = self.at;
        let mut state = Between::Start;
        while at < end || !open.is_empty() {
            if let Some((closes_at, bracket)) = open.last().copied()
                && at == closes_at
            {
                out.push(bracket);
                open.pop();
                state = Between::after_value(open.last().map(|(_, bracket)| *bracket));
                continue;
            }
            state.write_separator(out);
            let node = self.at(at);
            match node.kind() {
                NodeKind::Array => {
                    out.push('[');
                    open.push((node.token().next as usize, ']'));
                    state = Between::Start;
                }
                NodeKind::Object => {
                    out.push('{');
                    open.push((node.token().next as usize, '}'));
                    state = Between::Key;
                }
                NodeKind::Null | NodeKind::Bool | NodeKind::Number | NodeKind::String => {
                    out.push_str(node.raw());
                    state = match state {
                        Between::Key | Between::CommaKey => Between::Colon,
                        Between::Start | Between::Colon | Between::Comma => Between::after_value(open.last().map(|(_, bracket)| *bracket)),
                    };
                }
            }
            at += 1;
        }
    }
}

/// What stands before the next token of a compact text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Start,
    Key,
    CommaKey,
    Colon,
    Comma,
}

impl Between {
    const fn after_value(bracket: Option<char>) -> Self {
        match bracket {
            Some('}') => Self::CommaKey,
            Some(_) => Self::Comma,
            None => Self::Start,
        }
    }

    fn write_separator(self, out: &mut String) {
        match self {
            Self::Start | Self::Key => {}
            Self::CommaKey | Self::Comma => out.push(','),
            Self::Colon => out.push(':'),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Tape<'_>, ParseError> {
        Tape::parse(text, 64)
    }

    fn to_value(node: Node<'_>) -> serde_json::Value {
        match node.kind() {
            NodeKind::Object => serde_json::Value::Object(node.fields().map(|(k, v)| (k.into_owned(), to_value(v))).collect()),
            NodeKind::Array => serde_json::Value::Array(node.elements().map(to_value).collect()),
            NodeKind::String => serde_json::Value::String(node.text().unwrap().into_owned()),
            NodeKind::Null | NodeKind::Bool | NodeKind::Number => serde_json::from_str(node.raw()).unwrap(),
        }
    }

    #[test]
    fn digits_are_kept() {
        let tape = parse(r#"{"a": 12345678901234567.890, "b": -0.0e+10}"#).unwrap();
        assert_eq!(tape.root().get("a").unwrap().number(), Some("12345678901234567.890"));
        assert_eq!(tape.root().get("b").unwrap().number(), Some("-0.0e+10"));
    }

    #[test]
    fn texts_that_are_no_json_are_refused() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "[1 2]",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "NaN",
            "tru",
            "nul",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\u{1}\"",
            "{}{}",
            "1 1",
            "[]]",
            "{\"a\"}",
            "[}",
            "{]",
            "{1:2}",
            "\"\\u+123\"",
            "{,}",
            "[,]",
            "{\"a\":}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_accepted() {
        assert_eq!(parse("\u{feff}{}").unwrap().root().kind(), NodeKind::Object);
    }

    #[test]
    fn depth_is_bounded_without_using_the_stack() {
        let deep = "[".repeat(1_000_000);
        assert!(matches!(parse(&deep), Err(ParseError::TooDeep { max_depth: 64, .. })));
        let allowed = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(parse(&allowed).is_ok());
    }

    #[test]
    fn repeated_fields_are_found_at_any_level_and_after_unescaping() {
        assert_eq!(parse(r#"{"a":{"b":1,"\u0062":2}}"#).unwrap().root().first_duplicate().as_deref(), Some("b"));
        assert_eq!(parse(r#"[{"x":1},{"x":1,"y":{"x":2}}]"#).unwrap().root().first_duplicate(), None);
        let many: Vec<String> = (0..40).map(|i| format!("\"f{}\":0", i % 39)).collect();
        assert_eq!(parse(&format!("{{{}}}", many.join(","))).unwrap().root().first_duplicate().as_deref(), Some("f0"));
    }

    #[test]
    fn compact_text_is_the_source_without_blanks() {
        let tape = parse(" { \"a\" : [ 1.50 , { } , [ ] , \"x y\\u0041\" ] , \"b\" : { \"c\" : null } } ").unwrap();
        let mut out = String::new();
        tape.root().write_compact(&mut out);
        assert_eq!(out, r#"{"a":[1.50,{},[],"x y\u0041"],"b":{"c":null}}"#);
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| serde_json::json!(f)),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_reads_as_serde_json_reads_it(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let tape = parse(&text).unwrap();
                prop_assert_eq!(&to_value(tape.root()), &value);
                let mut compact = String::new();
                tape.root().write_compact(&mut compact);
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&compact).unwrap(), &value);
            }
        }

        #[test]
        fn what_serde_json_refuses_is_refused(value in json(), at in any::<prop::sample::Index>(), byte in prop::sample::select(b"{}[],:\"\\0-+.eEtu \n".to_vec())) {
            let mut bytes = value.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let theirs = serde_json::from_str::<serde_json::Value>(text).is_ok();
                // serde_json bounds numbers to the range of a double, we keep the digits.
                let number_out_of_range = serde_json::from_str::<Box<serde_json::value::RawValue>>(text).is_ok() && !theirs;
                prop_assert_eq!(parse(text).is_ok(), theirs || number_out_of_range);
            }
        }
    }
}
