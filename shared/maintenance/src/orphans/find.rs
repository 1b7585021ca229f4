//! Finding orphans: storage first, the table afterwards, so that what is committed in between is needed (rule O9).

use std::collections::HashSet;

use sluice_storage::{ObjectEntry, Token};
use sluice_table::expire::{normalised, referenced};

use super::guard::{self, Share};
use super::locations::{is_hidden, roots};
use super::plan::{Kept, OrphanPlan, PlannedOrphan};
use super::settings::{FLOOR_MS, OrphanSettings};
use crate::{MaintenanceError, Table};

/// Bounds a listing: 100 million objects.
const MOST_PAGES: usize = 100_000;

/// What a listing found.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) found: u64,
    pub(super) young: u64,
    pub(super) hidden: u64,
    /// Old enough to be orphans.
    pub(super) old: Vec<ObjectEntry>,
}

pub(super) async fn list(table: &Table<'_>, roots: &[String], (now_ms, older_than_ms): (i64, i64)) -> Result<Listing, MaintenanceError> {
    let mut listing = Listing::default();
    for root in roots {
        let objects = table.context.stores.objects(root)?;
        let mut from: Option<Token> = None;
        for page in 0.. {
            if page == MOST_PAGES {
                return Err(table.refused(format!("{root} has too many objects")));
            }
            let page = objects.list(root, from.as_ref()).await?;
            for object in page.objects {
                listing.found += 1;
                // Of unknown age, or from the future, is young (rule O1).
                let old = object.last_modified_ms.is_some_and(|written| written <= now_ms.saturating_sub(older_than_ms));
                if is_hidden(root, &object.location) {
                    listing.hidden += 1;
                } else if old {
                    listing.old.push(object);
                } else {
                    listing.young += 1;
                }
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    Ok(listing)
}

pub(super) async fn find(table: &Table<'_>, settings: &OrphanSettings) -> Result<OrphanPlan, MaintenanceError> {
    let before = table.now().await?;
    guard::check_table(table, &before, settings).await?;
    let (listed_ms, older_than_ms) = (table.context.now_ms(), settings.older_than_ms.max(FLOOR_MS));
    let listing = list(table, &roots(&before), (listed_ms, older_than_ms)).await?;
    let version = table.now().await?;
    if version.metadata.uuid() != before.metadata.uuid() || roots(&version) != roots(&before) {
        return Err(table.refused("the table was replaced or moved during the listing; try again"));
    }
    let needed = referenced(&version).await?;
    guard::check_complete(table, &version, &needed)?;
    let (needs, useless): (Vec<ObjectEntry>, Vec<ObjectEntry>) =
        listing.old.into_iter().partition(|object| needed.contains(&normalised(&object.location)));
    let unread: HashSet<String> = guard::check_metadata_files(table, &version, &useless).await?.into_iter().map(str::to_owned).collect();
    let orphans: Vec<&ObjectEntry> = useless.iter().filter(|object| !unread.contains(&object.location) && !is_hint(object)).collect();
    guard::check_spellings(table, &needed, &orphans)?;
    let share = Share { orphans: orphans.len() as u64, found: listing.found };
    guard::check_share(table, share, settings.max_percent)?;
    let mut kept = Kept { needed: needs.len() as u64, young: listing.young, hidden: listing.hidden, ..Kept::default() };
    kept.unread = (useless.len() - orphans.len()) as u64;
    let (orphans, later) = within(&orphans, settings);
    kept.later = later;
    Ok(OrphanPlan {
        table: table.name.clone(),
        uuid: version.metadata.uuid(),
        listed_ms,
        older_than_ms,
        found: listing.found,
        kept,
        orphans,
    })
}

/// Catalogs in a folder keep their pointer in it (rule O3).
fn is_hint(object: &ObjectEntry) -> bool {
    object.location.ends_with("/version-hint.text")
}

/// As many orphans as one plan may have, the oldest first (rule O-4).
fn within(orphans: &[&ObjectEntry], settings: &OrphanSettings) -> (Vec<PlannedOrphan>, u64) {
    let dated = orphans.iter().filter_map(|object| {
        let last_modified_ms = object.last_modified_ms?;
        Some(PlannedOrphan { location: object.location.clone(), size: object.size, last_modified_ms })
    });
    let mut planned: Vec<PlannedOrphan> = dated.collect();
    planned.sort_by(|a, b| (a.last_modified_ms, &a.location).cmp(&(b.last_modified_ms, &b.location)));
    let all = planned.len();
    planned.truncate(settings.max_files);
    let mut bytes = 0_u64;
    planned.retain(|orphan| {
        bytes = bytes.saturating_add(orphan.size);
        bytes <= settings.max_bytes
    });
    let later = (all - planned.len()) as u64;
    (planned, later)
}
