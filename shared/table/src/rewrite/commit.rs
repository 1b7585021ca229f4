//! Swapping old files for new ones: the `replace` commit.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use iceberg::spec::{DataContentType, ManifestFile, Operation, Snapshot, TableMetadata};
use sluice_model::TableName;
use uuid::Uuid;

use super::emptied::Emptied;
use super::file_set::FileSet;
use super::files::{Reaches, Scoped, Scopes, TableFiles, light};
use super::group::RewrittenGroup;
use super::reaches::dangling;
use crate::commit_loop::{Attempt, Change, Ended, commit, new_identity};
use crate::delta::SpecFile;
use crate::manifests::{Base, LiveEntry, check_format, manifest_entries};
use crate::snapshot_producer::{SnapshotFrame, SnapshotIdentity, Tally, carried, next_timestamp, rewrite_manifest, seal, write_manifests};
use crate::stage::{kept_summary, on_main};
use crate::{CommitContext, StagedChange, TableError, TableOperations, TableVersion};

/// What became of a swap.
#[derive(Debug, Clone)]
pub enum RewriteOutcome {
    /// It is in the table.
    Committed {
        /// The table as the commit, or the look for it, found it.
        version: TableVersion,
        /// The commit's snapshot.
        snapshot_id: i64,
        /// Delete files that touched nothing any more and left the table with it.
        deletes_removed: usize,
        /// How often it was tried.
        attempts: u32,
    },
    /// Some groups do not fit the table any more: their files are gone, or somebody deleted rows in them by position. The others may be committed without them.
    Stale {
        /// The table as it is.
        version: TableVersion,
        /// The places of those groups.
        groups: Vec<usize>,
        /// What has changed.
        reason: String,
    },
}

/// Commits rewritten groups, all in one snapshot, and drops the delete files that touch nothing any more.
///
/// The new files get the sequence number of the snapshot that they were made from (rule R8): deletes that came since still apply to them. Each attempt looks at the table
/// as it is (rule R10). Nothing is ever deleted from storage here.
///
/// # Errors
/// [`TableError`], of class conflict or transient when another run may pass, unknown when the commit may have happened.
pub async fn commit_rewrite(
    ops: &dyn TableOperations,
    (start, groups): (&TableFiles, &[RewrittenGroup]),
    context: &CommitContext<'_>,
) -> Result<RewriteOutcome, TableError> {
    let fits = |group: &RewrittenGroup| group.table_uuid == start.version.metadata.uuid() && group.snapshot_id == start.snapshot_id();
    if groups.is_empty() || !groups.iter().all(fits) {
        return Err(TableError::Invalid("the groups were not made from this snapshot".to_owned()));
    }
    let identity = new_identity(&start.version, context.ids)?;
    let mut change = Rewrite::new(start, groups, identity);
    Ok(match commit(ops, &mut change, (None, context)).await? {
        Ended::Landed { version, attempts } => {
            let deletes_removed = change.dropped;
            RewriteOutcome::Committed { version, snapshot_id: identity.snapshot_id, deletes_removed, attempts }
        }
        Ended::Refused { version, refusal } => RewriteOutcome::Stale { version, groups: refusal.groups, reason: refusal.reason },
    })
}

struct Rewrite<'a> {
    start: &'a TableFiles,
    /// The delete files of the start: those that the groups know of.
    known: FileSet,
    groups: &'a [RewrittenGroup],
    identity: SnapshotIdentity,
    outputs: Vec<SpecFile>,
    /// The manifests of the outputs, written in the first attempt that gets so far.
    added: Option<Vec<ManifestFile>>,
    /// What manifests hold, by path and the row ids that the list gives them: each is read once, however often is tried.
    held: HashMap<(String, Option<u64>), Vec<LiveEntry>>,
    /// The files that leave the table that was judged last.
    leaving: FileSet,
    dropped: usize,
}

/// Which groups do not fit, and why the first does not.
struct Refusal {
    groups: Vec<usize>,
    reason: String,
}

/// The table that a swap is judged on.
struct Head {
    data: HashMap<String, Scoped>,
    deletes: Vec<Scoped>,
    live_deletes: FileSet,
    scopes: Scopes,
}

fn held_by((manifest, files): (&ManifestFile, &[Scoped])) -> ((String, Option<u64>), Vec<LiveEntry>) {
    (key_of(manifest), files.iter().map(|file| file.entry.clone()).collect())
}

fn key_of(manifest: &ManifestFile) -> (String, Option<u64>) {
    (manifest.manifest_path.clone(), manifest.first_row_id)
}

impl<'a> Rewrite<'a> {
    fn new(start: &'a TableFiles, groups: &'a [RewrittenGroup], identity: SnapshotIdentity) -> Self {
        let deletes = start.files.iter().filter(|file| file.entry.file.content_type() != DataContentType::Data);
        Self {
            start,
            known: FileSet::of(deletes.map(|file| &file.entry.file)),
            groups,
            identity,
            outputs: groups.iter().flat_map(|group| group.outputs.iter().cloned()).collect(),
            added: None,
            held: start.by_manifest().map(held_by).collect(),
            leaving: FileSet::default(),
            dropped: 0,
        }
    }

    async fn head(&mut self, base: &mut Base) -> Result<Head, TableError> {
        let manifests: Vec<ManifestFile> = carried(base.manifests().await?).collect();
        let mut head = Head { data: HashMap::new(), deletes: Vec::new(), live_deletes: FileSet::default(), scopes: Scopes::default() };
        for manifest in &manifests {
            let key = key_of(manifest);
            if !self.held.contains_key(&key) {
                let entries = manifest_entries(&base.version, manifest).await?;
                let entries = entries.iter().map(light).collect::<Result<Vec<LiveEntry>, TableError>>()?;
                self.held.insert(key.clone(), entries);
            }
            for entry in &self.held[&key] {
                let scoped = head.scopes.number(entry.clone(), &base.version.metadata);
                match scoped.entry.file.content_type() {
                    DataContentType::Data => drop(head.data.insert(scoped.entry.file.file_path().to_owned(), scoped)),
                    DataContentType::EqualityDeletes | DataContentType::PositionDeletes => head.deletes.push(scoped),
                }
            }
        }
        head.live_deletes = FileSet::of(head.deletes.iter().map(|delete| &delete.entry.file));
        Ok(head)
    }

    /// Why a group does not fit that table (rules R9 and R10).
    fn objection(&self, group: &RewrittenGroup, head: &Head) -> Option<String> {
        for (path, first_row_id) in &group.inputs {
            match head.data.get(path) {
                None => return Some(format!("{path} is not in the table any more")),
                // An upgraded table gives ids to the rows of before in its next snapshot.
                Some(file) if file.entry.first_row_id != *first_row_id => return Some(format!("the rows of {path} have other ids now")),
                Some(_) => {}
            }
        }
        if let Some(gone) = group.applied.missing_in(&head.live_deletes) {
            return Some(format!("{gone}, whose deletes are applied, is not in the table any more"));
        }
        let scope = head.scopes.of(&group.place);
        let new = head.deletes.iter().filter(|delete| !self.known.contains(&delete.entry.file));
        let in_scope = new.filter(|delete| delete.reaches == Reaches::Everything || Some(delete.scope) == scope);
        in_scope
            .map(|delete| &delete.entry)
            .find(|delete| self.disturbs(delete, group))
            .map(|delete| format!("{} deletes rows that are being rewritten", delete.file.file_path()))
    }

    /// Equality deletes that are younger than the outputs apply to them as they do to the inputs; positions do not.
    fn disturbs(&self, delete: &LiveEntry, group: &RewrittenGroup) -> bool {
        match delete.file.content_type() {
            DataContentType::Data => false,
            DataContentType::EqualityDeletes => delete.sequence_number <= self.start.sequence_number(),
            DataContentType::PositionDeletes => delete.file.referenced_data_file().is_none_or(|path| group.inputs.contains_key(&path)),
        }
    }

    /// The files that leave: the inputs, and the deletes that touch nothing of what is live afterwards (rule R12).
    fn find_leaving(&mut self, head: &mut Head, metadata: &TableMetadata) {
        let inputs: HashSet<&str> = self.groups.iter().flat_map(|group| group.inputs.keys()).map(String::as_str).collect();
        let sequence_number = self.start.sequence_number();
        let outputs: Vec<Scoped> = self
            .outputs
            .iter()
            .map(|output| LiveEntry { spec_id: output.spec_id, sequence_number, first_row_id: None, file: output.file.clone() })
            .map(|entry| head.scopes.number(entry, metadata))
            .collect();
        let (goes, stays): (Vec<&Scoped>, Vec<&Scoped>) = head.data.values().partition(|data| inputs.contains(data.entry.file.file_path()));
        let data: Vec<&Scoped> = stays.into_iter().chain(&outputs).collect();
        let deletes: Vec<&Scoped> = head.deletes.iter().collect();
        let dropped = dangling(&data, &deletes);
        self.dropped = dropped.len();
        self.leaving = FileSet::of(goes.into_iter().chain(dropped).map(|file| &file.entry.file));
    }

    async fn snapshot(&mut self, base: &mut Base, attempt: Attempt) -> Result<Snapshot, TableError> {
        let before: Vec<ManifestFile> = carried(base.manifests().await?).collect();
        let version = &base.version;
        let added = match self.added.take() {
            Some(added) => added,
            None => {
                let identity = (self.identity, Some(self.start.sequence_number()));
                write_manifests((&version.file_io, &version.metadata), identity, &self.outputs).await?
            }
        };
        let mut tally = Tally::default();
        self.outputs.iter().for_each(|output| tally.add(output.spec_id, &output.file));
        let mut manifests = added.clone();
        self.added = Some(added);
        let name = format!("{}/metadata/{}-{}", version.metadata.location(), self.identity.commit_id, attempt.number);
        manifests.extend(self.without_leaving(version, before, (&name, &mut tally)).await?);
        let frame = SnapshotFrame {
            identity: self.identity,
            attempt: attempt.number,
            timestamp_ms: next_timestamp(&version.metadata, attempt.now_ms),
            operation: Operation::Replace,
            summary: kept_summary(&version.metadata)?,
        };
        seal(version, frame, (manifests, tally)).await
    }

    /// The manifests that were there, without the files that leave. The names of new ones begin with `name`.
    async fn without_leaving(
        &self,
        version: &TableVersion,
        before: Vec<ManifestFile>,
        (name, tally): (&str, &mut Tally),
    ) -> Result<Vec<ManifestFile>, TableError> {
        let mut manifests = Vec::with_capacity(before.len());
        let mut emptied = Emptied::new(version, self.identity.snapshot_id, name);
        for (number, manifest) in before.into_iter().enumerate() {
            let held = self.held.get(&key_of(&manifest)).map_or(&[][..], Vec::as_slice);
            let leave = held.iter().filter(|entry| self.leaves(entry)).count();
            if leave == 0 {
                manifests.push(manifest);
            } else if leave == held.len() {
                emptied.add(&manifest, tally).await?;
            } else {
                let path = format!("{name}-r{number}.avro");
                let place = (path.as_str(), self.identity.snapshot_id, &mut *tally);
                manifests.extend(rewrite_manifest(version, &manifest, place, &|file| self.leaving.contains(file)).await?);
            }
        }
        manifests.extend(emptied.finish().await?);
        Ok(manifests)
    }

    fn leaves(&self, entry: &LiveEntry) -> bool {
        self.leaving.contains(&entry.file)
    }
}

#[async_trait]
impl Change for Rewrite<'_> {
    type Refusal = Refusal;

    fn table_uuid(&self) -> Uuid {
        self.start.version.metadata.uuid()
    }

    fn has_landed(&self, metadata: &TableMetadata) -> bool {
        metadata.snapshot_by_id(self.identity.snapshot_id).is_some()
    }

    fn unknown(&self, name: TableName, what: String) -> TableError {
        TableError::UnknownOutcome { name, snapshot_id: self.identity.snapshot_id, what }
    }

    async fn judge(&mut self, base: &mut Base, _attempts: u32) -> Result<Option<Refusal>, TableError> {
        check_format(&base.version.metadata)?;
        if !is_ancestor(&base.version.metadata, self.start.snapshot_id()) {
            let reason = format!("snapshot {}, which was read, is no ancestor of the current one any more", self.start.snapshot_id());
            return Ok(Some(Refusal { groups: (0..self.groups.len()).collect(), reason }));
        }
        let mut head = self.head(base).await?;
        let objections = self.groups.iter().enumerate().filter_map(|(number, group)| Some((number, self.objection(group, &head)?)));
        let objections: BTreeMap<usize, String> = objections.collect();
        if let Some(reason) = objections.values().next().cloned() {
            return Ok(Some(Refusal { groups: objections.into_keys().collect(), reason }));
        }
        self.find_leaving(&mut head, &base.version.metadata);
        Ok(None)
    }

    async fn stage(&mut self, base: &mut Base, attempt: Attempt) -> Result<StagedChange, TableError> {
        let snapshot = self.snapshot(base, attempt).await?;
        on_main(&base.version, snapshot, attempt.file_id)
    }
}

/// Whether a snapshot is the current one or one before it. The bound keeps a circle in broken metadata from hanging us.
pub(crate) fn is_ancestor(metadata: &TableMetadata, snapshot_id: i64) -> bool {
    let mut next = metadata.current_snapshot_id();
    for _ in 0..=metadata.snapshots().len() {
        match next {
            None => return false,
            Some(id) if id == snapshot_id => return metadata.snapshot_by_id(id).is_some(),
            Some(id) => next = metadata.snapshot_by_id(id).and_then(|snapshot| snapshot.parent_snapshot_id()),
        }
    }
    false
}
