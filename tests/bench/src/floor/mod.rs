//! The floor: the shortest straight line from the event's bytes to Parquet buffers that a person would write for this one schema.
//!
//! It knows the schema, the key, the format and the columns with few values; it checks the grammar where it reads, checks UTF-8 once,
//! and refuses the whole event at the first odd byte. It has no rejections, no ledger, no settings, no metrics for manifests. So it is no
//! competitor but a yardstick: how much the generality of Sluice costs. Safe Rust, as Sluice: no intrinsics of its own.

mod columns;
mod cursor;
mod files;
mod records;

use arrow_schema::ArrowError;
use hashbrown::HashMap;
use parquet::errors::ParquetError;

use crate::clock::Stages;
use crate::event::Kind;
use columns::Columns;
use cursor::{Bad, Cursor};
use files::Writers;

/// Why the floor gave up.
#[derive(Debug)]
pub enum FloorError {
    /// The event is not what the generator makes.
    Bad(Bad),
    /// Arrow or Parquet refused the columns.
    Columns(ParquetError),
}

impl From<Bad> for FloorError {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<ParquetError> for FloorError {
    fn from(error: ParquetError) -> Self {
        Self::Columns(error)
    }
}

impl From<ArrowError> for FloorError {
    fn from(error: ArrowError) -> Self {
        Self::Columns(error.into())
    }
}

struct Table {
    columns: Columns,
    deleted: Vec<bool>,
}

/// The files of an event, table by table.
///
/// # Errors
/// [`FloorError`] when the event is not one of the generator's.
pub fn run(event: &[u8], kind: Kind, stages: &mut Stages) -> Result<Vec<Vec<u8>>, FloorError> {
    let writers = Writers::new();
    let values = stages.time("event", || {
        let text = simdutf8::basic::from_utf8(event).map_err(|_| Bad(0))?;
        records::values(text)
    })?;
    let (arena, spans) = stages.time("base64", || decode(&values))?;
    let arena = stages.time("base64", || simdutf8::basic::from_utf8(&arena).map_err(|_| Bad(0)))?;
    let mut tables = stages.time("rows", || columns(arena, &spans, (kind, &writers)))?;
    stages.time("files", || {
        let mut files = Vec::new();
        for table in tables.values_mut() {
            files.extend(writers.files(&table.columns.batch()?, &table.deleted)?);
        }
        Ok(files)
    })
}

fn decode(values: &[&str]) -> Result<(Vec<u8>, Vec<std::ops::Range<usize>>), Bad> {
    let mut arena = Vec::with_capacity(values.iter().map(|value| value.len() / 4 * 3 + 3).sum());
    let mut spans = Vec::with_capacity(values.len());
    for value in values {
        let start = arena.len();
        base64_simd::STANDARD.decode_append(value.as_bytes(), &mut arena).map_err(|_| Bad(start))?;
        spans.push(start..arena.len());
    }
    Ok((arena, spans))
}

fn columns<'a>(
    arena: &'a str,
    spans: &[std::ops::Range<usize>],
    (kind, writers): (Kind, &Writers),
) -> Result<HashMap<&'a str, Table>, FloorError> {
    let mut tables: HashMap<&str, Table> = HashMap::new();
    let mut scratch = String::new();
    let mut schema = "";
    for span in spans {
        let record = arena.get(span.clone()).ok_or(Bad(span.start))?;
        let routed = records::route(record, kind, &mut schema)?;
        let new = || Table { columns: Columns::new(writers.rows.fields()), deleted: Vec::new() };
        let table = tables.entry(routed.table).or_insert_with(new);
        table.deleted.push(routed.op == "d");
        table.columns.row(&mut Cursor::new(routed.row), &mut scratch)?;
    }
    Ok(tables)
}
