//! One table's rows: the last one of each key stays, and both files are encoded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BooleanArray, Int64Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use hashbrown::HashSet;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// How both kinds of files are written: zstd(1), chunk statistics, dictionaries for the columns that are known to have few values.
pub(crate) struct Writers {
    pub(crate) rows: SchemaRef,
    keys: SchemaRef,
    row_properties: WriterProperties,
    key_properties: WriterProperties,
}

impl Writers {
    pub(crate) fn new() -> Self {
        let rows = super::columns::schema();
        let keys = Arc::new(Schema::new(rows.fields().iter().take(1).cloned().collect::<Vec<_>>()));
        let plain = || {
            WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
                .set_dictionary_enabled(false)
                .set_statistics_enabled(EnabledStatistics::Chunk)
        };
        let few: [&[&str]; 5] = [&["status"], &["currency"], &["is_gift"], &["shipping", "city"], &["shipping", "country"]];
        let path = |parts: &[&str]| ColumnPath::new(parts.iter().map(|part| (*part).to_owned()).collect());
        let row_properties = few.iter().fold(plain(), |builder, parts| builder.set_column_dictionary_enabled(path(parts), true));
        let key_properties = plain().set_encoding(Encoding::DELTA_BINARY_PACKED);
        Self { rows, keys, row_properties: row_properties.build(), key_properties: key_properties.build() }
    }

    /// The data file, unless it has no rows, and the file of equality deletes, sorted: every key of the batch replaces an older row.
    pub(crate) fn files(&self, batch: &RecordBatch, deleted: &[bool]) -> Result<Vec<Vec<u8>>, ParquetError> {
        let keys = batch.column(0).as_primitive::<Int64Type>();
        let (last, mut touched) = last_of_each(keys);
        let kept: BooleanArray = last.iter().zip(deleted).map(|(last, deleted)| Some(*last && !deleted)).collect();
        let rows = filter_record_batch(batch, &kept)?;
        let rows = RecordBatch::try_new(self.rows.clone(), rows.columns().to_vec())?;
        touched.sort_unstable();
        let touched = RecordBatch::try_new(self.keys.clone(), vec![Arc::new(Int64Array::from(touched))])?;
        let mut files = Vec::with_capacity(2);
        if rows.num_rows() > 0 {
            files.push(encode(&rows, &self.row_properties)?);
        }
        files.push(encode(&touched, &self.key_properties)?);
        Ok(files)
    }
}

fn last_of_each(keys: &Int64Array) -> (Vec<bool>, Vec<i64>) {
    let mut seen = HashSet::with_capacity(keys.len());
    let mut last: Vec<bool> = keys.values().iter().rev().map(|key| seen.insert(*key)).collect();
    last.reverse();
    (last, seen.into_iter().collect())
}

fn encode(batch: &RecordBatch, properties: &WriterProperties) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.clone()))?;
    writer.write(batch)?;
    writer.into_inner()
}
