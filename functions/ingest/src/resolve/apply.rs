//! What open changes come to: converted, folded, and all anew without those that only the fold refuses.

use sluice_model::{ChangeEvent, DeclaredType, Rejection, TableSchema};
use sluice_pipeline::settings::TableSettings;
use sluice_pipeline::{ColumnError, Converted, Folded, NameCase, TableContext, convert, fold};
use sluice_table::{BaseUse, TableError, TableVersion, lookup};

/// Changes and the units that they are.
pub(super) type Open<'o, 'd> = [(usize, &'o ChangeEvent<'d>)];

/// What changes are applied to.
pub(super) struct Target<'t> {
    pub(super) settings: &'t TableSettings,
    pub(super) case: NameCase,
    /// The columns that schema change events add.
    pub(super) ddl_columns: &'t [(String, DeclaredType)],
    /// The table as it is, where there is one.
    pub(super) stored: Option<(&'t TableVersion, &'t TableSchema)>,
}

/// A table's open changes, converted and folded.
pub(super) struct Applied {
    pub(super) converted: Converted,
    pub(super) folded: Folded,
    pub(super) base_use: BaseUse,
}

impl Target<'_> {
    pub(super) fn convert(&self, open: &Open<'_, '_>, refused: &[(usize, Rejection)]) -> Result<Converted, TableError> {
        let Self { settings, case, ddl_columns, stored } = *self;
        let context = TableContext { schema: stored.map(|(_, schema)| schema), settings, case, ddl_columns, refused };
        let events: Vec<&ChangeEvent<'_>> = open.iter().map(|(_, event)| *event).collect();
        convert(&events, &context).map_err(|error| column(&error))
    }

    /// Converts and folds. A record that only the fold refuses must leave no trace in the schema either: then all is converted anew without it.
    pub(super) async fn apply(&self, open: &Open<'_, '_>) -> Result<Applied, TableError> {
        let mut refused: Vec<(usize, Rejection)> = Vec::new();
        loop {
            let converted = self.convert(open, &refused)?;
            let (base_use, rows) = self.stored_rows(&converted).await?;
            let folded = fold(&converted, rows.as_ref()).map_err(|error| column(&error))?;
            let more = folded.refused_changes(&converted);
            // Each round takes out at least one record, so there are at most as many rounds as records.
            if more.is_empty() {
                return Ok(Applied { converted, folded, base_use });
            }
            refused.extend(more);
        }
    }

    /// The stored rows of the keys that need them; a delta made from them holds on this snapshot only.
    async fn stored_rows(&self, converted: &Converted) -> Result<(BaseUse, Option<arrow_array::RecordBatch>), TableError> {
        let Some((version, _)) = self.stored else { return Ok((BaseUse::Rebasable, None)) };
        match converted.lookup_keys().map_err(|error| column(&error))? {
            None => Ok((BaseUse::Rebasable, None)),
            Some(keys) => {
                let target = sluice_pipeline::arrow_schema(&converted.schema);
                let stored = lookup(version, &target, &converted.key_ids(), &keys).await?;
                Ok((BaseUse::PinnedToSnapshot, Some(stored)))
            }
        }
    }
}

/// Arrow refused a column, which no input should bring about.
pub(super) fn column(error: &ColumnError) -> TableError {
    TableError::Invalid(error.to_string())
}
