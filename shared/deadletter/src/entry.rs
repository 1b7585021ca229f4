//! Rows of the error table, read back.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use sluice_model::{Coordinate, PartitionKey};
use sluice_table::TableError;

/// Which row of the error table: a record below the ledger's floor may be there several times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId {
    /// The partition that its record was read from.
    pub key: PartitionKey,
    /// Its offset and row.
    pub coordinate: Coordinate,
    /// When it was refused, in microseconds since 1970.
    pub arrived_at_us: i64,
}

/// Whether all of a record is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Key and value are whole, and have so many bytes.
    Whole(usize),
    /// Key or value was longer than `errors.max_raw_bytes`.
    Cut,
}

/// Whether a refused record is done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is not.
    Open,
    /// It is, in this way; the text is a [`Resolution`](crate::Resolution)'s.
    Resolved(String),
}

/// What selecting looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which row.
    pub id: EntryId,
    /// The step that refused it.
    pub stage: String,
    /// The reason code.
    pub code: String,
    /// The table it was for, where that is known.
    pub target: Option<String>,
    /// How large its record is.
    pub size: Size,
    /// Whether it is done with.
    pub settled: Settled,
    /// Its place in the redrive that is applying, or has applied, it.
    pub redrive_offset: Option<i64>,
    /// How often it was redriven and refused again.
    pub attempts: i32,
}

impl Entry {
    /// Whether it waits for a redrive to be finished.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.settled == Settled::Open && self.redrive_offset.is_some()
    }
}

/// Kafka headers: names and values.
pub type Headers = Vec<(String, Option<Vec<u8>>)>;

/// A refused record as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Kafka's timestamp, in milliseconds.
    pub record_timestamp_ms: Option<i64>,
    /// The key's bytes.
    pub key: Option<Vec<u8>>,
    /// The value's bytes; the record's JSON when it could not be read at the door.
    pub value: Option<Vec<u8>>,
    /// The headers.
    pub headers: Headers,
    /// The schema id of the value.
    pub schema_id: Option<String>,
}

/// The stage of records that could not be read at the door: their value is their JSON, and stays that, so they keep the stage.
pub const DOOR: &str = "door";

/// The columns that [`entries`] reads.
pub(crate) const ENTRY_COLUMNS: [&str; 16] = [
    "source_id",
    "source_epoch",
    "topic",
    "partition",
    "offset",
    "row",
    "arrived_at",
    "stage",
    "code",
    "target_table",
    "key",
    "value",
    "raw_is_cut",
    "resolved_at",
    "redrive_offset",
    "attempts",
];

/// The entries of rows that have at least [`ENTRY_COLUMNS`].
pub(crate) fn entries(rows: &RecordBatch) -> Result<Vec<Entry>, TableError> {
    let read = Rows(rows);
    let mut entries = Vec::with_capacity(rows.num_rows());
    for row in 0..rows.num_rows() {
        let id = EntryId {
            key: PartitionKey {
                source: read.needed_text("source_id", row)?.into(),
                epoch: u32::try_from(read.needed_int("source_epoch", row)?).unwrap_or(0),
                topic: read.needed_text("topic", row)?.into(),
                partition: read.needed_int("partition", row)?,
            },
            coordinate: Coordinate::row(
                read.long("offset", row)?.ok_or_else(|| missing("offset"))?,
                u32::try_from(read.needed_int("row", row)?).unwrap_or(0),
            ),
            arrived_at_us: read.instant("arrived_at", row)?.ok_or_else(|| missing("arrived_at"))?,
        };
        let bytes = ["key", "value"].iter().map(|name| read.bytes(name, row).map(|bytes| bytes.map_or(0, <[u8]>::len)));
        let bytes = bytes.collect::<Result<Vec<usize>, _>>()?.into_iter().sum();
        entries.push(Entry {
            id,
            stage: read.needed_text("stage", row)?.to_owned(),
            code: read.needed_text("code", row)?.to_owned(),
            target: read.text("target_table", row)?.map(str::to_owned),
            size: if read.flag("raw_is_cut", row)? { Size::Cut } else { Size::Whole(bytes) },
            settled: match read.instant("resolved_at", row)? {
                None => Settled::Open,
                Some(_) => Settled::Resolved(read.text_if_there("resolution", row)?.unwrap_or_default().to_owned()),
            },
            redrive_offset: read.long("redrive_offset", row)?,
            attempts: read.int("attempts", row)?.unwrap_or(0),
        });
    }
    Ok(entries)
}

/// The records of whole rows.
pub(crate) fn contents(rows: &RecordBatch) -> Result<Vec<Content>, TableError> {
    let read = Rows(rows);
    let content = |row| {
        Ok(Content {
            record_timestamp_ms: read.instant("record_timestamp", row)?.map(|micros| micros.div_euclid(1_000)),
            key: read.bytes("key", row)?.map(<[u8]>::to_vec),
            value: read.bytes("value", row)?.map(<[u8]>::to_vec),
            headers: read.headers(row)?,
            schema_id: read.text("schema_id", row)?.map(str::to_owned),
        })
    };
    (0..rows.num_rows()).map(content).collect()
}

fn missing(column: &str) -> TableError {
    TableError::Invalid(format!("the error table has a row without `{column}`: was it changed by another program?"))
}

fn unfit(column: &str) -> TableError {
    TableError::Invalid(format!("the error table's column `{column}` is missing or has another type: it is not the table that Sluice made"))
}

/// Cells by the names of their columns.
pub(crate) struct Rows<'r>(pub(crate) &'r RecordBatch);

impl<'r> Rows<'r> {
    fn column(&self, name: &str) -> Result<&'r ArrayRef, TableError> {
        self.0.column_by_name(name).ok_or_else(|| unfit(name))
    }

    pub(crate) fn text(&self, name: &str, row: usize) -> Result<Option<&'r str>, TableError> {
        let column = self.column(name)?.as_string_opt::<i32>().ok_or_else(|| unfit(name))?;
        Ok(column.is_valid(row).then(|| column.value(row)))
    }

    fn text_if_there(&self, name: &str, row: usize) -> Result<Option<&'r str>, TableError> {
        if self.0.column_by_name(name).is_none() { Ok(None) } else { self.text(name, row) }
    }

    fn needed_text(&self, name: &str, row: usize) -> Result<&'r str, TableError> {
        self.text(name, row)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn int(&self, name: &str, row: usize) -> Result<Option<i32>, TableError> {
        let column = self.column(name)?.as_primitive_opt::<Int32Type>().ok_or_else(|| unfit(name))?;
        Ok(column.is_valid(row).then(|| column.value(row)))
    }

    fn needed_int(&self, name: &str, row: usize) -> Result<i32, TableError> {
        self.int(name, row)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn long(&self, name: &str, row: usize) -> Result<Option<i64>, TableError> {
        let column = self.column(name)?.as_primitive_opt::<Int64Type>().ok_or_else(|| unfit(name))?;
        Ok(column.is_valid(row).then(|| column.value(row)))
    }

    pub(crate) fn instant(&self, name: &str, row: usize) -> Result<Option<i64>, TableError> {
        let column = self.column(name)?.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(|| unfit(name))?;
        Ok(column.is_valid(row).then(|| column.value(row)))
    }

    fn flag(&self, name: &str, row: usize) -> Result<bool, TableError> {
        let column = self.column(name)?.as_boolean_opt().ok_or_else(|| unfit(name))?;
        Ok(column.is_valid(row) && column.value(row))
    }

    fn bytes(&self, name: &str, row: usize) -> Result<Option<&'r [u8]>, TableError> {
        let column = self.column(name)?.as_binary_opt::<i64>().ok_or_else(|| unfit(name))?;
        Ok(column.is_valid(row).then(|| column.value(row)))
    }

    fn headers(&self, row: usize) -> Result<Headers, TableError> {
        let unfit = || unfit("headers");
        let list = self.column("headers")?.as_list_opt::<i32>().ok_or_else(unfit)?;
        if list.is_null(row) {
            return Ok(Vec::new());
        }
        let all = list.value(row);
        let structs = all.as_struct_opt().ok_or_else(unfit)?;
        let names = structs.column_by_name("name").and_then(|names| names.as_string_opt::<i32>()).ok_or_else(unfit)?;
        let values = structs.column_by_name("value").and_then(|values| values.as_binary_opt::<i64>()).ok_or_else(unfit)?;
        let value = |at: usize| values.is_valid(at).then(|| values.value(at).to_vec());
        Ok((0..structs.len()).map(|at| (names.value(at).to_owned(), value(at))).collect())
    }
}
