//! Values of uuid, fixed and binary columns.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sluice_model::DeclaredType;

use super::{Carrier, Fault, Read, Reading};
use crate::settings::BinaryText;

/// Reads a UUID: `8-4-4-4-12` hexadecimal digits in any case.
pub(crate) fn read_uuid(carrier: &Carrier<'_>) -> Read<[u8; 16]> {
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Text(text) => parse_uuid(text).map(Some).ok_or_else(|| Fault::mismatch(carrier, "is no UUID")),
        Carrier::Bool(_) | Carrier::Number(_) | Carrier::Nested(_) => Err(Fault::mismatch(carrier, "is no UUID")),
    }
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let bytes = text.as_bytes();
    if bytes.len() != 36 || DASHES.iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let mut digits = bytes.iter().enumerate().filter(|(at, _)| !DASHES.contains(at)).map(|(_, byte)| hex_digit(*byte));
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(uuid)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Reads bytes: base64 with padding, or hexadecimal where the column says so.
pub(crate) fn read_bytes(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<Vec<u8>> {
    let Carrier::Text(text) = carrier else {
        return if matches!(carrier, Carrier::Null) { Ok(None) } else { Err(Fault::mismatch(carrier, "is no text of bytes")) };
    };
    match form(reading) {
        BinaryText::Base64 => STANDARD
            .decode(text.as_bytes())
            .map(Some)
            .map_err(|_| Fault::mismatch(carrier, "is no base64 with padding; columns.<name>.binary = \"hex\" reads hexadecimal")),
        BinaryText::Hex => parse_hex(text).map(Some).ok_or_else(|| Fault::mismatch(carrier, "is not hexadecimal")),
    }
}

/// Declared bytes arrive as base64, whatever the column says.
fn form(reading: &Reading<'_>) -> BinaryText {
    let declared = matches!(reading.declared, Some(DeclaredType::Bytes | DeclaredType::Decimal { .. }));
    if declared { BinaryText::Base64 } else { reading.column.binary.unwrap_or(BinaryText::Base64) }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text).as_bytes();
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

/// Reads exactly `length` bytes.
pub(crate) fn read_fixed(carrier: &Carrier<'_>, reading: &Reading<'_>, length: usize) -> Read<Vec<u8>> {
    let Some(bytes) = read_bytes(carrier, reading)? else { return Ok(None) };
    if bytes.len() == length { Ok(Some(bytes)) } else { Err(Fault::mismatch(carrier, &format!("is {} bytes, not {length}", bytes.len()))) }
}
