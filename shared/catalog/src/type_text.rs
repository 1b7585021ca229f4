//! Iceberg's types in the words of Hive, which are Glue's too, as Iceberg's own Java catalogs write them. A timestamp with a zone is a plain `timestamp`, as Spark
//! writes it: clients of Hive 2 cannot read the longer name that Hive 3 has for it.

use iceberg::spec::{PrimitiveType, Type};

/// The type's text.
pub(crate) fn type_text(kind: &Type) -> String {
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
    use iceberg::spec::{ListType, NestedField, NestedFieldRef, StructType};

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

    fn field(name: &str, kind: Type) -> NestedFieldRef {
        NestedField::optional(1, name, kind).into()
    }

    #[test]
    fn nested_types_are_written_as_hive_writes_them() {
        let point = Type::Struct(StructType::new(vec![
            field("x", Type::Primitive(PrimitiveType::Long)),
            field("at", Type::Primitive(PrimitiveType::Timestamptz)),
        ]));
        let list = Type::List(ListType { element_field: field("element", point) });
        assert_eq!(type_text(&list), "array<struct<x:bigint,at:timestamp>>");
        assert_eq!(type_text(&Type::Primitive(PrimitiveType::Decimal { precision: 12, scale: 2 })), "decimal(12,2)");
    }
}
