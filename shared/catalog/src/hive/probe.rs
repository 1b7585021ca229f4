//! Whether a server compares the expected metadata location: it cannot be asked, so it is tried on a view of our own.

use hive_metastore::{Table, ThriftHiveMetastoreCreateTableException as CreateTableException};
use sluice_model::{Class, TableName};
use sluice_table::TableError;

use super::commit::Altered;
use super::connection::metastore_error;
use super::entry::{METADATA_LOCATION, place_of};
use super::store::HivePointers;
use crate::HiveLock;

/// Why a setting cannot be followed, and what to do.
pub(super) const NEVER_HERE: &str =
    "this metastore ignores the expected metadata location, so commits without a lock would lose others'; set catalog.hive.lock = \"auto\"";

const PROBING: &str = "finding out whether it compares the expected location";

impl HivePointers {
    /// Whether the server compares the expected location. Tried once in the life of this catalog, in the database of `name`.
    pub(super) async fn compares_expected(&self, name: &TableName) -> Result<bool, TableError> {
        self.compares.get_or_try_init(|| self.probe(name)).await.copied()
    }

    /// How commits are kept apart on this server, tried in the database that every metastore has.
    pub(super) async fn describe_locking(&self) -> Result<String, TableError> {
        let name = TableName::parse("default.sluice").ok_or_else(|| TableError::Invalid("`default` is no database".to_owned()))?;
        let found = match (self.compares_expected(&name).await, self.config.lock) {
            (Ok(true), _) => "the metastore compares the expected metadata location".to_owned(),
            (Ok(false), HiveLock::Auto | HiveLock::Always) => "the metastore ignores the expected metadata location".to_owned(),
            (Ok(false), HiveLock::Never) => return Err(TableError::Unsupported(NEVER_HERE.to_owned())),
            (Err(error), HiveLock::Never) => return Err(error),
            (Err(error), HiveLock::Auto | HiveLock::Always) => {
                format!("whether the metastore compares the expected metadata location could not be found out ({error})")
            }
        };
        let how = match (self.config.lock, self.compares.get()) {
            (HiveLock::Never, _) => "commits take no lock: every other writer must do the same (engine.hive.lock-enabled = false)",
            (HiveLock::Auto, Some(true)) => "commits take the table's lock, but not for tables with engine.hive.lock-enabled = false",
            (HiveLock::Auto, Some(false) | None) | (HiveLock::Always, _) => "commits take the table's lock",
        };
        Ok(format!("{found}; {how}"))
    }

    /// A view has no files, so nothing is made in the storage; it is dropped again whatever was found.
    async fn probe(&self, name: &TableName) -> Result<bool, TableError> {
        let scratch = self.scratch(name)?;
        match self.connection.call(async |client| client.create_table(scratch.clone()).await).await {
            Ok(Ok(())) => {}
            Ok(Err(CreateTableException::O2(error))) => return Err(refused(&error)),
            Ok(Err(exception)) => return Err(refused(&exception)),
            Err(error) => return Err(error.reading(PROBING)),
        }
        let found = self.try_on(&scratch).await;
        let (database, table) = (scratch.db_name.unwrap_or_default(), scratch.table_name.unwrap_or_default());
        // Left behind if this fails; a view of that name disturbs nobody.
        let _ = self.connection.call(async |client| client.drop_table(database, table, false).await).await;
        found
    }

    fn scratch(&self, name: &TableName) -> Result<Table, TableError> {
        let (database, _) = place_of(name)?;
        let id = self.services.ids.next_u128();
        Ok(Table {
            table_name: Some(format!("sluice_probe_{id:032x}").into()),
            db_name: Some(database),
            owner: Some(self.config.user.clone().into()),
            table_type: Some("VIRTUAL_VIEW".into()),
            view_original_text: Some("SELECT 1".into()),
            view_expanded_text: Some("SELECT 1".into()),
            partition_keys: Some(Vec::new()),
            sd: Some(hive_metastore::StorageDescriptor {
                cols: Some(Vec::new()),
                serde_info: Some(hive_metastore::SerDeInfo::default()),
                ..Default::default()
            }),
            parameters: Some([(METADATA_LOCATION.into(), "a".into())].into_iter().collect()),
            ..Table::default()
        })
    }

    /// The right expectation must pass and a wrong one must not: only both together say that it is compared.
    async fn try_on(&self, scratch: &Table) -> Result<bool, TableError> {
        for (expected, new) in [("a", "b"), ("a", "c")] {
            let mut entry = scratch.clone();
            entry.parameters.get_or_insert_default().insert(METADATA_LOCATION.into(), new.into());
            let answer = self.alter_expecting(entry, expected).await.map_err(|error| error.reading(PROBING))?;
            match (answer, new) {
                (Altered::Done, "b") => {}
                (Altered::Done, _) => return Ok(false),
                (Altered::Excepted(exception), "b") => return Err(refused(&exception)),
                (Altered::Excepted(_), _) => {}
            }
        }
        let place = (scratch.db_name.clone().unwrap_or_default(), scratch.table_name.clone().unwrap_or_default());
        let now = self.entry(place).await?.and_then(|table| table.parameters?.get(METADATA_LOCATION).map(ToString::to_string));
        Ok(now.as_deref() == Some("b"))
    }
}

fn refused(exception: &dyn std::fmt::Debug) -> TableError {
    metastore_error(Class::Transient, PROBING, &format!("the scratch view could not be made or changed: {exception:?}"))
}
