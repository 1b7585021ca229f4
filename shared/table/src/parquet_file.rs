//! Parquet files: rows to bytes, split at a target size, with Iceberg's field ids and logical types.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use iceberg::spec::{DataFileBuilder, PrimitiveType, Schema, Type as IcebergType};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::LogicalType;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::TableError;
use crate::arrow::arrow_schema_of;
use crate::file_style::FileStyle;

/// After so many rows it is looked whether the file has reached its size.
const ROWS_A_STEP: usize = 16_384;

/// A finished file, not stored yet.
pub(crate) struct EncodedFile {
    pub(crate) bytes: Bytes,
    pub(crate) metadata: ParquetMetaData,
    /// The rows in it.
    pub(crate) rows: RecordBatch,
}

/// Writes rows of one schema.
pub(crate) struct Encoder {
    pub(crate) arrow: SchemaRef,
    parquet: SchemaDescriptor,
    style: FileStyle,
    content: FileRows,
}

/// What the rows of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRows {
    /// Rows of the table.
    Rows,
    /// Keys of an equality delete, sorted.
    SortedKeys,
}

impl Encoder {
    /// An encoder for rows of `schema`, as the table's properties want it.
    pub(crate) fn new(schema: &Schema, properties: &HashMap<String, String>, content: FileRows) -> Result<Self, TableError> {
        let arrow = arrow_schema_of(schema)?;
        let parquet = parquet_schema(&arrow, schema)?;
        Ok(Self { arrow, parquet, style: FileStyle::of(properties)?, content })
    }

    /// The rows as one or more files of about `target_bytes`.
    pub(crate) fn encode(&self, rows: &RecordBatch, target_bytes: usize) -> Result<Vec<EncodedFile>, TableError> {
        let mut files = Vec::new();
        let mut start = 0;
        while start < rows.num_rows() {
            let file = self.encode_from(rows, start, target_bytes)?;
            start += file.rows.num_rows();
            files.push(file);
        }
        Ok(files)
    }

    fn properties(&self, rows: &RecordBatch) -> WriterProperties {
        match self.content {
            FileRows::Rows => self.style.properties(rows, &self.parquet),
            FileRows::SortedKeys => self.style.key_properties(rows, &self.parquet),
        }
    }

    /// A writer of one large file that begins with the rows of `sample`.
    pub(crate) fn large_file(&self, sample: &RecordBatch) -> Result<ArrowWriter<Vec<u8>>, TableError> {
        let options = ArrowWriterOptions::new()
            .with_properties(self.style.large_properties(sample, &self.parquet))
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(self.parquet.clone());
        let writer = ArrowWriter::try_new_with_options(Vec::new(), self.arrow.clone(), options);
        writer.map_err(TableError::parquet("writing a Parquet file"))
    }

    /// One file of the rows from `start` on, at least one step.
    fn encode_from(&self, rows: &RecordBatch, start: usize, target_bytes: usize) -> Result<EncodedFile, TableError> {
        let wrong = || TableError::parquet("writing a Parquet file");
        // The Arrow schema is left out of the file: it says nothing that the Parquet schema does not, and is larger.
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties(&rows.slice(start, rows.num_rows() - start)))
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(self.parquet.clone());
        let mut buffer = Vec::new();
        let mut writer = ArrowWriter::try_new_with_options(&mut buffer, self.arrow.clone(), options).map_err(wrong())?;
        let mut end = start;
        while end < rows.num_rows() && (end == start || writer.bytes_written() + writer.in_progress_size() < target_bytes) {
            let step = ROWS_A_STEP.min(rows.num_rows() - end);
            writer.write(&rows.slice(end, step)).map_err(wrong())?;
            end += step;
        }
        let metadata = writer.close().map_err(wrong())?;
        Ok(EncodedFile { bytes: buffer.into(), metadata, rows: rows.slice(start, end - start) })
    }
}

impl EncodedFile {
    /// What the file itself tells.
    pub(crate) fn fill(&self, file: &mut DataFileBuilder) {
        fill(file, &self.metadata, (self.bytes.len() as u64, self.rows.num_rows() as u64));
    }
}

/// What a file itself tells: sizes, rows and where its row groups begin.
pub(crate) fn fill(file: &mut DataFileBuilder, metadata: &ParquetMetaData, (bytes, rows): (u64, u64)) {
    let mut sizes: HashMap<i32, u64> = HashMap::new();
    let mut offsets = Vec::new();
    for group in metadata.row_groups() {
        offsets.extend(group.file_offset().or_else(|| group.columns().first().map(|column| column.byte_range().0.cast_signed())));
        for column in group.columns() {
            let info = column.column_descr().self_type().get_basic_info();
            if info.has_id() {
                *sizes.entry(info.id()).or_default() += column.compressed_size().max(0).cast_unsigned();
            }
        }
    }
    file.file_size_in_bytes(bytes).record_count(rows);
    file.column_sizes(sizes).split_offsets(Some(offsets));
}

/// Arrow cannot tell a uuid from 16 bytes, Parquet can and must.
fn parquet_schema(arrow: &SchemaRef, schema: &Schema) -> Result<SchemaDescriptor, TableError> {
    let fields = schema.field_id_to_fields().values();
    let uuids: HashSet<i32> =
        fields.filter(|field| field.field_type.as_ref() == &IcebergType::Primitive(PrimitiveType::Uuid)).map(|field| field.id).collect();
    let wrong = || TableError::parquet("the schema has no Parquet form");
    let plain = ArrowSchemaConverter::new().schema_root("table").convert(arrow).map_err(wrong())?;
    if uuids.is_empty() {
        return Ok(plain);
    }
    let root = with_uuids(&plain.root_schema_ptr(), &uuids).map_err(wrong())?;
    Ok(SchemaDescriptor::new(root))
}

fn with_uuids(node: &TypePtr, uuids: &HashSet<i32>) -> parquet::errors::Result<TypePtr> {
    let info = node.get_basic_info();
    match node.as_ref() {
        Type::PrimitiveType { physical_type, type_length, .. } if info.has_id() && uuids.contains(&info.id()) => {
            let uuid = Type::primitive_type_builder(info.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_length(*type_length)
                .with_logical_type(Some(LogicalType::Uuid))
                .with_id(Some(info.id()));
            uuid.build().map(Arc::new)
        }
        Type::PrimitiveType { .. } => Ok(Arc::clone(node)),
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(|field| with_uuids(field, uuids)).collect::<parquet::errors::Result<Vec<TypePtr>>>()?;
            let mut group = Type::group_type_builder(info.name())
                .with_fields(fields)
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(info.has_id().then(|| info.id()));
            if info.has_repetition() {
                group = group.with_repetition(info.repetition());
            }
            group.build().map(Arc::new)
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, FixedSizeBinaryArray, Int64Array, TimestampMicrosecondArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use sluice_model::{Column, ColumnType, TableSchema};

    use super::*;

    fn encoder(columns: Vec<Column>) -> Encoder {
        let schema = TableSchema { schema_id: 0, columns, identifier_ids: vec![], last_column_id: 9 };
        Encoder::new(&crate::schema::to_iceberg(&schema).unwrap(), &HashMap::new(), FileRows::Rows).unwrap()
    }

    #[test]
    fn logical_types_and_field_ids_are_in_the_file() {
        let encoder = encoder(vec![Column::optional(3, "u", ColumnType::Uuid), Column::optional(5, "t", ColumnType::TimestampTz)]);
        let uuids: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1_u8; 16]].iter()).unwrap());
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("+00:00"));
        let rows = RecordBatch::try_new(encoder.arrow.clone(), vec![uuids, times]).unwrap();
        let files = encoder.encode(&rows, 1 << 20).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(files[0].bytes.clone()).unwrap();
        let columns = reader.parquet_schema().columns();
        let logical: Vec<String> = columns.iter().map(|column| format!("{:?}", column.logical_type_ref())).collect();
        assert_eq!(logical[0], "Some(Uuid)");
        assert!(logical[1].contains("is_adjusted_to_u_t_c: true"), "{}", logical[1]);
        assert_eq!(columns[1].self_type().get_basic_info().id(), 5);
    }

    #[test]
    fn files_are_split_at_the_target_size() {
        let encoder = encoder(vec![Column::optional(1, "n", ColumnType::Long)]);
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..100_000_i64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()))));
        let rows = RecordBatch::try_new(encoder.arrow.clone(), vec![numbers]).unwrap();
        let files = encoder.encode(&rows, 200_000).unwrap();
        assert!(files.len() > 2);
        assert_eq!(files.iter().map(|file| file.rows.num_rows()).sum::<usize>(), 100_000);
        let mut builder = DataFileBuilder::default();
        files[0].fill(&mut builder);
    }
}
