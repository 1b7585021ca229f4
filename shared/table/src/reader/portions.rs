//! Reading delete files piece by piece, in bounded memory: a file may be larger than the memory, and then it is in several portions.

use std::collections::HashSet;

use arrow_array::RecordBatch;

use super::deletes::{Deletes, columns_of};
use super::source::{self, Rows};
use crate::manifests::LiveEntry;
use crate::{TableError, TableVersion};

/// What a portion may hold.
pub(crate) struct Limits {
    /// The most bytes that keys and positions take.
    pub(crate) memory_bytes: u64,
    /// Positions in data files with other paths are left out; `None` keeps all.
    pub(crate) only: Option<HashSet<String>>,
}

impl Limits {
    /// Everything in one portion.
    pub(crate) const NONE: Self = Self { memory_bytes: u64::MAX, only: None };
}

/// Delete files of which a part is read.
pub(crate) struct Portions<'a, I> {
    version: &'a TableVersion,
    files: I,
    limits: Limits,
    open: Option<(&'a LiveEntry, Rows)>,
    /// What no longer fitted into the portion before.
    rest: Option<RecordBatch>,
}

impl<'a, I: Iterator<Item = &'a LiveEntry>> Portions<'a, I> {
    /// The deletes in some files.
    pub(crate) const fn new(version: &'a TableVersion, files: I, limits: Limits) -> Self {
        Self { version, files, limits, open: None, rest: None }
    }

    /// As many deletes as fit, `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<Deletes>, TableError> {
        let mut deletes = Deletes::default();
        while let Some((entry, rows)) = self.next_rows().await? {
            let taken = deletes.add((self.version, entry), &rows, &self.limits)?;
            if taken < rows.num_rows() {
                self.rest = Some(rows.slice(taken, rows.num_rows() - taken));
                break;
            }
        }
        Ok(Some(deletes).filter(|deletes| !deletes.is_empty()))
    }

    /// Whether the portion before was not the last.
    pub(crate) const fn has_more(&self) -> bool {
        self.rest.is_some()
    }

    async fn next_rows(&mut self) -> Result<Option<(&'a LiveEntry, RecordBatch)>, TableError> {
        loop {
            if let Some((entry, rows)) = &mut self.open {
                let batch = match self.rest.take() {
                    Some(rest) => Some(rest),
                    None => rows.next().await?,
                };
                if let Some(batch) = batch {
                    return Ok(Some((entry, batch)));
                }
            }
            let Some(entry) = self.files.next() else { return Ok(None) };
            self.open = Some((entry, source::open(self.version, &entry.file, &columns_of(entry)?).await?));
        }
    }
}
