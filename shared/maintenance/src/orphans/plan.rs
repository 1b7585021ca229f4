//! The plan: files that nothing needs, for somebody to look at.

use serde::{Deserialize, Serialize};
use sluice_model::TableName;
use uuid::Uuid;

use crate::Plan;

/// A file that nothing needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedOrphan {
    /// Where it is.
    pub location: String,
    /// Its bytes.
    pub size: u64,
    /// When it was written, in milliseconds since 1970. Another time at the execution means another file: it stays.
    pub last_modified_ms: i64,
}

/// Files that were found and stay, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The table needs them.
    pub needed: u64,
    /// They are too young, of unknown age, or from the future.
    pub young: u64,
    /// Their names are hidden ones.
    pub hidden: u64,
    /// They are metadata files that were not looked into this time.
    pub unread: u64,
    /// They are beyond the numbers of one plan.
    pub later: u64,
}

/// What to do with one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrphanPlan {
    /// The table.
    pub table: TableName,
    /// Its identity.
    pub uuid: Uuid,
    /// When the listing began, in milliseconds since 1970.
    pub listed_ms: i64,
    /// How old a file had to be.
    pub older_than_ms: i64,
    /// Files found.
    pub found: u64,
    /// Files that stay.
    pub kept: Kept,
    /// Files that nothing needs.
    pub orphans: Vec<PlannedOrphan>,
}

impl Plan for OrphanPlan {
    fn is_empty(&self) -> bool {
        self.orphans.is_empty()
    }

    fn headline(&self) -> String {
        let bytes: u64 = self.orphans.iter().map(|orphan| orphan.size).sum();
        let Kept { needed, young, hidden, unread, later } = self.kept;
        let kept = format!("{needed} needed, {young} young, {hidden} hidden, {unread} not looked into, {later} later");
        format!("{}: {} of {} files are orphans, {bytes} bytes; the others: {kept}", self.table, self.orphans.len(), self.found)
    }

    fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let row = |orphan: &PlannedOrphan| vec![orphan.location.clone(), orphan.size.to_string(), orphan.last_modified_ms.to_string()];
        (vec!["file", "bytes", "written (ms)"], self.orphans.iter().map(row).collect())
    }
}
