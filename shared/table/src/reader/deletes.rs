//! Delete files: which rows of which data files they take away (rules R1, R2 and R4).

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::SchemaRef;
use hashbrown::HashMap;
use iceberg::spec::{DataContentType, DataFileFormat, Literal, NestedField, PrimitiveLiteral, PrimitiveType, Schema, Struct, Type};
use roaring::RoaringTreemap;

use super::deleted_keys::DeletedKeys;
use super::key_map::{Inserted, while_growing};
use super::portions::Limits;
use super::projection::project_batch;
use super::vectors;
use crate::arrow::arrow_schema_of;
use crate::manifests::LiveEntry;
use crate::{TableError, TableVersion};

const PATH_ID: i32 = 2_147_483_546;
const POSITION_ID: i32 = 2_147_483_545;
/// What a data file takes besides its path and positions.
const FILE_BYTES: usize = 128;

/// Where an equality delete reaches: everywhere, or one partition of one spec.
type Reach = Option<(i32, Vec<Option<Literal>>)>;

/// Deletes of a snapshot, all of them or as many as fit.
#[derive(Default)]
pub(crate) struct Deletes {
    equality: Vec<EqualityDeletes>,
    /// By path of the data file: positions, each with the sequence number of its youngest delete.
    positions: HashMap<String, HashMap<u64, i64>>,
    position_bytes: u64,
    /// By path of the data file: one, unless some are of another place than the file.
    vectors: HashMap<String, Vec<Vector>>,
    vector_bytes: u64,
}

/// A deletion vector and where it reaches.
struct Vector {
    entry: LiveEntry,
    positions: RoaringTreemap,
}

/// Equality deletes by the same columns with the same reach.
struct EqualityDeletes {
    ids: Vec<i32>,
    reach: Reach,
    keys: DeletedKeys,
}

/// The deletes that may touch one data file.
pub(crate) struct FileDeletes<'a> {
    sequence_number: i64,
    equality: Vec<&'a EqualityDeletes>,
    positions: Option<&'a HashMap<u64, i64>>,
    vector: Option<&'a RoaringTreemap>,
}

/// The columns of a delete file that say what it deletes.
pub(super) fn columns_of(entry: &LiveEntry) -> Result<HashSet<i32>, TableError> {
    let path = entry.file.file_path();
    match (entry.file.content_type(), entry.file.file_format()) {
        (_, DataFileFormat::Puffin) => Err(TableError::Invalid(format!("{path}: a Puffin file with other deletes than deletion vectors"))),
        (DataContentType::EqualityDeletes, _) => Ok(equality_ids(entry)?.into_iter().collect()),
        (DataContentType::PositionDeletes, _) => Ok(HashSet::from([PATH_ID, POSITION_ID])),
        (DataContentType::Data, _) => Err(TableError::Invalid(format!("{path} is no delete file"))),
    }
}

fn equality_ids(entry: &LiveEntry) -> Result<Vec<i32>, TableError> {
    let ids = entry.file.equality_ids().filter(|ids| !ids.is_empty());
    ids.ok_or_else(|| TableError::Invalid(format!("{}: equality deletes without equality ids", entry.file.file_path())))
}

impl Deletes {
    /// The bytes that keys and positions take.
    pub(crate) fn bytes(&self) -> u64 {
        self.equality.iter().map(|group| group.keys.bytes()).sum::<u64>() + self.position_bytes + self.vector_bytes
    }

    /// Whether there is no delete.
    pub(crate) fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.vectors.is_empty() && self.equality.iter().all(|group| group.keys.is_empty())
    }

    /// Adds rows of a delete file, as many as fit; gives how many that are. One always fits when there is none yet.
    pub(super) fn add(
        &mut self,
        (version, entry): (&TableVersion, &LiveEntry),
        rows: &RecordBatch,
        limits: &Limits,
    ) -> Result<usize, TableError> {
        match entry.file.content_type() {
            DataContentType::EqualityDeletes => self.add_equality((version, entry), rows, limits),
            DataContentType::PositionDeletes => self.add_positions(entry, rows, limits),
            DataContentType::Data => Ok(rows.num_rows()),
        }
    }

    fn room(&self, limits: &Limits) -> u64 {
        if self.is_empty() { u64::MAX } else { limits.memory_bytes }
    }

    fn add_equality(
        &mut self,
        (version, entry): (&TableVersion, &LiveEntry),
        rows: &RecordBatch,
        limits: &Limits,
    ) -> Result<usize, TableError> {
        let (ids, reach) = (equality_ids(entry)?, reach(version, entry));
        let at = match self.equality.iter().position(|group| group.ids == ids && group.reach == reach) {
            Some(at) => at,
            None => {
                let keys = DeletedKeys::new(&version.metadata, &ids)?;
                self.equality.push(EqualityDeletes { ids, reach, keys });
                self.equality.len() - 1
            }
        };
        let others = self.bytes() - self.equality[at].keys.bytes();
        let room = [self.room(limits), limits.memory_bytes].map(|room| room.saturating_sub(others));
        self.equality[at].keys.add(rows, entry.sequence_number, room.into())
    }

    fn add_positions(&mut self, entry: &LiveEntry, rows: &RecordBatch, limits: &Limits) -> Result<usize, TableError> {
        let rows = project_batch(rows, &position_schema()?)?;
        let paths = rows.column(0).as_string::<i32>().iter();
        let positions = rows.column(1).as_primitive::<Int64Type>().iter();
        for (number, (path, position)) in paths.zip(positions).enumerate() {
            let (Some(path), Some(position)) = (path, position) else { continue };
            if limits.only.as_ref().is_some_and(|only| !only.contains(path)) || limits.with_vectors.contains(path) {
                continue;
            }
            let at = (path, position.cast_unsigned());
            if self.add_position(at, entry.sequence_number, self.room(limits)) == Inserted::Full {
                return Ok(number);
            }
        }
        Ok(rows.num_rows())
    }

    fn add_position(&mut self, (path, position): (&str, u64), number: i64, room: u64) -> Inserted {
        let taken = self.bytes();
        let held = self.positions.get_mut(path);
        if let Some(youngest) = held.as_ref().and_then(|file| file.get(&position)).copied() {
            held.map(|file| file.insert(position, youngest.max(number)));
            return Inserted::Known;
        }
        let (before, full) = held.as_ref().map_or((0, true), |file| (file.allocation_size(), file.len() == file.capacity()));
        let path_bytes = if held.is_some() { 0 } else { path.len() + FILE_BYTES };
        let more = path_bytes + if full { while_growing(before) - before } else { 0 };
        if taken.saturating_add(more as u64) > room {
            return Inserted::Full;
        }
        let file = self.positions.entry_ref(path).or_default();
        file.insert(position, number);
        self.position_bytes += (path_bytes + file.allocation_size() - before) as u64;
        Inserted::New
    }

    /// Reads a deletion vector, if it fits. One always fits when there is nothing yet.
    pub(super) async fn add_vector(
        &mut self,
        (version, entry): (&TableVersion, &LiveEntry),
        limits: &Limits,
    ) -> Result<Inserted, TableError> {
        let path = vectors::data_file_of(&entry.file)?;
        let room = self.room(limits).saturating_sub(self.bytes());
        if vectors::bytes_to_read(&entry.file)?.saturating_add((path.len() + FILE_BYTES) as u64) > room {
            return Ok(Inserted::Full);
        }
        let positions = vectors::read(version, &entry.file).await?;
        self.vector_bytes += vectors::bytes_of(&positions) + (path.len() + FILE_BYTES) as u64;
        self.vectors.entry(path).or_default().push(Vector { entry: entry.clone(), positions });
        Ok(Inserted::New)
    }

    /// The deletes that may touch that data file.
    pub(crate) fn of(&self, entry: &LiveEntry) -> FileDeletes<'_> {
        let own = widened(entry.file.partition());
        let reaches = |reach: &Reach| match reach {
            None => true,
            Some((spec_id, partition)) => *spec_id == entry.spec_id && *partition == own,
        };
        let touching = self.equality.iter().filter(|group| group.keys.may_touch(entry.sequence_number));
        let vectors = self.vectors.get(entry.file.file_path());
        FileDeletes {
            sequence_number: entry.sequence_number,
            equality: touching.filter(|group| reaches(&group.reach)).collect(),
            positions: self.positions.get(entry.file.file_path()),
            vector: vectors
                .and_then(|held| held.iter().find(|vector| vectors::applies(&vector.entry, entry)))
                .map(|vector| &vector.positions),
        }
    }
}

fn reach(version: &TableVersion, entry: &LiveEntry) -> Reach {
    let spec = version.metadata.partition_spec_by_id(entry.spec_id);
    let global = spec.is_some_and(|spec| spec.is_unpartitioned());
    if global { None } else { Some((entry.spec_id, widened(entry.file.partition()))) }
}

/// Partition values as they compare after a promotion of their column: a file of before says 5 as an int, one of after as a long.
pub(crate) fn widened(values: &Struct) -> Vec<Option<Literal>> {
    let widen = |value: &Literal| match value {
        Literal::Primitive(PrimitiveLiteral::Int(value)) => Literal::long(i64::from(*value)),
        Literal::Primitive(PrimitiveLiteral::Float(value)) => Literal::double(f64::from(value.0)),
        other => other.clone(),
    };
    values.iter().map(|value| value.map(widen)).collect()
}

fn position_schema() -> Result<SchemaRef, TableError> {
    static FIELDS: LazyLock<[(i32, &str, PrimitiveType); 2]> =
        LazyLock::new(|| [(PATH_ID, "file_path", PrimitiveType::String), (POSITION_ID, "pos", PrimitiveType::Long)]);
    let fields = FIELDS.iter().map(|(id, name, kind)| Arc::new(NestedField::required(*id, *name, Type::Primitive(kind.clone()))));
    let schema = Schema::builder().with_fields(fields).build().map_err(TableError::iceberg("the schema of position deletes"))?;
    arrow_schema_of(&schema)
}

impl FileDeletes<'_> {
    /// Whether no row of the file can be deleted.
    pub(crate) fn is_empty(&self) -> bool {
        self.equality.is_empty() && self.positions.is_none() && self.vector.is_none()
    }

    /// Adds the columns that are needed to tell which rows are deleted.
    pub(crate) fn add_ids(&self, ids: &mut HashSet<i32>) {
        ids.extend(self.equality.iter().flat_map(|group| group.ids.iter().copied()));
    }

    /// Clears `keep` for the deleted rows of a batch that begins at `start` in its file.
    pub(crate) fn apply(&self, batch: &RecordBatch, start: u64, keep: &mut [bool]) -> Result<(), TableError> {
        if let Some(vector) = self.vector {
            vectors::clear(vector, start, keep);
        }
        if let Some(positions) = self.positions {
            for (position, keep) in (start..).zip(keep.iter_mut()) {
                // A position delete also applies to rows of its own commit.
                *keep &= positions.get(&position).is_none_or(|delete| *delete < self.sequence_number);
            }
        }
        for group in &self.equality {
            group.keys.apply(batch, self.sequence_number, keep)?;
        }
        Ok(())
    }
}
