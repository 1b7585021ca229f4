//! What an expiry is about to delete, written down before the commit: a run that dies in between can be finished, and its files are not left for orphan removal.

use serde::{Deserialize, Serialize};
use sluice_storage::{Condition, Token};
use sluice_table::expire::Reached;
use uuid::Uuid;

use crate::lease::FOLDER;
use crate::{MaintenanceError, Table};

/// Bounds the listing of records.
const MOST_PAGES: usize = 1_000;

/// The record of one expiry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The table's identity.
    pub uuid: Uuid,
    /// The snapshots that were to leave the metadata.
    pub snapshots: Vec<i64>,
    /// Data, delete and Puffin files.
    pub files: Vec<String>,
    /// Manifests.
    pub manifests: Vec<String>,
    /// Manifest lists.
    pub manifest_lists: Vec<String>,
    /// Statistics.
    pub statistics: Vec<String>,
}

impl Record {
    pub(super) fn new(uuid: Uuid, snapshots: Vec<i64>, reached: Reached) -> Self {
        Self {
            uuid,
            snapshots,
            files: reached.files.into_iter().collect(),
            manifests: reached.manifests.into_iter().collect(),
            manifest_lists: reached.manifest_lists.into_iter().collect(),
            statistics: reached.statistics.into_iter().collect(),
        }
    }

    /// All paths in the order in which they may be deleted: a crash leaves orphans, never a reference to what is gone (rule R22).
    pub(super) fn in_order(&self) -> Vec<String> {
        let statistics_first = self.files.iter().chain(&self.statistics).chain(&self.manifests);
        statistics_first.chain(&self.manifest_lists).cloned().collect()
    }

    /// Stores it; gives its location.
    pub(super) async fn write(&self, table: &Table<'_>, table_location: &str) -> Result<String, MaintenanceError> {
        let id = Uuid::from_u128(table.context.ids.next_u128());
        let location = format!("{}{id}.json", folder(table_location));
        let bytes =
            serde_json::to_vec(self).map_err(|error| MaintenanceError::BadPlan(format!("{location} cannot be written: {error}")))?;
        table.objects.put(&location, bytes.into(), Condition::Always).await?;
        Ok(location)
    }
}

fn folder(table_location: &str) -> String {
    format!("{}/{FOLDER}/expire/", table_location.trim_end_matches('/'))
}

/// The locations of records that are still there.
pub(super) async fn unfinished(table: &Table<'_>, table_location: &str) -> Result<Vec<String>, MaintenanceError> {
    let (mut found, mut from): (Vec<String>, Option<Token>) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = table.objects.list(&folder(table_location), from.as_ref()).await?;
        found.extend(page.objects.into_iter().map(|object| object.location));
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(found),
        }
    }
    Err(table.refused("there are too many records of unfinished expiries"))
}

/// The record at a location, `None` when it is gone.
pub(super) async fn read(table: &Table<'_>, location: &str) -> Result<Option<Record>, MaintenanceError> {
    let Some(object) = table.objects.get(location).await? else { return Ok(None) };
    let record = serde_json::from_slice(&object.bytes);
    record.map(Some).map_err(|error| table.refused(format!("{location} is no record of an expiry ({error}); look at it, and delete it")))
}
