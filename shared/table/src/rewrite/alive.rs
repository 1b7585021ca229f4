//! Which rows of some data files are left after the deletes, in bounded memory.
//!
//! The deletes are read in portions that fit the memory that is given, one entry a key. The last portion, which is mostly the only one, is applied while the rows are copied; each one before it
//! passes over the key columns of the data files once. A row is deleted when any portion deletes it, so the portions need no order; what stays between them is a flag a row.

use std::collections::HashSet;

use arrow_array::RecordBatch;

use super::file_set::FileSet;
use super::files::{Scoped, TableFiles};
use super::reaches::Reached;
use crate::TableError;
use crate::manifests::LiveEntry;
use crate::reader::deletes::{Deletes, FileDeletes};
use crate::reader::portions::{Limits, Portions};
use crate::reader::source;
use crate::reader::vectors::with_vectors;

/// What the deletes leave.
pub(super) struct Alive {
    /// For each data file, which of its rows all portions but the last leave; empty when none of them touches the file.
    rows: Vec<Vec<bool>>,
    last: Deletes,
    /// The delete files that may touch one of the data files.
    pub(super) applied: FileSet,
    /// Passes over the data files, the copying included.
    pub(super) passes: usize,
    /// The most bytes that keys and positions of a portion took.
    pub(super) peak_bytes: u64,
}

/// What the deletes leave of one data file.
pub(super) struct FileAlive<'a> {
    flags: &'a [bool],
    last: FileDeletes<'a>,
}

/// Reads the deletes that `files` has for `data`, and applies them as far as they do not fit into `memory_bytes`.
pub(super) async fn find(files: &TableFiles, data: &[&Scoped], memory_bytes: u64) -> Result<Alive, TableError> {
    let reached = Reached::of(data);
    let deletes: Vec<&LiveEntry> = files.files.iter().filter(|delete| reached.by(delete)).map(|delete| &delete.entry).collect();
    let applied = FileSet::of(deletes.iter().map(|delete| &delete.file));
    let only = Some(data.iter().map(|data| data.entry.file.file_path().to_owned()).collect());
    let with_vectors = with_vectors(data.iter().map(|data| &data.entry), deletes.iter().copied())?;
    let mut alive = Alive { rows: vec![Vec::new(); data.len()], last: Deletes::default(), applied, passes: 1, peak_bytes: 0 };
    let mut portions = Portions::new(&files.version, deletes.into_iter(), Limits { memory_bytes, only, with_vectors });
    while let Some(portion) = portions.next().await? {
        alive.peak_bytes = alive.peak_bytes.max(portion.bytes());
        if !portions.has_more() {
            alive.last = portion;
            break;
        }
        alive.passes += 1;
        for (data, flags) in data.iter().zip(&mut alive.rows) {
            apply(files, &portion, (&data.entry, flags)).await?;
        }
    }
    Ok(alive)
}

async fn apply(files: &TableFiles, deletes: &Deletes, (entry, flags): (&LiveEntry, &mut Vec<bool>)) -> Result<(), TableError> {
    let touching = deletes.of(entry);
    if touching.is_empty() {
        return Ok(());
    }
    if flags.is_empty() {
        let rows = usize::try_from(entry.file.record_count()).map_err(|_| TableError::Invalid("a file has too many rows".to_owned()))?;
        flags.resize(rows, true);
    }
    let (mut ids, mut position) = (HashSet::new(), 0);
    touching.add_ids(&mut ids);
    let mut reading = source::open(&files.version, &entry.file, &ids).await?;
    while let Some(batch) = reading.next().await? {
        let end = position + batch.num_rows();
        let part = flags.get_mut(position..end);
        let path = entry.file.file_path();
        let part = part.ok_or_else(|| TableError::Invalid(format!("{path} has more rows than its manifest says")))?;
        touching.apply(&batch, position as u64, part)?;
        position = end;
    }
    Ok(())
}

impl Alive {
    /// The delete files that may touch one of the data files; what was read of them is given back.
    pub(super) fn into_applied(self) -> FileSet {
        self.applied
    }

    /// What is left of the data file with that number.
    pub(super) fn of(&self, number: usize, entry: &LiveEntry) -> FileAlive<'_> {
        FileAlive { flags: self.rows.get(number).map_or(&[], Vec::as_slice), last: self.last.of(entry) }
    }
}

impl FileAlive<'_> {
    /// Adds the columns that are needed to tell.
    pub(super) fn add_ids(&self, ids: &mut HashSet<i32>) {
        self.last.add_ids(ids);
    }

    /// Which rows stay of a batch that begins at `start` in its file; `None` when all do.
    pub(super) fn keep(&self, batch: &RecordBatch, start: usize) -> Result<Option<Vec<bool>>, TableError> {
        if self.last.is_empty() && self.flags.is_empty() {
            return Ok(None);
        }
        let flags = self.flags.get(start..start + batch.num_rows()).map(<[bool]>::to_vec);
        let mut keep = flags.unwrap_or_else(|| vec![true; batch.num_rows()]);
        self.last.apply(batch, start as u64, &mut keep)?;
        Ok(keep.contains(&false).then_some(keep))
    }
}
