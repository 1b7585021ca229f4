//! What keys take, found out from the types that read them.

use std::collections::BTreeMap;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The values that a key takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A text.
    Text,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of such values.
    List(Box<Shape>),
    /// A table with keys of one's own, whose values are such.
    Table(Box<Shape>),
    /// A table with just one of these keys, whose value is a text.
    OneKeyOf(&'static [&'static str]),
    /// Either of two.
    Either(Box<Shape>, Box<Shape>),
    /// Anything; what reads it says more.
    Any,
}

/// The keys that were asked for, each with what it takes, by its path.
pub type Shapes = BTreeMap<String, Shape>;

/// What a value of the type `T` is read from.
#[must_use]
pub fn shape_of<T: DeserializeOwned>() -> Shape {
    let mut asked = Shape::Any;
    // The probe has no value to give, so this always fails; what it was asked for stays.
    let _ = T::deserialize(Probe(&mut asked));
    asked
}

/// Notes what it is asked for, and has nothing to give.
struct Probe<'p>(&'p mut Shape);

/// There is no value.
#[derive(Debug, thiserror::Error)]
#[error("a probe has no values")]
struct Nothing;

impl de::Error for Nothing {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self
    }
}

impl Probe<'_> {
    fn note<T>(self, shape: Shape) -> Result<T, Nothing> {
        *self.0 = shape;
        Err(Nothing)
    }
}

/// Methods of a deserializer that all stand for one shape.
macro_rules! noted {
    ($shape:expr => $($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
            self.note($shape)
        })+
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Nothing;

    noted!(Shape::Any => deserialize_any);
    noted!(Shape::Flag => deserialize_bool);
    noted!(Shape::Integer => deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);
    noted!(Shape::Number => deserialize_f32 deserialize_f64);
    noted!(Shape::Text => deserialize_char deserialize_str deserialize_string);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Nothing> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Nothing> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Nothing> {
        let mut item = Shape::Any;
        let _ = visitor.visit_seq(Inner(&mut item));
        self.note(Shape::List(Box::new(item)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Nothing> {
        let mut value = Shape::Any;
        let _ = visitor.visit_map(Inner(&mut value));
        self.note(Shape::Table(Box::new(value)))
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, variants: &'static [&'static str], _: V) -> Result<V::Value, Nothing> {
        self.note(Shape::Choice(variants))
    }

    forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct tuple tuple_struct struct identifier ignored_any }
}

/// A list's item or a table's value.
struct Inner<'p>(&'p mut Shape);

impl<'de> SeqAccess<'de> for Inner<'_> {
    type Error = Nothing;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Nothing> {
        seed.deserialize(Probe(self.0)).map(Some)
    }
}

impl<'de> MapAccess<'de> for Inner<'_> {
    type Error = Nothing;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Nothing> {
        let key: StrDeserializer<'_, Nothing> = "key".into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Nothing> {
        seed.deserialize(Probe(self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Choice {
        StandDown,
        GoOn,
    }

    #[test]
    fn a_type_tells_what_it_is_read_from() {
        assert_eq!(shape_of::<bool>(), Shape::Flag);
        assert_eq!(shape_of::<Option<u64>>(), Shape::Integer);
        assert_eq!(shape_of::<f64>(), Shape::Number);
        assert_eq!(shape_of::<Vec<String>>(), Shape::List(Box::new(Shape::Text)));
        assert_eq!(shape_of::<BTreeMap<String, Vec<i32>>>(), Shape::Table(Box::new(Shape::List(Box::new(Shape::Integer)))));
        assert_eq!(shape_of::<BTreeMap<String, Value>>(), Shape::Table(Box::new(Shape::Any)));
        assert_eq!(shape_of::<Option<Choice>>(), Shape::Choice(&["stand-down", "go-on"]));
        let choices: Vec<Choice> = serde_json::from_str(r#"["stand-down", "go-on"]"#).unwrap();
        assert!(matches!(choices[..], [Choice::StandDown, Choice::GoOn]));
    }
}
