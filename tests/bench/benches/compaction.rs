//! Compaction against a hand-written floor on the same files: CPU time of the thread, wall time, peak memory of a process of its own.
//!
//! The floor reads with parquet, looks keys up in one hash map, filters, and writes one file with the settings that Sluice chooses; it knows no table, no field ids and no metrics.
//! Arguments: a word that the case's name must hold. The large case takes minutes and runs only when it is named: `large`. `--profile sluice|floor CASE` runs one path once, for its memory;
//! `--make CASE FOLDER` makes the table only, for others to compact, and says where its metadata is.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use hashbrown::HashMap;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use sluice_bench::clock::{cpu_ns, peak_rss_mb};
use sluice_catalog::memory::MemoryPointers;
use sluice_catalog::pointer::PointerCatalog;
use sluice_catalog::{Services, memory};
use sluice_model::{Column, ColumnType, Deadline, TableName, TableSchema};
use sluice_runtime::{RandomIds, SystemClock};
use sluice_table::arrow::arrow_schema;
use sluice_table::rewrite::{KeyProof, RewriteOptions, RewriteOutcome, TableFiles, commit_rewrite, rewrite_group};
use sluice_table::{
    Catalog, CommitContext, DeltaOutcome, FileContent, RetryPolicy, RowDelta, TableCreation, TableOperations, WriteOptions, commit_delta,
    prepare,
};

/// Which keys a commit deletes before it adds its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deletes {
    None,
    /// Those of all its rows, as a writer that does not look.
    EveryRow,
    /// Those of rows that may replace others.
    Replaced,
}

/// Files, rows of each, and how many rows of each file replace rows of earlier ones.
struct Case {
    name: &'static str,
    files: usize,
    rows: usize,
    replaced: usize,
    deletes: Deletes,
}

const CASES: [Case; 4] = [
    Case { name: "append-200x5000", files: 200, rows: 5_000, replaced: 0, deletes: Deletes::None },
    Case { name: "upsert-200x5000", files: 200, rows: 5_000, replaced: 5_000, deletes: Deletes::EveryRow },
    Case { name: "upsert-120+120", files: 120, rows: 1_087, replaced: 1_087, deletes: Deletes::EveryRow },
    Case { name: "upsert-500+500", files: 500, rows: 261, replaced: 261, deletes: Deletes::EveryRow },
];
/// 10 M rows of which 2 % replace others: only when it is asked for.
const LARGE: Case = Case { name: "large-10M-2percent", files: 50, rows: 200_000, replaced: 2_700, deletes: Deletes::Replaced };
const ROUNDS: usize = 3;

struct NoSleep;

#[async_trait::async_trait]
impl sluice_table::Sleep for NoSleep {
    async fn sleep(&self, _: u64) {}
}

fn schema() -> TableSchema {
    let columns = vec![
        Column::required(1, "id", ColumnType::Long),
        Column::optional(2, "customer", ColumnType::Long),
        Column::optional(3, "status", ColumnType::String),
        Column::optional(4, "reference", ColumnType::String),
        Column::optional(5, "total", ColumnType::Decimal { precision: 12, scale: 2 }),
        Column::optional(6, "weight", ColumnType::Double),
        Column::optional(7, "created", ColumnType::TimestampTz),
        Column::optional(8, "note", ColumnType::String),
    ];
    TableSchema { schema_id: 0, columns, identifier_ids: vec![1], last_column_id: 8 }
}

/// SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut state = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// Rows of one file: the first `replaced` have keys of earlier files.
fn batch(case: &Case, file: usize) -> RecordBatch {
    let fresh = (case.rows - case.replaced.min(case.rows / 2)).max(1);
    let id = |row: usize| {
        if row < case.replaced && file > 0 && row.is_multiple_of(2) || row >= fresh {
            (mixed((file * case.rows + row) as u64) % (file.max(1) * case.rows) as u64).cast_signed()
        } else {
            (file * case.rows + row) as i64
        }
    };
    let mut seen = hashbrown::HashSet::new();
    let ids: Vec<i64> =
        (0..case.rows).map(id).map(|id| if seen.insert(id) { id } else { -((file * case.rows + seen.len()) as i64) - id }).collect();
    let of = |row: usize| mixed((file * case.rows + row) as u64 ^ 0x5555);
    let statuses = ["new", "paid", "packed", "sent", "returned"];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(ids)),
        Arc::new(Int64Array::from_iter_values((0..case.rows).map(|row| (of(row) % 100_000).cast_signed()))),
        Arc::new(StringArray::from_iter_values((0..case.rows).map(|row| statuses[(of(row) % 5) as usize]))),
        Arc::new(StringArray::from_iter_values((0..case.rows).map(|row| format!("R-{:012x}", of(row) >> 16)))),
        Arc::new(
            Decimal128Array::from_iter_values((0..case.rows).map(|row| i128::from(of(row) % 1_000_000)))
                .with_precision_and_scale(12, 2)
                .unwrap(),
        ),
        Arc::new(Float64Array::from_iter_values((0..case.rows).map(|row| (of(row) % 10_000) as f64 / 8.0))),
        Arc::new(
            TimestampMicrosecondArray::from_iter_values(
                (0..case.rows).map(|row| 1_772_323_200_000_000 + (of(row) % 86_400_000_000).cast_signed()),
            )
            .with_timezone("+00:00"),
        ),
        Arc::new(StringArray::from_iter((0..case.rows).map(|row| of(row).is_multiple_of(4).then(|| format!("note {}", of(row) % 1_000))))),
    ];
    RecordBatch::try_new(arrow_schema(&schema()).unwrap(), columns).unwrap()
}

/// A table on the local disk.
struct Lake {
    folder: std::path::PathBuf,
    ops: Arc<dyn TableOperations>,
}

impl Drop for Lake {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn context(clock: &SystemClock) -> CommitContext<'_> {
    CommitContext { clock, ids: &RandomIds, sleep: &NoSleep, deadline: Deadline::NONE, policy: RetryPolicy::default() }
}

fn deleted(case: &Case, rows: &RecordBatch) -> Option<RecordBatch> {
    let keys = rows.project(&[0]).unwrap();
    match case.deletes {
        Deletes::None => None,
        Deletes::EveryRow => Some(keys),
        Deletes::Replaced => {
            let ends = [keys.slice(0, case.replaced), keys.slice(keys.num_rows() - case.replaced, case.replaced)];
            Some(concat_batches(&keys.schema(), &ends).unwrap())
        }
    }
}

/// Says that something is going on where a case takes long.
fn progress(case: &Case, file: usize) {
    if case.rows >= 100_000 && file.is_multiple_of(10) {
        eprintln!("{}: file {file} of {} is being made", case.name, case.files);
    }
}

async fn lake(case: &Case) -> Lake {
    let folder = std::env::temp_dir().join(format!("sluice-compaction-{}-{}", std::process::id(), case.name));
    Lake { ops: table(case, &folder).await, folder }
}

/// Makes the table below a folder.
async fn table(case: &Case, folder: &Path) -> Arc<dyn TableOperations> {
    std::fs::create_dir_all(folder).unwrap();
    let services = Services { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) };
    let storage = sluice_storage::open(&sluice_storage::StorageConfig::default(), Arc::new(SystemClock)).await.unwrap();
    let warehouse = format!("file://{}", folder.display());
    let catalog: memory::MemoryCatalog = PointerCatalog::over(MemoryPointers::default(), (storage.file_io, &warehouse), services);
    let name = TableName::parse("bench.orders").unwrap();
    catalog.create(&name, &TableCreation::of(schema())).await.unwrap();
    let ops = catalog.load(&name).await.unwrap().unwrap();
    for file in 0..case.files {
        let version = ops.refresh().await.unwrap();
        let rows = batch(case, file);
        let keys = deleted(case, &rows);
        progress(case, file);
        let delta = RowDelta { rows: Some(rows), delete_keys: keys, ..RowDelta::on(&version) };
        let options = WriteOptions { ids: &RandomIds, target_file_bytes: 128 << 20, max_open_files: 1 };
        let prepared = prepare(&version, delta, &options).await.unwrap();
        assert!(matches!(commit_delta(&*ops, prepared, &context(&SystemClock)).await.unwrap(), DeltaOutcome::Committed { .. }));
    }
    ops
}

/// Rows in and out, and bytes in.
type Counts = (u64, u64, u64);

async fn sluice(lake: &Lake) -> Counts {
    let version = lake.ops.refresh().await.unwrap();
    let start = TableFiles::load(&version, None).await.unwrap().unwrap();
    let facts = start.facts();
    let data: Vec<_> = facts.iter().filter(|file| file.content == FileContent::Data).collect();
    let options = RewriteOptions {
        ids: &RandomIds,
        target_file_bytes: 128 << 20,
        delete_memory_bytes: 64 << 20,
        sort_memory_bytes: 64 << 20,
        keys: KeyProof::Off,
    };
    let (mut groups, mut counts, mut waiting, mut bytes) = (Vec::new(), (0, 0, 0), Vec::new(), 0);
    for (number, file) in data.iter().enumerate() {
        waiting.push(file.path.clone());
        bytes += file.bytes;
        if bytes >= 128 << 20 || number + 1 == data.len() {
            let group = rewrite_group(&start, &std::mem::take(&mut waiting), &options).await.unwrap();
            let report = group.report();
            counts = (counts.0 + report.rows_in, counts.1 + report.rows_out, counts.2 + report.bytes_in);
            groups.push(group);
            bytes = 0;
        }
    }
    let outcome = commit_rewrite(&*lake.ops, (&start, &groups), &context(&SystemClock)).await.unwrap();
    assert!(matches!(outcome, RewriteOutcome::Committed { .. }));
    counts
}

fn open(path: &str) -> ParquetRecordBatchReader {
    let file = File::open(path.trim_start_matches("file://")).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(8_192).build().unwrap()
}

/// The same without a table around it. `facts` are found outside of the time.
fn floor(lake: &Lake, facts: &[(FileContent, String, i64)]) -> Counts {
    let mut keys: HashMap<i64, i64> = HashMap::new();
    for (_, path, number) in facts.iter().filter(|file| file.0 != FileContent::Data) {
        for batch in open(path) {
            for key in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
                let youngest = keys.entry(*key).or_insert(*number);
                *youngest = (*youngest).max(*number);
            }
        }
    }
    let out = lake.folder.join("floor.parquet");
    // What Sluice finds out about these rows is known here: only one column's values repeat, and a dictionary of others would only cost.
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let properties = properties.set_dictionary_enabled(false).set_column_dictionary_enabled("status".into(), true).build();
    let mut writer: Option<ArrowWriter<File>> = None;
    let mut counts = (0, 0, 0);
    for (_, path, number) in facts.iter().filter(|file| file.0 == FileContent::Data) {
        counts.2 += std::fs::metadata(path.trim_start_matches("file://")).unwrap().len();
        for batch in open(path) {
            let mut batch = batch.unwrap();
            counts.0 += batch.num_rows() as u64;
            if !keys.is_empty() {
                let ids = batch.column(0).as_primitive::<Int64Type>().values();
                let keep: BooleanArray = ids.iter().map(|id| Some(keys.get(id).is_none_or(|delete| delete <= number))).collect();
                batch = filter_record_batch(&batch, &keep).unwrap();
            }
            counts.1 += batch.num_rows() as u64;
            let writer = writer.get_or_insert_with(|| {
                ArrowWriter::try_new(File::create(&out).unwrap(), batch.schema(), Some(properties.clone())).unwrap()
            });
            writer.write(&batch).unwrap();
            if writer.in_progress_size() > 32 << 20 {
                writer.flush().unwrap();
            }
        }
    }
    writer.unwrap().close().unwrap();
    counts
}

async fn facts(lake: &Lake) -> Vec<(FileContent, String, i64)> {
    let files = TableFiles::load(&lake.ops.refresh().await.unwrap(), None).await.unwrap().unwrap();
    files.facts().into_iter().map(|file| (file.content, file.path, file.sequence_number)).collect()
}

fn timed(work: impl FnOnce() -> Counts) -> (Counts, u64, f64) {
    let (wall, start) = (Instant::now(), cpu_ns());
    let counts = work();
    (counts, cpu_ns() - start, wall.elapsed().as_secs_f64())
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64 / 1e9
}

fn block<T>(work: impl Future<Output = T>) -> T {
    futures::executor::block_on(work)
}

fn compare(case: &Case) {
    let (mut ours, mut floors, mut walls, mut counts) = (Vec::new(), Vec::new(), Vec::new(), (0, 0, 0));
    for _ in 0..ROUNDS {
        let lake = block(lake(case));
        let facts = block(facts(&lake));
        let (floor_counts, cpu, _) = timed(|| floor(&lake, &facts));
        floors.push(cpu);
        let (our_counts, cpu, wall) = timed(|| block(sluice(&lake)));
        ours.push(cpu);
        walls.push((wall * 1e9) as u64);
        assert_eq!(floor_counts, our_counts, "the floor does the same work");
        counts = our_counts;
    }
    let peaks = ["floor", "sluice"].map(|path| alone(path, case.name)[0]);
    row(case, counts, [median(floors), median(ours), median(walls)], peaks);
}

fn row(case: &Case, counts: Counts, [floor, ours, wall]: [f64; 3], peaks: [f64; 2]) {
    println!(
        "| {} | {} → {} | {:.1} | {floor:.2} | {ours:.2} | {:.2} | {wall:.2} | {:.2} | {:.0} | {:.0} | {:.0} |",
        case.name,
        counts.0,
        counts.1,
        counts.2 as f64 / 1e6,
        ours / floor,
        counts.0 as f64 / ours / 1e6,
        counts.2 as f64 / ours / 1e6,
        peaks[0],
        peaks[1],
    );
}

/// A case that is too large for rounds: each path once, in a process of its own.
fn compare_alone(case: &Case) {
    let [floor, ours] = ["floor", "sluice"].map(|path| alone(path, case.name));
    assert_eq!(floor[3..6], ours[3..6], "the floor does the same work");
    let counts = (ours[3] as u64, ours[4] as u64, ours[5] as u64);
    row(case, counts, [floor[1], ours[1], ours[2]], [floor[0], ours[0]]);
}

/// A path in a process of its own, which also makes the lake: peak memory in MB, CPU and wall seconds, and the counts.
fn alone(path: &str, case: &str) -> [f64; 6] {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--profile", path, case]).stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap_or(f64::NAN)).collect();
    figures.try_into().unwrap_or([f64::NAN; 6])
}

fn profile(path: &str, case: &Case) {
    let lake = block(lake(case));
    let facts = block(facts(&lake));
    // The peak of making the lake is not that of the path; on Linux a process may forget its own.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak_rss_mb().unwrap_or(f64::NAN);
    let (counts, cpu, wall) = match path {
        "floor" => timed(|| floor(&lake, &facts)),
        _ => timed(|| block(sluice(&lake))),
    };
    let peak = peak_rss_mb().unwrap_or(f64::NAN);
    eprintln!("{path}, {}: peak {peak:.0} MB, {before:.0} MB of it before", case.name);
    println!("{peak} {} {wall} {} {} {}", cpu as f64 / 1e9, counts.0, counts.1, counts.2);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let cases: BTreeMap<&str, &Case> = CASES.iter().chain([&LARGE]).map(|case| (case.name, case)).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--profile", path, case] => return profile(path, cases[case]),
        ["--make", case, folder] => {
            let ops = block(table(cases[case], Path::new(folder)));
            return println!("{}", block(ops.refresh()).unwrap().metadata_location);
        }
        _ => {}
    }
    let filter = arguments.first().cloned().unwrap_or_default();
    println!(
        "| case | rows in → out | MB in | floor CPU s | sluice CPU s | ratio | sluice wall s | M rows/CPU s | MB/CPU s | floor peak MB | sluice peak MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    if filter == "large" {
        return compare_alone(&LARGE);
    }
    CASES.iter().filter(|case| case.name.contains(&filter)).for_each(compare);
}
