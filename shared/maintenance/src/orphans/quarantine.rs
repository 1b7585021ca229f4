//! Setting orphans aside instead of deleting them: each is copied below a prefix that no table owns, written down, and only then deleted where it was.

use serde::Serialize;
use sluice_storage::Condition;
use sluice_table::TableVersion;
use uuid::Uuid;

use super::locations::{overlap, roots};
use super::plan::PlannedOrphan;
use crate::{MaintenanceError, Table};

/// A copy goes through memory; larger files stay where they are.
const MOST_BYTES: u64 = 256 << 20;

/// Where the orphans of one execution go.
pub(super) struct Quarantine {
    /// `PREFIX/IDENTITY OF THE TABLE/TIME OF THE LISTING`.
    folder: String,
    roots: Vec<String>,
    records: usize,
}

/// One file that was set aside.
#[derive(Debug, Serialize)]
struct Moved<'a> {
    from: &'a str,
    to: String,
    size: u64,
}

/// What became of a batch.
pub(super) struct SetAside<'a> {
    /// Copied and written down: may be deleted where they were.
    pub(super) copied: Vec<&'a PlannedOrphan>,
    /// Why others were not.
    pub(super) notes: Vec<String>,
}

/// Refuses a prefix in which a table keeps its files: what is set aside there would be found as an orphan again, or be taken for a file of that table.
pub(super) fn check_apart(table: &Table<'_>, prefix: &str, (owner, version): (&str, &TableVersion)) -> Result<(), MaintenanceError> {
    match roots(version).into_iter().find(|root| overlap(prefix, root)) {
        None => Ok(()),
        Some(root) => {
            Err(table.refused(format!("the quarantine {prefix} is not apart from {root}, where `{owner}` has files; give another")))
        }
    }
}

impl Quarantine {
    pub(super) fn new(prefix: &str, version: &TableVersion, (uuid, listed_ms): (Uuid, i64)) -> Self {
        Self { folder: format!("{}/{uuid}/{listed_ms}", prefix.trim_end_matches('/')), roots: roots(version), records: 0 }
    }

    /// Copies files and writes down where they are. A copy that is there already, of a run that died, is written again.
    pub(super) async fn set_aside<'a>(
        &mut self,
        table: &Table<'_>,
        orphans: &[&'a PlannedOrphan],
    ) -> Result<SetAside<'a>, MaintenanceError> {
        let target = table.context.stores.objects(&self.folder)?;
        let (mut done, mut moved) = (SetAside { copied: Vec::new(), notes: Vec::new() }, Vec::new());
        for orphan in orphans {
            let (from, size) = (orphan.location.as_str(), orphan.size);
            if size > MOST_BYTES {
                done.notes.push(format!("{from}: {size} bytes are too many to be copied; left alone"));
                continue;
            }
            let object = table.context.stores.objects(from)?.get(from).await?;
            let Some(object) = object.filter(|object| object.bytes.len() as u64 == size) else {
                done.notes.push(format!("{from}: gone, or another file by now; left alone"));
                continue;
            };
            let to = format!("{}/{}", self.folder, self.below(from));
            target.put(&to, object.bytes, Condition::Always).await?;
            moved.push(Moved { from, to, size });
            done.copied.push(orphan);
        }
        if !moved.is_empty() {
            let record = format!("{}/_moved-{:05}.json", self.folder, self.records);
            let text = serde_json::to_vec_pretty(&moved);
            let text = text.map_err(|error| MaintenanceError::BadPlan(format!("the record of a move cannot be written: {error}")))?;
            target.put(&record, text.into(), Condition::Always).await?;
            self.records += 1;
        }
        Ok(done)
    }

    /// The path below the table's folder; the number keeps apart what two of its folders call the same.
    fn below(&self, location: &str) -> String {
        let found = self.roots.iter().enumerate().find_map(|(number, root)| Some((number, location.strip_prefix(root.as_str())?)));
        found.map_or_else(|| location.replace("://", "/"), |(number, rest)| format!("{number}/{rest}"))
    }
}
