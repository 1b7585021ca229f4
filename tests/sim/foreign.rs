//! What other programs do to a table between our commits. Each does all of it in one step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, new_null_array};
use arrow_schema::{DataType, SchemaRef};
use iceberg::spec::{NestedField, PrimitiveType, Schema, TableMetadata, Type};
use sluice_model::{Column, ColumnType, OffsetLedger, TableName, TableSchema};
use sluice_table::{Catalog, RowDelta, TableCreation, TableOperations, ledger, prepare, schema};
use sluice_testkit::{SeededIds, foreign};

use crate::oracle::{Broken, Oracle};
use crate::reader::Row;
use crate::records::Tab;
use crate::rng::Rng;
use crate::world::{Sim, now};

/// How a table looks that is there before the first record.
pub fn creation(tab: Tab) -> TableCreation {
    let id = match tab {
        Tab::Log => Column::optional(1, "id", ColumnType::Long),
        Tab::Item | Tab::Stock => Column::required(1, "id", ColumnType::Long),
    };
    let rest = [("p", ColumnType::Int), ("o", ColumnType::Long), ("v", ColumnType::Long)];
    let rest = rest.into_iter().zip(2..).map(|((name, kind), number)| Column::optional(number, name, kind));
    let columns: Vec<Column> = std::iter::once(id).chain(rest).collect();
    let identifier_ids = if tab == Tab::Log { Vec::new() } else { vec![1] };
    let schema = TableSchema { schema_id: 0, columns, identifier_ids, last_column_id: 4 };
    TableCreation { properties: properties(), ..TableCreation::of(schema) }
}

/// A short metadata log, so that metadata files are deleted while invocations run.
pub fn properties() -> BTreeMap<String, String> {
    let pairs = [("write.metadata.previous-versions-max", "2"), ("write.metadata.delete-after-commit.enabled", "true")];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn table(catalog: &dyn Catalog, name: &TableName) -> Option<Arc<dyn TableOperations>> {
    now(catalog.load(name)).unwrap()
}

/// Appends a row to the log.
pub fn append(oracle: &mut Oracle, ids: &SeededIds, number: i64) {
    let Some(ops) = table(oracle.catalog.as_ref(), &Tab::Log.name()) else { return };
    let version = now(ops.refresh()).unwrap();
    let target = sluice_table::arrow::arrow_schema(&schema::to_model(&version.metadata).unwrap()).unwrap();
    let delta = RowDelta { rows: Some(row(&target, number)), ..RowDelta::on(&version) };
    let options = sluice_table::WriteOptions { ids, target_file_bytes: 1 << 20, max_open_files: 1 };
    let prepared = now(prepare(&version, delta, &options)).unwrap();
    let after = now(foreign::snapshot(ops.as_ref(), Some(prepared.files()[0].file.clone())));
    let row = Row { partition: -1, offset: number, id: number };
    oracle.foreign_added.insert(after.metadata.current_snapshot_id().unwrap(), row);
}

fn row(target: &SchemaRef, number: i64) -> RecordBatch {
    let columns = target.fields().iter().map(|field| match (field.name().as_str(), field.data_type()) {
        ("p", DataType::Int32) => Arc::new(Int32Array::from(vec![-1])) as ArrayRef,
        (_, DataType::Int64) => Arc::new(Int64Array::from(vec![number])),
        (_, kind) => new_null_array(kind, 1),
    });
    RecordBatch::try_new(target.clone(), columns.collect()).unwrap()
}

/// Replaces the current snapshot by one with the same files and without our summary.
pub fn compact(oracle: &Oracle, name: &TableName) {
    if let Some(ops) = table(oracle.catalog.as_ref(), name) {
        now(foreign::snapshot(ops.as_ref(), None));
    }
}

/// Adds the column that some records of the log have.
pub fn add_column(oracle: &Oracle) {
    let Some(ops) = table(oracle.catalog.as_ref(), &Tab::Log.name()) else { return };
    let metadata = now(ops.refresh()).unwrap().metadata;
    if metadata.current_schema().field_by_name("extra").is_none() {
        now(foreign::alter(ops.as_ref(), |builder| builder.add_current_schema(with_extra(&metadata)).unwrap()));
    }
}

fn with_extra(metadata: &TableMetadata) -> Schema {
    let extra = NestedField::optional(metadata.last_column_id() + 1, "extra", Type::Primitive(PrimitiveType::String));
    let fields = metadata.current_schema().as_struct().fields().iter().cloned().chain([Arc::new(extra)]);
    Schema::builder().with_fields(fields).build().unwrap()
}

/// Removes old snapshots, and the files that only they need.
pub fn expire(oracle: &mut Oracle, sim: &Sim, (name, rng): (&TableName, &mut Rng)) -> Result<(), Broken> {
    let Some(ops) = table(oracle.catalog.as_ref(), name) else { return Ok(()) };
    let metadata = now(ops.refresh()).unwrap().metadata;
    if properties_are_ahead(&metadata) {
        return Ok(());
    }
    let current = metadata.current_snapshot_id();
    let ids: Vec<i64> = metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).filter(|id| Some(*id) != current).collect();
    let ids: Vec<i64> = ids.into_iter().filter(|_| rng.chance(70)).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let before = oracle.reach(name);
    now(foreign::expire(ops.as_ref(), &ids));
    oracle.look()?;
    let after: BTreeSet<String> = oracle.reach(name);
    let mut world = sim.world();
    before.difference(&after).for_each(|path| drop(world.files.remove(path)));
    Ok(())
}

/// Whether the ledger's second copy says more than the first, which then must not be lost: after a rollback, until our next commit. Expiring
/// the snapshots that hold the first copy in that time is a mistake that nothing can find out afterwards.
fn properties_are_ahead(metadata: &TableMetadata) -> bool {
    let own = |snapshot: &iceberg::spec::SnapshotRef| snapshot.summary().additional_properties.contains_key(OffsetLedger::SUMMARY_KEY);
    let copied = OffsetLedger::from_properties(metadata.properties().iter()).unwrap();
    !metadata.current_snapshot().is_some_and(own) && copied != ledger::read(metadata).unwrap()
}

/// Makes an older snapshot the current one; whether there was one to go back to.
pub fn roll_back(oracle: &Oracle, name: &TableName, rng: &mut Rng) -> bool {
    let Some(ops) = table(oracle.catalog.as_ref(), name) else { return false };
    let metadata = now(ops.refresh()).unwrap().metadata;
    let older: Vec<i64> = ancestors(&metadata).into_iter().skip(1).filter(|id| has_ledger(&metadata, *id)).collect();
    let Some(target) = rng.pick(&older) else { return false };
    now(foreign::roll_back(ops.as_ref(), *target));
    true
}

fn ancestors(metadata: &TableMetadata) -> Vec<i64> {
    let next = |id: &i64| metadata.snapshot_by_id(*id)?.parent_snapshot_id().filter(|id| metadata.snapshot_by_id(*id).is_some());
    std::iter::successors(metadata.current_snapshot_id(), next).collect()
}

/// Whether a ledger, or that there was none, can be told of a snapshot from its ancestry. One whose ancestors were expired while a foreign
/// snapshot was on top cannot be gone back to: its ledger is nowhere.
fn has_ledger(metadata: &TableMetadata, id: i64) -> bool {
    let Some(snapshot) = metadata.snapshot_by_id(id) else { return false };
    let here = snapshot.summary().additional_properties.contains_key(OffsetLedger::SUMMARY_KEY);
    here || snapshot.parent_snapshot_id().is_none_or(|parent| has_ledger(metadata, parent))
}

/// Drops the table; perhaps another one is made in its place.
pub fn replace(oracle: &mut Oracle, tab: Tab, rng: &mut Rng) -> bool {
    if !now(oracle.catalog.drop_table(&tab.name())).unwrap() {
        return false;
    }
    oracle.may_refuse.insert(tab);
    oracle.was_replaced(tab);
    if rng.chance(70) {
        now(oracle.catalog.create(&tab.name(), &creation(tab))).unwrap();
    }
    true
}
