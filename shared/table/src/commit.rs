//! Committing a delta.

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use sluice_model::mutants::{self, Mutant};
use sluice_model::{Clock, Deadline, IdSource, TableName};
use uuid::Uuid;

use crate::commit_loop::{Attempt, Change, Ended, commit, new_identity};
use crate::ledger::{DeltaCoverage, coverage, read};
use crate::manifests::Base;
use crate::snapshot_producer::SnapshotIdentity;
use crate::stage::Staging;
use crate::{BaseUse, PreparedDelta, StagedChange, TableError, TableOperations, TableVersion};

/// Waiting. The runtime's sleeps; that of tests and of the simulation only moves a clock.
#[async_trait]
pub trait Sleep: Send + Sync {
    /// Comes back after `ms` milliseconds.
    async fn sleep(&self, ms: u64);
}

/// How often, and with how much rest in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts to commit.
    pub max_attempts: u32,
    /// The rest after the first failed attempt is up to so long; it doubles from attempt to attempt.
    pub min_wait_ms: u64,
    /// No rest is longer.
    pub max_wait_ms: u64,
    /// The most looks for a commit of unknown outcome.
    pub max_lookups: u32,
}

impl Default for RetryPolicy {
    /// Eight attempts with rests from 100 ms to 5 s, three looks.
    fn default() -> Self {
        Self { max_attempts: 8, min_wait_ms: 100, max_wait_ms: 5_000, max_lookups: 3 }
    }
}

/// What a commit needs besides the table.
#[derive(Clone, Copy)]
pub struct CommitContext<'a> {
    /// The time.
    pub clock: &'a dyn Clock,
    /// Snapshot ids, names of files, jitter.
    pub ids: &'a dyn IdSource,
    /// Waiting between attempts.
    pub sleep: &'a dyn Sleep,
    /// When to give up.
    pub deadline: Deadline,
    /// How often to try.
    pub policy: RetryPolicy,
}

/// Why a delta must be resolved again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// Some of its coordinates were decided by another commit, or cannot be told any more.
    LedgerMoved,
    /// The table has another schema now.
    SchemaChanged,
    /// It was made from stored rows, and the table has another snapshot now.
    SnapshotMoved,
    /// The table is partitioned differently, or has files that are: its deletes would not reach all they must.
    PartitionSpecChanged,
}

/// How a commit ended, if not in an error.
#[derive(Debug, Clone)]
pub enum DeltaOutcome {
    /// It is in the table.
    Committed {
        /// The table as the commit, or the look for it, found it.
        version: TableVersion,
        /// The commit's snapshot.
        snapshot_id: i64,
        /// Data files added.
        data_files: usize,
        /// Delete files added.
        delete_files: usize,
        /// Gaps of the ledger that had to be closed: offsets redelivered from one cannot be told any more.
        gaps_closed: usize,
        /// How often it was tried.
        attempts: u32,
    },
    /// All of it was in the table already.
    AlreadyCommitted {
        /// The table as it is.
        version: TableVersion,
    },
    /// It does not fit the table any more; resolve the batch again against `version`. Its files stay behind as orphans.
    Stale {
        /// The table as it is.
        version: TableVersion,
        /// What has changed.
        reason: StaleReason,
    },
}

/// Commits a delta, exactly once.
///
/// Each attempt looks at the table as it is: the ledger is asked about the very version that the commit replaces, so two overlapping
/// deliveries cannot both pass. Nothing is ever deleted here. Files of a delta that is stale or committed already are orphans, to be
/// removed by age: telling them apart from those of an unknown commit is not worth the risk.
///
/// # Errors
/// [`TableError`], of class conflict or transient when a later delivery may pass, unknown when the commit may have happened.
pub async fn commit_delta(
    ops: &dyn TableOperations,
    prepared: PreparedDelta,
    context: &CommitContext<'_>,
) -> Result<DeltaOutcome, TableError> {
    let identity = new_identity(&prepared.base.version, context.ids)?;
    let base = prepared.base.clone();
    let mut staging = Staging::new(prepared, identity);
    Ok(match commit(ops, &mut staging, (Some(base), context)).await? {
        Ended::Landed { version, attempts } => staging.committed(version, attempts),
        Ended::Refused { version, refusal: Refusal::Decided } => DeltaOutcome::AlreadyCommitted { version },
        Ended::Refused { version, refusal: Refusal::Stale(reason) } => DeltaOutcome::Stale { version, reason },
    })
}

/// Whether a schema added to the one gets the ids that it gets in the other.
fn same_schemas(a: &TableMetadata, b: &TableMetadata) -> bool {
    a.last_column_id() == b.last_column_id() && a.schemas_iter().len() == b.schemas_iter().len()
}

/// Why a delta is not committed on a base.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// All of it is in the table already.
    Decided,
    /// It does not fit.
    Stale(StaleReason),
}

#[async_trait]
impl Change for Staging {
    type Refusal = Refusal;

    fn table_uuid(&self) -> Uuid {
        self.prepared.delta.base.table_uuid
    }

    fn has_landed(&self, metadata: &TableMetadata) -> bool {
        metadata.snapshot_by_id(self.identity.snapshot_id).is_some()
    }

    fn unknown(&self, name: TableName, what: String) -> TableError {
        TableError::UnknownOutcome { name, snapshot_id: self.identity.snapshot_id, what }
    }

    async fn judge(&mut self, base: &mut Base, attempts: u32) -> Result<Option<Refusal>, TableError> {
        match self.coverage(&base.version, attempts)? {
            DeltaCoverage::New => Ok(self.objection(base).await?.map(Refusal::Stale)),
            DeltaCoverage::Decided => Ok(Some(Refusal::Decided)),
            DeltaCoverage::Mixed => Ok(Some(Refusal::Stale(StaleReason::LedgerMoved))),
        }
    }

    async fn stage(&mut self, base: &mut Base, attempt: Attempt) -> Result<StagedChange, TableError> {
        let ledger = read(&base.version.metadata)?;
        self.stage_delta(base, ledger, attempt).await
    }

    fn begin_anew(&mut self, identity: SnapshotIdentity) {
        *self = Self::new(self.prepared.clone(), identity);
    }

    async fn delete_files(&self) {
        for file in self.prepared.files() {
            let _ = self.prepared.base.version.file_io.delete(file.file.file_path()).await;
        }
    }
}

impl Staging {
    /// What the ledger of `base` says of the delta.
    fn coverage(&self, base: &TableVersion, attempts: u32) -> Result<DeltaCoverage, TableError> {
        let PreparedDelta { delta, base: made_on, .. } = &self.prepared;
        if mutants::is(Mutant::SkipLedgerCheck) || mutants::is(Mutant::UnknownIsFailure) && attempts > 1 {
            return Ok(DeltaCoverage::New);
        }
        let asked = if mutants::is(Mutant::CheckBeforeRefresh) { &made_on.version } else { base };
        Ok(coverage(&read(&asked.metadata)?, &delta.applies, &delta.claims))
    }

    async fn objection(&self, base: &mut Base) -> Result<Option<StaleReason>, TableError> {
        let prepared = &self.prepared;
        let (made_on, metadata) = (&prepared.delta.base, base.version.metadata.clone());
        if metadata.current_schema_id() != made_on.schema_id {
            return Ok(Some(StaleReason::SchemaChanged));
        }
        if prepared.schema.is_some() && !same_schemas(&metadata, &prepared.base.version.metadata) {
            return Ok(Some(StaleReason::SchemaChanged));
        }
        if prepared.delta.base_use == BaseUse::PinnedToSnapshot
            && metadata.current_snapshot_id() != made_on.snapshot_id
            && !mutants::is(Mutant::IgnorePin)
        {
            return Ok(Some(StaleReason::SnapshotMoved));
        }
        if metadata.default_partition_spec_id() != prepared.data_spec_id {
            return Ok(Some(StaleReason::PartitionSpecChanged));
        }
        match prepared.scope {
            Some(scope) => scope.objection(base).await,
            None => Ok(None),
        }
    }

    fn committed(&self, version: TableVersion, attempts: u32) -> DeltaOutcome {
        let files = &self.prepared.files;
        let data_files = files.iter().filter(|file| file.file.content_type() == iceberg::spec::DataContentType::Data).count();
        DeltaOutcome::Committed {
            version,
            snapshot_id: self.identity.snapshot_id,
            data_files,
            delete_files: files.len() - data_files,
            gaps_closed: self.gaps_closed(),
            attempts,
        }
    }
}
