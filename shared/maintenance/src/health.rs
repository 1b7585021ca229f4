//! How a table is: sizes, deletes, snapshots, what is due. Only looks.

mod html;

use std::collections::BTreeMap;

use serde::Serialize;
use sluice_model::TableName;
use sluice_table::rewrite::{FileFacts, TableFiles};
use sluice_table::{FileContent, TableVersion};

use crate::{Context, Job, MaintenanceError, MaintenanceSettings, Plan, Table};

pub use html::html;

/// The upper ends of the bars of the histogram of file sizes, in bytes.
const EDGES: [u64; 7] = [64 << 10, 1 << 20, 8 << 20, 32 << 20, 96 << 20, 256 << 20, u64::MAX];
const HOUR_MS: i64 = 3_600_000;

/// A bar of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBar {
    /// Files of fewer bytes than this, and not in an earlier bar.
    pub below_bytes: u64,
    /// How many.
    pub files: u64,
}

/// A partition in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartitionHealth {
    /// Its path; empty when the table is not partitioned. A partition that was written under two specs is there twice.
    pub partition: String,
    /// Data files.
    pub data_files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Small ones among them.
    pub small_files: u64,
    /// Delete files of this partition alone.
    pub delete_files: u64,
}

/// A table in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// The table.
    pub table: TableName,
    /// Milliseconds since its last commit; `None` when there was none.
    pub since_last_commit_ms: Option<i64>,
    /// Data files.
    pub data_files: u64,
    /// Small ones among them.
    pub small_files: u64,
    /// Bytes of the data files.
    pub data_bytes: u64,
    /// Rows in the data files, deleted ones included.
    pub records: u64,
    /// Equality delete files.
    pub equality_delete_files: u64,
    /// Keys in them.
    pub equality_deletes: u64,
    /// Position delete files and deletion vectors.
    pub position_delete_files: u64,
    /// Positions in them.
    pub position_deletes: u64,
    /// Data file sizes.
    pub sizes: Vec<SizeBar>,
    /// Partitions, those with the most files first.
    pub partitions: Vec<PartitionHealth>,
    /// Snapshots in the metadata.
    pub snapshots: u64,
    /// Commits of each of the last 24 hours, the latest last.
    pub commits_by_hour: Vec<u64>,
    /// Manifests of the current snapshot.
    pub manifests: u64,
    /// Their bytes.
    pub manifest_bytes: u64,
    /// Bytes of all objects in the table's folder, when it was asked for.
    pub storage_bytes: Option<u64>,
    /// What each job would do now.
    pub due: BTreeMap<&'static str, String>,
}

/// Whether the storage is listed too, which takes a request for each thousand objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// It is not.
    Unlisted,
    /// It is.
    Listed,
}

/// Looks at a table; `None` when there is none of that name.
///
/// # Errors
/// When it cannot be read.
pub async fn health(
    name: &TableName,
    (settings, storage): (&MaintenanceSettings, Storage),
    context: &Context<'_>,
) -> Result<Option<Health>, MaintenanceError> {
    let Some((table, version)) = crate::run::open(name, context).await? else { return Ok(None) };
    let files = TableFiles::load(&version, None).await?;
    let facts = files.as_ref().map(TableFiles::facts).unwrap_or_default();
    let mut health = of(name, (&version, &facts), (settings.compact.small_bytes(), context.now_ms()));
    if let Some(files) = &files {
        health.manifests = files.manifest_bytes().count() as u64;
        health.manifest_bytes = files.manifest_bytes().sum();
    }
    health.storage_bytes = match storage {
        Storage::Unlisted => None,
        Storage::Listed => Some(stored(&table, version.metadata.location()).await?),
    };
    health.due.insert("compact", due(&crate::Compact { settings: settings.compact.clone() }, &table).await);
    health.due.insert("manifests", due(&crate::Manifests { settings: settings.manifests.clone() }, &table).await);
    health.due.insert("expire", due(&crate::Expire { settings: settings.expire.clone() }, &table).await);
    Ok(Some(health))
}

async fn due<J: Job>(job: &J, table: &Table<'_>) -> String {
    match job.plan(table).await {
        Ok(plan) => plan.headline(),
        Err(error) => error.to_string(),
    }
}

async fn stored(table: &Table<'_>, location: &str) -> Result<u64, MaintenanceError> {
    let (root, mut from, mut bytes) = (format!("{}/", location.trim_end_matches('/')), None, 0_u64);
    for _ in 0..100_000 {
        let page = table.objects.list(&root, from.as_ref()).await?;
        bytes += page.objects.iter().map(|object| object.size).sum::<u64>();
        from = page.next;
        if from.is_none() {
            return Ok(bytes);
        }
    }
    Err(table.refused("too many objects to count"))
}

fn of(name: &TableName, (version, facts): (&TableVersion, &[FileFacts]), (small_bytes, now_ms): (u64, i64)) -> Health {
    let metadata = &version.metadata;
    let last = metadata.current_snapshot().map(|snapshot| now_ms.saturating_sub(snapshot.timestamp_ms()));
    let count = |content: FileContent| facts.iter().filter(move |file| file.content == content);
    let data = || count(FileContent::Data);
    Health {
        table: name.clone(),
        since_last_commit_ms: last,
        data_files: data().count() as u64,
        small_files: data().filter(|file| file.bytes < small_bytes).count() as u64,
        data_bytes: data().map(|file| file.bytes).sum(),
        records: data().map(|file| file.records).sum(),
        equality_delete_files: count(FileContent::EqualityDeletes).count() as u64,
        equality_deletes: count(FileContent::EqualityDeletes).map(|file| file.records).sum(),
        position_delete_files: count(FileContent::PositionDeletes).count() as u64,
        position_deletes: count(FileContent::PositionDeletes).map(|file| file.records).sum(),
        sizes: histogram(data().map(|file| file.bytes)),
        partitions: partitions(facts, small_bytes),
        snapshots: metadata.snapshots().len() as u64,
        commits_by_hour: by_hour(version, now_ms),
        manifests: 0,
        manifest_bytes: 0,
        storage_bytes: None,
        due: BTreeMap::new(),
    }
}

fn histogram(sizes: impl Iterator<Item = u64>) -> Vec<SizeBar> {
    let mut bars: Vec<SizeBar> = EDGES.iter().map(|edge| SizeBar { below_bytes: *edge, files: 0 }).collect();
    for size in sizes {
        if let Some(bar) = bars.iter_mut().find(|bar| size < bar.below_bytes) {
            bar.files += 1;
        }
    }
    bars
}

fn partitions(facts: &[FileFacts], small_bytes: u64) -> Vec<PartitionHealth> {
    let mut by_scope: BTreeMap<usize, PartitionHealth> = BTreeMap::new();
    for file in facts {
        let health = by_scope.entry(file.scope).or_default();
        health.partition.clone_from(&file.partition);
        match file.content {
            FileContent::Data => {
                health.data_files += 1;
                health.bytes += file.bytes;
                health.small_files += u64::from(file.bytes < small_bytes);
            }
            FileContent::EqualityDeletes | FileContent::PositionDeletes => health.delete_files += 1,
        }
    }
    let mut partitions: Vec<PartitionHealth> = by_scope.into_values().collect();
    partitions.sort_by(|a, b| (b.data_files + b.delete_files, &a.partition).cmp(&(a.data_files + a.delete_files, &b.partition)));
    partitions
}

fn by_hour(version: &TableVersion, now_ms: i64) -> Vec<u64> {
    let mut hours = vec![0_u64; 24];
    for snapshot in version.metadata.snapshots() {
        let age = usize::try_from(now_ms.saturating_sub(snapshot.timestamp_ms()).max(0) / HOUR_MS).unwrap_or(usize::MAX);
        if let Some(hour) = 23_usize.checked_sub(age).and_then(|at| hours.get_mut(at)) {
            *hour += 1;
        }
    }
    hours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_one_bar() {
        let bars = histogram([0, (64 << 10) - 1, 64 << 10, 1 << 40].into_iter());
        assert_eq!(bars.iter().map(|bar| bar.files).collect::<Vec<_>>(), [2, 1, 0, 0, 0, 0, 1]);
    }
}
