//! How a file is written: its codec, encodings and statistics, as the table's properties say and as the rows at hand make sensible.
//!
//! A dictionary pays only where values repeat: on other columns it costs a third more time and makes larger files. A small file is read
//! soon and compacted soon: it gets the codec without set-up costs, and no index of pages that it does not have.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_row::{RowConverter, SortField};
use arrow_select::take::take;
use hashbrown::HashSet;
use parquet::basic::{Compression, Encoding, Type as PhysicalType, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use crate::TableError;

const CODEC: &str = "write.parquet.compression-codec";
const LEVEL: &str = "write.parquet.compression-level";
const ROW_GROUP: &str = "write.parquet.row-group-size-bytes";
/// Iceberg's default, 128 MiB.
const DEFAULT_ROW_GROUP: usize = 128 << 20;
/// Rows of less memory make a small file.
const SMALL_FILE_BYTES: usize = 256 << 10;
/// With fewer rows a dictionary does not pay.
const DICTIONARY_ROWS: usize = 512;
/// So many rows are looked at to tell whether values repeat.
const SAMPLE_ROWS: usize = 256;
/// Values repeat when so many of a hundred in the sample are different, or fewer.
const DICTIONARY_PERCENT: usize = 40;
/// With fewer rows each column has one page, and an index of pages says nothing.
const ONE_PAGE_ROWS: usize = 20_000;

/// What the table's properties say.
#[derive(Debug, Clone)]
pub(crate) struct FileStyle {
    /// `None` where they leave it open.
    codec: Option<Compression>,
    row_group_bytes: usize,
}

impl FileStyle {
    pub(crate) fn of(properties: &HashMap<String, String>) -> Result<Self, TableError> {
        let group = properties.get(ROW_GROUP).and_then(|bytes| bytes.parse().ok()).filter(|bytes| *bytes > 0);
        Ok(Self { codec: codec(properties)?, row_group_bytes: group.unwrap_or(DEFAULT_ROW_GROUP) })
    }

    /// The properties of a file of these rows.
    pub(crate) fn properties(&self, rows: &RecordBatch, schema: &SchemaDescriptor) -> WriterProperties {
        let small = rows.get_array_memory_size() < SMALL_FILE_BYTES;
        let codec = self.codec.unwrap_or(if small { Compression::SNAPPY } else { Compression::ZSTD(ZstdLevel::default()) });
        let mut builder = WriterProperties::builder()
            .set_compression(codec)
            .set_max_row_group_bytes(Some(self.row_group_bytes))
            .set_dictionary_enabled(rows.num_rows() >= DICTIONARY_ROWS);
        if rows.num_rows() < ONE_PAGE_ROWS {
            builder = builder.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(true);
        }
        if rows.num_rows() >= DICTIONARY_ROWS {
            builder = without_dictionaries(builder, rows, schema);
        }
        builder.build()
    }

    /// The properties of a file with many more rows than these.
    pub(crate) fn large_properties(&self, sample: &RecordBatch, schema: &SchemaDescriptor) -> WriterProperties {
        let builder = WriterProperties::builder()
            .set_compression(self.codec.unwrap_or(Compression::ZSTD(ZstdLevel::default())))
            .set_max_row_group_bytes(Some(self.row_group_bytes));
        without_dictionaries(builder, sample, schema).build()
    }

    /// The properties of a file of sorted keys.
    pub(crate) fn key_properties(&self, keys: &RecordBatch, schema: &SchemaDescriptor) -> WriterProperties {
        let codec = self.codec.unwrap_or(Compression::SNAPPY);
        let mut builder = WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false);
        builder = builder.set_max_row_group_bytes(Some(self.row_group_bytes));
        if keys.num_rows() < ONE_PAGE_ROWS {
            builder = builder.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(true);
        }
        let whole_numbers = schema.columns().iter().filter(|column| is_whole_number(column));
        whole_numbers
            .fold(builder, |builder, column| builder.set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED))
            .build()
    }
}

fn is_whole_number(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64)
}

fn codec(properties: &HashMap<String, String>) -> Result<Option<Compression>, TableError> {
    let codec = properties.get(CODEC).map(|codec| codec.to_ascii_lowercase());
    let level = properties.get(LEVEL).and_then(|level| level.parse().ok());
    match codec.as_deref() {
        None if level.is_none() => Ok(None),
        None | Some("zstd") => {
            let level = ZstdLevel::try_new(level.unwrap_or(1)).map_err(TableError::parquet(format!("the property {LEVEL}")))?;
            Ok(Some(Compression::ZSTD(level)))
        }
        Some("snappy") => Ok(Some(Compression::SNAPPY)),
        Some("uncompressed" | "none") => Ok(Some(Compression::UNCOMPRESSED)),
        Some(other) => Err(TableError::Unsupported(format!("{CODEC} = {other}; choose zstd, snappy or uncompressed"))),
    }
}

/// Turns off the dictionaries of columns whose values mostly differ. Values inside lists and maps keep theirs.
fn without_dictionaries(builder: WriterPropertiesBuilder, rows: &RecordBatch, schema: &SchemaDescriptor) -> WriterPropertiesBuilder {
    let step = (rows.num_rows() / SAMPLE_ROWS).max(1);
    let sample: UInt32Array = (0..rows.num_rows() as u32).step_by(step).take(SAMPLE_ROWS).collect::<Vec<u32>>().into();
    let mut leaves: Vec<Option<bool>> = Vec::with_capacity(schema.num_columns());
    rows.columns().iter().for_each(|column| collect_leaves(column, &sample, &mut leaves));
    // Were the leaves counted otherwise than Parquet counts them, nothing would be known of any.
    if leaves.len() != schema.num_columns() {
        return builder;
    }
    let distinct = schema.columns().iter().zip(leaves).filter(|(_, repeats)| *repeats == Some(false));
    distinct.fold(builder, |builder, (column, _)| builder.set_column_dictionary_enabled(column.path().clone(), false))
}

/// Whether the values of each leaf repeat, in the order of Parquet's columns; `None` where that is not looked at.
fn collect_leaves(column: &ArrayRef, sample: &UInt32Array, leaves: &mut Vec<Option<bool>>) {
    use arrow_schema::DataType;
    match column.data_type() {
        DataType::Struct(_) => column.as_struct().columns().iter().for_each(|child| collect_leaves(child, sample, leaves)),
        DataType::List(_) => skip_leaves(column.as_list::<i32>().values(), leaves),
        DataType::Map(..) => column.as_map().entries().columns().iter().for_each(|child| skip_leaves(child, leaves)),
        _ => leaves.push(repeats(column, sample)),
    }
}

fn skip_leaves(column: &ArrayRef, leaves: &mut Vec<Option<bool>>) {
    let empty = UInt32Array::from(Vec::<u32>::new());
    let start = leaves.len();
    collect_leaves(column, &empty, leaves);
    leaves[start..].fill(None);
}

fn repeats(column: &ArrayRef, sample: &UInt32Array) -> Option<bool> {
    let values = take(column, sample, None).ok()?;
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())]).ok()?;
    let present = values.len() - values.null_count();
    let rows = converter.convert_columns(&[values]).ok()?;
    let distinct: HashSet<&[u8]> = rows.iter().map(|row| row.data()).collect();
    Some(distinct.len() * 100 <= present * DICTIONARY_PERCENT)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use sluice_model::{Column, ColumnType, TableSchema};

    use super::*;
    use crate::parquet_file::{Encoder, FileRows};

    fn encoder() -> Encoder {
        let columns = vec![Column::optional(1, "id", ColumnType::Long), Column::optional(2, "status", ColumnType::String)];
        let schema = TableSchema { schema_id: 0, columns, identifier_ids: vec![], last_column_id: 2 };
        Encoder::new(&crate::schema::to_iceberg(&schema).unwrap(), &HashMap::new(), FileRows::Rows).unwrap()
    }

    fn rows(encoder: &Encoder, count: i64) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
        let status: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|n| if n % 3 == 0 { "paid" } else { "sent" })));
        RecordBatch::try_new(encoder.arrow.clone(), vec![ids, status]).unwrap()
    }

    #[test]
    fn only_columns_whose_values_repeat_have_a_dictionary() {
        let encoder = encoder();
        for (count, expected) in [(100, [false, false]), (20_000, [false, true])] {
            let files = encoder.encode(&rows(&encoder, count), 1 << 30).unwrap();
            let chunks = files[0].metadata.row_group(0).columns();
            assert_eq!([0, 1].map(|at: usize| chunks[at].dictionary_page_offset().is_some()), expected, "{count}");
        }
    }

    #[test]
    fn small_files_are_written_with_the_cheap_codec_unless_the_table_says_otherwise() {
        let encoder = encoder();
        let codec = |count| encoder.encode(&rows(&encoder, count), 1 << 30).unwrap()[0].metadata.row_group(0).column(0).compression();
        assert_eq!(codec(100), Compression::SNAPPY);
        assert!(matches!(codec(50_000), Compression::ZSTD(_)));
        let properties = HashMap::from([(CODEC.to_owned(), "zstd".to_owned())]);
        assert!(matches!(FileStyle::of(&properties).unwrap().codec, Some(Compression::ZSTD(_))));
        assert!(FileStyle::of(&HashMap::from([(CODEC.to_owned(), "lzo".to_owned())])).is_err());
    }
}
