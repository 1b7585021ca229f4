//! Rewriting the rows of some data files of one partition.

use std::collections::{HashMap, HashSet};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use iceberg::spec::{DataContentType, Literal, PrimitiveLiteral, PrimitiveType, SortOrder, Struct, StructType, Type};
use sluice_model::IdSource;
use uuid::Uuid;

use super::alive::{self, Alive};
use super::file_set::FileSet;
use super::files::{Scoped, TableFiles};
use super::lineage::{Lineage, schema_of_copies};
use super::output::{Output, OutputStyle};
use super::sorted::Sorter;
use super::unique::{self, KeyProof, Keys};
use crate::arrow::field_id;
use crate::delta::SpecFile;
use crate::manifests::check_format;
use crate::metrics::MetricsLimit;
use crate::parquet_file::{Encoder, FileRows};
use crate::partition_path::partition_path;
use crate::prepare::data_folder;
use crate::reader::deletes::widened;
use crate::reader::{check_defaults, project_batch, source};
use crate::{TableError, TableVersion};

/// How a group is rewritten.
#[derive(Clone, Copy)]
pub struct RewriteOptions<'a> {
    /// Names of files.
    pub ids: &'a dyn IdSource,
    /// A file is finished when it has about so many bytes.
    pub target_file_bytes: u64,
    /// About so much memory is used for keys and positions of deletes.
    pub delete_memory_bytes: u64,
    /// About so much memory is used for rows that are being sorted.
    pub sort_memory_bytes: usize,
    /// What is to be proved about keys before the group may be committed.
    pub keys: KeyProof,
}

/// What rewriting a group came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupReport {
    /// Data files read.
    pub files_in: usize,
    /// Data files written.
    pub files_out: usize,
    /// Bytes of the files read.
    pub bytes_in: u64,
    /// Bytes of the files written.
    pub bytes_out: u64,
    /// Rows read.
    pub rows_in: u64,
    /// Rows that deletes took away.
    pub rows_deleted: u64,
    /// Rows written: always those read less those deleted.
    pub rows_out: u64,
    /// Delete files that were applied.
    pub deletes_applied: usize,
    /// Passes over the data files: more than one when the deletes do not fit into their memory.
    pub passes: usize,
    /// The most bytes that keys and positions of deletes took.
    pub delete_peak_bytes: u64,
    /// What is proved about keys.
    pub keys: Keys,
}

/// Data files whose rows stand in new files that no snapshot names yet.
#[derive(Debug, Clone)]
pub struct RewrittenGroup {
    pub(crate) table_uuid: Uuid,
    pub(crate) snapshot_id: i64,
    /// Spec and partition.
    pub(crate) place: (i32, Vec<Option<Literal>>),
    /// By path, with the id of its first row.
    pub(crate) inputs: HashMap<String, Option<i64>>,
    pub(crate) applied: FileSet,
    pub(crate) outputs: Vec<SpecFile>,
    report: GroupReport,
}

impl RewrittenGroup {
    /// What it came to.
    #[must_use]
    pub const fn report(&self) -> GroupReport {
        self.report
    }
}

/// Writes the live rows of the data files at `paths`, which must be of one spec and one partition, into new files of the same spec and partition. The table does
/// not change; files of a group that is never committed are orphans.
///
/// # Errors
/// [`TableError`]: fatal when the files are not those of one partition of the snapshot, cannot be rewritten, or the rows do not add up.
pub async fn rewrite_group(files: &TableFiles, paths: &[String], options: &RewriteOptions<'_>) -> Result<RewrittenGroup, TableError> {
    check_format(&files.version.metadata)?;
    let inputs = inputs(files, paths)?;
    let first = inputs.first().ok_or_else(|| TableError::Invalid("a group without files".to_owned()))?;
    let order = files.version.metadata.default_sort_order().clone();
    let style = style(files, first, (&order, options.target_file_bytes))?;
    let alive = alive::find(files, &inputs, options.delete_memory_bytes).await?;
    let mut output = Output::new(&style, options.ids);
    let sorter = (!order.is_unsorted()).then(|| Sorter::new(&style, order, options.sort_memory_bytes));
    let counted = copy(files, (&inputs, &alive), (&mut output, sorter)).await?;
    let outputs = output.finish().await?;
    let mut report = prove(&inputs, &outputs, (counted, &alive))?;
    let paths: HashSet<String> = paths.iter().cloned().collect();
    let applied = alive.into_applied();
    report.keys = unique::prove((files, &paths), &outputs, (options.keys, options.delete_memory_bytes)).await?;
    Ok(RewrittenGroup {
        table_uuid: files.version.metadata.uuid(),
        snapshot_id: files.snapshot_id(),
        place: (first.entry.spec_id, widened(first.entry.file.partition())),
        inputs: inputs.iter().map(|input| (input.entry.file.file_path().to_owned(), input.entry.first_row_id)).collect(),
        applied,
        outputs,
        report,
    })
}

fn inputs<'a>(files: &'a TableFiles, paths: &[String]) -> Result<Vec<&'a Scoped>, TableError> {
    let data = files.files.iter().filter(|file| file.entry.file.content_type() == DataContentType::Data);
    let by_path: HashMap<&str, &Scoped> = data.map(|file| (file.entry.file.file_path(), file)).collect();
    let mut inputs: Vec<&Scoped> = Vec::with_capacity(paths.len());
    let mut seen = HashSet::new();
    for path in paths {
        let snapshot = files.snapshot_id();
        let file =
            by_path.get(path.as_str()).ok_or_else(|| TableError::Invalid(format!("{path} is no data file of snapshot {snapshot}")))?;
        if !seen.insert(path) || inputs.first().is_some_and(|first| first.scope != file.scope) {
            return Err(TableError::Invalid(format!("{path}: a group holds each file once, all of one partition")));
        }
        files.obstacle(file)?;
        inputs.push(file);
    }
    // The oldest rows first, so that an unsorted table keeps about the order of its writing.
    inputs.sort_by_key(|file| file.entry.sequence_number);
    Ok(inputs)
}

fn style(files: &TableFiles, first: &Scoped, (order, target_bytes): (&SortOrder, u64)) -> Result<OutputStyle, TableError> {
    let TableVersion { metadata, file_io, .. } = &files.version;
    let schema = metadata.current_schema().as_ref().clone();
    let spec_id = first.entry.spec_id;
    let spec = metadata.partition_spec_by_id(spec_id);
    let spec = spec.ok_or_else(|| TableError::Invalid(format!("the table has no partition spec {spec_id}")))?;
    let kind = spec.partition_type(&schema).map_err(TableError::iceberg("the partition spec does not fit the schema"))?;
    let partition = typed(first.entry.file.partition(), &kind);
    let (folder, part) = (data_folder(metadata), partition_path(spec, &kind, &partition));
    let encoder = Encoder::new(&schema_of_copies(metadata)?, metadata.properties(), FileRows::Rows)?;
    check_defaults(metadata, &encoder.arrow)?;
    Ok(OutputStyle {
        file_io: file_io.clone(),
        folder: if part.is_empty() { folder } else { format!("{folder}/{part}") },
        spec_id,
        partition,
        encoder,
        limit: MetricsLimit::of(metadata.properties()),
        sort_order_id: i32::try_from(order.order_id).ok().filter(|_| !order.is_unsorted()),
        target_bytes,
        schema,
    })
}

/// Partition values as their types are now: a file of before a promotion says 5 as an int where the table has longs today.
fn typed(values: &Struct, kind: &StructType) -> Struct {
    let typed = values.iter().zip(kind.fields()).map(|(value, field)| {
        value.map(|value| match (value, field.field_type.as_ref()) {
            (Literal::Primitive(PrimitiveLiteral::Int(value)), Type::Primitive(PrimitiveType::Long)) => Literal::long(i64::from(*value)),
            (Literal::Primitive(PrimitiveLiteral::Float(value)), Type::Primitive(PrimitiveType::Double)) => {
                Literal::double(f64::from(value.0))
            }
            (value, _) => value.clone(),
        })
    });
    Struct::from_iter(typed)
}

/// Rows read and rows left out.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    read: u64,
    deleted: u64,
}

async fn copy(
    files: &TableFiles,
    (inputs, alive): (&[&Scoped], &Alive),
    (output, mut sorter): (&mut Output<'_>, Option<Sorter<'_>>),
) -> Result<Counted, TableError> {
    let columns: HashSet<i32> = output.schema().fields().iter().filter_map(|field| field_id(field)).collect();
    let mut counted = Counted::default();
    for (number, input) in inputs.iter().enumerate() {
        let (left, mut ids, mut position) = (alive.of(number, &input.entry), columns.clone(), 0);
        left.add_ids(&mut ids);
        let lineage = Lineage::of(&input.entry, &files.version.metadata)?;
        let mut reading = source::open(&files.version, &input.entry.file, &ids).await?;
        while let Some(mut rows) = reading.next().await? {
            if let Some(lineage) = &lineage {
                rows = lineage.add(&rows, position)?;
            }
            let kept = left_of(&rows, left.keep(&rows, position)?)?;
            position += rows.num_rows();
            counted.read += rows.num_rows() as u64;
            counted.deleted += (rows.num_rows() - kept.num_rows()) as u64;
            let kept = project_batch(&kept, output.schema())?;
            match &mut sorter {
                Some(sorter) => sorter.push(kept)?,
                None => output.push(kept).await?,
            }
        }
    }
    if let Some(sorter) = sorter {
        sorter.finish(output).await?;
    }
    Ok(counted)
}

fn left_of(rows: &RecordBatch, keep: Option<Vec<bool>>) -> Result<RecordBatch, TableError> {
    match keep {
        Some(keep) => filter_record_batch(rows, &BooleanArray::from(keep)).map_err(TableError::arrow("leaving out deleted rows")),
        None => Ok(rows.clone()),
    }
}

/// Rows in, less rows deleted, are rows out (rule R7), or nothing of it may be committed.
fn prove(inputs: &[&Scoped], outputs: &[SpecFile], (counted, alive): (Counted, &Alive)) -> Result<GroupReport, TableError> {
    let report = GroupReport {
        files_in: inputs.len(),
        files_out: outputs.len(),
        bytes_in: inputs.iter().map(|input| input.entry.file.file_size_in_bytes()).sum(),
        bytes_out: outputs.iter().map(|output| output.file.file_size_in_bytes()).sum(),
        rows_in: inputs.iter().map(|input| input.entry.file.record_count()).sum(),
        rows_deleted: counted.deleted,
        rows_out: outputs.iter().map(|output| output.file.record_count()).sum(),
        deletes_applied: alive.applied.len(),
        passes: alive.passes,
        delete_peak_bytes: alive.peak_bytes,
        keys: Keys::NotAsked,
    };
    if report.rows_in == counted.read && report.rows_in == report.rows_deleted + report.rows_out {
        return Ok(report);
    }
    let read = counted.read;
    Err(TableError::Invalid(format!("the rows do not add up, nothing is committed: {read} rows were read, {report:?}")))
}
