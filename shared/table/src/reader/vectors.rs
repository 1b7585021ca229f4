//! Deletion vectors (rule R3): the deleted positions of one data file as a bitmap, a blob in a Puffin file that may hold those of many data files
//! (Puffin spec, blob type `deletion-vector-v1`; table spec, "Deletion Vectors").

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iceberg::spec::{DataContentType, DataFile, DataFileFormat};
use roaring::{RoaringBitmap, RoaringTreemap};

use super::deletes::widened;
use crate::manifests::LiveEntry;
use crate::{TableError, TableVersion};

const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
/// The bytes of a length and of a checksum.
const WORD: usize = 4;
/// What a container takes besides its values, and what a bitmap of 32 bits takes besides its containers; both as measured, rounded up.
const CONTAINER_BYTES: u64 = 64;
const BITMAP_BYTES: u64 = 512;
/// A container of more than 4,096 values that are no runs.
const BITSET_BYTES: u64 = 8_192;

/// Whether a file's deletes are a deletion vector.
pub(crate) fn is_vector(file: &DataFile) -> bool {
    match file.content_type() {
        DataContentType::PositionDeletes => file.file_format() == DataFileFormat::Puffin,
        DataContentType::Data | DataContentType::EqualityDeletes => false,
    }
}

/// Whether a deletion vector is about that data file.
pub(super) fn applies(vector: &LiveEntry, data: &LiveEntry) -> bool {
    vector.file.referenced_data_file().is_some_and(|path| path == data.file.file_path())
        && data.sequence_number <= vector.sequence_number
        && data.spec_id == vector.spec_id
        && widened(data.file.partition()) == widened(vector.file.partition())
}

/// The data files that have a deletion vector: deletes by position in them do not count any more (rule R2).
///
/// # Errors
/// [`TableError::Invalid`] when one has two.
pub(crate) fn with_vectors<'a>(
    data: impl Iterator<Item = &'a LiveEntry>,
    deletes: impl Iterator<Item = &'a LiveEntry>,
) -> Result<HashSet<String>, TableError> {
    let mut named: HashMap<String, Vec<&LiveEntry>> = HashMap::new();
    for vector in deletes.filter(|delete| is_vector(&delete.file)) {
        named.entry(data_file_of(&vector.file)?).or_default().push(vector);
    }
    let mut found = HashSet::new();
    for data in data.filter(|_| !named.is_empty()) {
        let path = data.file.file_path();
        let vectors = named.get(path).map_or(0, |vectors| vectors.iter().filter(|vector| applies(vector, data)).count());
        if vectors > 1 {
            return Err(TableError::Invalid(format!("{path} has {vectors} deletion vectors in one snapshot, and may have one")));
        }
        found.extend((vectors == 1).then(|| path.to_owned()));
    }
    Ok(found)
}

/// The data file that a vector is about.
pub(super) fn data_file_of(file: &DataFile) -> Result<String, TableError> {
    file.referenced_data_file().ok_or_else(|| wrong(file, "it names no data file"))
}

/// Where the blob is in its file.
fn place_of(file: &DataFile) -> Result<Range<u64>, TableError> {
    let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let (start, size) = (number(file.content_offset()), number(file.content_size_in_bytes()));
    let place = start.zip(size).and_then(|(start, size)| Some(start..start.checked_add(size)?));
    let place = place.ok_or_else(|| wrong(file, "the manifest does not say where it begins and how long it is"))?;
    if place.end > file.file_size_in_bytes() {
        return Err(wrong(file, &format!("the bytes {place:?} are outside of the file, which has {}", file.file_size_in_bytes())));
    }
    Ok(place)
}

/// The bytes that are needed while it is read: the blob, and about as much for the bitmap.
pub(super) fn bytes_to_read(file: &DataFile) -> Result<u64, TableError> {
    let place = place_of(file)?;
    Ok((place.end - place.start).saturating_mul(2).saturating_add(BITMAP_BYTES))
}

/// The deleted positions.
///
/// # Errors
/// [`TableError::Invalid`] when the blob is not what its manifest entry and its own length and checksum say; what the storage said.
pub(super) async fn read(version: &TableVersion, file: &DataFile) -> Result<RoaringTreemap, TableError> {
    let place = place_of(file)?;
    let failed = || TableError::iceberg(format!("reading the deletion vector at byte {} of {}", place.start, file.file_path()));
    let reader = version.file_io.new_input(file.file_path()).map_err(failed())?.reader().await.map_err(failed())?;
    let blob = reader.read(place.clone()).await.map_err(failed())?;
    let positions = parse(&blob).map_err(|what| wrong(file, &what))?;
    if positions.len() != file.record_count() {
        return Err(wrong(file, &format!("it has {} positions, and its manifest says {}", positions.len(), file.record_count())));
    }
    Ok(positions)
}

fn wrong(file: &DataFile, what: &str) -> TableError {
    let at = file.content_offset().map_or_else(String::new, |offset| format!(" at byte {offset}"));
    TableError::Invalid(format!("the deletion vector{at} of {}: {what}; nothing can be told of its data file's rows", file.file_path()))
}

/// Length of magic and bitmap (big endian), magic, a 64-bit Roaring bitmap in its portable format, CRC-32 of magic and bitmap (big endian).
fn parse(blob: &[u8]) -> Result<RoaringTreemap, String> {
    let short = || format!("{} bytes are too few", blob.len());
    let (length, rest) = blob.split_first_chunk::<WORD>().ok_or_else(short)?;
    let (body, checksum) = rest.split_last_chunk::<WORD>().ok_or_else(short)?;
    let length = u32::from_be_bytes(*length);
    if usize::try_from(length) != Ok(body.len()) {
        return Err(format!("its length is {length}, and {} bytes are there", body.len()));
    }
    let mut bitmap = body.strip_prefix(&MAGIC).ok_or("it does not begin with the magic bytes of a deletion vector")?;
    if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
        return Err("its checksum is wrong".to_owned());
    }
    let positions = RoaringTreemap::deserialize_from(&mut bitmap).map_err(|error| format!("it is no bitmap: {error}"))?;
    if !bitmap.is_empty() {
        return Err(format!("{} bytes follow the bitmap", bitmap.len()));
    }
    Ok(positions)
}

/// About the bytes that a bitmap takes, not less.
pub(super) fn bytes_of(positions: &RoaringTreemap) -> u64 {
    positions.bitmaps().map(|(_, bitmap)| BITMAP_BYTES + bytes_of_bitmap(bitmap)).sum()
}

fn bytes_of_bitmap(bitmap: &RoaringBitmap) -> u64 {
    let told = bitmap.statistics();
    let values = u64::from(told.n_values_array_containers) * 2 + u64::from(told.n_bitset_containers) * BITSET_BYTES;
    values + told.n_bytes_run_containers + u64::from(told.n_containers) * CONTAINER_BYTES
}

/// Clears `keep` for the deleted ones of the rows that begin at `start`.
pub(super) fn clear(positions: &RoaringTreemap, start: u64, keep: &mut [bool]) {
    let mut deleted = positions.iter();
    deleted.advance_to(start);
    for position in deleted {
        let Some(row) = usize::try_from(position - start).ok().and_then(|row| keep.get_mut(row)) else { return };
        *row = false;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iceberg::spec::DataFileBuilder;
    use proptest::prelude::*;

    use super::*;

    fn blob(positions: &RoaringTreemap) -> Vec<u8> {
        let mut body = MAGIC.to_vec();
        positions.serialize_into(&mut body).unwrap();
        sealed(&body)
    }

    fn sealed(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&length[..], body, &crc32fast::hash(body).to_be_bytes()].concat()
    }

    #[test]
    fn a_vector_that_is_not_what_it_says_is_refused() {
        let whole = blob(&RoaringTreemap::from_iter([0, 3, 1 << 40]));
        assert_eq!(parse(&whole).unwrap().len(), 3);
        let refused = |blob: &[u8]| parse(blob).unwrap_err();
        assert!(refused(&whole[..7]).contains("too few"));
        assert!(refused(&whole[..whole.len() - 1]).contains("its length is"));
        let with = |at: usize, byte: u8| [&whole[..at], &[byte], &whole[at + 1..]].concat();
        assert!(refused(&with(4, 0)).contains("magic"));
        let last = whole.len() - 1;
        assert!(refused(&with(last, !whole[last])).contains("checksum"));
        let body = &whole[WORD..whole.len() - WORD];
        assert!(refused(&sealed(&body[..body.len() - 1])).contains("no bitmap"));
        assert!(refused(&sealed(&[body, &[0]].concat())).contains("1 bytes follow"));
    }

    /// The bytes of one position, written out by hand from the two specifications.
    #[test]
    fn the_layout_is_that_of_the_specification() {
        let body: &[u8] = &[
            0xD1, 0xD3, 0x39, 0x64, // magic
            1, 0, 0, 0, 0, 0, 0, 0, // one bitmap of 32 bits
            2, 0, 0, 0, // for the positions from 2 * 2^32 on
            0x3A, 0x30, 0, 0, // no run containers
            1, 0, 0, 0, // one container
            1, 0, 0, 0, // for those from 1 * 2^16 on, one value
            16, 0, 0, 0, // where it begins
            7, 0,
        ];
        let positions: Vec<u64> = parse(&sealed(body)).unwrap().into_iter().collect();
        assert_eq!(positions, [(2 << 32) + (1 << 16) + 7]);
    }

    #[test]
    fn an_entry_must_say_which_data_file_and_where() {
        let entry = |place: (Option<i64>, Option<i64>)| {
            let mut builder = DataFileBuilder::default();
            builder.file_path("p.puffin".to_owned()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Puffin);
            builder.record_count(1).file_size_in_bytes(100).content_offset(place.0).content_size_in_bytes(place.1);
            builder.build().unwrap()
        };
        assert_eq!(place_of(&entry((Some(4), Some(96)))).unwrap(), 4..100);
        for (place, said) in [
            ((None, Some(5)), "does not say where"),
            ((Some(4), None), "does not say where"),
            ((Some(-4), Some(5)), "does not say where"),
            ((Some(4), Some(97)), "outside of the file"),
        ] {
            assert!(place_of(&entry(place)).unwrap_err().to_string().contains(said), "{place:?}");
        }
        assert!(data_file_of(&entry((Some(4), Some(96)))).unwrap_err().to_string().contains("names no data file"));
    }

    /// Sparse, dense and contiguous ones, which are kept in three ways.
    fn positions() -> impl Strategy<Value = BTreeSet<u64>> {
        let some = prop::collection::btree_set(prop_oneof![0_u64..200_000, Just(1 << 33), (1_u64 << 32) - 5..(1 << 32) + 5], 0..200);
        (some, 0_u64..100_000, 0_u64..9_000, 1_u64..3).prop_map(|(mut all, start, length, step)| {
            all.extend((start..start + length).step_by(usize::try_from(step).unwrap()));
            all
        })
    }

    proptest! {
        #[test]
        fn what_is_cleared_is_what_is_in_it(all in positions(), start in 0_u64..210_000, rows in 0_usize..9_000) {
            let mut vector: RoaringTreemap = all.iter().copied().collect();
            vector.optimize();
            let read = parse(&blob(&vector)).unwrap();
            prop_assert_eq!(read.iter().collect::<BTreeSet<u64>>(), all.clone());
            let mut keep = vec![true; rows];
            clear(&read, start, &mut keep);
            for (position, keep) in (start..).zip(keep) {
                prop_assert_eq!(keep, !all.contains(&position), "{}", position);
            }
        }

        /// The count is compared with what the allocator was asked for.
        #[test]
        fn it_takes_no_more_memory_than_is_counted(all in positions()) {
            let mut vector: RoaringTreemap = all.into_iter().collect();
            vector.optimize();
            let blob = blob(&vector);
            let (mut counted, mut read) = (0, None);
            let measured = allocation_counter::measure(|| {
                let positions = parse(&blob).unwrap();
                counted = bytes_of(&positions);
                read = Some(positions);
            });
            prop_assert!(u64::try_from(measured.bytes_current).unwrap() <= counted, "{:?} and {} were counted", measured, counted);
        }
    }
}
