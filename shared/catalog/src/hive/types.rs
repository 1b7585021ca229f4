//! A table's columns as Hive shows them. Readers of Iceberg take the schema from the metadata file; these are for Hive's own commands and catalogs
//! of data.

use hive_metastore::FieldSchema;
use iceberg::spec::{NestedFieldRef, Schema};

use crate::type_text::type_text;

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{NestedField, PrimitiveType, StructType, Type};

    use super::*;

    fn field(name: &str, kind: Type) -> NestedFieldRef {
        Arc::new(NestedField::optional(1, name, kind))
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
