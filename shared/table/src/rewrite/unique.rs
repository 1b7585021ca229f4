//! Proving that no key stands twice in what a rewrite wrote.
//!
//! The written files are read back, their key columns only. The keys are looked at in parts, by their hash, so that each part fits the memory that is given; a part is a pass over the files.

use std::collections::HashSet;

use iceberg::spec::{DataContentType, TableMetadata};

use super::files::TableFiles;
use crate::TableError;
use crate::delta::SpecFile;
use crate::reader::key_map::{Inserted, KeyMap};
use crate::reader::keys::KeyEncoder;
use crate::reader::source;

/// More passes would cost more than they tell.
const MOST_PARTS: u64 = 64;
/// A guess of what a key takes, for the first number of parts.
const KEY_BYTES: u64 = 48;

/// What is to be proved about keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeyProof {
    /// Nothing.
    #[default]
    Off,
    /// No identifier key stands in two rows of the files that a group wrote.
    Group,
}

/// What is proved about keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keys {
    /// Nobody asked.
    #[default]
    NotAsked,
    /// The table has no identifier fields, or not at its top level.
    NoKey,
    /// There are too many keys for the memory.
    TooMany,
    /// No key stands twice in the group; other files were not read.
    UniqueInGroup,
    /// No key stands twice in the group, and no other file of the snapshot can hold one of its keys: the key determines the partition, and the group is all of it.
    UniqueInTable,
}

/// Whether the group's inputs, and so its keys, are alone in the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    CannotHoldAKey,
    MayHoldAKey,
}

/// What is proved of the files that stand for the data files at `inputs`.
///
/// # Errors
/// [`TableError::Invalid`] when a key stands twice.
pub(super) async fn prove(
    (files, inputs): (&TableFiles, &HashSet<String>),
    outputs: &[SpecFile],
    (proof, memory_bytes): (KeyProof, u64),
) -> Result<Keys, TableError> {
    match proof {
        KeyProof::Off => return Ok(Keys::NotAsked),
        KeyProof::Group => {}
    }
    let Some(ids) = key_ids(&files.version.metadata) else { return Ok(Keys::NoKey) };
    let encoder = KeyEncoder::new(&files.version.metadata, &ids)?;
    let rows: u64 = outputs.iter().map(|output| output.file.record_count()).sum();
    let mut parts = (rows.saturating_mul(KEY_BYTES) / memory_bytes.max(1) + 1).min(MOST_PARTS);
    let mut search = Search { files, outputs, encoder, ids, memory_bytes, seen: KeyMap::default() };
    while !search.all(parts).await? {
        if parts == MOST_PARTS {
            return Ok(Keys::TooMany);
        }
        parts = (parts * 2).min(MOST_PARTS);
        search.seen = KeyMap::default();
    }
    match others(files, inputs, &search.ids) {
        Others::CannotHoldAKey => Ok(Keys::UniqueInTable),
        Others::MayHoldAKey => Ok(Keys::UniqueInGroup),
    }
}

fn key_ids(metadata: &TableMetadata) -> Option<Vec<i32>> {
    let schema = metadata.current_schema();
    let mut ids: Vec<i32> = schema.identifier_field_ids().collect();
    ids.sort_unstable();
    let top = ids.iter().all(|id| schema.as_struct().field_by_id(*id).is_some());
    (top && !ids.is_empty()).then_some(ids)
}

/// The rule by which a delete may be scoped to a partition, and the group has to be all of its partition.
fn others(files: &TableFiles, inputs: &HashSet<String>, ids: &[i32]) -> Others {
    let data = || files.files.iter().filter(|file| file.entry.file.content_type() == DataContentType::Data);
    let Some(place) = data().find(|file| inputs.contains(file.entry.file.file_path())) else { return Others::MayHoldAKey };
    let spec = files.version.metadata.partition_spec_by_id(place.entry.spec_id);
    let determined = spec.is_some_and(|spec| spec.fields().iter().all(|field| ids.contains(&field.source_id)));
    let apart = data().all(|file| {
        inputs.contains(file.entry.file.file_path()) || (file.entry.spec_id == place.entry.spec_id && file.scope != place.scope)
    });
    if determined && apart { Others::CannotHoldAKey } else { Others::MayHoldAKey }
}

struct Search<'a> {
    files: &'a TableFiles,
    outputs: &'a [SpecFile],
    encoder: KeyEncoder,
    ids: Vec<i32>,
    memory_bytes: u64,
    seen: KeyMap,
}

impl Search<'_> {
    /// Whether all keys could be looked at.
    async fn all(&mut self, parts: u64) -> Result<bool, TableError> {
        for part in 0..parts {
            self.seen.clear();
            for output in self.outputs {
                if !self.file(output, (part, parts)).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn file(&mut self, output: &SpecFile, (part, parts): (u64, u64)) -> Result<bool, TableError> {
        let mut reading = source::open(&self.files.version, &output.file, &self.ids.iter().copied().collect()).await?;
        let mut before = 0;
        while let Some(rows) = reading.next().await? {
            for (number, key) in self.encoder.encode(&rows)?.iter().enumerate() {
                // The low bits place a key in the map.
                if (self.seen.hash(key.data()) >> 32) % parts != part {
                    continue;
                }
                match self.seen.insert(key.data(), 0, self.memory_bytes) {
                    Inserted::New => {}
                    Inserted::Full => return Ok(false),
                    Inserted::Known => return Err(twice(output, before + number)),
                }
            }
            before += rows.num_rows();
        }
        Ok(true)
    }
}

fn twice(output: &SpecFile, row: usize) -> TableError {
    let path = output.file.file_path();
    TableError::Invalid(format!(
        "the key of row {row} of {path} stands in two rows of its group, so nothing of it is committed: the rows were appended twice, or the writer's deletes miss them; \
         set prove_keys = \"off\" to compact them as they are"
    ))
}
