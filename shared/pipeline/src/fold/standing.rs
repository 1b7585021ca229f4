//! What changes touch, for those who must know before they are applied: records that come late, after others of their table.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::Fields;

use super::Upsert;
use crate::arrow_types::relaxed_field;
use crate::convert::ColumnError;
use crate::converted::Converted;
use crate::keys::Keys;
use crate::reshape::align;
use crate::unit::{Action, KeyAt};

/// What a change does to the rows that a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Nothing: a row is added, whatever is there.
    Adds,
    /// It replaces or deletes the row of a key and, when the key was changed, that of the old one.
    Keys {
        /// The key's row in [`Touches::keys`].
        key: usize,
        /// That of the old key.
        old: Option<usize>,
    },
    /// All rows go.
    Everything,
    /// It is no row.
    Nothing,
}

/// What the accepted changes of a batch touch.
#[derive(Debug, Default)]
pub struct Touches {
    /// By the event's index in the batch, ascending.
    pub of: Vec<(usize, Touch)>,
    /// The keys, each once, with the key columns only; `None` when there are none.
    pub keys: Option<RecordBatch>,
}

/// How a change's version stands to that of the stored row of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is higher.
    Newer,
    /// It is the same or lower.
    NotNewer,
    /// There is no row, it is only marked as deleted, or one of the two has no version.
    Untold,
}

impl Converted {
    /// What each accepted change touches.
    ///
    /// # Errors
    /// [`ColumnError`] when Arrow refuses a column, which no input should bring about.
    pub fn touches(&self) -> Result<Touches, ColumnError> {
        if self.plan.key.is_empty() {
            let of = self.units.iter().map(|unit| (unit.event, touch_without_key(unit.action))).collect();
            return Ok(Touches { of, keys: None });
        }
        let keys = Keys::new(&self.tables, &self.plan, None)?;
        let mut distinct: Vec<KeyAt> = Vec::new();
        let mut known: HashMap<&[u8], usize> = HashMap::new();
        let mut number = |key: KeyAt| {
            *known.entry(keys.bytes(key)).or_insert_with(|| {
                distinct.push(key);
                distinct.len() - 1
            })
        };
        let mut of = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let touch = match unit.action {
                Action::Upsert { row, old_key } => {
                    Touch::Keys { key: number(KeyAt::Row(row)), old: old_key.map(|old| number(KeyAt::Key(old))) }
                }
                Action::Delete { key } => Touch::Keys { key: number(KeyAt::Key(key)), old: None },
                Action::Append(_) | Action::Truncate | Action::Control => touch_without_key(unit.action),
            };
            of.push((unit.event, touch));
        }
        let keys = if distinct.is_empty() { None } else { Some(self.key_batch(&distinct)?) };
        Ok(Touches { of, keys })
    }

    /// Whether a column of the table is the version of its changes.
    #[must_use]
    pub const fn has_version_column(&self) -> bool {
        self.plan.version.is_some()
    }

    /// How each accepted change's version stands to that of the stored row of its key. `stored` holds the rows of [`Self::lookup_keys`]. Empty when no
    /// column is the version.
    ///
    /// # Errors
    /// [`ColumnError`] when Arrow refuses a column, which no input should bring about.
    pub fn standings(&self, stored: &RecordBatch) -> Result<Vec<(usize, Standing)>, ColumnError> {
        let Some(version) = self.plan.version else { return Ok(Vec::new()) };
        let fields: Fields = self.schema.columns.iter().map(relaxed_field).collect();
        let upsert = Upsert::new(self, Some(align(stored, &fields)?))?;
        let rows: HashMap<&[u8], usize> = upsert.keys.stored().enumerate().map(|(row, key)| (key, row)).collect();
        let mut standings = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let key = match unit.action {
                Action::Upsert { row, .. } => KeyAt::Row(row),
                Action::Delete { key } => KeyAt::Key(key),
                Action::Append(_) | Action::Truncate | Action::Control => continue,
            };
            let row = rows.get(upsert.keys.bytes(key)).copied().filter(|row| !upsert.is_marked(*row));
            let held = row.and_then(|row| crate::version::Version::of_cell(upsert.sources.stored.as_ref()?.get(version)?, row));
            let standing = match (upsert.version(unit, key), held) {
                (Some(own), Some(held)) => match own.compare(&held) {
                    Some(std::cmp::Ordering::Greater) => Standing::Newer,
                    Some(std::cmp::Ordering::Equal | std::cmp::Ordering::Less) => Standing::NotNewer,
                    None => Standing::Untold,
                },
                (_, None) | (None, Some(_)) => Standing::Untold,
            };
            standings.push((unit.event, standing));
        }
        Ok(standings)
    }
}

impl Upsert<'_> {
    /// Whether a stored row is marked as deleted.
    fn is_marked(&self, row: usize) -> bool {
        let column = self.converted.plan.soft_delete.and_then(|index| self.sources.stored.as_ref()?.get(index));
        column.and_then(|column| column.as_boolean_opt()).is_some_and(|marks| marks.is_valid(row) && marks.value(row))
    }
}

const fn touch_without_key(action: Action) -> Touch {
    match action {
        Action::Append(_) | Action::Upsert { .. } | Action::Delete { .. } => Touch::Adds,
        Action::Truncate => Touch::Everything,
        Action::Control => Touch::Nothing,
    }
}
