//! What to expire. Pure but for reading the table.

use serde::{Deserialize, Serialize};
use sluice_model::TableName;
use sluice_table::TableVersion;
use sluice_table::expire::{Expirable, expirable};
use uuid::Uuid;

use super::settings::ExpireSettings;
use crate::{MaintenanceError, Plan, Table};

/// A snapshot that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSnapshot {
    /// Its id.
    pub id: i64,
    /// When it was committed, in milliseconds since 1970.
    pub committed_ms: i64,
    /// What it did.
    pub operation: String,
}

/// What to do with one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpirePlan {
    /// The table.
    pub table: TableName,
    /// Its identity.
    pub uuid: Uuid,
    /// Snapshots that go, oldest first.
    pub snapshots: Vec<PlannedSnapshot>,
    /// Branches and tags that go.
    pub refs: Vec<String>,
    /// Snapshots that stay.
    pub kept: usize,
    /// Earlier runs that did not come to delete all their files; they are finished first.
    pub unfinished: usize,
    /// Why nothing is done, if so.
    pub not_due: Option<String>,
}

impl ExpirePlan {
    pub(super) fn expirable(&self) -> Expirable {
        Expirable { snapshots: self.snapshots.iter().map(|snapshot| snapshot.id).collect(), refs: self.refs.iter().cloned().collect() }
    }
}

/// Whether the table forbids that its files are deleted (rule R23).
pub(crate) fn gc_forbidden(version: &TableVersion) -> Option<String> {
    let off = version.metadata.properties().get("gc.enabled").is_some_and(|value| value.eq_ignore_ascii_case("false"));
    off.then(|| "gc.enabled is false: other tables may share its files".to_owned())
}

pub(super) fn plan(
    (table, version): (&Table<'_>, &TableVersion),
    unfinished: usize,
    settings: &ExpireSettings,
) -> Result<ExpirePlan, MaintenanceError> {
    let metadata = &version.metadata;
    let not_due = gc_forbidden(version);
    let what = match not_due {
        Some(_) => Expirable::default(),
        None => expirable(metadata, &settings.retention(), table.context.now_ms()),
    };
    let mut snapshots: Vec<PlannedSnapshot> = metadata
        .snapshots()
        .filter(|snapshot| what.snapshots.contains(&snapshot.snapshot_id()))
        .map(|snapshot| PlannedSnapshot {
            id: snapshot.snapshot_id(),
            committed_ms: snapshot.timestamp_ms(),
            operation: snapshot.summary().operation.as_str().to_owned(),
        })
        .collect();
    snapshots.sort_by_key(|snapshot| (snapshot.committed_ms, snapshot.id));
    let kept = metadata.snapshots().len() - snapshots.len();
    let unfinished = if not_due.is_some() { 0 } else { unfinished };
    Ok(ExpirePlan {
        table: table.name.clone(),
        uuid: metadata.uuid(),
        snapshots,
        refs: what.refs.into_iter().collect(),
        kept,
        unfinished,
        not_due,
    })
}

impl Plan for ExpirePlan {
    fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.refs.is_empty() && self.unfinished == 0
    }

    fn headline(&self) -> String {
        if let Some(why) = &self.not_due {
            return format!("{}: not now: {why}", self.table);
        }
        let refs = if self.refs.is_empty() { String::new() } else { format!(", branches and tags {}", self.refs.join(", ")) };
        let unfinished = if self.unfinished > 0 { format!(", {} earlier runs to finish", self.unfinished) } else { String::new() };
        format!("{}: {} snapshots go, {} stay{refs}{unfinished}", self.table, self.snapshots.len(), self.kept)
    }

    fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let row = |snapshot: &PlannedSnapshot| vec![snapshot.id.to_string(), snapshot.committed_ms.to_string(), snapshot.operation.clone()];
        (vec!["snapshot", "committed (ms)", "operation"], self.snapshots.iter().map(row).collect())
    }
}
