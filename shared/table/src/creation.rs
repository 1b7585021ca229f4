//! The metadata of a new table.

use std::collections::{BTreeMap, HashMap};

use iceberg::spec::{
    FormatVersion, NullOrder, Schema, SortDirection as IcebergDirection, SortField as IcebergSortField, SortOrder, TableMetadata,
    TableMetadataBuilder, Transform as IcebergTransform, UnboundPartitionSpec,
};
use sluice_model::{SortDirection, SortField, TableSchema, Transform, TransformedColumn};
use uuid::Uuid;

use crate::TableError;
use crate::partition::check_kept;

/// What a new table is to look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCreation {
    /// Its columns and key. Field ids may be given anew: load the table to learn them.
    pub schema: TableSchema,
    /// Its partition fields.
    pub partition_by: Vec<TransformedColumn>,
    /// Its sort order.
    pub sort_by: Vec<SortField>,
    /// Its properties.
    pub properties: BTreeMap<String, String>,
    /// 2 or 3.
    pub format_version: u8,
}

impl TableCreation {
    /// An unpartitioned, unsorted table of format version 2 without properties.
    #[must_use]
    pub const fn of(schema: TableSchema) -> Self {
        Self { schema, partition_by: Vec::new(), sort_by: Vec::new(), properties: BTreeMap::new(), format_version: 2 }
    }

    /// The first metadata of the table at `location`.
    ///
    /// # Errors
    /// [`TableError::Invalid`] when a partition or sort field names an unknown column or its transform does not fit the type.
    pub fn metadata(&self, location: &str, id: u128, now_ms: i64) -> Result<TableMetadata, TableError> {
        let schema = crate::schema::to_iceberg(&self.schema)?;
        let spec = partition_spec(&self.partition_by, &schema)?;
        let order = self.order(&schema)?;
        let properties: HashMap<String, String> = self.properties.clone().into_iter().collect();
        let location = location.to_owned();
        let builder =
            TableMetadataBuilder::new(schema, spec, order, location, self.version()?, properties).map_err(|error| invalid(&error))?;
        let metadata = builder.assign_uuid(Uuid::from_u128(id)).build().map_err(|error| invalid(&error))?.metadata;
        at_time(&metadata, now_ms)
    }

    fn version(&self) -> Result<FormatVersion, TableError> {
        match self.format_version {
            2 => Ok(FormatVersion::V2),
            3 => Ok(FormatVersion::V3),
            other => Err(TableError::Unsupported(format!("new tables of format version {other}; choose 2 or 3"))),
        }
    }

    fn order(&self, schema: &Schema) -> Result<SortOrder, TableError> {
        let mut builder = SortOrder::builder();
        for field in &self.sort_by {
            let (source_id, transform) = bind(&field.by, schema)?;
            let (direction, null_order) = match field.direction {
                SortDirection::Ascending => (IcebergDirection::Ascending, NullOrder::First),
                SortDirection::Descending => (IcebergDirection::Descending, NullOrder::Last),
            };
            builder.with_sort_field(IcebergSortField { source_id, transform, direction, null_order });
        }
        builder.build(schema).map_err(|error| invalid(&error))
    }
}

/// The partition spec of these fields on a schema.
pub(crate) fn partition_spec(fields: &[TransformedColumn], schema: &Schema) -> Result<UnboundPartitionSpec, TableError> {
    let mut builder = UnboundPartitionSpec::builder();
    for field in fields {
        let (id, transform) = bind(field, schema)?;
        if let Some(Ok(kind)) = schema.field_by_id(id).map(|column| transform.result_type(&column.field_type)) {
            check_kept(&kind, &field.to_string())?;
        }
        builder = builder.add_partition_field(id, partition_name(field), transform).map_err(|error| invalid(&error))?;
    }
    Ok(builder.build())
}

fn invalid(error: &iceberg::Error) -> TableError {
    TableError::Invalid(format!("the table cannot be created: {error}"))
}

/// iceberg stamps new metadata with the machine's clock; our clock is an argument.
pub(crate) fn at_time(metadata: &TableMetadata, now_ms: i64) -> Result<TableMetadata, TableError> {
    let wrong = |error: serde_json::Error| TableError::Invalid(format!("the table's metadata cannot be written: {error}"));
    let mut json = serde_json::to_value(metadata).map_err(wrong)?;
    if let Some(fields) = json.as_object_mut() {
        fields.insert("last-updated-ms".to_owned(), now_ms.into());
    }
    serde_json::from_value(json).map_err(wrong)
}

fn bind(field: &TransformedColumn, schema: &Schema) -> Result<(i32, IcebergTransform), TableError> {
    let column = schema
        .field_by_name(&field.column)
        .ok_or_else(|| TableError::Invalid(format!("`{field}`: the table has no column `{}`", field.column)))?;
    let transform = to_iceberg(field.transform);
    if transform.result_type(&column.field_type).is_err() {
        return Err(TableError::Invalid(format!("`{field}`: the transform does not fit a column of type {}", column.field_type)));
    }
    Ok((column.id, transform))
}

const fn to_iceberg(transform: Transform) -> IcebergTransform {
    match transform {
        Transform::Identity => IcebergTransform::Identity,
        Transform::Bucket(count) => IcebergTransform::Bucket(count),
        Transform::Truncate(width) => IcebergTransform::Truncate(width),
        Transform::Year => IcebergTransform::Year,
        Transform::Month => IcebergTransform::Month,
        Transform::Day => IcebergTransform::Day,
        Transform::Hour => IcebergTransform::Hour,
        Transform::Void => IcebergTransform::Void,
    }
}

/// The names that Iceberg's own `PartitionSpec.builderFor` gives.
fn partition_name(field: &TransformedColumn) -> String {
    let column = &field.column;
    match field.transform {
        Transform::Identity => column.clone(),
        Transform::Bucket(_) => format!("{column}_bucket"),
        Transform::Truncate(_) => format!("{column}_trunc"),
        Transform::Year => format!("{column}_year"),
        Transform::Month => format!("{column}_month"),
        Transform::Day => format!("{column}_day"),
        Transform::Hour => format!("{column}_hour"),
        Transform::Void => format!("{column}_null"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use sluice_model::{Column, ColumnType};

    use super::*;

    pub(crate) fn metadata_of(creation: &TableCreation) -> TableMetadata {
        creation.metadata("memory://wh/t", 7, 1_000).unwrap()
    }

    fn creation() -> TableCreation {
        let columns = vec![Column::required(1, "id", ColumnType::Long), Column::optional(2, "at", ColumnType::Timestamp)];
        TableCreation::of(TableSchema { schema_id: -1, columns, identifier_ids: vec![1], last_column_id: 2 })
    }

    #[test]
    fn the_clock_and_the_id_are_ours() {
        let metadata = metadata_of(&creation());
        assert_eq!(metadata.last_updated_ms(), 1_000);
        assert_eq!(metadata.uuid(), Uuid::from_u128(7));
    }

    #[test]
    fn a_transform_must_fit_its_column() {
        let with = |text: &str| {
            let mut creation = creation();
            creation.partition_by.push(TransformedColumn::parse(text).unwrap());
            creation.metadata("memory://wh/t", 7, 1_000)
        };
        assert!(with("day(at)").is_ok());
        assert_eq!(with("day(id)").unwrap_err().class(), sluice_model::Class::Fatal);
        assert!(with("truncate(3, at)").is_err());
        assert!(with("nope").is_err());
    }
}
