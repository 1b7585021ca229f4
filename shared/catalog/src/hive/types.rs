//! A table's columns as Hive shows them. Readers of Iceberg take the schema from the metadata file; these are for Hive's own commands and catalogs
//! of data.

use hive_metastore::FieldSchema;
use iceberg::spec::{NestedFieldRef, PrimitiveType, Schema, Type};

/// What a metastore's column for the type's text held before it became unbounded.
const MAX_TYPE_TEXT: usize = 4_000;

/// The columns, in order. A comment that somebody gave in Hive stays when the schema has none.
pub(super) fn columns(schema: &Schema, before: &[FieldSchema]) -> Vec<FieldSchema> {
    schema.as_struct().fields().iter().map(|field| column(field, before)).collect()
}

fn column(field: &NestedFieldRef, before: &[FieldSchema]) -> FieldSchema {
    let known = before.iter().find(|known| known.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&field.name)));
    let comment = field.doc.clone().map(Into::into).or_else(|| known.and_then(|known| known.comment.clone()));
    let text = type_text(&field.field_type);
    let text = if text.len() > MAX_TYPE_TEXT { "string".to_owned() } else { text };
    FieldSchema { name: Some(field.name.clone().into()), r#type: Some(text.into()), comment }
}

fn type_text(kind: &Type) -> String {
    match kind {
        Type::Primitive(primitive) => primitive_text(primitive),
        Type::Struct(fields) => {
            let fields: Vec<String> =
                fields.fields().iter().map(|field| format!("{}:{}", field.name, type_text(&field.field_type))).collect();
            format!("struct<{}>", fields.join(","))
        }
        Type::List(list) => format!("array<{}>", type_text(&list.element_field.field_type)),
        Type::Map(map) => format!("map<{},{}>", type_text(&map.key_field.field_type), type_text(&map.value_field.field_type)),
    }
}

/// As Iceberg's own Hive catalog has it. A timestamp with a zone is a plain `timestamp`, as Spark writes it: clients of Hive 2 cannot read
/// the longer name that Hive 3 has for it.
fn primitive_text(kind: &PrimitiveType) -> String {
    match kind {
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
        // iceberg's list may grow.
        #[allow(unreachable_patterns)]
        _ => "string".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{ListType, NestedField, StructType};

    use super::*;

    fn field(name: &str, kind: Type) -> NestedFieldRef {
        Arc::new(NestedField::optional(1, name, kind))
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

    #[test]
    fn comments_of_others_stay() {
        let schema = Schema::builder()
            .with_fields([
                Arc::new(NestedField::optional(1, "a", Type::Primitive(PrimitiveType::Long))),
                Arc::new(NestedField::optional(2, "b", Type::Primitive(PrimitiveType::Long)).with_doc("ours")),
            ])
            .build()
            .unwrap();
        let before = |name: &str| FieldSchema { name: Some(name.to_owned().into()), r#type: None, comment: Some("theirs".into()) };
        let now = columns(&schema, &[before("A"), before("b"), before("gone")]);
        let comments: Vec<&str> = now.iter().map(|column| column.comment.as_deref().unwrap()).collect();
        assert_eq!(comments, ["theirs", "ours"]);
    }

    #[test]
    fn a_type_too_long_for_a_metastore_is_shown_as_text() {
        let fields: Vec<NestedFieldRef> =
            (0..500).map(|number| field(&format!("column_{number}"), Type::Primitive(PrimitiveType::Long))).collect();
        let column = column(&field("wide", Type::Struct(StructType::new(fields))), &[]);
        assert_eq!(column.r#type.as_deref(), Some("string"));
    }
}
