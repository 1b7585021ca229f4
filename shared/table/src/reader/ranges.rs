//! Parts of a file, as the Parquet reader wants them.

use std::ops::Range;

use bytes::{Buf, Bytes, buf::Reader};
use iceberg::io::FileRead;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The first look at the end of a file; most footers are smaller.
const FOOTER_BYTES: u64 = 64 << 10;
/// The length of the footer and the word behind it.
const TAIL_BYTES: u64 = 8;
/// Two parts with no more between them are read in one request.
const GAP_BYTES: u64 = 256 << 10;

/// Parts of a file.
pub(super) struct Ranges {
    /// The file's, where it is known.
    length: u64,
    parts: Vec<(u64, Bytes)>,
}

/// The footer of a file of so many bytes.
pub(super) async fn footer(reader: &dyn FileRead, length: u64) -> iceberg::Result<Ranges> {
    let mut start = length.saturating_sub(FOOTER_BYTES);
    let mut bytes = reader.read(start..length).await?;
    if let Some(footer) = bytes.len().checked_sub(TAIL_BYTES as usize).map(|tail| bytes.slice(tail..).get_u32_le()) {
        let needed = length.saturating_sub(u64::from(footer) + TAIL_BYTES);
        if needed < start {
            start = needed;
            bytes = reader.read(start..length).await?;
        }
    }
    Ok(Ranges { length, parts: vec![(start, bytes)] })
}

/// Reads parts of a file, those that are close to each other together.
pub(super) async fn read(reader: &dyn FileRead, wanted: Vec<Range<u64>>) -> iceberg::Result<Ranges> {
    let mut parts = Vec::new();
    for range in joined(wanted) {
        parts.push((range.start, reader.read(range).await?));
    }
    let length = parts.iter().map(|(start, bytes)| start + bytes.len() as u64).max().unwrap_or(0);
    Ok(Ranges { length, parts })
}

fn joined(mut wanted: Vec<Range<u64>>) -> Vec<Range<u64>> {
    wanted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in wanted {
        match joined.last_mut().filter(|last| range.start <= last.end.saturating_add(GAP_BYTES)) {
            Some(last) => last.end = last.end.max(range.end),
            None => joined.push(range),
        }
    }
    joined
}

impl Length for Ranges {
    fn len(&self) -> u64 {
        self.length
    }
}

impl Ranges {
    fn from(&self, start: u64) -> Result<Bytes> {
        let part = self.parts.iter().find(|(begin, bytes)| (*begin..begin + bytes.len() as u64).contains(&start));
        let (begin, bytes) = part.ok_or_else(|| ParquetError::EOF(format!("the byte {start} is outside of what was read")))?;
        Ok(bytes.slice((start - begin) as usize..))
    }
}

impl ChunkReader for Ranges {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on end outside of what was read")));
        }
        Ok(bytes.slice(..length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_parts_are_read_together_and_far_ones_apart() {
        let far = 2 * GAP_BYTES;
        assert_eq!(joined(vec![10..20, 0..10, 25..30]), [Range { start: 0, end: 30 }]);
        assert_eq!(joined(vec![far..far + 5, 0..10]), [0..10, far..far + 5]);
        assert_eq!(joined(vec![]), []);
    }

    #[test]
    fn what_was_not_read_is_an_error() {
        let ranges = Ranges { length: 100, parts: vec![(10, Bytes::from_static(b"abcdef"))] };
        assert_eq!(ranges.get_bytes(12, 3).unwrap().as_ref(), b"cde");
        assert!(ranges.get_bytes(12, 10).is_err() && ranges.get_bytes(0, 1).is_err() && ranges.get_read(16).is_err());
    }
}
