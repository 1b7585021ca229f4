//! Delete files: which rows of which data files they take away (rules R1, R2 and R4).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::SchemaRef;
use iceberg::spec::{DataContentType, DataFileFormat, Literal, NestedField, PrimitiveLiteral, PrimitiveType, Schema, Struct, Type};

use super::keys::KeyEncoder;
use super::projection::project_batch;
use super::source;
use crate::arrow::arrow_schema_of;
use crate::manifests::LiveEntry;
use crate::{TableError, TableVersion};

const PATH_ID: i32 = 2_147_483_546;
const POSITION_ID: i32 = 2_147_483_545;

/// Where an equality delete reaches: everywhere, or one partition of one spec.
type Reach = Option<(i32, Vec<Option<Literal>>)>;

/// All deletes of a snapshot.
#[derive(Default)]
pub(crate) struct Deletes {
    /// Positions in other data files are left out; `None` keeps all.
    only: Option<HashSet<String>>,
    equality: Vec<EqualityDeletes>,
    /// By path of the data file: positions, each with the sequence number of its delete.
    positions: HashMap<String, HashMap<u64, i64>>,
}

/// Equality deletes by the same columns with the same reach.
struct EqualityDeletes {
    ids: Vec<i32>,
    reach: Reach,
    encoder: KeyEncoder,
    /// The youngest delete of each key.
    keys: HashMap<Box<[u8]>, i64>,
}

/// The deletes that may touch one data file.
pub(crate) struct FileDeletes<'a> {
    sequence_number: i64,
    equality: Vec<&'a EqualityDeletes>,
    positions: Option<&'a HashMap<u64, i64>>,
}

impl Deletes {
    pub(crate) async fn read(version: &TableVersion, files: &[LiveEntry]) -> Result<Self, TableError> {
        Self::default().with(version, files.iter()).await
    }

    /// The deletes in some files, of positions only those in the data files with these paths.
    pub(crate) async fn read_for(
        version: &TableVersion,
        files: impl Iterator<Item = &LiveEntry>,
        paths: HashSet<String>,
    ) -> Result<Self, TableError> {
        Self { only: Some(paths), ..Self::default() }.with(version, files).await
    }

    async fn with(self, version: &TableVersion, files: impl Iterator<Item = &LiveEntry>) -> Result<Self, TableError> {
        let mut deletes = self;
        for entry in files {
            match (entry.file.content_type(), entry.file.file_format()) {
                (_, DataFileFormat::Puffin) => {
                    let path = entry.file.file_path();
                    return Err(TableError::Unsupported(format!("reading a table with deletion vectors ({path})")));
                }
                (DataContentType::EqualityDeletes, _) => deletes.add_equality(version, entry).await?,
                (DataContentType::PositionDeletes, _) => deletes.add_positions(version, entry).await?,
                (DataContentType::Data, _) => {}
            }
        }
        Ok(deletes)
    }

    async fn add_equality(&mut self, version: &TableVersion, entry: &LiveEntry) -> Result<(), TableError> {
        let path = entry.file.file_path();
        let ids = entry.file.equality_ids().filter(|ids| !ids.is_empty());
        let ids = ids.ok_or_else(|| TableError::Invalid(format!("{path}: equality deletes without equality ids")))?;
        let reach = reach(version, entry);
        let at = match self.equality.iter().position(|group| group.ids == ids && group.reach == reach) {
            Some(at) => at,
            None => {
                let encoder = KeyEncoder::new(&version.metadata, &ids)?;
                self.equality.push(EqualityDeletes { ids: ids.clone(), reach, encoder, keys: HashMap::new() });
                self.equality.len() - 1
            }
        };
        let group = &mut self.equality[at];
        for batch in source::open(version, &entry.file, &ids.into_iter().collect()).await? {
            let rows = group.encoder.encode(&batch.map_err(TableError::arrow(format!("reading {path}")))?)?;
            for row in rows.iter() {
                let youngest = group.keys.entry(row.data().into()).or_insert(entry.sequence_number);
                *youngest = (*youngest).max(entry.sequence_number);
            }
        }
        Ok(())
    }

    async fn add_positions(&mut self, version: &TableVersion, entry: &LiveEntry) -> Result<(), TableError> {
        let schema = position_schema()?;
        let ids = HashSet::from([PATH_ID, POSITION_ID]);
        for batch in source::open(version, &entry.file, &ids).await? {
            let batch = batch.map_err(TableError::arrow(format!("reading {}", entry.file.file_path())))?;
            let batch = project_batch(&batch, &schema)?;
            let paths = batch.column(0).as_string::<i32>().iter().flatten();
            let positions = batch.column(1).as_primitive::<Int64Type>().iter().flatten();
            for (path, position) in paths.zip(positions) {
                if self.only.as_ref().is_some_and(|only| !only.contains(path)) {
                    continue;
                }
                let file = self.positions.entry(path.to_owned()).or_default();
                let youngest = file.entry(position.cast_unsigned()).or_insert(entry.sequence_number);
                *youngest = (*youngest).max(entry.sequence_number);
            }
        }
        Ok(())
    }

    /// The deletes that may touch that data file.
    pub(crate) fn of(&self, entry: &LiveEntry) -> FileDeletes<'_> {
        let own = widened(entry.file.partition());
        let reaches = |reach: &Reach| match reach {
            None => true,
            Some((spec_id, partition)) => *spec_id == entry.spec_id && *partition == own,
        };
        FileDeletes {
            sequence_number: entry.sequence_number,
            equality: self.equality.iter().filter(|group| reaches(&group.reach)).collect(),
            positions: self.positions.get(entry.file.file_path()),
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
        self.equality.is_empty() && self.positions.is_none()
    }

    /// Adds the columns that are needed to tell which rows are deleted.
    pub(crate) fn add_ids(&self, ids: &mut HashSet<i32>) {
        ids.extend(self.equality.iter().flat_map(|group| group.ids.iter().copied()));
    }

    /// Clears `keep` for the deleted rows of a batch that begins at `start` in its file.
    pub(crate) fn apply(&self, batch: &RecordBatch, start: u64, keep: &mut [bool]) -> Result<(), TableError> {
        if let Some(positions) = self.positions {
            for (position, keep) in (start..).zip(keep.iter_mut()) {
                // A position delete also applies to rows of its own commit.
                *keep &= positions.get(&position).is_none_or(|delete| *delete < self.sequence_number);
            }
        }
        for group in &self.equality {
            let rows = group.encoder.encode(batch)?;
            for (row, keep) in rows.iter().zip(keep.iter_mut()) {
                // An equality delete never applies to rows of its own commit.
                *keep &= group.keys.get(row.data()).is_none_or(|delete| *delete <= self.sequence_number);
            }
        }
        Ok(())
    }
}
