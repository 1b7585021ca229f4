//! A reader of tables that shares no code with the product's: it holds the files of every snapshot and what is in each, and remembers them, for
//! files never change.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use iceberg::spec::{DataContentType, FormatVersion, ManifestList, ManifestStatus, Snapshot};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sluice_table::TableVersion;

use crate::world::{Sim, now};

/// A row of a data table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub partition: i32,
    pub offset: i64,
    pub id: i64,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Letter {
    pub at: (i32, i64),
    pub code: String,
}

/// The files of a snapshot.
#[derive(Debug, Default)]
pub struct Files {
    /// Path and sequence number.
    pub data: Vec<(String, i64)>,
    pub deletes: Vec<(String, i64)>,
    /// Every file that the snapshot needs.
    pub reach: BTreeSet<String>,
}

/// The reader and its memory.
#[derive(Default)]
pub struct Reader {
    snapshots: BTreeMap<String, Rc<Files>>,
    manifests: BTreeMap<String, Rc<Files>>,
    contents: BTreeMap<String, Rc<Vec<RecordBatch>>>,
}

impl Reader {
    /// The files of a snapshot, or what is wrong with it.
    pub fn files(&mut self, version: &TableVersion, snapshot: &Snapshot) -> Result<Rc<Files>, String> {
        let list = snapshot.manifest_list();
        if let Some(known) = self.snapshots.get(list) {
            return Ok(Rc::clone(known));
        }
        let bytes = now(version.file_io.new_input(list).unwrap().read()).map_err(|error| error.to_string())?;
        let manifests = ManifestList::parse_with_version(&bytes, FormatVersion::V2).map_err(|error| error.to_string())?;
        let mut files = Files::default();
        files.reach.insert(list.to_owned());
        for manifest in manifests.entries() {
            let path = &manifest.manifest_path;
            let known = match self.manifests.get(path) {
                Some(known) => Rc::clone(known),
                None => Rc::new(manifest_files(version, manifest)?),
            };
            files.data.extend(known.data.iter().cloned());
            files.deletes.extend(known.deletes.iter().cloned());
            files.reach.extend(known.reach.iter().cloned());
            self.manifests.insert(path.clone(), known);
        }
        let files = Rc::new(files);
        self.snapshots.insert(list.to_owned(), Rc::clone(&files));
        Ok(files)
    }

    fn batches(&mut self, sim: &Sim, path: &str) -> Result<Rc<Vec<RecordBatch>>, String> {
        if let Some(known) = self.contents.get(path) {
            return Ok(Rc::clone(known));
        }
        let bytes = sim.world().files.get(path).cloned().ok_or_else(|| format!("{path} is missing"))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(ParquetRecordBatchReaderBuilder::build);
        let batches = reader.map_err(|error| error.to_string())?.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let batches = Rc::new(batches);
        self.contents.insert(path.to_owned(), Rc::clone(&batches));
        Ok(batches)
    }

    /// The live rows, with equality deletes by id taken away.
    pub fn rows(&mut self, sim: &Sim, files: &Files) -> Result<Vec<Row>, String> {
        let mut deleted: BTreeMap<i64, i64> = BTreeMap::new();
        for (path, number) in &files.deletes {
            for batch in self.batches(sim, path)?.iter() {
                for id in longs(batch, "id").iter().flatten() {
                    let youngest = deleted.entry(*id).or_insert(*number);
                    *youngest = (*youngest).max(*number);
                }
            }
        }
        let mut rows = Vec::new();
        for (path, number) in &files.data {
            for batch in self.batches(sim, path)?.iter() {
                let (ids, offsets) = (longs(batch, "id"), longs(batch, "o"));
                for (row, partition) in ints(batch, "p").iter().enumerate() {
                    let id = ids[row].unwrap_or(i64::MIN);
                    if deleted.get(&id).is_none_or(|delete| delete <= number) {
                        rows.push(Row { partition: partition.unwrap_or(i32::MIN), offset: offsets[row].unwrap_or(i64::MIN), id });
                    }
                }
            }
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// The dead letters.
    pub fn letters(&mut self, sim: &Sim, files: &Files) -> Result<Vec<Letter>, String> {
        let mut letters = Vec::new();
        for (path, _) in &files.data {
            for batch in self.batches(sim, path)?.iter() {
                let offsets = longs(batch, "offset");
                let codes = batch.column_by_name("code").unwrap().as_string::<i32>().clone();
                for (row, partition) in ints(batch, "partition").iter().enumerate() {
                    letters.push(Letter { at: (partition.unwrap(), offsets[row].unwrap()), code: codes.value(row).to_owned() });
                }
            }
        }
        letters.sort_unstable();
        Ok(letters)
    }
}

fn manifest_files(version: &TableVersion, manifest: &iceberg::spec::ManifestFile) -> Result<Files, String> {
    let loaded = now(manifest.load_manifest(&version.file_io)).map_err(|error| error.to_string())?;
    let mut files = Files::default();
    files.reach.insert(manifest.manifest_path.clone());
    for entry in loaded.entries().iter().filter(|entry| entry.status() != ManifestStatus::Deleted) {
        let path = entry.data_file().file_path().to_owned();
        let number = entry.sequence_number().ok_or_else(|| format!("{path} has no sequence number"))?;
        files.reach.insert(path.clone());
        match entry.data_file().content_type() {
            DataContentType::Data => files.data.push((path, number)),
            DataContentType::EqualityDeletes | DataContentType::PositionDeletes => files.deletes.push((path, number)),
        }
    }
    Ok(files)
}

fn longs(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    batch.column_by_name(name).map_or_else(|| vec![None; batch.num_rows()], |column| column.as_primitive::<Int64Type>().iter().collect())
}

fn ints(batch: &RecordBatch, name: &str) -> Vec<Option<i32>> {
    batch.column_by_name(name).map_or_else(|| vec![None; batch.num_rows()], |column| column.as_primitive::<Int32Type>().iter().collect())
}
