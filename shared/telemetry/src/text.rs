//! Small things that all events need.

/// The longest text of an error in a line, in bytes: a line is at most 256 KB.
pub(crate) const MAX_ERROR_BYTES: usize = 8_192;

/// As much of a text as a line, or a function's error, has room for.
#[must_use]
pub fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_ERROR_BYTES)]
}

/// A count as a metric's value.
pub(crate) fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The sum of counts as a metric's value.
pub(crate) fn total(counts: impl Iterator<Item = u64>) -> i64 {
    i64::try_from(counts.fold(0_u64, u64::saturating_add)).unwrap_or(i64::MAX)
}
