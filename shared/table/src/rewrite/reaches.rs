//! Which delete files may touch which data files (rules R1 and R2), and which touch none any more (rule R12).

use std::collections::{HashMap, HashSet};

use iceberg::spec::DataContentType;

use super::files::{Reaches, Scoped};

/// Whether deletes of that file may be about rows of one of these data files, which are all of one scope.
pub(crate) fn may_touch(delete: &Scoped, data: &[&Scoped]) -> bool {
    data.iter().any(|data| touches(delete, data))
}

fn touches(delete: &Scoped, data: &Scoped) -> bool {
    let in_scope = delete.reaches == Reaches::Everything || delete.scope == data.scope;
    let (deleted_at, written_at) = (delete.entry.sequence_number, data.entry.sequence_number);
    match delete.entry.file.content_type() {
        DataContentType::Data => false,
        DataContentType::EqualityDeletes => in_scope && written_at < deleted_at,
        DataContentType::PositionDeletes => {
            let named = delete.entry.file.referenced_data_file();
            in_scope && written_at <= deleted_at && named.is_none_or(|path| path == data.entry.file.file_path())
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
