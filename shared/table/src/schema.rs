//! Iceberg's schemas as the model's, and back, and the merge of an evolved schema into the table's.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, TableMetadata, Type};
use sluice_model::{Column, ColumnType, TableSchema};

use crate::TableError;

/// The table's current schema.
///
/// # Errors
/// [`TableError::Unsupported`] when a column has a type that Sluice does not know.
pub fn to_model(metadata: &TableMetadata) -> Result<TableSchema, TableError> {
    let schema = metadata.current_schema();
    let mut identifier_ids: Vec<i32> = schema.identifier_field_ids().collect();
    identifier_ids.sort_unstable();
    Ok(TableSchema {
        schema_id: schema.schema_id(),
        columns: columns_of(schema.as_struct())?,
        identifier_ids,
        last_column_id: metadata.last_column_id(),
    })
}

fn columns_of(fields: &StructType) -> Result<Vec<Column>, TableError> {
    fields.fields().iter().map(column_of).collect()
}

fn column_of(field: &NestedFieldRef) -> Result<Column, TableError> {
    let kind = kind_of(&field.field_type)?;
    Ok(Column { id: field.id, name: field.name.clone(), required: field.required, kind, doc: field.doc.clone() })
}

fn kind_of(kind: &Type) -> Result<ColumnType, TableError> {
    match kind {
        Type::Primitive(primitive) => primitive_of(primitive),
        Type::Struct(fields) => Ok(ColumnType::Struct(columns_of(fields)?)),
        Type::List(list) => Ok(ColumnType::List(Box::new(column_of(&list.element_field)?))),
        Type::Map(map) => Ok(ColumnType::Map(Box::new(column_of(&map.key_field)?), Box::new(column_of(&map.value_field)?))),
    }
}

fn primitive_of(primitive: &PrimitiveType) -> Result<ColumnType, TableError> {
    let too_large = || TableError::Unsupported(format!("columns of the type {primitive}"));
    Ok(match primitive {
        PrimitiveType::Boolean => ColumnType::Boolean,
        PrimitiveType::Int => ColumnType::Int,
        PrimitiveType::Long => ColumnType::Long,
        PrimitiveType::Float => ColumnType::Float,
        PrimitiveType::Double => ColumnType::Double,
        PrimitiveType::Decimal { precision, scale } => ColumnType::Decimal {
            precision: u8::try_from(*precision).map_err(|_| too_large())?,
            scale: u8::try_from(*scale).map_err(|_| too_large())?,
        },
        PrimitiveType::Date => ColumnType::Date,
        PrimitiveType::Time => ColumnType::Time,
        PrimitiveType::Timestamp => ColumnType::Timestamp,
        PrimitiveType::Timestamptz => ColumnType::TimestampTz,
        PrimitiveType::TimestampNs => ColumnType::TimestampNs,
        PrimitiveType::TimestamptzNs => ColumnType::TimestampTzNs,
        PrimitiveType::String => ColumnType::String,
        PrimitiveType::Uuid => ColumnType::Uuid,
        PrimitiveType::Fixed(length) => ColumnType::Fixed(u32::try_from(*length).map_err(|_| too_large())?),
        PrimitiveType::Binary => ColumnType::Binary,
    })
}

/// The schema as iceberg wants it. A schema id of −1 becomes 0: a catalog assigns its own.
///
/// # Errors
/// [`TableError::Iceberg`] when the schema breaks a rule of Iceberg (repeated ids or names, unfit identifier fields).
pub fn to_iceberg(schema: &TableSchema) -> Result<Schema, TableError> {
    let fields: Vec<NestedFieldRef> = schema.columns.iter().map(|column| field_from(column, &HashMap::new())).collect();
    build(schema, fields)
}

fn build(schema: &TableSchema, fields: Vec<NestedFieldRef>) -> Result<Schema, TableError> {
    Schema::builder()
        .with_schema_id(schema.schema_id.max(0))
        .with_fields(fields)
        .with_identifier_field_ids(schema.identifier_ids.iter().copied())
        .build()
        .map_err(TableError::iceberg("the schema is not a valid Iceberg schema"))
}

/// `current` holds the table's fields by id: what the model does not carry (default values) is taken over from them.
fn field_from(column: &Column, current: &HashMap<i32, NestedFieldRef>) -> NestedFieldRef {
    let mut field = NestedField::new(column.id, &column.name, type_from(&column.kind, current), column.required);
    field.doc.clone_from(&column.doc);
    if let Some(old) = current.get(&column.id) {
        field.initial_default.clone_from(&old.initial_default);
        field.write_default.clone_from(&old.write_default);
    }
    Arc::new(field)
}

fn type_from(kind: &ColumnType, current: &HashMap<i32, NestedFieldRef>) -> Type {
    let primitive = match kind {
        ColumnType::Struct(columns) => {
            return Type::Struct(StructType::new(columns.iter().map(|column| field_from(column, current)).collect()));
        }
        ColumnType::List(element) => return Type::List(ListType::new(field_from(element, current))),
        ColumnType::Map(key, value) => return Type::Map(MapType::new(field_from(key, current), field_from(value, current))),
        ColumnType::Boolean => PrimitiveType::Boolean,
        ColumnType::Int => PrimitiveType::Int,
        ColumnType::Long => PrimitiveType::Long,
        ColumnType::Float => PrimitiveType::Float,
        ColumnType::Double => PrimitiveType::Double,
        ColumnType::Decimal { precision, scale } => PrimitiveType::Decimal { precision: u32::from(*precision), scale: u32::from(*scale) },
        ColumnType::Date => PrimitiveType::Date,
        ColumnType::Time => PrimitiveType::Time,
        ColumnType::Timestamp => PrimitiveType::Timestamp,
        ColumnType::TimestampTz => PrimitiveType::Timestamptz,
        ColumnType::TimestampNs => PrimitiveType::TimestampNs,
        ColumnType::TimestampTzNs => PrimitiveType::TimestamptzNs,
        ColumnType::String => PrimitiveType::String,
        ColumnType::Uuid => PrimitiveType::Uuid,
        ColumnType::Fixed(length) => PrimitiveType::Fixed(u64::from(*length)),
        ColumnType::Binary => PrimitiveType::Binary,
    };
    Type::Primitive(primitive)
}

/// Checks that `evolved` is a legal next schema of the table, and builds it.
///
/// Legal is: every old field is still there with its id, has its type or a promoted one, and is at most made optional; every new
/// field is optional and has an id above the highest that the table has ever given out (rules W5 and W7).
///
/// # Errors
/// [`TableError::Invalid`] when it is not legal.
pub fn evolve(metadata: &TableMetadata, evolved: &TableSchema) -> Result<Schema, TableError> {
    let current = metadata.current_schema().field_id_to_fields();
    let fields: Vec<NestedFieldRef> = evolved.columns.iter().map(|column| field_from(column, current)).collect();
    let schema = build(evolved, fields)?;
    let next = schema.field_id_to_fields();
    for (id, old) in current {
        let new = next.get(id).ok_or_else(|| TableError::Invalid(format!("the evolved schema lacks the column `{}`", old.name)))?;
        check_kept(old, new)?;
    }
    for (id, field) in next.iter().filter(|(id, _)| !current.contains_key(id)) {
        check_added(*id, field, (metadata, &schema))?;
    }
    Ok(schema)
}

fn check_kept(old: &NestedField, new: &NestedField) -> Result<(), TableError> {
    if new.required && !old.required {
        return Err(TableError::Invalid(format!("the column `{}` cannot be made required", old.name)));
    }
    if promotes(&old.field_type, &new.field_type) {
        return Ok(());
    }
    Err(TableError::Invalid(format!("the column `{}` cannot change from {} to {}", old.name, old.field_type, new.field_type)))
}

/// Nested types are compared by kind only: their fields stand in the schema's index by themselves.
fn promotes(old: &Type, new: &Type) -> bool {
    match (old, new) {
        (Type::Primitive(old), Type::Primitive(new)) => promotes_primitive(old, new),
        (Type::Struct(_), Type::Struct(_)) => true,
        (Type::List(old), Type::List(new)) => old.element_field.id == new.element_field.id,
        (Type::Map(old), Type::Map(new)) => old.key_field.id == new.key_field.id && old.value_field.id == new.value_field.id,
        _ => false,
    }
}

fn promotes_primitive(old: &PrimitiveType, new: &PrimitiveType) -> bool {
    match (old, new) {
        (PrimitiveType::Int, PrimitiveType::Long) | (PrimitiveType::Float, PrimitiveType::Double) => true,
        (PrimitiveType::Decimal { precision: p, scale: s }, PrimitiveType::Decimal { precision: q, scale: t }) => s == t && p <= q,
        _ => old == new,
    }
}

fn check_added(id: i32, field: &NestedField, (metadata, schema): (&TableMetadata, &Schema)) -> Result<(), TableError> {
    if id <= metadata.last_column_id() {
        return Err(TableError::Invalid(format!("the new column `{}` has the id {id}, which the table has used", field.name)));
    }
    if field.required && !inside_new_field(id, (metadata, schema)) && !is_map_key(id, schema) {
        return Err(TableError::Invalid(format!("the new column `{}` must be optional", field.name)));
    }
    Ok(())
}

/// A field inside a new struct, list or map may be required: the new field around it is null in old rows.
fn inside_new_field(id: i32, (metadata, schema): (&TableMetadata, &Schema)) -> bool {
    let Some(name) = schema.name_by_field_id(id) else { return false };
    let ancestors = name.match_indices('.').filter_map(|(at, _)| schema.field_id_by_name(&name[..at]));
    ancestors.into_iter().any(|ancestor| ancestor > metadata.last_column_id())
}

fn is_map_key(id: i32, schema: &Schema) -> bool {
    let fields = schema.field_id_to_fields().values();
    fields.into_iter().any(|field| matches!(field.field_type.as_ref(), Type::Map(map) if map.key_field.id == id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::creation::{TableCreation, tests::metadata_of};

    fn every_type() -> Vec<Column> {
        let kinds = vec![
            ColumnType::Boolean,
            ColumnType::Int,
            ColumnType::Long,
            ColumnType::Float,
            ColumnType::Double,
            ColumnType::Decimal { precision: 12, scale: 3 },
            ColumnType::Date,
            ColumnType::Time,
            ColumnType::Timestamp,
            ColumnType::TimestampTz,
            ColumnType::TimestampNs,
            ColumnType::TimestampTzNs,
            ColumnType::String,
            ColumnType::Uuid,
            ColumnType::Fixed(7),
            ColumnType::Binary,
        ];
        let flat = kinds.into_iter().zip(1..).map(|(kind, id)| Column::optional(id, format!("c{id}"), kind));
        let mut columns: Vec<Column> = flat.collect();
        columns.push(Column::optional(17, "s", ColumnType::Struct(vec![Column::required(18, "a", ColumnType::Int)])));
        columns.push(Column::optional(19, "l", ColumnType::List(Box::new(Column::optional(20, "element", ColumnType::Int)))));
        let key = Column::required(22, "key", ColumnType::String);
        columns.push(Column::optional(21, "m", ColumnType::Map(Box::new(key), Box::new(Column::optional(23, "value", ColumnType::Date)))));
        columns
    }

    #[test]
    fn every_type_comes_back() {
        let schema = TableSchema { schema_id: 0, columns: every_type(), identifier_ids: vec![], last_column_id: 23 };
        let fields = columns_of(to_iceberg(&schema).unwrap().as_struct()).unwrap();
        assert_eq!(fields, schema.columns);
    }

    fn table() -> TableMetadata {
        let columns = vec![
            Column::required(1, "id", ColumnType::Int),
            Column::optional(2, "s", ColumnType::Struct(vec![Column::optional(3, "a", ColumnType::Float)])),
        ];
        let schema = TableSchema { schema_id: -1, columns, identifier_ids: vec![1], last_column_id: 3 };
        metadata_of(&TableCreation::of(schema))
    }

    #[test]
    fn promotions_and_new_optional_columns_are_legal_and_nothing_else() {
        let metadata = table();
        let base = to_model(&metadata).unwrap();
        let legal = |change: &dyn Fn(&mut TableSchema)| {
            let mut schema = base.clone();
            change(&mut schema);
            evolve(&metadata, &schema).is_ok()
        };
        assert!(legal(&|_| {}));
        assert!(legal(&|s| s.columns[0].kind = ColumnType::Long));
        assert!(legal(&|s| s.columns.push(Column::optional(4, "n", ColumnType::Date))));
        assert!(legal(&|s| s.columns.push(Column::optional(4, "n", ColumnType::Struct(vec![Column::required(5, "x", ColumnType::Int)])))));
        assert!(!legal(&|s| s.columns.push(Column::required(4, "n", ColumnType::Date))));
        assert!(!legal(&|s| s.columns.push(Column::optional(3, "n", ColumnType::Date))));
        assert!(!legal(&|s| s.columns[0].kind = ColumnType::String));
        assert!(!legal(&|s| s.columns[1].required = true));
        assert!(!legal(&|s| {
            s.columns.remove(1);
        }));
    }
}
