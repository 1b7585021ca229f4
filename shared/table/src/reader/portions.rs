//! Reading delete files piece by piece, in bounded memory: a file may be larger than the memory, and then it is in several portions.

use std::collections::HashSet;

use arrow_array::RecordBatch;

use super::deletes::{Deletes, columns_of};
use super::key_map::Inserted;
use super::source::{self, Rows};
use super::vectors::is_vector;
use crate::manifests::LiveEntry;
use crate::{TableError, TableVersion};

/// What a portion may hold.
pub(crate) struct Limits {
    /// The most bytes that keys and positions take.
    pub(crate) memory_bytes: u64,
    /// Positions in data files with other paths are left out; `None` keeps all.
    pub(crate) only: Option<HashSet<String>>,
    /// Positions in these data files are left out: their deletion vectors have taken them over (rule R2).
    pub(crate) with_vectors: HashSet<String>,
}

impl Limits {
    /// Everything in one portion.
    pub(crate) const fn none(with_vectors: HashSet<String>) -> Self {
        Self { memory_bytes: u64::MAX, only: None, with_vectors }
    }
}

/// A part of a delete file.
enum Part {
    Rows(RecordBatch),
    /// A deletion vector, which has no parts.
    Vector,
}

/// Delete files of which a part is read.
pub(crate) struct Portions<'a, I> {
    version: &'a TableVersion,
    files: I,
    limits: Limits,
    open: Option<(&'a LiveEntry, Rows)>,
    /// What no longer fitted into the portion before.
    rest: Option<(&'a LiveEntry, Part)>,
}

impl<'a, I: Iterator<Item = &'a LiveEntry>> Portions<'a, I> {
    /// The deletes in some files.
    pub(crate) const fn new(version: &'a TableVersion, files: I, limits: Limits) -> Self {
        Self { version, files, limits, open: None, rest: None }
    }

    /// As many deletes as fit, `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<Deletes>, TableError> {
        let mut deletes = Deletes::default();
        while let Some((entry, part)) = self.next_part().await? {
            self.rest = self.add(&mut deletes, entry, part).await?.map(|rest| (entry, rest));
            if self.rest.is_some() {
                break;
            }
        }
        Ok(Some(deletes).filter(|deletes| !deletes.is_empty()))
    }

    /// Whether the portion before was not the last.
    pub(crate) const fn has_more(&self) -> bool {
        self.rest.is_some()
    }

    /// Gives what does not fit.
    async fn add(&mut self, deletes: &mut Deletes, entry: &LiveEntry, part: Part) -> Result<Option<Part>, TableError> {
        match part {
            Part::Rows(rows) => {
                let taken = deletes.add((self.version, entry), &rows, &self.limits)?;
                let left = rows.num_rows() - taken;
                Ok((left > 0).then(|| Part::Rows(rows.slice(taken, left))))
            }
            Part::Vector => match deletes.add_vector((self.version, entry), &self.limits).await? {
                Inserted::Full => Ok(Some(Part::Vector)),
                Inserted::New | Inserted::Known => Ok(None),
            },
        }
    }

    async fn next_part(&mut self) -> Result<Option<(&'a LiveEntry, Part)>, TableError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        loop {
            if let Some((entry, rows)) = &mut self.open
                && let Some(batch) = rows.next().await?
            {
                return Ok(Some((*entry, Part::Rows(batch))));
            }
            self.open = None;
            let Some(entry) = self.files.next() else { return Ok(None) };
            if is_vector(&entry.file) {
                return Ok(Some((entry, Part::Vector)));
            }
            self.open = Some((entry, source::open(self.version, &entry.file, &columns_of(entry)?).await?));
        }
    }
}
