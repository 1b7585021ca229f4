//! Which of some keys stand in a file, whatever deletes say of its rows.

use std::collections::{BTreeSet, HashMap, HashSet};

use arrow_array::RecordBatch;
use iceberg::spec::{DataFile, TableMetadata};

use super::keys::{KeyEncoder, LookupKeys};
use super::source;
use crate::{TableError, TableVersion};

/// Keys that are looked for.
pub(crate) struct KeySearch {
    ids: Vec<i32>,
    bounds: LookupKeys,
    encoder: KeyEncoder,
    rows: HashMap<Box<[u8]>, usize>,
}

impl KeySearch {
    /// `keys` has the columns `ids`, found by field id.
    pub(crate) fn new(metadata: &TableMetadata, ids: &[i32], keys: &RecordBatch) -> Result<Self, TableError> {
        let encoder = KeyEncoder::new(metadata, ids)?;
        let encoded = encoder.encode(keys)?;
        let rows = encoded.iter().enumerate().map(|(at, row)| (row.data().into(), at)).collect();
        Ok(Self { ids: ids.to_vec(), bounds: LookupKeys::new(metadata, ids, keys)?, encoder, rows })
    }

    /// Whether a file of equality deletes deletes by just these columns.
    pub(crate) fn is_by_these_keys(&self, file: &DataFile) -> bool {
        let theirs: HashSet<i32> = file.equality_ids().into_iter().flatten().collect();
        theirs == self.ids.iter().copied().collect()
    }

    /// The keys that stand in the file, by their row.
    pub(crate) async fn in_file(&self, version: &TableVersion, file: &DataFile) -> Result<BTreeSet<usize>, TableError> {
        let mut found = BTreeSet::new();
        if self.rows.is_empty() || !self.bounds.may_be_in(file) {
            return Ok(found);
        }
        let mut rows = source::open(version, file, &self.ids.iter().copied().collect()).await?;
        while let Some(batch) = rows.next().await? {
            found.extend(self.encoder.encode(&batch)?.iter().filter_map(|row| self.rows.get(row.data()).copied()));
        }
        Ok(found)
    }
}
