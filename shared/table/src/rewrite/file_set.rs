//! Sets of files. A path tells files apart, but not deletion vectors: one Puffin file holds those of many data files.

use std::collections::HashSet;

use iceberg::spec::DataFile;

use crate::reader::vectors::is_vector;

/// What tells a deletion vector apart: its file, where it is in it, and its data file.
type VectorId = (String, Option<i64>, Option<String>);

/// Data and delete files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileSet {
    paths: HashSet<String>,
    vectors: HashSet<VectorId>,
}

fn vector_id(file: &DataFile) -> VectorId {
    (file.file_path().to_owned(), file.content_offset(), file.referenced_data_file())
}

impl FileSet {
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a DataFile>) -> Self {
        let mut set = Self::default();
        files.for_each(|file| set.insert(file));
        set
    }

    pub(crate) fn insert(&mut self, file: &DataFile) {
        if is_vector(file) {
            self.vectors.insert(vector_id(file));
        } else {
            self.paths.insert(file.file_path().to_owned());
        }
    }

    pub(crate) fn contains(&self, file: &DataFile) -> bool {
        if is_vector(file) { self.vectors.contains(&vector_id(file)) } else { self.paths.contains(file.file_path()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.paths.len() + self.vectors.len()
    }

    /// The path of the first one that the other set does not have.
    pub(crate) fn missing_in<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let paths = self.paths.difference(&other.paths).map(String::as_str);
        paths.chain(self.vectors.difference(&other.vectors).map(|(path, ..)| path.as_str())).min()
    }
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat};

    use super::*;

    fn vector(offset: i64, data_file: &str) -> DataFile {
        let mut builder = DataFileBuilder::default();
        builder.file_path("shared.puffin".to_owned()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Puffin);
        builder.record_count(1).file_size_in_bytes(1).content_offset(Some(offset)).referenced_data_file(Some(data_file.to_owned()));
        builder.build().unwrap()
    }

    #[test]
    fn two_vectors_of_one_puffin_file_are_two_files() {
        let (first, second) = (vector(4, "a"), vector(50, "b"));
        let set = FileSet::of([&first].into_iter());
        assert!(set.contains(&first) && !set.contains(&second) && !set.contains(&vector(4, "b")));
        let both = FileSet::of([&first, &second].into_iter());
        assert_eq!((both.len(), set.missing_in(&both), both.missing_in(&set)), (2, None, Some("shared.puffin")));
    }
}
