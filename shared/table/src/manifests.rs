//! Reading manifest lists and manifests: what is live in a table.

use iceberg::spec::{DataContentType, DataFile, FormatVersion, ManifestFile, ManifestList, Snapshot, SnapshotRef, Struct, TableMetadata};

use crate::row_ids::RowIds;
use crate::snapshot_producer::bytes_of;
use crate::{TableError, TableVersion};

const ENCRYPTION: &str = "encryption.key-id";

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileContent {
    /// Rows.
    Data,
    /// Keys of deleted rows.
    EqualityDeletes,
    /// Positions of deleted rows, or a deletion vector.
    PositionDeletes,
}

impl From<DataContentType> for FileContent {
    fn from(content: DataContentType) -> Self {
        match content {
            DataContentType::Data => Self::Data,
            DataContentType::EqualityDeletes => Self::EqualityDeletes,
            DataContentType::PositionDeletes => Self::PositionDeletes,
        }
    }
}

/// A live file, for display.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveFile {
    /// Where it is.
    pub path: String,
    /// What it holds.
    pub content: FileContent,
    /// Its rows or keys.
    pub records: u64,
    /// Its size.
    pub bytes: u64,
    /// The partition spec that it was written under.
    pub spec_id: i32,
    /// Its partition, as a path; empty when unpartitioned.
    pub partition: String,
    /// Its data sequence number.
    pub sequence_number: i64,
}

/// A live file as its manifest has it.
#[derive(Debug, Clone)]
pub(crate) struct LiveEntry {
    pub(crate) spec_id: i32,
    pub(crate) sequence_number: i64,
    /// The id of its first row, its own or the manifest's; `None` for delete files, and before format version 3.
    pub(crate) first_row_id: Option<i64>,
    pub(crate) file: DataFile,
}

/// A version and, once somebody has asked for them, the manifests of its current snapshot: they are read once for all who want them.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) version: TableVersion,
    manifests: Option<Vec<ManifestFile>>,
}

impl Base {
    pub(crate) const fn new(version: TableVersion) -> Self {
        Self { version, manifests: None }
    }

    /// The manifests of the current snapshot; none when there is no snapshot.
    pub(crate) async fn manifests(&mut self) -> Result<&[ManifestFile], TableError> {
        let manifests = match (self.manifests.take(), self.version.metadata.current_snapshot()) {
            (Some(manifests), _) => manifests,
            (None, Some(snapshot)) => manifests_of(&self.version, snapshot).await?,
            (None, None) => Vec::new(),
        };
        Ok(self.manifests.insert(manifests))
    }
}

/// Refuses tables of format version 1, which know neither deletes nor sequence numbers, and encrypted ones, whose files must not be written in
/// clear.
///
/// # Errors
/// [`TableError::Unsupported`], which says which.
pub fn check_format(metadata: &TableMetadata) -> Result<(), TableError> {
    if metadata.properties().contains_key(ENCRYPTION) {
        return Err(TableError::Unsupported(format!("writing encrypted tables ({ENCRYPTION} is set)")));
    }
    match metadata.format_version() {
        FormatVersion::V1 => {
            Err(TableError::Unsupported("tables of format version 1; set the table's `format-version` to 2 to upgrade it".to_owned()))
        }
        FormatVersion::V2 | FormatVersion::V3 => Ok(()),
    }
}

/// Refuses encrypted tables: files that cannot be read name files that cannot be known.
pub(crate) fn check_readable(metadata: &TableMetadata) -> Result<(), TableError> {
    if metadata.properties().contains_key(ENCRYPTION) {
        return Err(TableError::Unsupported(format!("telling which files an encrypted table needs ({ENCRYPTION} is set)")));
    }
    Ok(())
}

/// The manifests of a snapshot.
pub(crate) async fn manifests_of(version: &TableVersion, snapshot: &Snapshot) -> Result<Vec<ManifestFile>, TableError> {
    let path = snapshot.manifest_list();
    let wrong = || TableError::iceberg(format!("reading the manifest list {path}"));
    let bytes = version.file_io.new_input(path).map_err(wrong())?.read().await.map_err(wrong())?;
    let list = ManifestList::parse_with_version(&bytes, version.metadata.format_version()).map_err(wrong())?;
    Ok(list.consume_entries().into_iter().collect())
}

/// The snapshot with that id, or the current one.
pub(crate) fn snapshot_of(version: &TableVersion, id: Option<i64>) -> Result<Option<&SnapshotRef>, TableError> {
    match id {
        None => Ok(version.metadata.current_snapshot()),
        Some(id) => {
            let snapshot = version.metadata.snapshot_by_id(id);
            snapshot.map(Some).ok_or_else(|| TableError::Invalid(format!("the table has no snapshot {id}")))
        }
    }
}

/// All live files of a snapshot.
pub(crate) async fn live_entries(version: &TableVersion, snapshot: &Snapshot) -> Result<Vec<LiveEntry>, TableError> {
    let mut live = Vec::new();
    for manifest in manifests_of(version, snapshot).await? {
        live.extend(manifest_entries(version, &manifest).await?);
    }
    Ok(live)
}

/// The live files of one manifest.
pub(crate) async fn manifest_entries(version: &TableVersion, manifest: &ManifestFile) -> Result<Vec<LiveEntry>, TableError> {
    if !manifest.has_added_files() && !manifest.has_existing_files() {
        return Ok(Vec::new());
    }
    let path = &manifest.manifest_path;
    let loaded = manifest.load_manifest(&version.file_io).await.map_err(TableError::iceberg(format!("reading {path}")))?;
    let (mut live, mut row_ids) = (Vec::with_capacity(loaded.entries().len()), RowIds::of(manifest));
    for entry in loaded.entries().iter().filter(|entry| entry.is_alive()) {
        let number = entry.sequence_number();
        let sequence_number = number.ok_or_else(|| TableError::Invalid(format!("{path}: an entry without a sequence number")))?;
        let (spec_id, first_row_id) = (manifest.partition_spec_id, row_ids.first_of(entry.data_file())?);
        live.push(LiveEntry { spec_id, sequence_number, first_row_id, file: entry.data_file().clone() });
    }
    Ok(live)
}

/// The live files of the current snapshot, data before deletes, by path.
///
/// # Errors
/// What the storage said.
pub async fn live_files(version: &TableVersion) -> Result<Vec<LiveFile>, TableError> {
    let Some(snapshot) = version.metadata.current_snapshot() else { return Ok(Vec::new()) };
    let entries = live_entries(version, snapshot).await?;
    let mut files: Vec<LiveFile> = entries.iter().map(|entry| live_file(&version.metadata, entry)).collect();
    files.sort_by(|a, b| (a.content, &a.path).cmp(&(b.content, &b.path)));
    Ok(files)
}

fn live_file(metadata: &TableMetadata, entry: &LiveEntry) -> LiveFile {
    LiveFile {
        path: entry.file.file_path().to_owned(),
        content: entry.file.content_type().into(),
        records: entry.file.record_count(),
        bytes: bytes_of(&entry.file),
        spec_id: entry.spec_id,
        partition: path_of(metadata, entry.spec_id, entry.file.partition()),
        sequence_number: entry.sequence_number,
    }
}

/// A spec whose source column was dropped cannot be bound any more; its partitions are then shown without a name.
pub(crate) fn path_of(metadata: &TableMetadata, spec_id: i32, values: &Struct) -> String {
    let Some(spec) = metadata.partition_spec_by_id(spec_id) else { return String::new() };
    match spec.partition_type(metadata.current_schema()) {
        Ok(kind) => crate::partition_path::partition_path(spec, &kind, values),
        Err(_) => String::new(),
    }
}
