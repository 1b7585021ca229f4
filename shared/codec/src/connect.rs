//! Connect's JSON schemas: the `schema` of `{"schema", "payload"}` (Kafka's `JsonConverter` with `schemas.enable`).
//!
//! A semantic type is a schema's `name`. It decides over the carrier: an int64 called `io.debezium.time.MicroTimestamp` is a time.

use sluice_model::tape::{Node, NodeKind};
use sluice_model::{DeclaredField, DeclaredType, TimeUnit};

/// The declared type of a Connect schema; `None` when it is none that can be read.
#[must_use]
pub fn declared_type(schema: Node<'_>) -> Option<DeclaredType> {
    let carrier = schema.get("type").and_then(Node::text)?;
    let name = schema.get("name").and_then(Node::text);
    if let Some(semantic) = name.and_then(|name| semantic_type(&name, schema)) {
        return Some(semantic);
    }
    match carrier.as_ref() {
        "boolean" => Some(DeclaredType::Boolean),
        "int8" | "int16" | "int32" => Some(DeclaredType::Int),
        "int64" if is_unsigned_bigint(schema) => Some(DeclaredType::UnsignedLong),
        "int64" => Some(DeclaredType::Long),
        "float" | "float32" => Some(DeclaredType::Float),
        "double" | "float64" => Some(DeclaredType::Double),
        "string" => Some(DeclaredType::Text),
        "bytes" => Some(DeclaredType::Bytes),
        "struct" => struct_type(schema),
        "array" => Some(DeclaredType::List(Box::new(inner(schema, "items", "element")?))),
        "map" => Some(DeclaredType::Map(Box::new(inner(schema, "keys", "key")?), Box::new(inner(schema, "values", "value")?))),
        _ => None,
    }
}

fn semantic_type(name: &str, schema: Node<'_>) -> Option<DeclaredType> {
    Some(match name {
        "org.apache.kafka.connect.data.Decimal" => DeclaredType::Decimal {
            precision: parameter(schema, "connect.decimal.precision").and_then(|text| text.parse().ok()),
            scale: parameter(schema, "scale")?.parse().ok()?,
        },
        "io.debezium.data.VariableScaleDecimal" => DeclaredType::VariableScaleDecimal,
        "org.apache.kafka.connect.data.Date" | "io.debezium.time.Date" => DeclaredType::Date,
        "org.apache.kafka.connect.data.Time" | "io.debezium.time.Time" => DeclaredType::Time(TimeUnit::Millis),
        "io.debezium.time.MicroTime" => DeclaredType::Time(TimeUnit::Micros),
        "io.debezium.time.NanoTime" => DeclaredType::Time(TimeUnit::Nanos),
        "org.apache.kafka.connect.data.Timestamp" | "io.debezium.time.Timestamp" => DeclaredType::Timestamp(TimeUnit::Millis),
        "io.debezium.time.MicroTimestamp" => DeclaredType::Timestamp(TimeUnit::Micros),
        "io.debezium.time.NanoTimestamp" => DeclaredType::Timestamp(TimeUnit::Nanos),
        "io.debezium.time.ZonedTimestamp" => DeclaredType::ZonedText,
        "io.debezium.time.ZonedTime" => DeclaredType::ZonedTimeText,
        "io.debezium.time.Year" => DeclaredType::Int,
        "io.debezium.data.Uuid" => DeclaredType::Uuid,
        "io.debezium.data.Json" => DeclaredType::JsonText,
        "io.debezium.data.Bits" => DeclaredType::Bytes,
        "io.debezium.data.Enum" | "io.debezium.data.EnumSet" => DeclaredType::Text,
        _ => return None,
    })
}

fn parameter<'t>(schema: Node<'t>, name: &str) -> Option<std::borrow::Cow<'t, str>> {
    let value = schema.get("parameters")?.get(name)?;
    value.text().or_else(|| value.number().map(Into::into))
}

fn is_unsigned_bigint(schema: Node<'_>) -> bool {
    let source_type = parameter(schema, "__debezium.source.column.type");
    source_type.is_some_and(|text| text.to_ascii_uppercase().starts_with("BIGINT UNSIGNED"))
}

fn struct_type(schema: Node<'_>) -> Option<DeclaredType> {
    let fields = schema.get("fields").filter(|fields| fields.kind() == NodeKind::Array)?;
    let fields: Option<Vec<DeclaredField>> = fields.elements().map(|field| declared_field(field, &field.get("field")?.text()?)).collect();
    fields.map(DeclaredType::Struct)
}

fn inner(schema: Node<'_>, key: &str, name: &str) -> Option<DeclaredField> {
    declared_field(schema.get(key)?, name)
}

fn declared_field(schema: Node<'_>, name: &str) -> Option<DeclaredField> {
    let optional = schema.get("optional").and_then(Node::as_bool).unwrap_or(false);
    Some(DeclaredField { name: name.to_owned(), optional, kind: declared_type(schema)? })
}

#[cfg(test)]
mod tests {
    use sluice_model::Tape;

    use super::*;

    fn declared(text: &str) -> Option<DeclaredType> {
        declared_type(Tape::parse(text, 64).unwrap().root())
    }

    #[test]
    fn the_semantic_name_decides_over_the_carrier() {
        assert_eq!(declared(r#"{"type":"int64"}"#), Some(DeclaredType::Long));
        assert_eq!(
            declared(r#"{"type":"int64","name":"io.debezium.time.MicroTimestamp"}"#),
            Some(DeclaredType::Timestamp(TimeUnit::Micros))
        );
        assert_eq!(
            declared(r#"{"type":"int64","parameters":{"__debezium.source.column.type":"BIGINT UNSIGNED ZEROFILL"}}"#),
            Some(DeclaredType::UnsignedLong)
        );
        assert_eq!(
            declared(r#"{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"-2"}}"#),
            Some(DeclaredType::Decimal { precision: None, scale: -2 })
        );
    }

    #[test]
    fn an_unknown_name_leaves_the_carrier() {
        assert_eq!(declared(r#"{"type":"string","name":"org.example.Email"}"#), Some(DeclaredType::Text));
        assert_eq!(declared(r#"{"type":"uint64"}"#), None);
    }

    #[test]
    fn structs_lists_and_maps_nest() {
        let text = r#"{"type":"struct","fields":[{"field":"tags","type":"array","items":{"type":"string","optional":true}},
            {"field":"attrs","type":"map","keys":{"type":"string"},"values":{"type":"int32"}}]}"#;
        let Some(DeclaredType::Struct(fields)) = declared(text) else { panic!("no struct") };
        assert_eq!(fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["tags", "attrs"]);
        assert!(matches!(&fields[0].kind, DeclaredType::List(element) if element.optional && element.kind == DeclaredType::Text));
    }
}
