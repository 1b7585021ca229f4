//! Opening Parquet files: small ones whole, large ones row group by row group and only the columns that are asked for, so that memory does not grow with the file.

use std::collections::HashSet;
use std::ops::Range;

use arrow_array::RecordBatch;
use bytes::Bytes;
use iceberg::io::FileRead;
use iceberg::spec::{DataFile, DataFileFormat};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;

use super::ranges;
use crate::arrow::field_id;
use crate::{TableError, TableVersion};

const BATCH_ROWS: usize = 8_192;
/// Files up to so many bytes are read in one request.
const WHOLE_BYTES: u64 = 8 << 20;

/// The rows of a file, in order.
pub(crate) struct Rows {
    path: String,
    input: Input,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// Row groups that are not begun.
    groups: Range<usize>,
    reader: Option<ParquetRecordBatchReader>,
}

enum Input {
    Whole(Bytes),
    Parts(Box<dyn FileRead>),
}

/// The rows of a file, in order, with only the top-level columns in `ids`.
pub(crate) async fn open(version: &TableVersion, file: &DataFile, ids: &HashSet<i32>) -> Result<Rows, TableError> {
    let path = file.file_path().to_owned();
    if file.file_format() != DataFileFormat::Parquet {
        return Err(TableError::Unsupported(format!("reading {path}, a file of the format {}", file.file_format())));
    }
    let wrong = || TableError::iceberg(format!("reading {path}"));
    let found = version.file_io.new_input(&path).map_err(wrong())?;
    // An Arrow schema in the file may ask for dictionaries and views; the Parquet schema tells all that Iceberg needs.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let (input, metadata) = if file.file_size_in_bytes() <= WHOLE_BYTES {
        let bytes = found.read().await.map_err(wrong())?;
        let metadata = ArrowReaderMetadata::load(&bytes, options);
        (Input::Whole(bytes), metadata)
    } else {
        let reader = found.reader().await.map_err(wrong())?;
        let footer = ranges::footer(reader.as_ref(), file.file_size_in_bytes()).await.map_err(wrong())?;
        (Input::Parts(reader), ArrowReaderMetadata::load(&footer, options))
    };
    let metadata = metadata.map_err(TableError::parquet(format!("reading {path}")))?;
    let mask = mask(&metadata, (&path, ids))?;
    let groups = 0..metadata.metadata().num_row_groups();
    Ok(Rows { path, input, metadata, mask, groups, reader: None })
}

fn mask(metadata: &ArrowReaderMetadata, (path, ids): (&str, &HashSet<i32>)) -> Result<ProjectionMask, TableError> {
    let fields = metadata.schema().fields();
    if !fields.is_empty() && fields.iter().all(|field| field_id(field).is_none()) {
        return Err(TableError::Unsupported(format!("{path} has no field ids (an imported file that needs a name mapping)")));
    }
    let positions = fields.iter().enumerate().filter(|(_, field)| field_id(field).is_some_and(|id| ids.contains(&id)));
    let roots: Vec<usize> = positions.map(|(position, _)| position).collect();
    Ok(ProjectionMask::roots(metadata.parquet_schema(), roots))
}

impl Rows {
    /// The next rows, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            if let Some(batch) = self.reader.as_mut().and_then(Iterator::next) {
                return batch.map(Some).map_err(TableError::arrow(format!("reading {}", self.path)));
            }
            self.reader = self.next_reader().await?;
            if self.reader.is_none() {
                return Ok(None);
            }
        }
    }

    async fn next_reader(&mut self) -> Result<Option<ParquetRecordBatchReader>, TableError> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        let group = self.groups.start;
        let wanted = self.columns_of(group);
        let reader = match &self.input {
            Input::Whole(bytes) => {
                self.groups = 0..0;
                self.build(ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), self.metadata.clone()))
            }
            Input::Parts(reader) => {
                self.groups.start += 1;
                let parts = ranges::read(reader.as_ref(), wanted).await;
                let parts = parts.map_err(TableError::iceberg(format!("reading {}", self.path)))?;
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(parts, self.metadata.clone());
                self.build(builder.with_row_groups(vec![group]))
            }
        };
        reader.map(Some)
    }

    fn build<T: ChunkReader + 'static>(&self, builder: ParquetRecordBatchReaderBuilder<T>) -> Result<ParquetRecordBatchReader, TableError> {
        let reader = builder.with_projection(self.mask.clone()).with_batch_size(BATCH_ROWS).build();
        reader.map_err(TableError::parquet(format!("reading {}", self.path)))
    }

    /// Where the wanted columns of a row group are.
    fn columns_of(&self, group: usize) -> Vec<Range<u64>> {
        let columns = self.metadata.metadata().row_group(group).columns().iter().enumerate();
        let wanted = columns.filter(|(leaf, _)| self.mask.leaf_included(*leaf));
        let range = |(start, length)| start..start + length;
        wanted.map(|(_, column)| range(column.byte_range())).collect()
    }
}
