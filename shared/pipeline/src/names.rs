//! How a field finds its column, and what an added column is called (CONFIG, "Names").

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use sluice_model::Column;

/// How names are folded: the route's result, and the columns that are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameCase {
    /// Names are folded to lower case.
    Lower,
    /// Names keep their case.
    Preserve,
}

impl NameCase {
    /// `name`, folded.
    #[must_use]
    pub fn fold(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Lower if name.chars().any(char::is_uppercase) => Cow::Owned(name.to_lowercase()),
            Self::Lower | Self::Preserve => Cow::Borrowed(name),
        }
    }
}

/// Names that Iceberg reserves for metadata columns.
const RESERVED: [&str; 10] = [
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
];

/// The name that a column gets when it is added for a field called `name`.
#[must_use]
pub fn safe_name(name: &str, case: NameCase) -> String {
    let folded = case.fold(name);
    let mut safe = String::with_capacity(folded.len() + 1);
    if folded.starts_with(char::is_numeric) {
        safe.push('_');
    }
    safe.extend(folded.chars().map(|character| if is_word(character) { character } else { '_' }));
    if safe.is_empty() || RESERVED.contains(&safe.to_lowercase().as_str()) {
        safe.push('_');
    }
    safe
}

/// A letter of any script, a digit or `_`. Marks that stand on a letter (as in Hindi or Thai) belong to it.
fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Finds columns by field name: exactly, then without regard to case, then by the safe name.
#[derive(Debug)]
pub(crate) struct NameIndex {
    exact: HashMap<String, usize>,
    folded: HashMap<String, usize>,
    seen: HashMap<String, Option<usize>>,
    case: NameCase,
}

impl NameIndex {
    pub(crate) fn new(columns: &[Column], case: NameCase) -> Self {
        let exact = columns.iter().enumerate().map(|(index, column)| (column.name.clone(), index)).collect();
        let mut folded = HashMap::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            folded.entry(column.name.to_lowercase()).or_insert(index);
        }
        Self { exact, folded, seen: HashMap::new(), case }
    }

    /// The index of the column that a field called `name` fills. Names that were asked before are remembered.
    pub(crate) fn find(&mut self, name: &str) -> Option<usize> {
        if let Some(known) = self.exact.get(name) {
            return Some(*known);
        }
        if let Some(known) = self.seen.get(name) {
            return *known;
        }
        let found = self.search(name);
        self.seen.insert(name.to_owned(), found);
        found
    }

    fn search(&self, name: &str) -> Option<usize> {
        let by_case = || self.folded.get(&name.to_lowercase()).copied();
        let by_safe_name = || {
            let safe = safe_name(name, self.case);
            self.exact.get(&safe).or_else(|| self.folded.get(&safe.to_lowercase())).copied()
        };
        by_case().or_else(by_safe_name)
    }
}

/// The names of an object's fields in order, with the columns that they fill: the next object mostly has the same.
#[derive(Debug, Default)]
pub(crate) struct FieldOrder {
    fields: Vec<(String, Option<usize>)>,
}

impl FieldOrder {
    /// The index of the column that the field at `position` fills. Positions are asked in ascending order.
    #[inline]
    pub(crate) fn find(&mut self, names: &mut NameIndex, position: usize, name: &str) -> Option<usize> {
        match self.fields.get_mut(position) {
            Some((expected, target)) if expected == name => *target,
            Some((expected, target)) => {
                name.clone_into(expected);
                *target = names.find(name);
                *target
            }
            None => {
                let target = names.find(name);
                self.fields.push((name.to_owned(), target));
                target
            }
        }
    }
}

/// The index of the column that `name` means.
pub(crate) fn find_column(columns: &[Column], name: &str, case: NameCase) -> Option<usize> {
    let exact = columns.iter().position(|column| column.name == name);
    let lower = name.to_lowercase();
    let by_case = || columns.iter().position(|column| column.name.to_lowercase() == lower);
    let by_safe_name = || {
        let safe = safe_name(name, case);
        let folded = safe.to_lowercase();
        let same = columns.iter().position(|column| column.name == safe);
        same.or_else(|| columns.iter().position(|column| column.name.to_lowercase() == folded))
    };
    exact.or_else(by_case).or_else(by_safe_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::ColumnType;

    #[test]
    fn safe_names() {
        for (name, safe) in [
            ("A.B", "a_b"),
            ("unit price", "unit_price"),
            ("한글", "한글"),
            ("9lives", "_9lives"),
            ("_file", "_file_"),
            ("_POS", "_pos_"),
            ("/BIC/ZREGION", "_bic_zregion"),
            ("ok_1", "ok_1"),
            ("", "_"),
        ] {
            assert_eq!(safe_name(name, NameCase::Lower), safe, "{name}");
        }
        assert_eq!(safe_name("Unit-Price", NameCase::Preserve), "Unit_Price");
    }

    #[test]
    fn a_field_finds_its_column_exactly_then_by_case_then_by_safe_name() {
        let columns =
            ["userId", "userid", "unit_price"].iter().enumerate().map(|(i, name)| Column::optional(i as i32, *name, ColumnType::Int));
        let columns: Vec<_> = columns.collect();
        let mut index = NameIndex::new(&columns, NameCase::Lower);
        for (name, found) in [("userid", Some(1)), ("userId", Some(0)), ("USERID", Some(0)), ("Unit.Price", Some(2)), ("unit_price_", None)]
        {
            assert_eq!(index.find(name), found, "{name}");
            assert_eq!(index.find(name), found, "{name} again");
            assert_eq!(find_column(&columns, name, NameCase::Lower), found, "{name}");
        }
    }
}
