//! Which snapshots and references may go (rules R16, R18 and R23). Pure.

use std::collections::BTreeSet;

use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};

use crate::markers::{ancestry, holders};

const MIN_SNAPSHOTS: &str = "history.expire.min-snapshots-to-keep";
const MAX_SNAPSHOT_AGE: &str = "history.expire.max-snapshot-age-ms";
const MAX_REF_AGE: &str = "history.expire.max-ref-age-ms";

/// How long snapshots are kept, where neither the table's `history.expire.*` properties nor the reference itself say otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest snapshots of each branch stay, however old.
    pub min_snapshots_to_keep: usize,
    /// Younger snapshots of a branch stay, however many, in milliseconds; 0 keeps by number alone.
    pub max_snapshot_age_ms: i64,
    /// An older branch or tag goes, except `main`; `None` keeps them.
    pub max_ref_age_ms: Option<i64>,
    /// Younger snapshots that no branch or tag leads to stay, in milliseconds: somebody may be about to publish them.
    pub min_unreferenced_age_ms: i64,
    /// These stay in any case: an unfinished plan was made from them.
    pub protected: BTreeSet<i64>,
}

/// What may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expirable {
    /// Snapshot ids.
    pub snapshots: BTreeSet<i64>,
    /// Names of branches and tags.
    pub refs: BTreeSet<String>,
}

/// What may go at `now_ms`. Never the current snapshot, never one that a kept reference needs, never the newest one with a writer's mark.
#[must_use]
pub fn expirable(metadata: &TableMetadata, retention: &Retention, now_ms: i64) -> Expirable {
    let policy = Policy::of(metadata, retention, now_ms);
    let refs = references(metadata);
    let (gone, stays): (Vec<_>, Vec<_>) = refs.into_iter().partition(|(name, reference)| policy.ref_is_old(name, reference));
    let mut kept = retention.protected.clone();
    kept.extend(metadata.current_snapshot_id());
    for (_, reference) in &stays {
        policy.keep(reference, &mut kept);
    }
    let mut led_to: BTreeSet<i64> = BTreeSet::new();
    for (_, reference) in stays.iter().chain(&gone) {
        led_to.extend(ancestry(metadata, Some(reference.snapshot_id)).map(|snapshot| snapshot.snapshot_id()));
    }
    let young = |age: i64| now_ms.saturating_sub(age) < retention.min_unreferenced_age_ms;
    let unreferenced = metadata.snapshots().filter(|snapshot| !led_to.contains(&snapshot.snapshot_id()) && young(snapshot.timestamp_ms()));
    kept.extend(unreferenced.map(|snapshot| snapshot.snapshot_id()));
    let snapshots = metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).filter(|id| !kept.contains(id)).collect();
    Expirable { snapshots, refs: gone.into_iter().map(|(name, _)| name).collect() }
}

/// All branches and tags. A table with a current snapshot has `main`, whether its metadata names it or not.
pub(crate) fn references(metadata: &TableMetadata) -> Vec<(String, SnapshotReference)> {
    let names = serde_json::to_value(metadata).ok().and_then(|value| value.get("refs").cloned());
    let named: std::collections::BTreeMap<String, SnapshotReference> =
        names.and_then(|refs| serde_json::from_value(refs).ok()).unwrap_or_default();
    let mut refs: Vec<(String, SnapshotReference)> = named.into_iter().collect();
    if let Some(current) = metadata.current_snapshot_id().filter(|_| !refs.iter().any(|(name, _)| name == MAIN_BRANCH)) {
        refs.push((MAIN_BRANCH.to_owned(), SnapshotReference::new(current, SnapshotRetention::branch(None, None, None))));
    }
    refs
}

struct Policy<'a> {
    metadata: &'a TableMetadata,
    now_ms: i64,
    min_snapshots: usize,
    max_snapshot_age_ms: i64,
    max_ref_age_ms: Option<i64>,
}

impl<'a> Policy<'a> {
    /// The table's properties go before the defaults.
    fn of(metadata: &'a TableMetadata, retention: &Retention, now_ms: i64) -> Self {
        let property = |name: &str| metadata.properties().get(name).and_then(|value| value.parse::<i64>().ok()).filter(|value| *value >= 0);
        let min = property(MIN_SNAPSHOTS).and_then(|value| usize::try_from(value).ok()).unwrap_or(retention.min_snapshots_to_keep);
        Self {
            metadata,
            now_ms,
            min_snapshots: min.max(1),
            max_snapshot_age_ms: property(MAX_SNAPSHOT_AGE).unwrap_or(retention.max_snapshot_age_ms),
            max_ref_age_ms: property(MAX_REF_AGE).or(retention.max_ref_age_ms),
        }
    }

    fn ref_is_old(&self, name: &str, reference: &SnapshotReference) -> bool {
        let own = match reference.retention {
            SnapshotRetention::Branch { max_ref_age_ms, .. } | SnapshotRetention::Tag { max_ref_age_ms } => max_ref_age_ms,
        };
        let snapshot = self.metadata.snapshot_by_id(reference.snapshot_id);
        let age = snapshot.map(|snapshot| self.now_ms.saturating_sub(snapshot.timestamp_ms()));
        let most = own.or(self.max_ref_age_ms);
        name != MAIN_BRANCH && age.zip(most).is_some_and(|(age, most)| age > most)
    }

    fn keep(&self, reference: &SnapshotReference, kept: &mut BTreeSet<i64>) {
        let (count, age) = match reference.retention {
            SnapshotRetention::Tag { .. } => {
                kept.insert(reference.snapshot_id);
                return;
            }
            SnapshotRetention::Branch { min_snapshots_to_keep, max_snapshot_age_ms, .. } => {
                let own = min_snapshots_to_keep.and_then(|count| usize::try_from(count).ok()).map(|count| count.max(1));
                (own.unwrap_or(self.min_snapshots), max_snapshot_age_ms.unwrap_or(self.max_snapshot_age_ms))
            }
        };
        for (number, snapshot) in ancestry(self.metadata, Some(reference.snapshot_id)).enumerate() {
            if number < count || self.now_ms.saturating_sub(snapshot.timestamp_ms()) <= age && age > 0 {
                kept.insert(snapshot.snapshot_id());
            }
        }
        kept.extend(holders(self.metadata, reference.snapshot_id));
    }
}
