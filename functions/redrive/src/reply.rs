//! What a redrive answers.

use std::collections::BTreeMap;

use serde::Serialize;
use sluice_model::ReasonCode;

/// What became, or would become, of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Its row or delete is in its table.
    Applied,
    /// Its table has a newer version of the row.
    Stale,
    /// It is no row.
    Control,
    /// A redrive that was interrupted had decided it.
    Decided,
    /// The same record stands in another row of the error table.
    Duplicate,
    /// It is refused again.
    Refused,
    /// It was cut at `errors.max_raw_bytes`: only the source has it.
    Cut,
    /// Its table could not be written; it is queued, and the next run goes on.
    Unfinished,
}

/// Records to which the same happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The table that they are for, where that is known.
    pub table: Option<String>,
    /// Why they were refused.
    pub code: String,
    /// What became of them.
    pub fate: Fate,
    /// Why they are refused now.
    pub refused_as: Option<ReasonCode>,
    /// How many.
    pub records: u64,
    /// One of them: topic:partition:offset.
    pub example: String,
    /// What is wrong with that one now.
    pub detail: Option<String>,
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Unresolved records that were asked for, those of interrupted runs included.
    pub selected: u64,
    /// Of these, records that an interrupted run had begun.
    pub taken_up: u64,
    /// Records by what became of them.
    pub fates: BTreeMap<Fate, u64>,
    /// Records that are refused again, by their new code.
    pub refused_by_code: BTreeMap<ReasonCode, u64>,
    /// Records that were not come to: the time was over, or another run had them.
    pub left: u64,
    /// Resolved records that were opened again because their table was taken back.
    pub reopened: u64,
    /// The same in groups.
    pub groups: Vec<Group>,
    /// What went wrong; the next run goes on.
    pub failures: Vec<String>,
}

/// One record's end.
#[derive(Debug, Clone)]
pub struct Told {
    /// The table it is for, where that is known.
    pub table: Option<String>,
    /// Why it was refused.
    pub code: String,
    /// Where it stood.
    pub place: String,
    /// What became of it.
    pub fate: Fate,
    /// Why it is refused now.
    pub now: Option<(ReasonCode, String)>,
}

impl Reply {
    /// Counts a record.
    pub fn tell(&mut self, told: Told) {
        *self.fates.entry(told.fate).or_default() += 1;
        let refused_as = told.now.as_ref().map(|(code, _)| *code);
        if let Some(code) = refused_as {
            *self.refused_by_code.entry(code).or_default() += 1;
        }
        let same = |group: &&mut Group| {
            group.table == told.table && group.code == told.code && group.fate == told.fate && group.refused_as == refused_as
        };
        match self.groups.iter_mut().find(same) {
            Some(group) => group.records += 1,
            None => self.groups.push(Group {
                table: told.table,
                code: told.code,
                fate: told.fate,
                refused_as,
                records: 1,
                example: told.place,
                detail: told.now.map(|(_, detail)| detail),
            }),
        }
    }

    /// Records of a fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> u64 {
        self.fates.get(&fate).copied().unwrap_or_default()
    }

    /// Selected records that are accounted for nowhere (positive) or twice (negative): always 0.
    #[must_use]
    pub fn unbalanced(&self) -> i64 {
        self.selected.cast_signed() - self.left.cast_signed() - self.fates.values().sum::<u64>().cast_signed()
    }
}
