//! A table's entry in Glue, made or changed.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_glue::error::BuildError;
use aws_sdk_glue::types::{Column, StorageDescriptor, Table, TableInput};
use iceberg::spec::{NestedField, TableMetadata};
use sluice_model::TableName;

use crate::pointer::NewPointer;
use crate::type_text::type_text;

pub(super) const TABLE_TYPE: &str = "table_type";
pub(super) const METADATA_LOCATION: &str = "metadata_location";
const PREVIOUS_METADATA_LOCATION: &str = "previous_metadata_location";
const FIELD_ID: &str = "iceberg.field.id";
const FIELD_OPTIONAL: &str = "iceberg.field.optional";
const FIELD_CURRENT: &str = "iceberg.field.current";

/// Glue's own limits, in bytes.
const MOST_COMMENT: usize = 255;
const MOST_TYPE: usize = 131_072;
/// Of a table's entry, Glue takes less than 20 MB; the rest of it is left room.
const MOST_COLUMNS: usize = 16 << 20;

/// Whether the entry is that of an Iceberg table.
pub(super) fn is_iceberg(table: &Table) -> bool {
    let parameters = table.parameters();
    parameters.and_then(|all| all.get(TABLE_TYPE)).is_some_and(|kind| kind.eq_ignore_ascii_case("iceberg"))
}

/// The entry's pointer.
pub(super) fn metadata_location(table: &Table) -> Option<&String> {
    table.parameters().and_then(|all| all.get(METADATA_LOCATION)).filter(|location| !location.is_empty())
}

/// The entry of a new table.
pub(super) fn created(new: NewPointer<'_>) -> Result<TableInput, BuildError> {
    let parameters = HashMap::from([
        (TABLE_TYPE.to_owned(), "ICEBERG".to_owned()),
        ("EXTERNAL".to_owned(), "TRUE".to_owned()),
        (METADATA_LOCATION.to_owned(), new.location.to_owned()),
    ]);
    let columns = columns(new.metadata, &[])?;
    let storage = StorageDescriptor::builder().location(new.metadata.location()).set_columns(Some(columns)).build();
    TableInput::builder()
        .name(new.name.table())
        .table_type("EXTERNAL_TABLE")
        .set_parameters(Some(parameters))
        .storage_descriptor(storage)
        .build()
}

/// The entry `old` with the new pointer and the new columns; all else as it was.
pub(super) fn changed(old: &Table, new: NewPointer<'_>) -> Result<TableInput, BuildError> {
    let mut parameters = old.parameters().cloned().unwrap_or_default();
    if let Some(previous) = parameters.insert(METADATA_LOCATION.to_owned(), new.location.to_owned()) {
        parameters.insert(PREVIOUS_METADATA_LOCATION.to_owned(), previous);
    }
    let mut storage = old.storage_descriptor().cloned().unwrap_or_else(|| StorageDescriptor::builder().build());
    storage.columns = Some(columns(new.metadata, storage.columns())?);
    storage.location = Some(new.metadata.location().to_owned());
    TableInput::builder()
        .name(old.name())
        .set_description(old.description.clone())
        .set_owner(old.owner.clone())
        .set_last_access_time(old.last_access_time)
        .set_last_analyzed_time(old.last_analyzed_time)
        .retention(old.retention)
        .storage_descriptor(storage)
        .set_partition_keys(old.partition_keys.clone())
        .set_view_original_text(old.view_original_text.clone())
        .set_view_expanded_text(old.view_expanded_text.clone())
        .set_table_type(old.table_type.clone())
        .set_parameters(Some(parameters))
        .set_target_table(old.target_table.clone())
        .build()
}

/// The table's columns. What others have said of a column stays: its comment, unless the schema has a doc, and its parameters.
fn columns(metadata: &TableMetadata, old: &[Column]) -> Result<Vec<Column>, BuildError> {
    let by_id: BTreeMap<&str, &Column> =
        old.iter().filter_map(|column| Some((column.parameters()?.get(FIELD_ID)?.as_str(), column))).collect();
    let mut columns = Vec::new();
    let mut bytes = 0;
    for field in metadata.current_schema().as_struct().fields() {
        let known = by_id.get(field.id.to_string().as_str()).copied();
        let known = known.or_else(|| old.iter().find(|column| column.name() == field.name));
        let column = column(field, known)?;
        bytes += size(&column);
        if bytes > MOST_COLUMNS {
            // The columns in Glue are for looking at; the metadata file is what counts.
            break;
        }
        columns.push(column);
    }
    Ok(columns)
}

fn column(field: &NestedField, known: Option<&Column>) -> Result<Column, BuildError> {
    let mut parameters = known.and_then(Column::parameters).cloned().unwrap_or_default();
    parameters.insert(FIELD_ID.to_owned(), field.id.to_string());
    parameters.insert(FIELD_OPTIONAL.to_owned(), (!field.required).to_string());
    parameters.insert(FIELD_CURRENT.to_owned(), "true".to_owned());
    let comment = field.doc.as_deref().or_else(|| known.and_then(Column::comment)).map(|text| cut(text, MOST_COMMENT));
    let kind = Some(type_text(&field.field_type)).filter(|text| text.len() <= MOST_TYPE);
    // A type too long to be shown is shown as text.
    let kind = kind.unwrap_or_else(|| "string".to_owned());
    Column::builder().name(&field.name).r#type(kind).set_comment(comment).set_parameters(Some(parameters)).build()
}

fn size(column: &Column) -> usize {
    let parameters = column.parameters().into_iter().flatten().map(|(key, value)| key.len() + value.len() + 6).sum::<usize>();
    column.name().len() + column.r#type().map_or(0, str::len) + column.comment().map_or(0, str::len) + parameters + 64
}

/// At most so many bytes of a text, at the end of a character.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

/// Why the name can be none of Glue's, with what to do.
pub(super) fn objection(name: &TableName) -> Option<String> {
    let help = if name.namespace().contains('.') {
        "a database of Glue lies in no other: route to names of the form `database.table`"
    } else if name.as_str().chars().any(char::is_uppercase) {
        "names in Glue are lower-case: set route.case = \"lower\" or rename"
    } else if name.namespace().len() > MOST_COMMENT || name.table().len() > MOST_COMMENT {
        "names in Glue have 255 bytes at most"
    } else {
        return None;
    };
    Some(format!("`{name}` cannot be a table of Glue: {help}"))
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{FormatVersion, PrimitiveType, Schema, SortOrder, TableMetadataBuilder, Type, UnboundPartitionSpec};

    use super::*;

    fn metadata(fields: Vec<NestedField>) -> TableMetadata {
        let schema = Schema::builder().with_fields(fields.into_iter().map(Into::into)).build().unwrap();
        let (spec, order) = (UnboundPartitionSpec::builder().build(), SortOrder::unsorted_order());
        let builder = TableMetadataBuilder::new(schema, spec, order, "s3://b/t".to_owned(), FormatVersion::V2, HashMap::new());
        builder.unwrap().build().unwrap().metadata
    }

    fn field(id: i32, name: &str, doc: Option<&str>) -> NestedField {
        let field = NestedField::optional(id, name, Type::Primitive(PrimitiveType::Long));
        match doc {
            Some(doc) => field.with_doc(doc),
            None => field,
        }
    }

    fn given(name: &str, id: &str, comment: &str) -> Column {
        let parameters = HashMap::from([(FIELD_ID.to_owned(), id.to_owned()), ("pii".to_owned(), "yes".to_owned())]);
        Column::builder().name(name).r#type("int").comment(comment).set_parameters(Some(parameters)).build().unwrap()
    }

    #[test]
    fn comments_and_parameters_of_others_follow_their_column() {
        let metadata = metadata(vec![field(1, "renamed", None), field(2, "told", Some("by the schema")), field(3, "new", None)]);
        let made = columns(&metadata, &[given("before", "1", "by hand"), given("told", "2", "by hand"), given("gone", "9", "x")]).unwrap();
        let shown: Vec<_> = made.iter().map(|column| (column.name(), column.r#type(), column.comment())).collect();
        let expected =
            [("renamed", Some("bigint"), Some("by hand")), ("told", Some("bigint"), Some("by the schema")), ("new", Some("bigint"), None)];
        assert_eq!(shown, expected);
        assert_eq!(made[0].parameters().unwrap().get("pii").map(String::as_str), Some("yes"));
        assert_eq!(made[2].parameters().unwrap().get("pii"), None);
    }

    #[test]
    fn long_comments_are_cut_at_a_character_and_a_huge_schema_stays_below_the_limit() {
        let doc = "ü".repeat(200);
        let made = columns(&metadata(vec![field(1, "a", Some(&doc))]), &[]).unwrap();
        assert_eq!(made[0].comment().unwrap().len(), 254);
        let name = "n".repeat(30_000);
        let many = (1..1_000).map(|id| field(id, &format!("{name}{id}"), None)).collect();
        let made = columns(&metadata(many), &[]).unwrap();
        assert!(made.len() > 100 && made.iter().map(size).sum::<usize>() <= MOST_COLUMNS);
    }

    #[test]
    fn names_that_glue_does_not_know() {
        for (name, word) in [("a.b.c", "no other"), ("Shop.orders", "lower-case"), ("shop.orders", "")] {
            let objection = objection(&TableName::parse(name).unwrap());
            assert!(objection.as_deref().unwrap_or("").contains(word), "{name}: {objection:?}");
            assert_eq!(objection.is_none(), word.is_empty(), "{name}");
        }
    }
}
