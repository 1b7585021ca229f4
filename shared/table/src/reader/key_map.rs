//! Keys with numbers in little memory: one entry a key, the keys one after the other in one buffer, and a count of what both take.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Bytes of a number, and of the length of a key, which stand before each key.
const NUMBER: usize = 8;
const HEAD: usize = NUMBER + 4;
/// No buffer begins smaller.
const SMALLEST: usize = 256;

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is there now, for the first time.
    New,
    /// It was there; the larger number stays.
    Known,
    /// There is no room for it; nothing has changed.
    Full,
}

/// Keys, each with the largest number that it was given.
#[derive(Default)]
pub(crate) struct KeyMap {
    /// Where the record of each key begins.
    places: HashTable<u32>,
    /// Number, length and bytes of each key.
    records: Vec<u8>,
    hasher: DefaultHashBuilder,
}

fn key_at(records: &[u8], place: u32) -> &[u8] {
    let start = place as usize + HEAD;
    let mut length = [0; 4];
    length.copy_from_slice(&records[start - 4..start]);
    &records[start..start + u32::from_le_bytes(length) as usize]
}

fn number_at(records: &[u8], place: u32) -> i64 {
    let mut number = [0; NUMBER];
    number.copy_from_slice(&records[place as usize..place as usize + NUMBER]);
    i64::from_le_bytes(number)
}

/// What something takes while it grows: the old and the new, which is twice as large.
pub(crate) const fn while_growing(bytes: usize) -> usize {
    bytes + if bytes > SMALLEST { 2 * bytes } else { 2 * SMALLEST }
}

impl KeyMap {
    /// The hash of a key, the same as long as this map lives.
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// Adds a key, unless the map would then take more than `room` bytes at any moment.
    pub(crate) fn insert(&mut self, key: &[u8], number: i64, room: u64) -> Inserted {
        let hash = self.hash(key);
        if let Some(place) = self.places.find(hash, |place| key_at(&self.records, *place) == key).copied() {
            let larger = number.max(number_at(&self.records, place));
            self.records[place as usize..place as usize + NUMBER].copy_from_slice(&larger.to_le_bytes());
            return Inserted::Known;
        }
        let (place, length) = (u32::try_from(self.records.len()), u32::try_from(key.len()));
        let (Ok(place), Ok(length), true) = (place, length, self.bytes_with(key) <= room) else { return Inserted::Full };
        let needs = self.records.len() + HEAD + key.len();
        if needs > self.records.capacity() {
            let larger = (2 * self.records.capacity()).max(needs);
            self.records.reserve_exact(larger - self.records.len());
        }
        self.records.extend_from_slice(&number.to_le_bytes());
        self.records.extend_from_slice(&length.to_le_bytes());
        self.records.extend_from_slice(key);
        let (records, hasher) = (&self.records, &self.hasher);
        self.places.insert_unique(hash, place, |place| {
            let mut state = hasher.build_hasher();
            state.write(key_at(records, *place));
            state.finish()
        });
        Inserted::New
    }

    /// The largest number of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<i64> {
        let place = self.places.find(self.hash(key), |place| key_at(&self.records, *place) == key)?;
        Some(number_at(&self.records, *place))
    }

    /// The bytes that the keys and the table of their places take.
    pub(crate) fn bytes(&self) -> u64 {
        (self.places.allocation_size() + self.records.capacity()) as u64
    }

    /// The most bytes that are taken while a new key is added.
    fn bytes_with(&self, key: &[u8]) -> u64 {
        let (table, records) = (self.places.allocation_size(), self.records.capacity());
        let table = if self.places.len() < self.places.capacity() { table } else { while_growing(table) };
        let needs = self.records.len() + HEAD + key.len();
        let records = if needs <= records { records } else { while_growing(records).max(records + needs) };
        (table + records) as u64
    }

    /// Forgets the keys and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.records.clear();
    }

    /// Whether there is no key.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> [u8; 9] {
        let mut key = [1; 9];
        key[1..].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn one_entry_a_key_with_its_largest_number() {
        let mut map = KeyMap::default();
        assert!(map.is_empty());
        assert_eq!(map.insert(b"a", 5, u64::MAX), Inserted::New);
        assert_eq!(map.insert(b"a", 3, u64::MAX), Inserted::Known);
        assert_eq!(map.insert(b"", 1, u64::MAX), Inserted::New);
        assert_eq!((map.get(b"a"), map.get(b""), map.get(b"b")), (Some(5), Some(1), None));
        map.insert(b"a", 9, 0);
        assert_eq!(map.get(b"a"), Some(9), "a key that is there needs no room");
        map.clear();
        assert_eq!((map.get(b"a"), map.is_empty()), (None, true));
    }

    /// The count is compared with what the allocator was asked for.
    #[test]
    fn it_never_takes_more_than_the_room_it_is_given() {
        for room in [10_000_u64, 100_000, 1_000_000] {
            let mut kept = 0_u64;
            let measured = allocation_counter::measure(|| {
                let mut map = KeyMap::default();
                while map.insert(&key(kept), 1, room) == Inserted::New {
                    kept += 1;
                }
                assert!((0..kept).all(|number| map.get(&key(number)) == Some(1)));
                assert_eq!(map.insert(&key(kept), 1, room), Inserted::Full);
            });
            assert!(measured.bytes_max <= room, "{} bytes with a room of {room}", measured.bytes_max);
            assert!(kept * 150 > room, "the room is used: {kept} keys in {room} bytes");
        }
    }

    #[test]
    fn a_key_that_comes_again_takes_no_more_memory() {
        let mut map = KeyMap::default();
        (0..1_000).for_each(|number| assert_eq!(map.insert(&key(number), 1, u64::MAX), Inserted::New));
        let bytes = map.bytes();
        for file in 2..50 {
            (0..1_000).for_each(|number| assert_eq!(map.insert(&key(number), file, u64::MAX), Inserted::Known));
        }
        assert_eq!(map.bytes(), bytes);
        assert_eq!(map.get(&key(7)), Some(49));
    }
}
