//! Partition and sort fields as they are written in the configuration: `day(created_at)`, `bucket(16, id)`, `total desc`.

use std::fmt;

/// A partition or sort transform (Iceberg table spec, "Partition Transforms").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// A hash modulo the number of buckets, which is at least 1.
    Bucket(u32),
    /// The value cut to a width, which is at least 1.
    Truncate(u32),
    /// Years since 1970.
    Year,
    /// Months since 1970-01.
    Month,
    /// Days since 1970-01-01.
    Day,
    /// Hours since 1970-01-01T00.
    Hour,
    /// Always null: a partition field that was given up.
    Void,
}

/// A column and its transform.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransformedColumn {
    /// The column's name.
    pub column: String,
    /// What is done to its values.
    pub transform: Transform,
}

/// One field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortField {
    /// What is compared.
    pub by: TransformedColumn,
    /// Which way.
    pub direction: SortDirection,
}

/// The direction of a sort field. Nulls come first when ascending and last when descending, as Iceberg's defaults are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SortDirection {
    /// Small values first, nulls before them.
    Ascending,
    /// Large values first, nulls behind the small ones.
    Descending,
}

/// A text that is no transform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no transform: {expected}")]
pub struct TransformError {
    text: String,
    expected: &'static str,
}

const EXPECTED: &str = "expected a column, or year(c), month(c), day(c), hour(c), bucket(n, c), truncate(w, c), void(c)";

impl TransformedColumn {
    /// Reads `column`, `identity(column)`, `day(column)`, `bucket(16, column)` and so on.
    ///
    /// # Errors
    /// [`TransformError`] when the text is none of these.
    pub fn parse(text: &str) -> Result<Self, TransformError> {
        let wrong = || TransformError { text: text.to_owned(), expected: EXPECTED };
        let text_trimmed = text.trim();
        let Some((name, arguments)) = text_trimmed.strip_suffix(')').and_then(|inner| inner.split_once('(')) else {
            return column_name(text_trimmed).map(|column| Self { column, transform: Transform::Identity }).ok_or_else(wrong);
        };
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let transform = match (name.trim(), arguments.as_slice()) {
            ("identity", [_]) => Some(Transform::Identity),
            ("year" | "years", [_]) => Some(Transform::Year),
            ("month" | "months", [_]) => Some(Transform::Month),
            ("day" | "days", [_]) => Some(Transform::Day),
            ("hour" | "hours", [_]) => Some(Transform::Hour),
            ("void", [_]) => Some(Transform::Void),
            ("bucket", [count, _]) => width(count).map(Transform::Bucket),
            ("truncate", [width_text, _]) => width(width_text).map(Transform::Truncate),
            _ => None,
        };
        let column = arguments.last().and_then(|column| column_name(column));
        match (transform, column) {
            (Some(transform), Some(column)) => Ok(Self { column, transform }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for TransformedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transform {
            Transform::Identity => f.write_str(&self.column),
            Transform::Bucket(count) => write!(f, "bucket({count}, {})", self.column),
            Transform::Truncate(width) => write!(f, "truncate({width}, {})", self.column),
            Transform::Year => write!(f, "year({})", self.column),
            Transform::Month => write!(f, "month({})", self.column),
            Transform::Day => write!(f, "day({})", self.column),
            Transform::Hour => write!(f, "hour({})", self.column),
            Transform::Void => write!(f, "void({})", self.column),
        }
    }
}

impl SortField {
    /// Reads a transform, optionally followed by `asc` or `desc`.
    ///
    /// # Errors
    /// [`TransformError`] when the text is none.
    pub fn parse(text: &str) -> Result<Self, TransformError> {
        let text = text.trim();
        let (by, direction) = match text.rsplit_once(char::is_whitespace) {
            Some((by, word)) if word.eq_ignore_ascii_case("desc") => (by, SortDirection::Descending),
            Some((by, word)) if word.eq_ignore_ascii_case("asc") => (by, SortDirection::Ascending),
            Some(_) | None => (text, SortDirection::Ascending),
        };
        Ok(Self { by: TransformedColumn::parse(by)?, direction })
    }
}

fn width(text: &str) -> Option<u32> {
    text.parse().ok().filter(|width| (1..=i32::MAX as u32).contains(width))
}

fn column_name(text: &str) -> Option<String> {
    let sound = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    sound.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_are_read() {
        let read = |text: &str| TransformedColumn::parse(text).map(|field| (field.column, field.transform));
        assert_eq!(read("region"), Ok(("region".into(), Transform::Identity)));
        assert_eq!(read(" day( created_at ) "), Ok(("created_at".into(), Transform::Day)));
        assert_eq!(read("bucket(16, id)"), Ok(("id".into(), Transform::Bucket(16))));
        assert_eq!(read("truncate(4,name)"), Ok(("name".into(), Transform::Truncate(4))));
        for text in ["", "bucket(0, id)", "bucket(id)", "day()", "day(a, b)", "weeks(a)", "day(a", "a b", "bucket(16)"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sort_field_has_a_direction() {
        assert_eq!(SortField::parse("a desc").map(|f| f.direction), Ok(SortDirection::Descending));
        assert_eq!(SortField::parse("bucket(4, a)").map(|f| f.direction), Ok(SortDirection::Ascending));
    }
}
