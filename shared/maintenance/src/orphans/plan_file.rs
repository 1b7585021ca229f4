//! A plan as a file: JSON for people, Parquet for plans of very many files and for those who look at them with SQL. Both hold the whole plan.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use super::plan::{OrphanPlan, PlannedOrphan};
use crate::MaintenanceError;

/// The file's metadata under this key is the plan without its orphans, in JSON.
const HEAD: &str = "sluice.orphan-plan";
const MAGIC: &[u8] = b"PAR1";
const COLUMNS: [&str; 3] = ["location", "size", "last_modified_ms"];

/// How a plan is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanFormat {
    /// One JSON object.
    #[default]
    Json,
    /// A row for each orphan: location, size, last_modified_ms.
    Parquet,
}

impl PlanFormat {
    /// The ending of a file's name.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }
}

impl OrphanPlan {
    /// The plan as a file.
    ///
    /// # Errors
    /// [`MaintenanceError::BadPlan`] when it cannot be written down.
    pub fn to_file(&self, format: PlanFormat) -> Result<Bytes, MaintenanceError> {
        match format {
            PlanFormat::Json => serde_json::to_vec_pretty(self).map(Bytes::from).map_err(bad),
            PlanFormat::Parquet => to_parquet(self),
        }
    }

    /// Reads what [`to_file`](Self::to_file) wrote, in either format.
    ///
    /// # Errors
    /// [`MaintenanceError::BadPlan`] when it is no plan.
    pub fn from_file(bytes: &Bytes) -> Result<Self, MaintenanceError> {
        if bytes.starts_with(MAGIC) { from_parquet(bytes) } else { serde_json::from_slice(bytes).map_err(bad) }
    }
}

fn bad(error: impl std::fmt::Display) -> MaintenanceError {
    MaintenanceError::BadPlan(format!("no plan of orphans: {error}"))
}

fn to_parquet(plan: &OrphanPlan) -> Result<Bytes, MaintenanceError> {
    let head = serde_json::to_string(&OrphanPlan { orphans: Vec::new(), ..plan.clone() }).map_err(bad)?;
    let kinds = [DataType::Utf8, DataType::UInt64, DataType::Int64];
    let fields: Vec<Field> = COLUMNS.into_iter().zip(kinds).map(|(name, kind)| Field::new(name, kind, false)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(plan.orphans.iter().map(|orphan| &orphan.location))),
        Arc::new(UInt64Array::from_iter_values(plan.orphans.iter().map(|orphan| orphan.size))),
        Arc::new(Int64Array::from_iter_values(plan.orphans.iter().map(|orphan| orphan.last_modified_ms))),
    ];
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(bad)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new(HEAD.to_owned(), head)]))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).map_err(bad)?;
    writer.write(&rows).map_err(bad)?;
    writer.into_inner().map(Bytes::from).map_err(bad)
}

fn from_parquet(bytes: &Bytes) -> Result<OrphanPlan, MaintenanceError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(bad)?;
    let entries = builder.metadata().file_metadata().key_value_metadata();
    let head = entries.and_then(|all| all.iter().find(|entry| entry.key == HEAD)?.value.clone());
    let head = head.ok_or_else(|| bad(format!("its metadata has no {HEAD}")))?;
    let mut plan: OrphanPlan = serde_json::from_str(&head).map_err(bad)?;
    for rows in builder.build().map_err(bad)? {
        plan.orphans.extend(orphans(&rows.map_err(bad)?)?);
    }
    Ok(plan)
}

fn orphans(rows: &RecordBatch) -> Result<Vec<PlannedOrphan>, MaintenanceError> {
    let column = |name: &str| {
        let found = rows.column_by_name(name).filter(|column| column.null_count() == 0);
        found.ok_or_else(|| bad(format!("it needs a column {name} without nulls")))
    };
    let wrong = || bad("its columns are not location, size and last_modified_ms, of the types text, unsigned and signed 64-bit integer");
    let [locations, sizes, times] = COLUMNS.map(column);
    let locations = locations?.as_string_opt::<i32>().ok_or_else(wrong)?;
    let sizes = sizes?.as_primitive_opt::<UInt64Type>().ok_or_else(wrong)?;
    let times = times?.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
    let orphan = |row: usize| PlannedOrphan {
        location: locations.value(row).to_owned(),
        size: sizes.value(row),
        last_modified_ms: times.value(row),
    };
    Ok((0..rows.num_rows()).map(orphan).collect())
}

#[cfg(test)]
mod tests {
    use sluice_model::TableName;
    use uuid::Uuid;

    use super::*;
    use crate::orphans::Kept;

    fn plan(orphans: u64) -> OrphanPlan {
        let orphan = |number: u64| PlannedOrphan {
            location: format!("s3://b/t/data/region=a%2Fb/ü-{number}.parquet"),
            size: u64::MAX - number,
            last_modified_ms: -1,
        };
        OrphanPlan {
            table: TableName::parse("shop.orders").unwrap(),
            uuid: Uuid::from_u128(7),
            listed_ms: 5,
            older_than_ms: 6,
            found: 3,
            kept: Kept { needed: 1, ..Kept::default() },
            orphans: (0..orphans).map(orphan).collect(),
        }
    }

    #[test]
    fn both_formats_hold_the_whole_plan() {
        for (format, number) in [(PlanFormat::Json, 3), (PlanFormat::Parquet, 0), (PlanFormat::Parquet, 3), (PlanFormat::Parquet, 20_000)] {
            let file = plan(number).to_file(format).unwrap();
            assert_eq!(OrphanPlan::from_file(&file).unwrap(), plan(number), "{format:?}");
        }
    }

    #[test]
    fn a_plan_of_very_many_files_is_much_smaller_as_parquet() {
        let [json, parquet] = [PlanFormat::Json, PlanFormat::Parquet].map(|format| plan(20_000).to_file(format).unwrap().len());
        assert!(parquet * 10 < json, "{parquet} and {json} bytes");
    }

    #[test]
    fn what_is_no_plan_is_told() {
        let mut other = plan(2).to_file(PlanFormat::Parquet).unwrap().to_vec();
        other.truncate(40);
        for bytes in [&b"{}"[..], b"", b"PAR1 and nothing", &other] {
            assert!(matches!(OrphanPlan::from_file(&Bytes::copy_from_slice(bytes)), Err(MaintenanceError::BadPlan(_))));
        }
    }
}
