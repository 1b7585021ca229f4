//! Which rows, and in which batches. Pure.

use std::collections::HashSet;

use sluice_deadletter::{Entry, EntryId, Settled, Size};

use crate::Selection;

/// A batch has at most so many records.
pub const MAX_RECORDS: usize = 1_000;
/// The keys and values of a batch have at most so many bytes together, if it has more than one record.
pub const MAX_BYTES: usize = 16 << 20;

/// Rows that are delivered together. They come from one partition: then what the batch brings is older than what comes after it, and a later batch can tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// The rows to be tried again, in the order of their records, or of their numbers when they have them.
    pub ids: Vec<EntryId>,
    /// Other unresolved rows of the same records.
    pub duplicates: Vec<EntryId>,
    bytes: usize,
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Chosen {
    /// Rows that an interrupted run has queued.
    pub begun: Vec<Rows>,
    /// Rows that are not queued.
    pub fresh: Vec<Rows>,
    /// Rows whose record is not whole.
    pub cut: Vec<Entry>,
}

/// Chooses from all rows of a source, which are in the order of their records.
#[must_use]
pub fn choose(entries: &[Entry], selection: &Selection) -> Chosen {
    let mut chosen = Chosen::default();
    let mut begun: Vec<&Entry> = entries.iter().filter(|entry| entry.is_queued()).collect();
    begun.sort_by(|a, b| (&a.id.key, a.redrive_offset).cmp(&(&b.id.key, b.redrive_offset)));
    begun.into_iter().for_each(|entry| add(&mut chosen.begun, (entry, Part::Tried)));
    let doubles = doubles(entries);
    let mut left = selection.limit;
    for entry in entries.iter().filter(|entry| entry.settled == Settled::Open && !entry.is_queued() && selection.selects(entry)) {
        if left == 0 {
            break;
        }
        left -= 1;
        match entry.size {
            Size::Cut => chosen.cut.push(entry.clone()),
            Size::Whole(_) if doubles.contains(&entry.id) => add(&mut chosen.fresh, (entry, Part::Double)),
            Size::Whole(_) => add(&mut chosen.fresh, (entry, Part::Tried)),
        }
    }
    chosen
}

/// Unresolved rows whose record stands in another row too: one that was applied, or the newest unresolved one.
fn doubles(entries: &[Entry]) -> HashSet<&EntryId> {
    let same = |a: &Entry, b: &Entry| a.id.key == b.id.key && a.id.coordinate == b.id.coordinate;
    let mut doubles = HashSet::new();
    for group in entries.chunk_by(same).filter(|group| group.len() > 1) {
        let is_applied = |entry: &Entry| matches!(&entry.settled, Settled::Resolved(how) if how == "applied" || how == "decided");
        let is_taken = group.iter().any(|entry| is_applied(entry) || entry.is_queued());
        let mut open: Vec<&EntryId> =
            group.iter().filter(|entry| entry.settled == Settled::Open && !entry.is_queued()).map(|entry| &entry.id).collect();
        let kept = if is_taken { None } else { open.pop() };
        doubles.extend(open.into_iter().filter(|id| Some(*id) != kept));
    }
    doubles
}

/// What a row is in its batch.
#[derive(Clone, Copy)]
enum Part {
    Tried,
    Double,
}

fn add(batches: &mut Vec<Rows>, (entry, part): (&Entry, Part)) {
    let bytes = match entry.size {
        Size::Whole(bytes) => bytes,
        Size::Cut => 0,
    };
    let fits = |rows: &Rows| {
        let first = rows.ids.first().or(rows.duplicates.first());
        first.is_some_and(|first| first.key == entry.id.key)
            && rows.ids.len() + rows.duplicates.len() < MAX_RECORDS
            && rows.bytes.saturating_add(bytes) <= MAX_BYTES
    };
    if !batches.last().is_some_and(fits) {
        batches.push(Rows::default());
    }
    if let Some(rows) = batches.last_mut() {
        rows.bytes = rows.bytes.saturating_add(bytes);
        match part {
            Part::Tried => rows.ids.push(entry.id.clone()),
            Part::Double => rows.duplicates.push(entry.id.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::{Coordinate, PartitionKey};

    use super::*;
    use crate::Request;

    fn entry(partition: i32, offset: i64, arrived_at_us: i64) -> Entry {
        let key = PartitionKey { source: "erp".into(), epoch: 0, topic: "t".into(), partition };
        Entry {
            id: EntryId { key, coordinate: Coordinate::record(offset), arrived_at_us },
            stage: "convert".to_owned(),
            code: "TYPE_MISMATCH".to_owned(),
            target: Some("erp.orders".to_owned()),
            size: Size::Whole(10),
            settled: Settled::Open,
            redrive_offset: None,
            attempts: 0,
        }
    }

    fn all() -> Selection {
        Request::default().selection().unwrap()
    }

    #[test]
    fn batches_are_of_one_partition_and_bounded() {
        let mut entries: Vec<Entry> = (0..2_500).map(|offset| entry(0, offset, 1)).collect();
        entries.push(entry(1, 0, 1));
        let sizes: Vec<usize> = choose(&entries, &all()).fresh.iter().map(|rows| rows.ids.len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 500, 1]);
        entries.iter_mut().for_each(|entry| entry.size = Size::Whole(MAX_BYTES));
        assert_eq!(choose(&entries[..3], &all()).fresh.len(), 3, "large records go alone");
    }

    #[test]
    fn what_is_resolved_queued_or_cut_is_not_fresh() {
        let mut entries: Vec<Entry> = (0..4).map(|offset| entry(0, offset, 1)).collect();
        entries[0].settled = Settled::Resolved("applied".to_owned());
        entries[1].redrive_offset = Some(7);
        entries[2].size = Size::Cut;
        let chosen = choose(&entries, &all());
        assert_eq!((chosen.begun[0].ids.len(), chosen.cut.len(), chosen.fresh[0].ids.len()), (1, 1, 1));
        let limited = Request { limit: Some(1), ..Request::default() }.selection().unwrap();
        assert_eq!((choose(&entries, &limited).cut.len(), choose(&entries, &limited).fresh.len()), (1, 0));
    }

    #[test]
    fn of_several_rows_of_a_record_the_newest_is_tried() {
        let entries = [entry(0, 5, 1), entry(0, 5, 2), entry(0, 6, 1)];
        let fresh = choose(&entries, &all()).fresh;
        assert_eq!(fresh[0].duplicates, [entries[0].id.clone()]);
        assert_eq!(fresh[0].ids, [entries[1].id.clone(), entries[2].id.clone()]);
        let mut applied = entries.clone();
        applied[0].settled = Settled::Resolved("applied".to_owned());
        let fresh = choose(&applied, &all()).fresh;
        assert_eq!((fresh[0].duplicates.len(), fresh[0].ids.len()), (1, 1), "one is applied, so no other is");
    }
}
