//! What to compact. Pure: from facts about files to groups of files.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use sluice_model::TableName;
use sluice_table::rewrite::{FileFacts, Reaches};
use sluice_table::{FileContent, TableVersion};
use uuid::Uuid;

use super::due::{burden, not_due};
use super::{Burden, CompactSettings};
use crate::Plan;

/// The table as planning needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its name.
    pub table: TableName,
    /// Its identity.
    pub uuid: Uuid,
    /// The snapshot that was looked at; `None` when there is none.
    pub snapshot_id: Option<i64>,
    /// Commits of writers since the last compaction that the metadata still knows of.
    pub commits: u64,
    /// Milliseconds since that compaction, if there is one.
    pub since_last_ms: Option<i64>,
    /// Why the whole table cannot be compacted, if so.
    pub obstacle: Option<String>,
}

impl Head {
    /// That of a version.
    #[must_use]
    pub fn of(name: &TableName, version: &TableVersion, now_ms: i64) -> Self {
        let metadata = &version.metadata;
        let (mut commits, mut since_last_ms) = (0, None);
        for snapshot in sluice_table::markers::ancestry(metadata, metadata.current_snapshot_id()) {
            if snapshot.summary().operation.as_str() == "replace" {
                // The clocks of two machines differ.
                since_last_ms = Some(now_ms.saturating_sub(snapshot.timestamp_ms()).max(0));
                break;
            }
            commits += 1;
        }
        Self {
            table: name.clone(),
            uuid: metadata.uuid(),
            snapshot_id: metadata.current_snapshot_id(),
            commits,
            since_last_ms,
            obstacle: sluice_table::manifests::check_format(metadata).err().map(|error| error.to_string()),
        }
    }
}

/// Why a group is worth rewriting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Many small files.
    SmallFiles,
    /// Many deletes.
    Deletes,
}

/// A data file that will be read and replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Where it is.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its rows.
    pub records: u64,
}

/// Data files of one partition that become new ones together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedGroup {
    /// Their partition spec.
    pub spec_id: i32,
    /// Their partition, for people.
    pub partition: String,
    /// Why.
    pub why: Why,
    /// The files.
    pub files: Vec<PlannedFile>,
    /// The most delete files that apply to one of them.
    pub delete_files: usize,
}

impl PlannedGroup {
    /// The bytes that will be read, deletes not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Files of the table that a reader no longer opens for each byte that is rewritten: the groups that help most go first.
    fn gain(&self) -> u64 {
        let opened = self.files.len().saturating_sub(1) + self.delete_files.saturating_mul(self.files.len());
        (opened as u64).saturating_mul(1 << 30) / self.bytes().max(1)
    }
}

/// What to do with one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionPlan {
    /// The table that was looked at.
    pub head: Head,
    /// What the table's readers have to bear now.
    pub burden: Burden,
    /// What to rewrite, what helps most first.
    pub groups: Vec<PlannedGroup>,
    /// Groups beyond the bytes of one run; a later run does them.
    pub later: usize,
    /// What cannot be rewritten, and why.
    pub obstacles: Vec<String>,
    /// Why nothing is done, when that is for another reason than that there is nothing to do.
    pub not_due: Option<String>,
}

/// Delete files by what they reach, as sorted sequence numbers.
#[derive(Default)]
struct DeleteDebt<'a> {
    global: Vec<i64>,
    equality: BTreeMap<usize, Vec<i64>>,
    /// Those that name no data file.
    positions: BTreeMap<usize, Vec<i64>>,
    /// By scope and data file: positions in it, or its deletion vector.
    named: HashMap<(usize, &'a str), Vec<i64>>,
}

impl<'a> DeleteDebt<'a> {
    fn of(facts: &'a [FileFacts]) -> Self {
        let mut debt = Self::default();
        for file in facts {
            match (file.content, file.reaches) {
                (FileContent::Data, _) => {}
                (FileContent::EqualityDeletes, Reaches::Everything) => debt.global.push(file.sequence_number),
                (FileContent::EqualityDeletes, Reaches::Partition) => {
                    debt.equality.entry(file.scope).or_default().push(file.sequence_number)
                }
                (FileContent::PositionDeletes, _) => match &file.data_file {
                    Some(path) => debt.named.entry((file.scope, path)).or_default().push(file.sequence_number),
                    None => debt.positions.entry(file.scope).or_default().push(file.sequence_number),
                },
            }
        }
        debt.global.sort_unstable();
        debt.equality.values_mut().for_each(|numbers| numbers.sort_unstable());
        debt
    }

    /// How many delete files may touch a data file (rules R1 to R3).
    fn on(&self, data: &FileFacts) -> usize {
        let younger = |numbers: &[i64]| numbers.len() - numbers.partition_point(|number| *number <= data.sequence_number);
        let equality = self.equality.get(&data.scope).map_or(0, |numbers| younger(numbers));
        let named = self.named.get(&(data.scope, data.path.as_str()));
        let positions = self.positions.get(&data.scope).into_iter().chain(named).flatten();
        let positions = positions.filter(|number| data.sequence_number <= **number).count();
        younger(&self.global) + equality + positions
    }
}

/// Plans the compaction of a table. The same facts give the same plan.
#[must_use]
pub fn plan(head: Head, facts: &[FileFacts], settings: &CompactSettings) -> CompactionPlan {
    let burden = burden(facts, settings);
    let why_not = head.obstacle.clone().or_else(|| not_due(&head, burden, settings));
    if why_not.is_some() {
        return CompactionPlan { head, burden, groups: Vec::new(), later: 0, obstacles: Vec::new(), not_due: why_not };
    }
    let (debt, mut obstacles) = (DeleteDebt::of(facts), Vec::new());
    let mut by_scope: BTreeMap<usize, Vec<(&FileFacts, usize)>> = BTreeMap::new();
    for file in facts.iter().filter(|file| file.content == FileContent::Data) {
        let deletes = debt.on(file);
        let wanted = file.bytes < settings.small_bytes() || deletes >= settings.min_delete_files;
        match &file.obstacle {
            Some(obstacle) if wanted => obstacles.push(obstacle.clone()),
            None if wanted => by_scope.entry(file.scope).or_default().push((file, deletes)),
            Some(_) | None => {}
        }
    }
    obstacles.sort_unstable();
    obstacles.dedup();
    let mut groups: Vec<PlannedGroup> = by_scope.into_values().flat_map(|files| pack(files, settings)).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.gain()));
    let all = groups.len();
    let mut bytes = 0_u64;
    groups.retain(|group| {
        let first = bytes == 0;
        bytes = bytes.saturating_add(group.bytes().max(1));
        first || bytes <= settings.max_bytes
    });
    CompactionPlan { head, burden, later: all - groups.len(), groups, obstacles, not_due: None }
}

/// Groups of the files of one partition, in the order of their writing, so that rows that were written together stay together.
fn pack(mut files: Vec<(&FileFacts, usize)>, settings: &CompactSettings) -> Vec<PlannedGroup> {
    files.sort_by(|(a, _), (b, _)| (a.sequence_number, &a.path).cmp(&(b.sequence_number, &b.path)));
    let mut packed: Vec<Vec<(&FileFacts, usize)>> = Vec::new();
    let mut bytes = 0_u64;
    for file in files {
        match packed.last_mut().filter(|_| bytes.saturating_add(file.0.bytes) <= settings.max_group_bytes) {
            Some(group) => group.push(file),
            None => {
                packed.push(vec![file]);
                bytes = 0;
            }
        }
        bytes = bytes.saturating_add(file.0.bytes);
    }
    packed.iter().filter_map(|files| group(files, settings)).collect()
}

fn group(files: &[(&FileFacts, usize)], settings: &CompactSettings) -> Option<PlannedGroup> {
    let (first, _) = files.first()?;
    let delete_files = files.iter().map(|(_, deletes)| *deletes).max().unwrap_or(0);
    let why = if delete_files >= settings.min_delete_files {
        Why::Deletes
    } else if files.len() >= settings.min_input_files {
        Why::SmallFiles
    } else {
        return None;
    };
    let files = files.iter().map(|(file, _)| PlannedFile { path: file.path.clone(), bytes: file.bytes, records: file.records }).collect();
    Some(PlannedGroup { spec_id: first.spec_id, partition: first.partition.clone(), why, files, delete_files })
}

impl Plan for CompactionPlan {
    fn burden(&self) -> Option<Burden> {
        Some(self.burden)
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn headline(&self) -> String {
        if let Some(why) = &self.not_due {
            return format!("{}: not now: {why}", self.head.table);
        }
        let files: usize = self.groups.iter().map(|group| group.files.len()).sum();
        let bytes: u64 = self.groups.iter().map(PlannedGroup::bytes).sum();
        let later = if self.later > 0 { format!(", {} groups later", self.later) } else { String::new() };
        let stuck = if self.obstacles.is_empty() { String::new() } else { format!("; not rewritable: {}", self.obstacles.join("; ")) };
        format!("{}: {files} files in {} groups, {bytes} bytes{later}{stuck}", self.head.table, self.groups.len())
    }

    fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let rows = self.groups.iter().map(|group| {
            let why = match group.why {
                Why::SmallFiles => "small files",
                Why::Deletes => "deletes",
            };
            let records: u64 = group.files.iter().map(|file| file.records).sum();
            let counts = [group.files.len() as u64, records, group.bytes(), group.delete_files as u64];
            let mut row = vec![group.partition.clone(), group.spec_id.to_string(), why.to_owned()];
            row.extend(counts.map(|count| count.to_string()));
            row
        });
        (vec!["partition", "spec", "why", "files", "rows", "bytes", "delete files"], rows.collect())
    }
}
