//! Rows in the table's sort order with bounded memory: sorted runs, kept compressed, and a merge of them.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_row::Rows;
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave_record_batch;
use bytes::Bytes;
use iceberg::spec::SortOrder;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::output::{Output, OutputStyle};
use crate::TableError;
use crate::reader::project_batch;
use crate::sorting::{by_order, order_keys};

/// Rows of each run that are decoded at a time.
const MERGE_ROWS: usize = 4_096;
/// Rows of one merged batch.
const OUT_ROWS: usize = 8_192;

/// Gathers rows and gives them sorted.
pub(super) struct Sorter<'a> {
    style: &'a OutputStyle,
    order: Arc<SortOrder>,
    memory_bytes: usize,
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
    runs: Vec<Bytes>,
}

impl<'a> Sorter<'a> {
    /// A sorter that holds about `memory_bytes` of rows at a time, and the runs before compressed.
    pub(super) const fn new(style: &'a OutputStyle, order: Arc<SortOrder>, memory_bytes: usize) -> Self {
        Self { style, order, memory_bytes, waiting: Vec::new(), waiting_bytes: 0, runs: Vec::new() }
    }

    pub(super) fn push(&mut self, rows: RecordBatch) -> Result<(), TableError> {
        self.waiting_bytes += rows.get_array_memory_size();
        self.waiting.push(rows);
        if self.waiting_bytes >= self.memory_bytes { self.end_run() } else { Ok(()) }
    }

    fn sorted(&mut self) -> Result<RecordBatch, TableError> {
        let rows = concat_batches(&self.style.encoder.arrow, &self.waiting).map_err(TableError::arrow("joining rows"))?;
        self.waiting.clear();
        self.waiting_bytes = 0;
        by_order(&rows, &self.order)
    }

    fn end_run(&mut self) -> Result<(), TableError> {
        let rows = self.sorted()?;
        let wrong = || TableError::parquet("keeping a sorted run");
        let mut writer = self.style.encoder.large_file(&rows.slice(0, rows.num_rows().min(MERGE_ROWS)))?;
        writer.write(&rows).map_err(wrong())?;
        self.runs.push(writer.into_inner().map_err(wrong())?.into());
        Ok(())
    }

    /// Gives all rows to `output`, in order.
    pub(super) async fn finish(mut self, output: &mut Output<'_>) -> Result<(), TableError> {
        if self.runs.is_empty() {
            return output.push(self.sorted()?).await;
        }
        if !self.waiting.is_empty() {
            self.end_run()?;
        }
        let mut runs = self.runs.drain(..).map(|run| Run::open(run, self.style, &self.order)).collect::<Result<Vec<_>, _>>()?;
        while let Some(rows) = merge(&mut runs)? {
            output.push(rows).await?;
        }
        Ok(())
    }
}

/// One sorted run, read from its beginning.
struct Run<'a> {
    reader: ParquetRecordBatchReader,
    style: &'a OutputStyle,
    order: &'a SortOrder,
    rows: RecordBatch,
    keys: Option<Rows>,
    at: usize,
}

impl<'a> Run<'a> {
    fn open(bytes: Bytes, style: &'a OutputStyle, order: &'a SortOrder) -> Result<Self, TableError> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options);
        let reader =
            builder.and_then(|builder| builder.with_batch_size(MERGE_ROWS).build()).map_err(TableError::parquet("merging sorted runs"))?;
        let rows = RecordBatch::new_empty(style.encoder.arrow.clone());
        let mut run = Self { reader, style, order, rows, keys: None, at: 0 };
        run.next_batch()?;
        Ok(run)
    }

    fn next_batch(&mut self) -> Result<(), TableError> {
        self.at = 0;
        self.keys = None;
        for rows in self.reader.by_ref() {
            let rows = rows.map_err(TableError::arrow("merging sorted runs"))?;
            if rows.num_rows() > 0 {
                self.rows = project_batch(&rows, &self.style.encoder.arrow)?;
                self.keys = Some(order_keys(&self.rows, self.order)?);
                return Ok(());
            }
        }
        Ok(())
    }

    fn key(&self) -> Option<arrow_row::Row<'_>> {
        self.keys.as_ref().map(|keys| keys.row(self.at))
    }
}

/// The next rows of all runs in order: until one run's batch is used up, or enough are together. Equal rows come in the order of the runs.
fn merge(runs: &mut [Run<'_>]) -> Result<Option<RecordBatch>, TableError> {
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut used_up = None;
    while taken.len() < OUT_ROWS && used_up.is_none() {
        let keys = runs.iter().enumerate().filter_map(|(number, run)| Some((run.key()?, number)));
        let Some(least) = keys.min().map(|(_, number)| number) else { break };
        let run = &mut runs[least];
        taken.push((least, run.at));
        run.at += 1;
        used_up = (run.at == run.rows.num_rows()).then_some(least);
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let batches: Vec<&RecordBatch> = runs.iter().map(|run| &run.rows).collect();
    let merged = interleave_record_batch(&batches, &taken).map_err(TableError::arrow("merging sorted runs"))?;
    if let Some(number) = used_up {
        runs[number].next_batch()?;
    }
    Ok(Some(merged))
}
