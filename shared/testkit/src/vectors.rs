//! Another program's deletion vectors: one Puffin file for all that a commit deletes, one vector for each data file.

use std::collections::{BTreeMap, HashMap};

use iceberg::puffin::{Blob, CompressionCodec, DELETION_VECTOR_V1, PuffinWriter};
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, ManifestContentType, ManifestFile, Struct, UNASSIGNED_SEQUENCE_NUMBER,
};
use roaring::RoaringTreemap;
use sluice_table::{TableOperations, TableVersion};

use crate::foreign::{commit_manifests, manifest_writer, manifests, manifests_without};

const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
/// The field id of a row's position.
const POSITION: i32 = 2_147_483_645;

/// The blob of a vector, as the Puffin specification has it.
#[must_use]
pub fn blob(positions: &RoaringTreemap) -> Vec<u8> {
    let mut body = MAGIC.to_vec();
    positions.serialize_into(&mut body).unwrap();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[..], &body, &crc32fast::hash(&body).to_be_bytes()].concat()
}

/// A data file as its manifest has it.
struct Target {
    spec_id: i32,
    partition: Struct,
    held: RoaringTreemap,
}

/// Deletes rows of data files by their positions, in one snapshot: a vector that a file has already is replaced by one of both (rule R3). The new ones are in the Puffin file at `puffin`.
pub async fn delete(ops: &dyn TableOperations, puffin: &str, deleted: &[(String, Vec<u64>)]) -> TableVersion {
    let base = ops.refresh().await.unwrap();
    let (mut targets, named) = (targets(&base).await, |file: &DataFile| deleted.iter().any(|(path, _)| is_about(file, path)));
    let mut vectors: BTreeMap<String, Target> = BTreeMap::new();
    for (path, positions) in deleted {
        let target = targets.remove(path).unwrap_or_else(|| panic!("{path} is no live data file"));
        let vector = vectors.entry(path.clone()).or_insert(target);
        vector.held.extend(positions.iter().copied());
    }
    let id = base.metadata.last_sequence_number() + 1_000;
    let mut kept = manifests_without(&base, id, &named).await;
    kept.extend(write(&base, (id, puffin), &vectors).await);
    commit_manifests(ops, &base, (id, kept, HashMap::new())).await
}

fn is_about(file: &DataFile, path: &str) -> bool {
    file.file_format() == DataFileFormat::Puffin && file.referenced_data_file().as_deref() == Some(path)
}

/// The live data files, each with what is deleted in it by a vector.
async fn targets(base: &TableVersion) -> HashMap<String, Target> {
    let (mut targets, mut vectors) = (HashMap::new(), Vec::new());
    for manifest in manifests(base, base.metadata.current_snapshot().unwrap().manifest_list()).await {
        let loaded = manifest.load_manifest(&base.file_io).await.unwrap();
        for entry in loaded.entries().iter().filter(|entry| entry.is_alive()) {
            let file = entry.data_file();
            match (file.content_type(), file.file_format()) {
                (DataContentType::Data, _) => {
                    let target =
                        Target { spec_id: manifest.partition_spec_id, partition: file.partition().clone(), held: RoaringTreemap::new() };
                    targets.insert(file.file_path().to_owned(), target);
                }
                (DataContentType::PositionDeletes, DataFileFormat::Puffin) => vectors.push(file.clone()),
                (DataContentType::PositionDeletes | DataContentType::EqualityDeletes, _) => {}
            }
        }
    }
    for vector in vectors {
        if let Some(target) = targets.get_mut(&vector.referenced_data_file().unwrap()) {
            target.held = read(base, &vector).await;
        }
    }
    targets
}

/// The positions of a vector, unchecked.
pub async fn read(version: &TableVersion, vector: &DataFile) -> RoaringTreemap {
    let file = version.file_io.new_input(vector.file_path()).unwrap().read().await.unwrap();
    let start = usize::try_from(vector.content_offset().unwrap()).unwrap();
    let end = start + usize::try_from(vector.content_size_in_bytes().unwrap()).unwrap();
    RoaringTreemap::deserialize_from(&file[start + 8..end - 4]).unwrap()
}

async fn write(base: &TableVersion, (id, path): (i64, &str), vectors: &BTreeMap<String, Target>) -> Vec<ManifestFile> {
    let output = base.file_io.new_output(path).unwrap();
    let mut puffin = PuffinWriter::new(&output, HashMap::new(), false).await.unwrap();
    // The file begins with its four magic bytes.
    let (mut at, mut places) = (4, Vec::new());
    for (data_file, vector) in vectors {
        let data = blob(&vector.held);
        places.push((at, data.len()));
        at += data.len();
        let cardinality = vector.held.len().to_string();
        let properties = [("referenced-data-file".to_owned(), data_file.clone()), ("cardinality".to_owned(), cardinality)];
        let blob = Blob::builder().r#type(DELETION_VECTOR_V1.to_owned()).fields(vec![POSITION]).snapshot_id(-1).sequence_number(-1);
        puffin.add(blob.data(data).properties(HashMap::from(properties)).build(), CompressionCodec::None).await.unwrap();
    }
    puffin.close().await.unwrap();
    let size = base.file_io.new_input(path).unwrap().metadata().await.unwrap().size;
    let mut by_spec: BTreeMap<i32, Vec<DataFile>> = BTreeMap::new();
    for ((data_file, vector), (offset, bytes)) in vectors.iter().zip(places) {
        let mut file = DataFileBuilder::default();
        file.file_path(path.to_owned()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Puffin);
        file.partition(vector.partition.clone()).record_count(vector.held.len()).file_size_in_bytes(size);
        file.referenced_data_file(Some(data_file.clone())).content_offset(Some(offset as i64)).content_size_in_bytes(Some(bytes as i64));
        by_spec.entry(vector.spec_id).or_default().push(file.build().unwrap());
    }
    let mut written = Vec::new();
    for (spec_id, files) in by_spec {
        let path = format!("{}/metadata/foreign-v{id}-{spec_id}.avro", base.metadata.location());
        let mut writer = manifest_writer(base, (&path, id), (ManifestContentType::Deletes, spec_id));
        files.into_iter().for_each(|file| writer.add_file(file, UNASSIGNED_SEQUENCE_NUMBER).unwrap());
        written.push(writer.write_manifest_file().await.unwrap());
    }
    written
}
