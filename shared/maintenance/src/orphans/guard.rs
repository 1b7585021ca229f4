//! What makes it unsafe to take files for orphans.

use std::collections::HashSet;

use futures::{FutureExt, StreamExt, stream};
use serde::Deserialize;
use sluice_storage::ObjectEntry;
use sluice_table::TableVersion;
use sluice_table::expire::normalised;
use uuid::Uuid;

use super::locations::{lossy, overlap, roots};
use super::quarantine::check_apart;
use super::settings::OrphanSettings;
use crate::expire::gc_forbidden;
use crate::{MaintenanceError, Table};

/// So many metadata files that fell out of the log are looked into at a time; the others stay.
const MOST_READS: usize = 500;
const READS: usize = 8;

/// Refuses tables whose files must not be judged at all (rules O4 and O11), and a quarantine among the files of a table.
pub(super) async fn check_table(table: &Table<'_>, version: &TableVersion, settings: &OrphanSettings) -> Result<(), MaintenanceError> {
    let quarantine = settings.quarantine.as_deref();
    if let Some(reason) = gc_forbidden(version).or_else(|| crate::run::managed(version.metadata.location())) {
        return Err(table.refused(reason));
    }
    let own = roots(version);
    quarantine.map_or(Ok(()), |prefix| check_apart(table, prefix, (table.name.as_str(), version)))?;
    for name in table.context.catalog.tables().await?.into_iter().filter(|name| *name != table.name) {
        let Some(other) = table.context.catalog.load(&name).await? else { continue };
        let other = other.refresh().await?;
        quarantine.map_or(Ok(()), |prefix| check_apart(table, prefix, (name.as_str(), &other)))?;
        let shared = roots(&other).into_iter().find(|root| own.iter().any(|own| overlap(own, root)));
        if let Some(shared) = shared {
            return Err(table.refused(format!("`{name}` has files in {shared}, which is not apart from this table's folders")));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Identity {
    #[serde(rename = "table-uuid")]
    uuid: Option<Uuid>,
}

/// Looks for files of a table that the catalog does not know of (rule O4): metadata files with another identity. Gives those candidates that were not looked into.
pub(super) async fn check_metadata_files<'a>(
    table: &Table<'_>,
    version: &TableVersion,
    candidates: &'a [ObjectEntry],
) -> Result<HashSet<&'a str>, MaintenanceError> {
    let is_metadata = |entry: &&ObjectEntry| entry.location.ends_with(".metadata.json");
    let unknown: Vec<&str> = candidates.iter().filter(is_metadata).map(|entry| entry.location.as_str()).collect();
    let compressed = candidates.iter().map(|entry| entry.location.as_str()).filter(|path| path.ends_with(".gz.metadata.json"));
    let mut unread: HashSet<&str> = compressed.chain(unknown.iter().copied().skip(MOST_READS)).collect();
    let looked: Vec<&str> = unknown.iter().copied().take(MOST_READS).filter(|path| !unread.contains(path)).collect();
    let mut gets = Vec::with_capacity(looked.len());
    for path in looked {
        gets.push(async move { (path, table.objects.get(path).await) }.boxed());
    }
    let mut reads = stream::iter(gets).buffer_unordered(READS);
    while let Some((path, read)) = reads.next().await {
        let Some(object) = read? else { continue };
        match serde_json::from_slice::<Identity>(&object.bytes) {
            Ok(Identity { uuid: Some(uuid) }) if uuid == version.metadata.uuid() => {}
            Ok(Identity { uuid: Some(uuid) }) => {
                return Err(table.refused(format!("{path} is metadata of another table ({uuid}): two tables share this place")));
            }
            // It may be half written, or no table's at all.
            Ok(Identity { uuid: None }) | Err(_) => drop(unread.insert(path)),
        }
    }
    Ok(unread)
}

/// Refuses when the table needs a file that is spelled otherwise than an orphan but may be the same (rule O6).
pub(super) fn check_spellings(table: &Table<'_>, needed: &HashSet<String>, orphans: &[&ObjectEntry]) -> Result<(), MaintenanceError> {
    let spelled: HashSet<String> = needed.iter().map(|path| lossy(path)).collect();
    let alias = orphans.iter().find(|orphan| spelled.contains(&lossy(&orphan.location)));
    match alias {
        None => Ok(()),
        Some(alias) => Err(table.refused(format!(
            "{} is not needed by that name, but the table needs a file whose location differs only in scheme, host, encoding or case; no file is deleted before that is cleared up",
            alias.location
        ))),
    }
}

/// What the orphans are a part of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) orphans: u64,
    pub(super) found: u64,
}

/// Refuses when so much looks useless that the table is rather misread (rule O8).
pub(super) fn check_share(table: &Table<'_>, share: Share, max_percent: u64) -> Result<(), MaintenanceError> {
    if share.orphans.saturating_mul(100) <= share.found.saturating_mul(max_percent) {
        return Ok(());
    }
    Err(table.refused(format!(
        "{} of {} files look like orphans, which is more than max_percent = {max_percent}; raise it for this run if that is right",
        share.orphans, share.found
    )))
}

/// A table always needs its metadata file; a set without it was not read whole (rule O8).
pub(super) fn check_complete(table: &Table<'_>, version: &TableVersion, needed: &HashSet<String>) -> Result<(), MaintenanceError> {
    let whole = needed.contains(&normalised(&version.metadata_location));
    if whole { Ok(()) } else { Err(table.refused("what the table needs could not be told")) }
}
