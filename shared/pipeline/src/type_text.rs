//! Column types as text, in the spelling of the Iceberg spec: `decimal(10,2)`, `list<int>`, `struct<a: int, b: string>`.

use sluice_model::{Column, ColumnType, Transform};

/// Reads a column type. Field ids are 0: they are given when the column enters a schema.
///
/// # Errors
/// A sentence saying what is no type.
pub fn parse_column_type(text: &str) -> Result<ColumnType, String> {
    let text = text.trim();
    if let Some(primitive) = parse_primitive(text) {
        return Ok(primitive);
    }
    let wrong = || format!("`{text}` is no Iceberg column type");
    let (name, inner) = text.strip_suffix('>').and_then(|rest| rest.split_once('<')).ok_or_else(wrong)?;
    let parts = split_top_level(inner);
    match (name.trim(), parts.as_slice()) {
        ("list", [element]) => Ok(ColumnType::List(Box::new(Column::optional(0, "element", parse_column_type(element)?)))),
        ("map", [key, value]) => {
            let key = Column::required(0, "key", parse_column_type(key)?);
            let value = Column::optional(0, "value", parse_column_type(value)?);
            Ok(ColumnType::Map(Box::new(key), Box::new(value)))
        }
        ("struct", fields) => Ok(ColumnType::Struct(fields.iter().map(|field| parse_field(field)).collect::<Result<_, _>>()?)),
        _ => Err(wrong()),
    }
}

fn parse_field(text: &str) -> Result<Column, String> {
    let (name, kind) = text.split_once(':').ok_or_else(|| format!("`{}` is no struct field: expected name: type", text.trim()))?;
    Ok(Column::optional(0, name.trim(), parse_column_type(kind)?))
}

fn parse_primitive(text: &str) -> Option<ColumnType> {
    Some(match text {
        "boolean" => ColumnType::Boolean,
        "int" => ColumnType::Int,
        "long" => ColumnType::Long,
        "float" => ColumnType::Float,
        "double" => ColumnType::Double,
        "date" => ColumnType::Date,
        "time" => ColumnType::Time,
        "timestamp" => ColumnType::Timestamp,
        "timestamptz" => ColumnType::TimestampTz,
        "timestamp_ns" => ColumnType::TimestampNs,
        "timestamptz_ns" => ColumnType::TimestampTzNs,
        "string" => ColumnType::String,
        "uuid" => ColumnType::Uuid,
        "binary" => ColumnType::Binary,
        _ => return parse_sized(text),
    })
}

fn parse_sized(text: &str) -> Option<ColumnType> {
    if let Some(length) = text.strip_prefix("fixed[").and_then(|rest| rest.strip_suffix(']')) {
        return length.trim().parse().ok().map(ColumnType::Fixed);
    }
    let (precision, scale) = text.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale): (u8, u8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let sound = (1..=38).contains(&precision) && scale <= precision;
    sound.then_some(ColumnType::Decimal { precision, scale })
}

fn split_top_level(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

/// Whether Iceberg defines the transform for the type (table spec, "Partition Transforms").
#[must_use]
pub fn transform_fits(transform: Transform, kind: &ColumnType) -> bool {
    use ColumnType as T;
    let timestamp = matches!(kind, T::Timestamp | T::TimestampTz | T::TimestampNs | T::TimestampTzNs);
    match transform {
        Transform::Identity => !matches!(kind, T::Struct(_) | T::List(_) | T::Map(..)),
        Transform::Bucket(_) => !matches!(kind, T::Struct(_) | T::List(_) | T::Map(..) | T::Boolean | T::Float | T::Double),
        Transform::Truncate(_) => matches!(kind, T::Int | T::Long | T::Decimal { .. } | T::String | T::Binary),
        Transform::Year | Transform::Month | Transform::Day => timestamp || *kind == T::Date,
        Transform::Hour => timestamp,
        Transform::Void => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_back_as_they_are_written() {
        for text in [
            "boolean",
            "decimal(38,10)",
            "fixed[16]",
            "timestamptz_ns",
            "list<int>",
            "map<string, struct<n: int, m: list<long>>>",
            "struct<customer_id: int, details: struct<name: string, email: string>>",
        ] {
            assert_eq!(parse_column_type(text).map(|kind| kind.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "integer", "decimal(39,2)", "decimal(2,3)", "decimal(10)", "list<>", "list<int, int>", "struct<a>", "map<int>", "list<int"]
        {
            assert!(parse_column_type(text).is_err(), "{text}");
        }
    }
}
