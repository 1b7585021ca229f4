//! Which rows of some data files are left after the deletes, in bounded memory.
//!
//! The deletes are read in portions that fit the memory that is given, one entry a key, and each portion passes over the key columns of the data files once. A row is
//! deleted when any portion deletes it, so the portions need no order; what stays between them is a flag a row.

use std::collections::{BTreeSet, HashSet};

use super::files::{Scoped, TableFiles};
use super::reaches::may_touch;
use crate::TableError;
use crate::manifests::LiveEntry;
use crate::reader::deletes::Deletes;
use crate::reader::source;

/// What an entry of a set of keys takes besides the key.
const ENTRY_BYTES: u64 = 96;
/// Keys of delete files take so many times more memory than storage.
const EXPANSION: u64 = 4;

/// What the deletes left.
pub(super) struct Alive {
    /// For each data file, which of its rows stay; empty when no delete touches the file.
    pub(super) rows: Vec<Vec<bool>>,
    /// The delete files that may touch one of the data files.
    pub(super) applied: BTreeSet<String>,
}

/// Applies the deletes that `files` has for `data`, with about `memory_bytes` of memory for them.
pub(super) async fn find(files: &TableFiles, data: &[&Scoped], memory_bytes: u64) -> Result<Alive, TableError> {
    let deletes: Vec<&LiveEntry> = files.files.iter().filter(|delete| may_touch(delete, data)).map(|delete| &delete.entry).collect();
    let mut rows = vec![Vec::new(); data.len()];
    for portion in portions(&deletes, memory_bytes) {
        let paths: HashSet<String> = data.iter().map(|data| data.entry.file.file_path().to_owned()).collect();
        let deletes = Deletes::read_for(&files.version, portion.iter().copied(), paths).await?;
        for (data, keep) in data.iter().zip(&mut rows) {
            apply(files, &deletes, (&data.entry, keep)).await?;
        }
    }
    let applied = deletes.iter().map(|delete| delete.file.file_path().to_owned()).collect();
    Ok(Alive { rows, applied })
}

/// Splits delete files so that each portion needs at most that memory, or is a single file.
fn portions<'a>(deletes: &[&'a LiveEntry], memory_bytes: u64) -> Vec<Vec<&'a LiveEntry>> {
    let mut portions: Vec<Vec<&LiveEntry>> = Vec::new();
    let mut used = 0_u64;
    for delete in deletes {
        let file = &delete.file;
        let needs = file.record_count().saturating_mul(ENTRY_BYTES).saturating_add(file.file_size_in_bytes().saturating_mul(EXPANSION));
        match portions.last_mut().filter(|_| used.saturating_add(needs) <= memory_bytes) {
            Some(portion) => portion.push(delete),
            None => {
                portions.push(vec![delete]);
                used = 0;
            }
        }
        used = used.saturating_add(needs);
    }
    portions
}

async fn apply(files: &TableFiles, deletes: &Deletes, (entry, keep): (&LiveEntry, &mut Vec<bool>)) -> Result<(), TableError> {
    let touching = deletes.of(entry);
    if touching.is_empty() {
        return Ok(());
    }
    if keep.is_empty() {
        let rows = usize::try_from(entry.file.record_count()).map_err(|_| TableError::Invalid("a file has too many rows".to_owned()))?;
        keep.resize(rows, true);
    }
    let (mut ids, mut position) = (HashSet::new(), 0);
    touching.add_ids(&mut ids);
    for batch in source::open(&files.version, &entry.file, &ids).await? {
        let path = entry.file.file_path();
        let batch = batch.map_err(TableError::arrow(format!("reading {path}")))?;
        let end = position + batch.num_rows();
        let part = keep.get_mut(position..end);
        let part = part.ok_or_else(|| TableError::Invalid(format!("{path} has more rows than its manifest says")))?;
        touching.apply(&batch, position as u64, part)?;
        position = end;
    }
    Ok(())
}
