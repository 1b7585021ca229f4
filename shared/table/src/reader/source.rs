//! Opening Parquet files.

use std::collections::HashSet;

use iceberg::spec::{DataFile, DataFileFormat};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::arrow::field_id;
use crate::{TableError, TableVersion};

const BATCH_ROWS: usize = 8_192;

/// The rows of a file, in order, with only the top-level columns in `ids`.
pub(crate) async fn open(version: &TableVersion, file: &DataFile, ids: &HashSet<i32>) -> Result<ParquetRecordBatchReader, TableError> {
    let path = file.file_path();
    if file.file_format() != DataFileFormat::Parquet {
        return Err(TableError::Unsupported(format!("reading {path}, a file of the format {}", file.file_format())));
    }
    let wrong = || TableError::iceberg(format!("reading {path}"));
    let bytes = version.file_io.new_input(path).map_err(wrong())?.read().await.map_err(wrong())?;
    let wrong = || TableError::parquet(format!("reading {path}"));
    // An Arrow schema in the file may ask for dictionaries and views; the Parquet schema tells all that Iceberg needs.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options).map_err(wrong())?;
    let fields = builder.schema().fields();
    if !fields.is_empty() && fields.iter().all(|field| field_id(field).is_none()) {
        return Err(TableError::Unsupported(format!("{path} has no field ids (an imported file that needs a name mapping)")));
    }
    let positions = fields.iter().enumerate().filter(|(_, field)| field_id(field).is_some_and(|id| ids.contains(&id)));
    let roots: Vec<usize> = positions.map(|(position, _)| position).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
    builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(wrong())
}
