//! Which rows a snapshot has, by brute force: each row of each data file against each delete, by the words of the specification (rules R1 to R4, and R15 for what rows inherit). Shares nothing with the reader: files are read
//! whole, values are compared one by one, and no set, portion or scope is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use iceberg::spec::{DataContentType, DataFileFormat, ManifestContentType, ManifestEntry, ManifestList, Struct};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use sluice_table::TableVersion;

use crate::{tables, vectors};

const PATH: i32 = 2_147_483_546;
const POSITION: i32 = 2_147_483_545;
const ROW_ID: i32 = 2_147_483_540;
const LAST_UPDATED: i32 = 2_147_483_539;

#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Long(i64),
    Text(String),
    Decimal(i128),
}

type Row = BTreeMap<i32, Cell>;

/// A row that is left, and where it is.
#[derive(Debug, Clone)]
pub struct LiveRow {
    /// Its key.
    pub id: i64,
    /// Its data file.
    pub path: String,
    /// Its place in that.
    pub position: i64,
    /// The file's partition spec.
    pub spec_id: i32,
    /// The file's partition.
    pub partition: Struct,
    /// Its row id, in a snapshot that has some.
    pub row_id: Option<i64>,
    /// The number of the commit that wrote it last.
    pub updated: i64,
    region: Option<String>,
    total: i128,
}

struct File {
    spec_id: i32,
    unpartitioned: bool,
    number: i64,
    first_row_id: Option<i64>,
    entry: Arc<ManifestEntry>,
    rows: Vec<Row>,
}

/// The rows of a snapshot. Two rows of one id are an error.
pub async fn rows(version: &TableVersion, snapshot_id: i64) -> tables::Rows {
    let mut seen = tables::Rows::new();
    for row in live(version, snapshot_id).await {
        assert_eq!(seen.insert(row.id, (row.region, row.total)), None, "the id {} is there twice", row.id);
    }
    seen
}

/// The rows of a snapshot with their places.
pub async fn live(version: &TableVersion, snapshot_id: i64) -> Vec<LiveRow> {
    let files = files(version, snapshot_id).await;
    let of = |content: DataContentType| files.iter().filter(move |file| file.entry.content_type() == content);
    let mut left = Vec::new();
    for data in of(DataContentType::Data) {
        for (position, row) in (0_i64..).zip(&data.rows) {
            let by_key = of(DataContentType::EqualityDeletes).any(|delete| deletes_by_key(delete, data, row));
            let (vectors, positions): (Vec<&File>, Vec<&File>) = of(DataContentType::PositionDeletes).partition(|delete| is_vector(delete));
            let vectors: Vec<&File> = vectors.into_iter().filter(|vector| is_about(vector, data)).collect();
            assert!(vectors.len() < 2, "C2: a data file has one deletion vector");
            let by_place = if vectors.is_empty() { positions } else { vectors };
            let by_place = by_place.into_iter().any(|delete| deletes_by_place(delete, data, position));
            if !by_key && !by_place {
                left.push(live_row(data, position, row));
            }
        }
    }
    left
}

/// R1: of its own partition and spec, or of any when its spec has no fields; strictly older rows. R4: null equals null.
fn deletes_by_key(delete: &File, data: &File, row: &Row) -> bool {
    let same_place = delete.spec_id == data.spec_id && delete.entry.data_file().partition() == data.entry.data_file().partition();
    let ids = delete.entry.data_file().equality_ids().unwrap();
    let cell = |row: &Row, id: &i32| row.get(id).cloned().unwrap_or(Cell::Null);
    let same_key = |key: &Row| ids.iter().all(|id| cell(key, id) == cell(row, id));
    (delete.unpartitioned || same_place) && data.number < delete.number && delete.rows.iter().any(same_key)
}

/// R2: the very file and place; rows as old as the delete, too.
fn deletes_by_place(delete: &File, data: &File, position: i64) -> bool {
    let place = [(PATH, Cell::Text(data.entry.file_path().to_owned())), (POSITION, Cell::Long(position))];
    data.number <= delete.number && delete.rows.iter().any(|row| place.iter().all(|(id, cell)| row.get(id) == Some(cell)))
}

fn is_vector(delete: &File) -> bool {
    delete.entry.data_file().file_format() == DataFileFormat::Puffin
}

/// R3: the very file, of its spec and partition; as old as the vector or older.
fn is_about(vector: &File, data: &File) -> bool {
    let (delete, file) = (vector.entry.data_file(), data.entry.data_file());
    let same_place = vector.spec_id == data.spec_id && delete.partition() == file.partition();
    same_place && data.number <= vector.number && delete.referenced_data_file().unwrap() == file.file_path()
}

fn live_row(data: &File, position: i64, row: &Row) -> LiveRow {
    let Some(Cell::Long(id)) = row.get(&1) else { panic!("a row without id: {row:?}") };
    let Some(Cell::Decimal(total)) = row.get(&3) else { panic!("a row without total: {row:?}") };
    let region = match row.get(&2) {
        Some(Cell::Text(region)) => Some(region.clone()),
        Some(Cell::Null) | None => None,
        Some(other) => panic!("a region of {other:?}"),
    };
    let (path, partition) = (data.entry.file_path().to_owned(), data.entry.data_file().partition().clone());
    let own = |column: i32| match row.get(&column) {
        Some(Cell::Long(own)) => Some(*own),
        Some(Cell::Null) | None => None,
        Some(other) => panic!("row lineage of {other:?}"),
    };
    let row_id = own(ROW_ID).or(data.first_row_id.map(|first| first + position));
    let updated = own(LAST_UPDATED).unwrap_or(data.number);
    LiveRow { id: *id, region, total: *total, path, position, spec_id: data.spec_id, partition, row_id, updated }
}

async fn files(version: &TableVersion, snapshot_id: i64) -> Vec<File> {
    let snapshot = version.metadata.snapshot_by_id(snapshot_id).unwrap();
    let list = version.file_io.new_input(snapshot.manifest_list()).unwrap().read().await.unwrap();
    let list = ManifestList::parse_with_version(&list, version.metadata.format_version()).unwrap();
    let mut files = Vec::new();
    for manifest in list.entries() {
        let spec_id = manifest.partition_spec_id;
        let unpartitioned = version.metadata.partition_spec_by_id(spec_id).unwrap().is_unpartitioned();
        let mut next_row = manifest.first_row_id.map(|first| first as i64);
        for entry in manifest.load_manifest(&version.file_io).await.unwrap().entries().iter().filter(|entry| entry.is_alive()) {
            let first_row_id = entry.data_file().first_row_id().or(next_row);
            if manifest.content == ManifestContentType::Data && entry.data_file().first_row_id().is_none() {
                next_row = next_row.map(|next| next + entry.record_count() as i64);
            }
            let (number, entry, rows) = (entry.sequence_number().unwrap(), Arc::clone(entry), rows_in(version, entry).await);
            files.push(File { spec_id, unpartitioned, number, first_row_id, entry, rows });
        }
    }
    files
}

/// The rows of a file; a deletion vector's are those that a file of positions would have.
async fn rows_in(version: &TableVersion, entry: &ManifestEntry) -> Vec<Row> {
    let file = entry.data_file();
    if file.file_format() == DataFileFormat::Puffin {
        let data_file = file.referenced_data_file().unwrap();
        let row = |position: u64| Row::from([(PATH, Cell::Text(data_file.clone())), (POSITION, Cell::Long(position as i64))]);
        return vectors::read(version, file).await.iter().map(row).collect();
    }
    let bytes = version.file_io.new_input(file.file_path()).unwrap().read().await.unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
    reader.flat_map(|batch| rows_of(&batch.unwrap())).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let schema = batch.schema();
    let ids: Vec<i32> = schema.fields().iter().map(|field| field.metadata()[PARQUET_FIELD_ID_META_KEY].parse().unwrap()).collect();
    let row = |number: usize| ids.iter().zip(batch.columns()).map(|(id, column)| (*id, cell(column, number))).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn cell(column: &ArrayRef, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Null;
    }
    match column.data_type() {
        DataType::Int64 => Cell::Long(column.as_primitive::<Int64Type>().value(row)),
        DataType::Utf8 => Cell::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::Decimal128(_, _) => Cell::Decimal(column.as_primitive::<Decimal128Type>().value(row)),
        other => panic!("a column of {other}"),
    }
}

/// Stores a file of positions in one data file, as other programs do.
pub async fn store_positions(version: &TableVersion, path: &str, (data_file, positions): (&str, &[i64])) {
    let field = |name: &str, kind: DataType, id: i32| {
        Field::new(name, kind, false).with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())].into())
    };
    let fields = vec![field("file_path", DataType::Utf8, PATH), field("pos", DataType::Int64, POSITION)];
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(positions.iter().map(|_| data_file)));
    let positions: ArrayRef = Arc::new(Int64Array::from(positions.to_vec()));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![paths, positions]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    version.file_io.new_output(path).unwrap().write(writer.into_inner().unwrap().into()).await.unwrap();
}
