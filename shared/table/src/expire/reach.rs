//! Which files a table's snapshots reach (rules R20, R21 and R24), compared by path and not by entry: one Puffin file may hold the deletion vectors of
//! many data files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use iceberg::spec::{ManifestEntry, ManifestFile, SnapshotRef, TableMetadata};

use crate::manifests::{check_readable, manifests_of};
use crate::{TableError, TableVersion};

/// So many manifests are read at a time.
const READS: usize = 8;

/// Files by what they are, in the order in which they may be deleted: a crash in between leaves orphans, never a reference to what is gone (rule R22).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Data, delete and Puffin files.
    pub files: BTreeSet<String>,
    /// Manifests.
    pub manifests: BTreeSet<String>,
    /// Manifest lists.
    pub manifest_lists: BTreeSet<String>,
    /// Statistics of tables and of partitions.
    pub statistics: BTreeSet<String>,
    /// Snapshots whose files cannot be told because what names them cannot be read: those files become orphans.
    pub unreadable: BTreeSet<i64>,
}

/// A location as it is compared: `s3a` and `s3n` are `s3`, `file:` has one spelling. The rest is taken as it is.
#[must_use]
pub fn normalised(location: &str) -> String {
    match location.split_once("://") {
        Some(("s3a" | "s3n", rest)) => format!("s3://{rest}"),
        Some(("file", rest)) => rest.to_owned(),
        Some(_) => location.to_owned(),
        None => location.strip_prefix("file:").unwrap_or(location).to_owned(),
    }
}

/// The files that the snapshots `expired` reach and no other snapshot of the table does.
///
/// # Errors
/// When anything that a snapshot that stays needs cannot be read: then nothing may be deleted (rule R21).
pub async fn only_reached_by(version: &TableVersion, expired: &BTreeSet<i64>) -> Result<Reached, TableError> {
    let metadata = &version.metadata;
    check_readable(metadata)?;
    let (goes, stays): (Vec<&SnapshotRef>, Vec<&SnapshotRef>) =
        metadata.snapshots().partition(|snapshot| expired.contains(&snapshot.snapshot_id()));
    let kept = manifests(version, &stays).await?;
    let mut reached = Reached { statistics: statistics(metadata, expired), ..Reached::default() };
    let lists: HashSet<String> = stays.iter().map(|snapshot| normalised(snapshot.manifest_list())).collect();
    let mut candidates: BTreeMap<String, ManifestFile> = BTreeMap::new();
    for snapshot in goes {
        if !lists.contains(&normalised(snapshot.manifest_list())) {
            reached.manifest_lists.insert(snapshot.manifest_list().to_owned());
        }
        match manifests_of(version, snapshot).await {
            Ok(held) => candidates.extend(held.into_iter().map(|manifest| (normalised(&manifest.manifest_path), manifest))),
            // What cannot be read any more names nothing: its files are for orphan removal.
            Err(_) => drop(reached.unreadable.insert(snapshot.snapshot_id())),
        }
    }
    candidates.retain(|path, _| !kept.contains_key(path));
    let files = files_of(version, candidates.values(), |_| true).await;
    let (files, unreadable): (Vec<_>, Vec<_>) = files.into_iter().partition(Result::is_ok);
    reached.unreadable.extend(if unreadable.is_empty() { None } else { expired.first().copied() });
    let mut files: HashMap<String, String> = files.into_iter().flatten().flatten().map(|path| (normalised(&path), path)).collect();
    without_live(version, &kept, &mut files).await?;
    reached.files = files.into_values().collect();
    reached.manifests = candidates.into_values().map(|manifest| manifest.manifest_path).collect();
    Ok(reached)
}

/// Everything that a manifest or the metadata of the table names, normalised: also files that a snapshot that is there has taken out of the table, and that no snapshot can read.
///
/// # Errors
/// When anything of it cannot be read: a set that is not whole says nothing of what is left out.
pub async fn referenced(version: &TableVersion) -> Result<HashSet<String>, TableError> {
    named(version, |_| true).await
}

/// What some snapshot of the table can read, and the metadata files that it knows of, normalised.
///
/// # Errors
/// As [`referenced`].
pub async fn reachable(version: &TableVersion) -> Result<HashSet<String>, TableError> {
    named(version, ManifestEntry::is_alive).await
}

async fn named(version: &TableVersion, wanted: fn(&ManifestEntry) -> bool) -> Result<HashSet<String>, TableError> {
    let metadata = &version.metadata;
    check_readable(metadata)?;
    let snapshots: Vec<&SnapshotRef> = metadata.snapshots().collect();
    let mut paths: HashSet<String> = snapshots.iter().map(|snapshot| normalised(snapshot.manifest_list())).collect();
    paths.insert(normalised(&version.metadata_location));
    paths.extend(metadata.metadata_log().iter().map(|log| normalised(&log.metadata_file)));
    paths.extend(metadata.statistics_iter().map(|file| normalised(&file.statistics_path)));
    paths.extend(metadata.partition_statistics_iter().map(|file| normalised(&file.statistics_path)));
    let manifests = manifests(version, &snapshots).await?;
    for files in files_of(version, manifests.values(), wanted).await {
        paths.extend(files?.iter().map(|path| normalised(path)));
    }
    paths.extend(manifests.into_keys());
    Ok(paths)
}

/// The manifests of some snapshots by normalised path, each once.
async fn manifests(version: &TableVersion, snapshots: &[&SnapshotRef]) -> Result<BTreeMap<String, ManifestFile>, TableError> {
    let mut reads: Vec<BoxFuture<'_, _>> = Vec::with_capacity(snapshots.len());
    for snapshot in snapshots {
        reads.push(manifests_of(version, snapshot).boxed());
    }
    let lists: Vec<Vec<ManifestFile>> = stream::iter(reads).buffered(READS).try_collect().await?;
    Ok(lists.into_iter().flatten().map(|manifest| (normalised(&manifest.manifest_path), manifest)).collect())
}

/// The paths of those entries of manifests that are wanted.
async fn files_of<'a>(
    version: &'a TableVersion,
    manifests: impl Iterator<Item = &'a ManifestFile>,
    wanted: fn(&ManifestEntry) -> bool,
) -> Vec<Result<Vec<String>, TableError>> {
    stream::iter(reads(version, manifests, wanted)).buffered(READS).collect().await
}

/// What reads the paths of each manifest's entries that are wanted.
fn reads<'a>(
    version: &'a TableVersion,
    manifests: impl Iterator<Item = &'a ManifestFile>,
    wanted: fn(&ManifestEntry) -> bool,
) -> Vec<BoxFuture<'a, Result<Vec<String>, TableError>>> {
    let mut reads = Vec::new();
    for manifest in manifests {
        reads.push(paths_of(version, manifest, wanted).boxed());
    }
    reads
}

async fn paths_of(version: &TableVersion, manifest: &ManifestFile, wanted: fn(&ManifestEntry) -> bool) -> Result<Vec<String>, TableError> {
    let path = &manifest.manifest_path;
    let loaded = manifest.load_manifest(&version.file_io).await.map_err(TableError::iceberg(format!("reading {path}")))?;
    Ok(loaded.entries().iter().filter(|entry| wanted(entry)).map(|entry| entry.file_path().to_owned()).collect())
}

/// Takes out of `files` what is live in a manifest that stays. Manifest by manifest: what stays may be much more than what goes. All of them are read even when
/// nothing is left to take out: nothing may be deleted of a table that is not whole (rule R21).
async fn without_live(
    version: &TableVersion,
    kept: &BTreeMap<String, ManifestFile>,
    files: &mut HashMap<String, String>,
) -> Result<(), TableError> {
    let mut reads = stream::iter(reads(version, kept.values(), ManifestEntry::is_alive)).buffered(READS);
    while let Some(paths) = reads.try_next().await? {
        for path in paths {
            files.remove(&normalised(&path));
        }
    }
    Ok(())
}

/// Statistics of snapshots that go, unless one that stays names the same file.
fn statistics(metadata: &TableMetadata, expired: &BTreeSet<i64>) -> BTreeSet<String> {
    let of_tables = metadata.statistics_iter().map(|file| (file.snapshot_id, file.statistics_path.as_str()));
    let of_partitions = metadata.partition_statistics_iter().map(|file| (file.snapshot_id, file.statistics_path.as_str()));
    let (goes, stays): (Vec<_>, Vec<_>) = of_tables.chain(of_partitions).partition(|(id, _)| expired.contains(id));
    let stays: HashSet<String> = stays.into_iter().map(|(_, path)| normalised(path)).collect();
    goes.into_iter().map(|(_, path)| path.to_owned()).filter(|path| !stays.contains(&normalised(path))).collect()
}
