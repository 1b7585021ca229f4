//! The live files of one snapshot, light enough to keep a hundred thousand of them.

use std::collections::{BTreeMap, HashMap};

use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Literal, ManifestFile, SnapshotRef, TableMetadata};

use crate::manifests::{FileContent, LiveEntry, manifest_entries, manifests_of, path_of};
use crate::reader::deletes::widened;
use crate::snapshot_producer::bytes_of;
use crate::{TableError, TableVersion};

/// How far the deletes in a file reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// Its own partition of its own spec.
    Partition,
    /// The whole table: equality deletes under an unpartitioned spec (rule R1).
    Everything,
}

/// What planning looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct FileFacts {
    /// Where the file is.
    pub path: String,
    /// What it holds.
    pub content: FileContent,
    /// Its rows, keys or positions.
    pub records: u64,
    /// Its size.
    pub bytes: u64,
    /// The partition spec that it was written under.
    pub spec_id: i32,
    /// Its partition for people; empty when unpartitioned.
    pub partition: String,
    /// Files with the same number have the same spec and the same partition values. Only within one reading of a table.
    pub scope: usize,
    /// How far its deletes reach; for data files always their partition.
    pub reaches: Reaches,
    /// Its data sequence number.
    pub sequence_number: i64,
    /// The sort order that it is written in, 0 and `None` for none.
    pub sort_order_id: Option<i32>,
    /// The one data file that its deletes are about, if it says so.
    pub data_file: Option<String>,
    /// Why it cannot be rewritten, if so.
    pub obstacle: Option<String>,
}

/// A live file and its scope.
#[derive(Debug, Clone)]
pub(crate) struct Scoped {
    pub(crate) entry: LiveEntry,
    pub(crate) scope: usize,
    pub(crate) reaches: Reaches,
}

/// Numbers for pairs of spec and partition.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    numbers: HashMap<(i32, Vec<Option<Literal>>), usize>,
}

impl Scopes {
    pub(crate) fn number(&mut self, entry: LiveEntry, metadata: &TableMetadata) -> Scoped {
        let next = self.numbers.len();
        let scope = *self.numbers.entry((entry.spec_id, widened(entry.file.partition()))).or_insert(next);
        let unpartitioned = metadata.partition_spec_by_id(entry.spec_id).is_some_and(|spec| spec.is_unpartitioned());
        let reaches = match entry.file.content_type() {
            DataContentType::EqualityDeletes if unpartitioned => Reaches::Everything,
            DataContentType::EqualityDeletes | DataContentType::PositionDeletes | DataContentType::Data => Reaches::Partition,
        };
        Scoped { entry, scope, reaches }
    }

    /// The number of a spec and partition, if a file has it.
    pub(crate) fn of(&self, place: &(i32, Vec<Option<Literal>>)) -> Option<usize> {
        self.numbers.get(place).copied()
    }
}

/// The live files of one snapshot.
#[derive(Debug, Clone)]
pub struct TableFiles {
    pub(crate) version: TableVersion,
    pub(crate) snapshot: SnapshotRef,
    pub(crate) files: Vec<Scoped>,
    manifests: Vec<ManifestFile>,
    /// How many of the files each manifest holds, in their order.
    counts: Vec<usize>,
}

impl TableFiles {
    /// The files of a snapshot (`None`: of the current one); `None` when the table has no snapshot.
    ///
    /// # Errors
    /// [`TableError::Invalid`] when the snapshot is gone, else what the storage said.
    pub async fn load(version: &TableVersion, snapshot_id: Option<i64>) -> Result<Option<Self>, TableError> {
        let Some(snapshot) = crate::manifests::snapshot_of(version, snapshot_id)? else { return Ok(None) };
        let manifests = manifests_of(version, snapshot).await?;
        let (mut scopes, mut files, mut counts) = (Scopes::default(), Vec::new(), Vec::new());
        for manifest in &manifests {
            let entries = manifest_entries(version, manifest).await?;
            counts.push(entries.len());
            for entry in entries {
                files.push(scopes.number(light(&entry)?, &version.metadata));
            }
        }
        Ok(Some(Self { version: version.clone(), snapshot: snapshot.clone(), files, manifests, counts }))
    }

    /// What each manifest holds. Manifests do not change.
    pub(crate) fn by_manifest(&self) -> impl Iterator<Item = (&ManifestFile, &[Scoped])> {
        let mut rest = self.files.as_slice();
        self.manifests.iter().zip(&self.counts).map(move |(manifest, count)| {
            let (held, others) = rest.split_at(*count);
            rest = others;
            (manifest, held)
        })
    }

    /// The snapshot.
    #[must_use]
    pub fn snapshot_id(&self) -> i64 {
        self.snapshot.snapshot_id()
    }

    /// The snapshot's sequence number.
    #[must_use]
    pub fn sequence_number(&self) -> i64 {
        self.snapshot.sequence_number()
    }

    /// The sizes of its manifests, in bytes.
    pub fn manifest_bytes(&self) -> impl Iterator<Item = u64> {
        self.manifests.iter().map(|manifest| manifest.manifest_length.max(0).cast_unsigned())
    }

    /// What planning looks at, in the order of the manifests.
    #[must_use]
    pub fn facts(&self) -> Vec<FileFacts> {
        let metadata = &self.version.metadata;
        let mut partitions: BTreeMap<usize, String> = BTreeMap::new();
        for file in &self.files {
            partitions.entry(file.scope).or_insert_with(|| path_of(metadata, file.entry.spec_id, file.entry.file.partition()));
        }
        self.files.iter().map(|file| self.fact(file, &partitions[&file.scope])).collect()
    }

    fn fact(&self, scoped: &Scoped, partition: &str) -> FileFacts {
        let file = &scoped.entry.file;
        FileFacts {
            path: file.file_path().to_owned(),
            content: file.content_type().into(),
            records: file.record_count(),
            bytes: bytes_of(file),
            spec_id: scoped.entry.spec_id,
            partition: partition.to_owned(),
            scope: scoped.scope,
            reaches: scoped.reaches,
            sequence_number: scoped.entry.sequence_number,
            sort_order_id: file.sort_order_id(),
            data_file: file.referenced_data_file(),
            obstacle: self.obstacle(scoped).err().map(|error| error.to_string()),
        }
    }

    /// Why a data file cannot be rewritten.
    pub(crate) fn obstacle(&self, scoped: &Scoped) -> Result<(), TableError> {
        let (metadata, file) = (&self.version.metadata, &scoped.entry.file);
        if file.file_format() != DataFileFormat::Parquet {
            return Err(TableError::Unsupported(format!("rewriting {}, a file of the format {}", file.file_path(), file.file_format())));
        }
        let spec = metadata.partition_spec_by_id(scoped.entry.spec_id);
        let spec = spec.ok_or_else(|| TableError::Invalid(format!("the table has no partition spec {}", scoped.entry.spec_id)))?;
        let kind = spec.partition_type(metadata.current_schema());
        let kind = kind.map_err(TableError::iceberg("rewriting files of a partition spec whose source column is dropped"))?;
        kind.fields().iter().try_for_each(|field| crate::partition::check_kept(&field.field_type, &field.name))
    }
}

/// The entry without its column metrics, which are most of its memory.
pub(crate) fn light(entry: &LiveEntry) -> Result<LiveEntry, TableError> {
    let old = &entry.file;
    let mut builder = DataFileBuilder::default();
    builder.file_path(old.file_path().to_owned()).content(old.content_type()).file_format(old.file_format());
    builder.partition(old.partition().clone()).partition_spec_id(entry.spec_id);
    builder.record_count(old.record_count()).file_size_in_bytes(old.file_size_in_bytes());
    builder.equality_ids(old.equality_ids()).referenced_data_file(old.referenced_data_file());
    builder.content_offset(old.content_offset()).content_size_in_bytes(old.content_size_in_bytes());
    if let Some(id) = old.sort_order_id() {
        builder.sort_order_id(id);
    }
    let file: DataFile = builder.build().map_err(|error| TableError::Invalid(format!("describing {}: {error}", old.file_path())))?;
    Ok(LiveEntry { file, ..*entry })
}
