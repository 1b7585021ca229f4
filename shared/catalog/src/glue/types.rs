//! Iceberg's types in Glue's words, as Iceberg's own Java catalog writes them.

use iceberg::spec::{PrimitiveType, Type};

/// The type's text.
pub(super) fn type_text(kind: &Type) -> String {
    match kind {
        Type::Primitive(primitive) => primitive_text(primitive),
        Type::Struct(fields) => {
            let fields = fields.fields().iter().map(|field| format!("{}:{}", field.name, type_text(&field.field_type)));
            format!("struct<{}>", fields.collect::<Vec<_>>().join(","))
        }
        Type::List(list) => format!("array<{}>", type_text(&list.element_field.field_type)),
        Type::Map(map) => format!("map<{},{}>", type_text(&map.key_field.field_type), type_text(&map.value_field.field_type)),
    }
}

fn primitive_text(primitive: &PrimitiveType) -> String {
    match primitive {
        PrimitiveType::Boolean => "boolean".to_owned(),
        PrimitiveType::Int => "int".to_owned(),
        PrimitiveType::Long => "bigint".to_owned(),
        PrimitiveType::Float => "float".to_owned(),
        PrimitiveType::Double => "double".to_owned(),
        PrimitiveType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        PrimitiveType::Date => "date".to_owned(),
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz | PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => {
            "timestamp".to_owned()
        }
        PrimitiveType::Time | PrimitiveType::String | PrimitiveType::Uuid => "string".to_owned(),
        PrimitiveType::Fixed(_) | PrimitiveType::Binary => "binary".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{ListType, NestedField, StructType};

    use super::*;

    #[test]
    fn every_type_has_a_text() {
        let list =
            Type::List(ListType { element_field: NestedField::list_element(3, Type::Primitive(PrimitiveType::Timestamptz), true).into() });
        let fields = vec![
            NestedField::optional(1, "d", Type::Primitive(PrimitiveType::Decimal { precision: 38, scale: 6 })).into(),
            NestedField::optional(2, "l", list).into(),
        ];
        assert_eq!(type_text(&Type::Struct(StructType::new(fields))), "struct<d:decimal(38,6),l:array<timestamp>>");
        assert_eq!(type_text(&Type::Primitive(PrimitiveType::Uuid)), "string");
    }
}
