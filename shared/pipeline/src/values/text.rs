//! Values of string columns.

use std::borrow::Cow;

use super::decimal::{declared_number, declared_scale};
use super::{Carrier, Fault, Read, Reading};
use crate::settings::JsonColumn;

/// Reads text: a string as it is, a number with the digits of the source, a declared decimal plainly.
pub(crate) fn read_text<'c>(carrier: &'c Carrier<'_>, reading: &Reading<'_>) -> Read<Cow<'c, str>> {
    if let Some(digits) = declared_number(carrier, reading)? {
        return Ok(Some(Cow::Owned(digits.to_plain(declared_scale(reading.declared)))));
    }
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Text(text) => Ok(Some(Cow::Borrowed(text))),
        Carrier::Number(digits) => Ok(Some(Cow::Borrowed(digits))),
        Carrier::Bool(_) => Err(Fault::mismatch(carrier, "is no text")),
        Carrier::Nested(node) => match reading.column.json {
            Some(JsonColumn::Text) => {
                let mut text = String::with_capacity(node.raw().len());
                node.write_compact(&mut text);
                Ok(Some(Cow::Owned(text)))
            }
            None => Err(Fault::mismatch(carrier, "is no text; columns.<name>.json = \"text\" stores its JSON text")),
        },
    }
}
