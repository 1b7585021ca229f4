//! What stands in the metastore for an Iceberg table, and how a commit changes it.

use hive_metastore::{FieldSchema, SerDeInfo, StorageDescriptor, Table};
use iceberg::spec::TableMetadata;
use pilota::{AHashMap, FastStr};
use sluice_model::{OffsetLedger, TableName};
use sluice_table::TableError;

use super::types::columns;
use crate::pointer::NewPointer;

pub(super) const METADATA_LOCATION: &str = "metadata_location";
pub(super) const PREVIOUS_METADATA_LOCATION: &str = "previous_metadata_location";
const TABLE_TYPE: &str = "table_type";
const ICEBERG: &str = "ICEBERG";
/// The table property by which Iceberg's engines agree whether writers of a table lock it.
const LOCK_ENABLED: &str = "engine.hive.lock-enabled";
/// A parameter's value was so long at most before it became unbounded.
const MAX_PARAMETER: usize = 4_000;

/// Parameters by which Iceberg's Java catalog shows the current snapshot and schema. We do not keep them, so they must not be left to lie: Hive
/// answers `count(*)` from `numRows`.
const OF_THE_SNAPSHOT: [&str; 9] = [
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
    "numRows",
    "numFiles",
    "totalSize",
];

/// The database and table of a name.
pub(super) fn place_of(name: &TableName) -> Result<(FastStr, FastStr), TableError> {
    let (database, table) = (name.namespace(), name.table());
    if database.contains('.') {
        return Err(TableError::Unsupported(format!(
            "`{name}`: a Hive database cannot lie in another; route to names like `database.table`"
        )));
    }
    if database.chars().chain(table.chars()).any(char::is_uppercase) {
        return Err(TableError::Unsupported(format!("`{name}`: Hive keeps names in lower case; set route.case = \"lower\"")));
    }
    Ok((database.to_owned().into(), table.to_owned().into()))
}

fn parameter<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.parameters.as_ref()?.get(key).map(FastStr::as_str)
}

/// Whether the table is Iceberg's: the mark is compared without regard to case, as Java does.
pub(super) fn is_iceberg(table: &Table) -> bool {
    parameter(table, TABLE_TYPE).is_some_and(|kind| kind.eq_ignore_ascii_case(ICEBERG)) && parameter(table, METADATA_LOCATION).is_some()
}

/// The location of the table's metadata.
pub(super) fn location_of(table: &Table, name: &TableName) -> Result<String, TableError> {
    match parameter(table, METADATA_LOCATION).filter(|_| is_iceberg(table)) {
        Some(location) => Ok(location.to_owned()),
        None => {
            let kind = table.table_type.as_deref().unwrap_or("table");
            let mark = parameter(table, TABLE_TYPE).unwrap_or("none");
            Err(TableError::Unsupported(format!(
                "`{name}` is no Iceberg table in the Hive Metastore (a {kind}, {TABLE_TYPE} = {mark}); route its records to another name, or migrate it"
            )))
        }
    }
}

/// The location that the table had before the current one.
pub(super) fn previous_of(table: &Table) -> Option<&str> {
    parameter(table, PREVIOUS_METADATA_LOCATION)
}

/// Whether the table's owner has declared that no writer locks it.
pub(super) fn declared_lock_free(table: &Table, metadata: &TableMetadata) -> bool {
    let declared = metadata.properties().get(LOCK_ENABLED).map(String::as_str).or_else(|| parameter(table, LOCK_ENABLED));
    declared.is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

/// The entry of a new table, owned by `owner`.
pub(super) fn created(new: NewPointer<'_>, owner: &str, seconds: i32) -> Result<Table, TableError> {
    let (database, table) = place_of(new.name)?;
    let parameters = [("EXTERNAL", "TRUE"), (TABLE_TYPE, ICEBERG), (METADATA_LOCATION, new.location)];
    let mut entry = Table {
        table_name: Some(table),
        db_name: Some(database),
        owner: Some(owner.to_owned().into()),
        create_time: Some(seconds),
        last_access_time: Some(seconds),
        retention: Some(i32::MAX),
        table_type: Some("EXTERNAL_TABLE".into()),
        partition_keys: Some(Vec::new()),
        parameters: Some(parameters.into_iter().map(|(key, value)| (key.into(), value.to_owned().into())).collect()),
        ..Table::default()
    };
    if let Some(declared) = new.metadata.properties().get(LOCK_ENABLED) {
        set(&mut entry, LOCK_ENABLED, declared);
    }
    entry.sd = Some(described(new.metadata, None));
    Ok(entry)
}

/// The entry after a commit: the location, the columns and what had become wrong; everything else is left as it is.
pub(super) fn moved(old: &Table, from: &str, new: NewPointer<'_>) -> Table {
    let mut entry = old.clone();
    set(&mut entry, PREVIOUS_METADATA_LOCATION, from);
    set(&mut entry, METADATA_LOCATION, new.location);
    entry.sd = Some(described(new.metadata, entry.sd.take()));
    keep_in_step(entry.parameters.get_or_insert_default(), new.metadata);
    entry
}

fn set(entry: &mut Table, key: &str, value: &str) {
    entry.parameters.get_or_insert_default().insert(key.to_owned().into(), value.to_owned().into());
}

/// Table properties that another catalog has copied into the parameters follow; nothing is copied anew.
fn keep_in_step(parameters: &mut AHashMap<FastStr, FastStr>, metadata: &TableMetadata) {
    parameters.retain(|key, value| {
        let key = key.as_str();
        if OF_THE_SNAPSHOT.contains(&key) {
            return false;
        }
        match metadata.properties().get(key) {
            Some(property) if property.len() > MAX_PARAMETER => false,
            Some(property) => {
                *value = property.clone().into();
                true
            }
            None => !key.starts_with(OffsetLedger::PROPERTY_PREFIX),
        }
    });
}

fn described(metadata: &TableMetadata, before: Option<StorageDescriptor>) -> StorageDescriptor {
    let before = before.unwrap_or_else(new_storage);
    let known: Vec<FieldSchema> = before.cols.clone().unwrap_or_default();
    StorageDescriptor {
        cols: Some(columns(metadata.current_schema(), &known)),
        location: Some(metadata.location().to_owned().into()),
        ..before
    }
}

/// What Iceberg's Java catalog writes for a table that Hive itself does not read.
fn new_storage() -> StorageDescriptor {
    StorageDescriptor {
        input_format: Some("org.apache.hadoop.mapred.FileInputFormat".into()),
        output_format: Some("org.apache.hadoop.mapred.FileOutputFormat".into()),
        compressed: Some(false),
        num_buckets: Some(0),
        serde_info: Some(SerDeInfo {
            name: None,
            serialization_lib: Some("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe".into()),
            parameters: Some(AHashMap::new()),
        }),
        bucket_cols: Some(Vec::new()),
        sort_cols: Some(Vec::new()),
        parameters: Some(AHashMap::new()),
        ..StorageDescriptor::default()
    }
}
