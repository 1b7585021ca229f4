//! Taking snapshots out of a table's metadata.

use async_trait::async_trait;
use iceberg::TableRequirement;
use iceberg::spec::TableMetadata;
use sluice_model::TableName;
use uuid::Uuid;

use super::retention::{Expirable, Retention, expirable, references};
use crate::commit_loop::{Attempt, Change, Ended, commit};
use crate::creation::at_time;
use crate::ledger::{property_change, read};
use crate::manifests::Base;
use crate::stage::staged;
use crate::{CommitContext, StagedChange, TableError, TableOperations, TableVersion};

/// What became of an expiry.
#[derive(Debug, Clone)]
pub enum ExpireOutcome {
    /// The snapshots are out of the metadata.
    Committed {
        /// The table as the commit, or the look for it, found it.
        version: TableVersion,
        /// How often it was tried.
        attempts: u32,
    },
    /// Something of it must stay by now: a branch or tag was made, or the table was rolled back. Plan again.
    Stale {
        /// The table as it is.
        version: TableVersion,
    },
}

/// Takes snapshots and references out of the metadata, if they may still go by `retention` on the very version that the commit replaces (rule R19).
///
/// # Errors
/// [`TableError`], of class conflict or transient when another run may pass, unknown when the commit may have happened.
pub async fn commit_expire(
    ops: &dyn TableOperations,
    (version, what, retention): (&TableVersion, &Expirable, &Retention),
    context: &CommitContext<'_>,
) -> Result<ExpireOutcome, TableError> {
    let mut change = Expire { table_uuid: version.metadata.uuid(), what, retention, now_ms: context.clock.now_ms() };
    Ok(match commit(ops, &mut change, (None, context)).await? {
        Ended::Landed { version, attempts } => ExpireOutcome::Committed { version, attempts },
        Ended::Refused { version, refusal: Moved } => ExpireOutcome::Stale { version },
    })
}

struct Expire<'a> {
    table_uuid: Uuid,
    what: &'a Expirable,
    retention: &'a Retention,
    /// One time for all attempts, so that what may go is judged alike.
    now_ms: i64,
}

struct Moved;

#[async_trait]
impl Change for Expire<'_> {
    type Refusal = Moved;

    fn table_uuid(&self) -> Uuid {
        self.table_uuid
    }

    /// A snapshot never comes back, so it does not matter who took it out.
    fn has_landed(&self, metadata: &TableMetadata) -> bool {
        let refs = references(metadata);
        self.what.snapshots.iter().all(|id| metadata.snapshot_by_id(*id).is_none())
            && self.what.refs.iter().all(|name| !refs.iter().any(|(held, _)| held == name))
    }

    fn unknown(&self, name: TableName, what: String) -> TableError {
        TableError::UnknownChange { name, what }
    }

    async fn judge(&mut self, base: &mut Base, _attempts: u32) -> Result<Option<Moved>, TableError> {
        let now = expirable(&base.version.metadata, self.retention, self.now_ms);
        let gone = |id: &i64| base.version.metadata.snapshot_by_id(*id).is_none();
        let fits = self.what.snapshots.iter().all(|id| now.snapshots.contains(id) || gone(id)) && self.what.refs.is_subset(&now.refs);
        Ok(if fits { None } else { Some(Moved) })
    }

    async fn stage(&mut self, base: &mut Base, attempt: Attempt) -> Result<StagedChange, TableError> {
        let wrong = || TableError::iceberg("building the table's next metadata");
        let (version, ids) = (&base.version, self.what.snapshots.iter().copied().collect::<Vec<i64>>());
        let mut builder = version.metadata.as_ref().clone().into_builder(Some(version.metadata_location.clone()));
        for name in &self.what.refs {
            builder = builder.remove_ref(name);
        }
        builder = builder.remove_snapshots(&ids);
        for id in &ids {
            builder = builder.remove_statistics(*id).remove_partition_statistics(*id);
        }
        // Where the ancestry ends, the ledger is read from the properties: after a rollback they are ahead of it.
        let ledger = property_change(&version.metadata, &read(&version.metadata)?);
        builder = builder.set_properties(ledger.set).and_then(|builder| builder.remove_properties(&ledger.removed)).map_err(wrong())?;
        let mut result = builder.build().map_err(wrong())?;
        result.metadata = at_time(&result.metadata, attempt.now_ms.max(version.metadata.last_updated_ms()))?;
        let mut requirements = vec![TableRequirement::UuidMatch { uuid: version.metadata.uuid() }];
        requirements.extend(
            references(&version.metadata)
                .into_iter()
                .map(|(name, reference)| TableRequirement::RefSnapshotIdMatch { r#ref: name, snapshot_id: Some(reference.snapshot_id) }),
        );
        Ok(staged(version, result, (requirements, attempt.file_id)))
    }
}
