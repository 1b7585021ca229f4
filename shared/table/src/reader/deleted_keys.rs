//! Keys that equality deletes name, each with the number of its youngest delete, in the form that is quickest to look up.
//!
//! Most tables have a key of one column, a number or a text. Such keys are looked up as they stand in the column; only others are first made into comparable bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use iceberg::spec::TableMetadata;

use super::key_map::{Inserted, KeyMap, while_growing};
use super::keys::KeyEncoder;
use crate::TableError;

/// Keys of some columns, each with the largest number that it was given.
pub(super) struct DeletedKeys {
    encoder: KeyEncoder,
    store: Store,
    /// The number of the key that is null, where one column is the key.
    null: Option<i64>,
    /// The largest number of all.
    youngest: Option<i64>,
}

enum Store {
    /// By the values of one column.
    Numbers(HashMap<i64, i64>),
    /// By the bytes of one column's values.
    Texts(KeyMap),
    /// By the comparable bytes of all columns.
    Rows(KeyMap),
}

/// The most bytes that keys may take: with the first key, and with each one after it.
pub(super) type Room = (u64, u64);

impl DeletedKeys {
    /// No keys, of the columns with these ids.
    pub(super) fn new(metadata: &TableMetadata, ids: &[i32]) -> Result<Self, TableError> {
        Ok(Self::of(KeyEncoder::new(metadata, ids)?))
    }

    fn of(encoder: KeyEncoder) -> Self {
        let store = match encoder.only_type() {
            Some(kind) if is_whole_number(kind) => Store::Numbers(HashMap::new()),
            Some(DataType::Utf8 | DataType::LargeBinary | DataType::FixedSizeBinary(_)) => Store::Texts(KeyMap::default()),
            Some(_) | None => Store::Rows(KeyMap::default()),
        };
        Self { encoder, store, null: None, youngest: None }
    }

    /// The bytes that the keys take.
    pub(super) fn bytes(&self) -> u64 {
        match &self.store {
            Store::Numbers(keys) => keys.allocation_size() as u64,
            Store::Texts(keys) | Store::Rows(keys) => keys.bytes(),
        }
    }

    /// Whether there is no key.
    pub(super) const fn is_empty(&self) -> bool {
        self.youngest.is_none()
    }

    /// Whether a key may delete rows that were written at that sequence number: an equality delete never applies to rows of its own commit.
    pub(super) fn may_touch(&self, written_at: i64) -> bool {
        self.youngest.is_some_and(|youngest| written_at < youngest)
    }

    /// Adds the keys of a batch as long as there is room; gives how many that are.
    pub(super) fn add(&mut self, rows: &RecordBatch, number: i64, room: Room) -> Result<usize, TableError> {
        let null = &mut self.null;
        let mut known = || {
            *null = (*null).max(Some(number));
            Inserted::Known
        };
        let taken = match &mut self.store {
            Store::Numbers(held) => {
                let keys = whole_numbers(self.encoder.columns(rows)?.column(0));
                insert_all(keys.iter(), room, |key, room| key.map_or_else(&mut known, |key| insert_number(held, (key, number), room)))
            }
            Store::Texts(held) => {
                let keys = self.encoder.columns(rows)?.column(0).clone();
                insert_all(texts(&keys), room, |key, room| key.map_or_else(&mut known, |key| held.insert(key, number, room)))
            }
            Store::Rows(held) => insert_all(self.encoder.encode(rows)?.iter(), room, |key, room| held.insert(key.data(), number, room)),
        };
        if taken > 0 {
            self.youngest = self.youngest.max(Some(number));
        }
        Ok(taken)
    }

    /// Clears `keep` for the rows, written at that sequence number, whose key was deleted later.
    pub(super) fn apply(&self, rows: &RecordBatch, written_at: i64, keep: &mut [bool]) -> Result<(), TableError> {
        match &self.store {
            Store::Numbers(held) => {
                let keys = whole_numbers(self.encoder.columns(rows)?.column(0));
                clear(keep, written_at, keys.iter().map(|key| key.map_or(self.null, |key| held.get(&key).copied())));
            }
            Store::Texts(held) => {
                let keys = self.encoder.columns(rows)?.column(0).clone();
                clear(keep, written_at, texts(&keys).map(|key| key.map_or(self.null, |key| held.get(key))));
            }
            Store::Rows(held) => clear(keep, written_at, self.encoder.encode(rows)?.iter().map(|key| held.get(key.data()))),
        }
        Ok(())
    }
}

fn insert_all<K>(keys: impl Iterator<Item = K>, (mut room, later): Room, mut insert: impl FnMut(K, u64) -> Inserted) -> usize {
    let mut taken = 0;
    for key in keys {
        if insert(key, room) == Inserted::Full {
            break;
        }
        room = later;
        taken += 1;
    }
    taken
}

fn insert_number(held: &mut HashMap<i64, i64>, (key, number): (i64, i64), room: u64) -> Inserted {
    let held_bytes = held.allocation_size();
    let bytes = if held.len() < held.capacity() { held_bytes } else { while_growing(held_bytes) };
    match held.entry(key) {
        Entry::Occupied(mut known) => {
            let larger = number.max(*known.get());
            known.insert(larger);
            Inserted::Known
        }
        Entry::Vacant(_) if bytes as u64 > room => Inserted::Full,
        Entry::Vacant(vacant) => {
            vacant.insert(number);
            Inserted::New
        }
    }
}

fn clear(keep: &mut [bool], written_at: i64, numbers: impl Iterator<Item = Option<i64>>) {
    for (keep, number) in keep.iter_mut().zip(numbers) {
        *keep &= number.is_none_or(|number| number <= written_at);
    }
}

/// The types that [`whole_numbers`] takes.
const fn is_whole_number(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
    )
}

/// Another number for each other value.
fn whole_numbers(column: &ArrayRef) -> Int64Array {
    match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().unary(i64::from),
        DataType::Date32 => column.as_primitive::<Date32Type>().unary(i64::from),
        DataType::Time64(_) => column.as_primitive::<Time64MicrosecondType>().reinterpret_cast(),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => column.as_primitive::<TimestampNanosecondType>().reinterpret_cast(),
        DataType::Timestamp(_, _) => column.as_primitive::<TimestampMicrosecondType>().reinterpret_cast(),
        _ => column.as_primitive::<Int64Type>().clone(),
    }
}

fn texts(column: &ArrayRef) -> Box<dyn Iterator<Item = Option<&[u8]>> + '_> {
    match column.data_type() {
        DataType::Utf8 => Box::new(column.as_string::<i32>().iter().map(|text| text.map(str::as_bytes))),
        DataType::LargeBinary => Box::new(column.as_binary::<i64>().iter()),
        _ => Box::new(column.as_fixed_size_binary().iter()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow_array::{FixedSizeBinaryArray, Int32Array, StringArray, TimestampMicrosecondArray};
    use iceberg::spec::{NestedField, PrimitiveType, Type};
    use proptest::prelude::*;

    use super::*;

    const NO_LIMIT: Room = (u64::MAX, u64::MAX);

    fn encoder(kinds: &[PrimitiveType]) -> KeyEncoder {
        let field = |(id, kind): (i32, &PrimitiveType)| NestedField::optional(id, format!("k{id}"), Type::Primitive(kind.clone())).into();
        KeyEncoder::of((1..).zip(kinds).map(field).collect()).unwrap()
    }

    /// A column of that type in which different numbers, and null, are different values.
    fn column(kind: &PrimitiveType, values: &[Option<i64>]) -> ArrayRef {
        let values = values.iter().copied();
        match kind {
            PrimitiveType::Int => Arc::new(Int32Array::from_iter(values.map(|value| value.map(|value| value as i32)))),
            PrimitiveType::Long => Arc::new(Int64Array::from_iter(values)),
            PrimitiveType::Date => {
                Arc::new(Int32Array::from_iter(values.map(|value| value.map(|value| value as i32))).reinterpret_cast::<Date32Type>())
            }
            PrimitiveType::Time => Arc::new(Int64Array::from_iter(values).reinterpret_cast::<Time64MicrosecondType>()),
            PrimitiveType::Timestamp => Arc::new(Int64Array::from_iter(values).reinterpret_cast::<TimestampMicrosecondType>()),
            PrimitiveType::Timestamptz => Arc::new(TimestampMicrosecondArray::from_iter(values).with_timezone("+00:00")),
            PrimitiveType::TimestampNs => Arc::new(Int64Array::from_iter(values).reinterpret_cast::<TimestampNanosecondType>()),
            // Zero is the empty text, which is not null.
            PrimitiveType::String => Arc::new(StringArray::from_iter(values.map(|value| value.map(|value| "ä".repeat(value as usize))))),
            PrimitiveType::Binary => {
                Arc::new(arrow_array::LargeBinaryArray::from_iter(values.map(|value| value.map(|value| vec![0; value as usize]))))
            }
            PrimitiveType::Uuid => {
                let bytes = values.map(|value| value.map(|value| i128::from(value).to_be_bytes()));
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap())
            }
            other => panic!("{other}"),
        }
    }

    fn batch(encoder: &KeyEncoder, kinds: &[PrimitiveType], values: &[Option<i64>]) -> RecordBatch {
        let columns = kinds.iter().map(|kind| column(kind, values)).collect();
        RecordBatch::try_new(encoder.schema(), columns).unwrap()
    }

    fn kinds() -> impl Strategy<Value = Vec<PrimitiveType>> {
        use PrimitiveType::{Binary, Date, Int, Long, String, Time, Timestamp, TimestampNs, Timestamptz, Uuid};
        let one = [Int, Long, Date, Time, Timestamp, Timestamptz, TimestampNs, String, Binary, Uuid];
        prop_oneof![4 => prop::sample::select(one.to_vec()).prop_map(|kind| vec![kind]), 1 => Just(vec![Long, String])]
    }

    fn values() -> impl Strategy<Value = Vec<Option<i64>>> {
        prop::collection::vec(prop::option::weighted(0.8, 0_i64..12), 0..20)
    }

    proptest! {
        #[test]
        fn a_row_is_deleted_when_its_key_was_deleted_later(
            kinds in kinds(),
            deletes in prop::collection::vec((1_i64..9, values()), 0..5),
            rows in values(),
            written_at in 0_i64..10,
        ) {
            let mut keys = DeletedKeys::of(encoder(&kinds));
            let mut youngest: BTreeMap<Option<i64>, i64> = BTreeMap::new();
            for (number, deleted) in &deletes {
                let taken = keys.add(&batch(&keys.encoder, &kinds, deleted), *number, NO_LIMIT).unwrap();
                prop_assert_eq!(taken, deleted.len());
                deleted.iter().for_each(|key| *youngest.entry(*key).or_default() = (*number).max(youngest.get(key).copied().unwrap_or(0)));
            }
            prop_assert_eq!(keys.is_empty(), youngest.is_empty());
            let expected: Vec<bool> = rows.iter().map(|key| youngest.get(key).is_none_or(|number| *number <= written_at)).collect();
            let mut keep = vec![true; rows.len()];
            keys.apply(&batch(&keys.encoder, &kinds, &rows), written_at, &mut keep).unwrap();
            prop_assert!(keys.may_touch(written_at) || !keep.contains(&false));
            prop_assert_eq!(keep, expected);
        }

        #[test]
        fn keys_that_do_not_fit_are_left_for_later(kinds in kinds(), count in 1_i64..3_000, room in 0_u64..40_000) {
            let mut keys = DeletedKeys::of(encoder(&kinds));
            let texts = kinds.contains(&PrimitiveType::String) || kinds.contains(&PrimitiveType::Binary);
            let all: Vec<Option<i64>> = (0..if texts { count / 30 + 1 } else { count }).map(Some).collect();
            let rows = batch(&keys.encoder, &kinds, &all);
            let (mut taken, mut portions) = (0, 0);
            while taken < all.len() {
                keys = DeletedKeys::of(encoder(&kinds));
                let more = keys.add(&rows.slice(taken, all.len() - taken), 1, (u64::MAX, room)).unwrap();
                prop_assert!(more == 1 || (more > 1 && keys.bytes() <= room), "{more} keys take {} of {room} bytes", keys.bytes());
                taken += more;
                portions += 1;
            }
            prop_assert!(portions <= all.len());
        }
    }
}
