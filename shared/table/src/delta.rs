//! What a batch does to one table: the hand-over from resolving to writing, and from writing to committing.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use iceberg::spec::{DataContentType, DataFile, Schema};
use sluice_model::{Claims, Coordinate, PartitionKey, TableSchema};
use uuid::Uuid;

use crate::TableVersion;
use crate::manifests::Base;
use crate::scope::DeleteScope;

/// The version of a table that a delta was resolved against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaBase {
    /// Which table it was.
    pub table_uuid: Uuid,
    /// Its schema.
    pub schema_id: i32,
    /// Its newest snapshot.
    pub snapshot_id: Option<i64>,
}

impl DeltaBase {
    /// The base that `version` is.
    #[must_use]
    pub fn of(version: &TableVersion) -> Self {
        let metadata = &version.metadata;
        Self { table_uuid: metadata.uuid(), schema_id: metadata.current_schema_id(), snapshot_id: metadata.current_snapshot_id() }
    }
}

/// Whether the delta may be committed on top of rows that it has not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseUse {
    /// It was made from the batch alone.
    Rebasable,
    /// Stored rows were read to make it: it holds only on the snapshot of its base.
    PinnedToSnapshot,
}

/// What happens to the rows that the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// They stay, but for those that the delta's keys delete.
    Keep,
    /// They all go, in the same commit in which the delta's rows come. Keys to delete are then of no use and are not written.
    All,
}

/// What a batch does to one table, all of it in one snapshot.
///
/// It must be folded: a key deleted and written again in the batch is in `delete_keys` once and in `rows` once, because the deletes of a snapshot
/// never touch its own rows (rule W1). Everything in it is plain data, so that it can be stored and committed elsewhere.
#[derive(Debug, Clone)]
pub struct RowDelta {
    /// What it was resolved against.
    pub base: DeltaBase,
    /// Whether it depends on the rows of its base.
    pub base_use: BaseUse,
    /// Rows to append: all columns of the schema (of the evolved one, if there is one), found by field id. `None`: no rows.
    pub rows: Option<RecordBatch>,
    /// Keys whose older rows go: only the key columns, found by field id. `None`: no deletes.
    pub delete_keys: Option<RecordBatch>,
    /// Whether older rows go altogether.
    pub truncate: Truncate,
    /// The table's next schema: old fields keep their ids, new ones count on from `last_column_id`.
    pub evolved: Option<TableSchema>,
    /// Table properties to set.
    pub properties: BTreeMap<String, String>,
    /// More entries of the snapshot's summary.
    pub summary: BTreeMap<String, String>,
    /// What the commit decides, for the ledger.
    pub claims: Claims,
    /// The coordinates whose rows and deletes are in here. They must all be new to the ledger when the delta is committed.
    pub applies: Vec<(PartitionKey, Coordinate)>,
}

impl RowDelta {
    /// A delta that does nothing yet.
    #[must_use]
    pub fn on(version: &TableVersion) -> Self {
        Self {
            base: DeltaBase::of(version),
            base_use: BaseUse::Rebasable,
            rows: None,
            delete_keys: None,
            truncate: Truncate::Keep,
            evolved: None,
            properties: BTreeMap::new(),
            summary: BTreeMap::new(),
            claims: Claims::default(),
            applies: Vec::new(),
        }
    }
}

/// A file and the partition spec that it was written under, which iceberg's `DataFile` does not tell.
#[derive(Debug, Clone)]
pub struct SpecFile {
    /// The spec's id.
    pub spec_id: i32,
    /// The file.
    pub file: DataFile,
}

/// A delta whose files are stored. No snapshot names them yet.
#[derive(Debug, Clone)]
pub struct PreparedDelta {
    pub(crate) base: Base,
    pub(crate) delta: RowDelta,
    pub(crate) schema: Option<Schema>,
    pub(crate) data_spec_id: i32,
    pub(crate) scope: Option<DeleteScope>,
    pub(crate) files: Vec<SpecFile>,
}

impl PreparedDelta {
    /// The stored files: data first, then deletes.
    #[must_use]
    pub fn files(&self) -> &[SpecFile] {
        &self.files
    }

    /// Bytes of the data files.
    #[must_use]
    pub fn data_file_bytes(&self) -> u64 {
        let data = self.files.iter().filter(|file| file.file.content_type() == DataContentType::Data);
        data.map(|file| file.file.file_size_in_bytes()).sum()
    }

    /// The delta that the files were made of. Its rows and keys are gone: they are in the files.
    #[must_use]
    pub const fn delta(&self) -> &RowDelta {
        &self.delta
    }
}
