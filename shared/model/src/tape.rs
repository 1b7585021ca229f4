//! A strict JSON reader that keeps every digit.
//!
//! One pass over the text makes a flat tape of tokens that point back into it: nothing is copied, numbers keep their digits, strings
//! are unescaped on demand, depth costs no stack. The names of fields are not on the tape but in the object's shape ([`ObjectShape`]), which the objects
//! of a stream share; only where names hardly repeat they stand on the tape, each before its value. Grammar: RFC 8259, with lone surrogates refused
//! (RFC 8259 section 8.2 leaves them open). Fields may repeat: [`Node::first_duplicate`] finds them, because what to do about it is a setting of the
//! table. Why not a library: see docs/adr/0003-own-json-tape.md.

mod compact;
mod duplicates;
mod escapes;
mod node;
mod parser;
mod shapes;

pub use node::{Node, ObjectShape};
use shapes::{ShapeId, Shapes};

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
    flags: u8,
    /// An object's shape, when its names are not on the tape.
    shape: ShapeId,
}

impl Token {
    /// A string with a backslash in it.
    const ESCAPED: u8 = 1;
    /// An object in which a name stands twice, or was not looked at for that; or a value with such an object inside.
    const MAY_REPEAT: u8 = 2;

    #[inline]
    const fn is_escaped(self) -> bool {
        self.flags & Self::ESCAPED != 0
    }

    #[inline]
    const fn may_repeat(self) -> bool {
        self.flags & Self::MAY_REPEAT != 0
    }
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
    /// The text is longer than a tape can address: 4 GiB, with the texts before it in the same buffer.
    #[error("longer than 4 GiB")]
    TooLong,
}

/// Roughly how much text a token stands for.
const BYTES_A_TOKEN: usize = 16;

/// A parsed text.
#[derive(Debug)]
pub struct Tape<'a> {
    text: &'a str,
    buffer: TapeBuffer,
}

impl<'a> Tape<'a> {
    /// Parses one JSON value that fills the whole text, a leading byte order mark and surrounding blanks aside.
    ///
    /// # Errors
    /// [`ParseError`] when the text is not exactly one JSON value, or is nested deeper than `max_depth` objects and arrays.
    pub fn parse(text: &'a str, max_depth: usize) -> Result<Self, ParseError> {
        let mut buffer = TapeBuffer::for_bytes(text.len());
        let parsed = buffer.parse(text, max_depth)?;
        Ok(Self { text: parsed.text, buffer })
    }

    /// The value.
    #[inline]
    #[must_use]
    pub const fn root(&self) -> Node<'_> {
        Node { text: self.text, buffer: &self.buffer, at: 0 }
    }
}

/// The tokens of many texts: one allocation for all records of a batch, and shapes that they share.
#[derive(Debug, Default)]
pub struct TapeBuffer {
    tokens: Vec<Token>,
    shapes: Shapes,
}

/// A parsed text whose tokens are in a [`TapeBuffer`].
#[derive(Debug, Clone, Copy)]
pub struct BufferedTape<'a> {
    text: &'a str,
    root: u32,
}

impl TapeBuffer {
    /// A buffer for texts of so many bytes; it grows where they have more tokens than usual.
    #[must_use]
    pub fn for_bytes(bytes: usize) -> Self {
        Self { tokens: Vec::with_capacity(bytes / BYTES_A_TOKEN + 8), shapes: Shapes::default() }
    }

    /// Parses as [`Tape::parse`] does.
    ///
    /// # Errors
    /// As [`Tape::parse`]; the buffer holds the same tokens as before then.
    pub fn parse<'a>(&mut self, text: &'a str, max_depth: usize) -> Result<BufferedTape<'a>, ParseError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let first = self.tokens.len();
        // A token stands for at least one byte.
        let (Ok(root), Ok(_)) = (u32::try_from(first), u32::try_from(first + text.len())) else { return Err(ParseError::TooLong) };
        let parsed = parser::parse(text, self, max_depth);
        if parsed.is_err() {
            self.tokens.truncate(first);
        }
        parsed.map(|()| BufferedTape { text, root })
    }

    /// The value of a text that this buffer has parsed.
    ///
    /// # Panics
    /// When another buffer has parsed it, at the first look at the value.
    #[must_use]
    pub const fn root<'t>(&'t self, tape: &BufferedTape<'t>) -> Node<'t> {
        Node { text: tape.text, buffer: self, at: tape.root }
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

    /// Fills the buffer until it no longer tries shapes.
    fn names_that_never_repeat(buffer: &mut TapeBuffer) {
        for number in 0..2 * shapes::MAX_MISFITS + 16 {
            buffer.parse(&format!("{{\"k{number}\": {{}}}}"), 64).unwrap();
        }
        assert!(!buffer.shapes.are_tried());
    }

    #[test]
    fn objects_of_one_buffer_with_the_same_names_have_the_same_shape() {
        let (first, second, third) = (r#"{"a": 1, "b": {}}"#, r#"{"a":null,"b":[{"a":1}]}"#, r#"{"b": 1, "a": 2}"#);
        let mut buffer = TapeBuffer::default();
        let tapes = [first, second, third].map(|text| buffer.parse(text, 64).unwrap());
        let [first, second, third] = tapes.map(|tape| buffer.root(&tape).shape().unwrap());
        assert!(first == second && first != third);
        assert_eq!(first.names().collect::<Vec<_>>(), ["a", "b"]);
        let other = parse(r#"{"a": 1, "b": {}}"#).unwrap();
        assert!(other.root().shape().unwrap() != first, "shapes of two buffers are never the same");
    }

    #[test]
    fn objects_without_a_shape_are_read_alike() {
        let many: Vec<String> = (0..1_000).map(|number| format!("\"f{number}\":{number}")).collect();
        let text = format!("{{{},\"f7\":true}}", many.join(","));
        let tape = parse(&text).unwrap();
        let root = tape.root();
        assert!(root.shape().is_none() && root.values().next().is_none());
        assert_eq!(root.fields().count(), 1_001);
        assert_eq!(root.get("f999").and_then(Node::number), Some("999"));
        assert_eq!(root.get("f7").and_then(Node::as_bool), Some(true), "the last one counts");
        assert_eq!(root.first_duplicate().as_deref(), Some("f7"));
        let mut compact = String::new();
        root.write_compact(&mut compact);
        assert_eq!(compact, text);
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
        fn texts_that_share_a_buffer_are_read_as_if_they_were_alone(values in prop::collection::vec(json(), 1..8), misfits: bool) {
            let texts: Vec<String> = values.iter().flat_map(|value| [value.to_string(), serde_json::to_string_pretty(value).unwrap()]).collect();
            let mut buffer = TapeBuffer::default();
            if misfits {
                names_that_never_repeat(&mut buffer);
            }
            let tapes: Vec<_> = texts.iter().map(|text| buffer.parse(text, 64).unwrap()).collect();
            for (index, tape) in tapes.iter().enumerate() {
                let root = buffer.root(tape);
                prop_assert_eq!(&to_value(root), &values[index / 2]);
                prop_assert_eq!(root.first_duplicate(), None);
                let mut compact = String::new();
                root.write_compact(&mut compact);
                prop_assert_eq!(&compact, &values[index / 2].to_string());
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
