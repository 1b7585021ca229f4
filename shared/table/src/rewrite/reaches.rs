//! Which delete files may touch which data files (rules R1 to R3), and which touch none any more (rule R12).

use std::collections::{HashMap, HashSet};

use iceberg::spec::DataContentType;

use super::files::{Reaches, Scoped};

/// Data files, all of one scope, that deletes may be about.
pub(crate) struct Reached<'a> {
    scope: Option<usize>,
    oldest: i64,
    by_path: HashMap<&'a str, i64>,
}

impl<'a> Reached<'a> {
    pub(crate) fn of(data: &[&'a Scoped]) -> Self {
        let numbers = || data.iter().map(|data| (data.entry.file.file_path(), data.entry.sequence_number));
        let oldest = numbers().map(|(_, number)| number).min().unwrap_or(i64::MAX);
        Self { scope: data.first().map(|data| data.scope), oldest, by_path: numbers().collect() }
    }

    /// Whether deletes of that file may be about rows of one of the data files.
    pub(crate) fn by(&self, delete: &Scoped) -> bool {
        let in_scope = delete.reaches == Reaches::Everything || Some(delete.scope) == self.scope;
        let deleted_at = delete.entry.sequence_number;
        match delete.entry.file.content_type() {
            DataContentType::Data => false,
            DataContentType::EqualityDeletes => in_scope && self.oldest < deleted_at,
            DataContentType::PositionDeletes if in_scope => match delete.entry.file.referenced_data_file() {
                Some(path) => self.by_path.get(path.as_str()).is_some_and(|written_at| *written_at <= deleted_at),
                None => self.oldest <= deleted_at,
            },
            DataContentType::PositionDeletes => false,
        }
    }
}

/// The youngest that deletes must be to touch something: the least data sequence number of each scope, and of all.
#[derive(Debug, Default)]
struct Oldest {
    by_scope: HashMap<usize, i64>,
    of_all: Option<i64>,
}

/// The delete files that touch no live data file, by exact scope: a cold partition does not hold back the deletes of others, and a global delete is held back by every
/// partition. `data` and `deletes` are what is live after the commit.
pub(crate) fn dangling<'a>(data: &[&Scoped], deletes: &[&'a Scoped]) -> Vec<&'a Scoped> {
    let mut oldest = Oldest::default();
    for file in data {
        let number = file.entry.sequence_number;
        oldest.by_scope.entry(file.scope).and_modify(|least| *least = number.min(*least)).or_insert(number);
        oldest.of_all = Some(oldest.of_all.map_or(number, |least| least.min(number)));
    }
    let named: HashSet<String> = deletes.iter().filter_map(|delete| delete.entry.file.referenced_data_file()).collect();
    let live: HashSet<&str> = data.iter().map(|file| file.entry.file.file_path()).filter(|path| named.contains(*path)).collect();
    deletes.iter().copied().filter(|delete| is_dangling(delete, &oldest, &live)).collect()
}

fn is_dangling(delete: &Scoped, oldest: &Oldest, live: &HashSet<&str>) -> bool {
    let least = match delete.reaches {
        Reaches::Everything => oldest.of_all,
        Reaches::Partition => oldest.by_scope.get(&delete.scope).copied(),
    };
    let number = delete.entry.sequence_number;
    match delete.entry.file.content_type() {
        DataContentType::Data => false,
        DataContentType::EqualityDeletes => least.is_none_or(|least| number <= least),
        DataContentType::PositionDeletes => {
            let gone = delete.entry.file.referenced_data_file().is_some_and(|path| !live.contains(path.as_str()));
            gone || least.is_none_or(|least| number < least)
        }
    }
}
