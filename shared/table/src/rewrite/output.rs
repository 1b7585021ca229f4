//! Writing the rows of one partition into files of about a target size, with memory for one row group.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use iceberg::io::{FileIO, FileWrite};
use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, Schema, Struct};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::ParquetMetaData;
use sluice_model::IdSource;
use uuid::Uuid;

use crate::TableError;
use crate::delta::SpecFile;
use crate::metrics::{Metrics, MetricsLimit};
use crate::parquet_file::{Encoder, fill};

/// Rows are gathered up to so many before they are encoded: small files give small batches, and joining large ones costs more than it saves.
const GATHERED_ROWS: usize = 4_096;
/// No more rows are encoded before it is looked how large the file is.
const STEP_ROWS: usize = 16_384;
/// A row group is finished when its encoded pages take so much memory.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// What all files of a group have in common.
pub(super) struct OutputStyle {
    pub(super) file_io: FileIO,
    /// Where the files go, the partition's folder included.
    pub(super) folder: String,
    pub(super) spec_id: i32,
    pub(super) partition: Struct,
    /// The table's.
    pub(super) schema: Schema,
    /// Of the table's columns, and after them those of row lineage if any.
    pub(super) encoder: Encoder,
    pub(super) limit: MetricsLimit,
    /// The order that the rows come in, if any.
    pub(super) sort_order_id: Option<i32>,
    pub(super) target_bytes: u64,
}

/// Takes rows, gives files.
pub(super) struct Output<'a> {
    style: &'a OutputStyle,
    ids: &'a dyn IdSource,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    open: Option<OpenFile>,
    files: Vec<SpecFile>,
}

struct OpenFile {
    path: String,
    writer: ArrowWriter<Vec<u8>>,
    stored: Box<dyn FileWrite>,
    metrics: Metrics,
    rows: u64,
    bytes: u64,
}

impl<'a> Output<'a> {
    pub(super) const fn new(style: &'a OutputStyle, ids: &'a dyn IdSource) -> Self {
        Self { style, ids, waiting: Vec::new(), waiting_rows: 0, open: None, files: Vec::new() }
    }

    pub(super) const fn schema(&self) -> &'a SchemaRef {
        &self.style.encoder.arrow
    }

    /// Adds rows, in the schema of the encoder.
    pub(super) async fn push(&mut self, rows: RecordBatch) -> Result<(), TableError> {
        self.waiting_rows += rows.num_rows();
        self.waiting.push(rows);
        if self.waiting_rows >= GATHERED_ROWS { self.write_waiting().await } else { Ok(()) }
    }

    /// The files, once all rows are in.
    pub(super) async fn finish(mut self) -> Result<Vec<SpecFile>, TableError> {
        self.write_waiting().await?;
        self.close().await?;
        Ok(self.files)
    }

    async fn write_waiting(&mut self) -> Result<(), TableError> {
        let rows = concat_batches(self.schema(), &self.waiting).map_err(TableError::arrow("joining rows"))?;
        self.waiting.clear();
        self.waiting_rows = 0;
        let mut start = 0;
        while start < rows.num_rows() {
            let step = rows.slice(start, STEP_ROWS.min(rows.num_rows() - start));
            start += step.num_rows();
            self.write(&step).await?;
        }
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<(), TableError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => OpenFile::create(self.style, rows, self.ids.next_u128()).await?,
        };
        let size = open.write(rows, self.style).await?;
        self.open = Some(open);
        if size >= self.style.target_bytes { self.close().await } else { Ok(()) }
    }

    async fn close(&mut self) -> Result<(), TableError> {
        if let Some(open) = self.open.take() {
            self.files.push(open.close(self.style).await?);
        }
        Ok(())
    }
}

impl OpenFile {
    async fn create(style: &OutputStyle, sample: &RecordBatch, id: u128) -> Result<Self, TableError> {
        let path = format!("{}/{}.parquet", style.folder, Uuid::from_u128(id));
        let wrong = || TableError::iceberg(format!("writing {path}"));
        let stored = style.file_io.new_output(&path).map_err(wrong())?.writer().await.map_err(wrong())?;
        Ok(Self { writer: style.encoder.large_file(sample)?, stored, metrics: Metrics::default(), rows: 0, bytes: 0, path })
    }

    /// Gives about how large the file is now.
    async fn write(&mut self, rows: &RecordBatch, style: &OutputStyle) -> Result<u64, TableError> {
        let wrong = || TableError::parquet("writing a Parquet file");
        self.metrics.add_all(Metrics::measure(rows, &style.schema, style.limit)?);
        self.rows += rows.num_rows() as u64;
        self.writer.write(rows).map_err(wrong())?;
        if self.writer.in_progress_size() >= ROW_GROUP_BYTES {
            self.writer.flush().map_err(wrong())?;
        }
        self.store().await?;
        Ok(self.bytes + self.writer.in_progress_size() as u64)
    }

    /// Hands over what is encoded.
    async fn store(&mut self) -> Result<(), TableError> {
        let encoded = std::mem::take(self.writer.inner_mut());
        self.bytes += encoded.len() as u64;
        if encoded.is_empty() {
            return Ok(());
        }
        self.stored.write(encoded.into()).await.map_err(TableError::iceberg(format!("writing {}", self.path)))
    }

    async fn close(mut self, style: &OutputStyle) -> Result<SpecFile, TableError> {
        let metadata = self.writer.finish().map_err(TableError::parquet("writing a Parquet file"))?;
        self.store().await?;
        self.stored.close().await.map_err(TableError::iceberg(format!("writing {}", self.path)))?;
        check_written(&self, &metadata)?;
        let mut builder = DataFileBuilder::default();
        builder.content(DataContentType::Data).file_path(self.path.clone()).file_format(DataFileFormat::Parquet);
        builder.partition(style.partition.clone()).partition_spec_id(style.spec_id);
        if let Some(id) = style.sort_order_id {
            builder.sort_order_id(id);
        }
        fill(&mut builder, &metadata, (self.bytes, self.rows));
        self.metrics.fill(&mut builder);
        let file = builder.build().map_err(|error| TableError::Invalid(format!("describing {}: {error}", self.path)))?;
        Ok(SpecFile { spec_id: style.spec_id, file })
    }
}

/// What the file's own footer counted must be what went in: rows, and the nulls of each column.
fn check_written(open: &OpenFile, metadata: &ParquetMetaData) -> Result<(), TableError> {
    let wrong = |what: String| Err(TableError::Invalid(format!("{}: {what}; nothing is committed", open.path)));
    let written = metadata.file_metadata().num_rows();
    if written.cast_unsigned() != open.rows {
        return wrong(format!("{} rows went in and {written} were written", open.rows));
    }
    for (number, column) in metadata.file_metadata().schema_descr().columns().iter().enumerate() {
        let info = column.self_type().get_basic_info();
        let counted =
            Some(info).filter(|info| info.has_id() && column.max_rep_level() == 0).and_then(|info| open.metrics.nulls_of(info.id()));
        let groups = metadata.row_groups().iter().map(|group| group.column(number).statistics()?.null_count_opt());
        let written: Option<u64> = groups.sum();
        if let (Some(counted), Some(written)) = (counted, written)
            && counted != written
        {
            return wrong(format!("the column `{}` has {counted} nulls and {written} were written", column.path()));
        }
    }
    Ok(())
}
