//! Reading a table: merge-on-read, by field id.
//!
//! iceberg's scan is not used: it deletes rows that it must not (keys with nulls, keys on columns that old files lack), and cannot read a struct that has
//! gained a field.

mod deleted_keys;
pub(crate) mod deletes;
pub(crate) mod key_map;
pub(crate) mod keys;
pub(crate) mod portions;
mod projection;
mod ranges;
mod search;
pub(crate) mod source;
pub(crate) mod vectors;

use std::collections::HashSet;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use iceberg::spec::{DataContentType, Snapshot};

use crate::arrow::required_field_id;
use crate::manifests::{LiveEntry, live_entries, snapshot_of};
use crate::{TableError, TableVersion};
use deletes::{Deletes, FileDeletes};
use keys::LookupKeys;
use portions::{Limits, Portions};
pub(crate) use projection::{check_defaults, inside_struct, project_batch, require_known};
pub(crate) use search::KeySearch;

/// The live rows of a snapshot (`None`: the current one), as `target` wants them: its fields carry field ids. Columns that a file lacks are
/// null, older types are widened. The order of the rows is that of the files.
///
/// # Errors
/// [`TableError`]; fatal when the table has files that are no Parquet, a deletion vector that is not what it says, or columns that do not fit `target`.
pub async fn scan(version: &TableVersion, snapshot_id: Option<i64>, target: &SchemaRef) -> Result<Vec<RecordBatch>, TableError> {
    let mut batches = Vec::new();
    scan_each(version, (snapshot_id, target), &mut |batch| {
        batches.push(batch);
        Ok(())
    })
    .await?;
    Ok(batches)
}

/// As [`scan`], but each batch is handed over as it is read, so that only one file's rows are held.
///
/// # Errors
/// As [`scan`], and what `visit` says, which ends the scan.
pub async fn scan_each(
    version: &TableVersion,
    (snapshot_id, target): (Option<i64>, &SchemaRef),
    visit: &mut (dyn FnMut(RecordBatch) -> Result<(), TableError> + Send),
) -> Result<(), TableError> {
    let Some(snapshot) = snapshot_of(version, snapshot_id)? else { return Ok(()) };
    let snapshot = Snapshot::clone(snapshot);
    let reading = Reading::open(version, &snapshot, target).await?;
    for entry in &reading.data {
        for batch in reading.file(version, entry, None).await? {
            visit(batch)?;
        }
    }
    Ok(())
}

/// The live rows whose key is one of `keys`, as `target` wants them. `keys` has the columns `key_field_ids`, found by field id; null
/// equals null. Files whose bounds of the first key column exclude all keys are not read.
///
/// # Errors
/// As [`scan`].
pub async fn lookup(
    version: &TableVersion,
    target: &SchemaRef,
    key_field_ids: &[i32],
    keys: &RecordBatch,
) -> Result<RecordBatch, TableError> {
    let mut batches = Vec::new();
    if let Some(snapshot) = version.metadata.current_snapshot().filter(|_| keys.num_rows() > 0) {
        let wanted = LookupKeys::new(&version.metadata, key_field_ids, keys)?;
        let reading = Reading::open(version, snapshot, target).await?;
        for entry in reading.data.iter().filter(|entry| wanted.may_be_in(&entry.file)) {
            batches.extend(reading.file(version, entry, Some(&wanted)).await?);
        }
    }
    concat_batches(target, &batches).map_err(TableError::arrow("joining the found rows"))
}

/// A snapshot's files, and what its delete files say.
struct Reading<'a> {
    target: &'a SchemaRef,
    target_ids: HashSet<i32>,
    data: Vec<LiveEntry>,
    deletes: Deletes,
}

impl<'a> Reading<'a> {
    async fn open(version: &TableVersion, snapshot: &Snapshot, target: &'a SchemaRef) -> Result<Self, TableError> {
        let target_ids = target.fields().iter().map(|field| required_field_id(field)).collect::<Result<HashSet<i32>, _>>()?;
        projection::check_defaults(&version.metadata, target)?;
        let entries = live_entries(version, snapshot).await?;
        let (data, deleting): (Vec<LiveEntry>, Vec<LiveEntry>) =
            entries.into_iter().partition(|entry| entry.file.content_type() == DataContentType::Data);
        let limits = Limits::none(vectors::with_vectors(data.iter(), deleting.iter())?);
        let deletes = Portions::new(version, deleting.iter(), limits).next().await?.unwrap_or_default();
        Ok(Self { target, target_ids, data, deletes })
    }

    /// The live rows of one file.
    async fn file(&self, version: &TableVersion, entry: &LiveEntry, wanted: Option<&LookupKeys>) -> Result<Vec<RecordBatch>, TableError> {
        let deletes = self.deletes.of(entry);
        let mut ids = self.target_ids.clone();
        deletes.add_ids(&mut ids);
        ids.extend(wanted.iter().flat_map(|keys| keys.ids()));
        let mut position = 0;
        let mut batches = Vec::new();
        let mut reading = source::open(version, &entry.file, &ids).await?;
        while let Some(batch) = reading.next().await? {
            let rows = batch.num_rows();
            batches.extend(self.live_rows(&batch, (&deletes, position), wanted)?);
            position += rows as u64;
        }
        Ok(batches)
    }

    fn live_rows(
        &self,
        batch: &RecordBatch,
        (deletes, position): (&FileDeletes<'_>, u64),
        wanted: Option<&LookupKeys>,
    ) -> Result<Option<RecordBatch>, TableError> {
        let mut keep = match wanted {
            Some(keys) => keys.matches(batch)?,
            None => vec![true; batch.num_rows()],
        };
        deletes.apply(batch, position, &mut keep)?;
        if !keep.contains(&true) {
            return Ok(None);
        }
        let kept = if keep.contains(&false) {
            filter_record_batch(batch, &BooleanArray::from(keep)).map_err(TableError::arrow("leaving out deleted rows"))?
        } else {
            batch.clone()
        };
        project_batch(&kept, self.target).map(Some)
    }
}
