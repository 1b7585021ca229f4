//! The one commit loop.

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use sluice_model::mutants::{self, Mutant};
use sluice_model::{Clock, Deadline, IdSource, TableName};
use uuid::Uuid;

use crate::ledger::{DeltaCoverage, coverage, read};
use crate::manifests::Base;
use crate::snapshot_producer::SnapshotIdentity;
use crate::stage::{Attempt, Staging};
use crate::{BaseUse, CommitError, PreparedDelta, TableError, TableOperations, TableVersion};

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
    let mut loop_ = CommitLoop { ops, context, staging: Staging::new(prepared, identity), attempts: 0 };
    loop_.run(base).await
}

/// Random ids meet by accident never, but the bound makes a broken source of ids an error and not a hang.
fn new_identity(version: &TableVersion, ids: &dyn IdSource) -> Result<SnapshotIdentity, TableError> {
    for _ in 0..8 {
        // The highest bit is the sign; 0 is no id.
        let snapshot_id = (ids.next_u128() as u64 >> 1).cast_signed();
        if snapshot_id > 0 && version.metadata.snapshot_by_id(snapshot_id).is_none() {
            return Ok(SnapshotIdentity { snapshot_id, commit_id: Uuid::from_u128(ids.next_u128()) });
        }
    }
    Err(TableError::Invalid("the source of ids repeats itself".to_owned()))
}

/// Whether a schema added to the one gets the ids that it gets in the other.
fn same_schemas(a: &TableMetadata, b: &TableMetadata) -> bool {
    a.last_column_id() == b.last_column_id() && a.schemas_iter().len() == b.schemas_iter().len()
}

struct CommitLoop<'a> {
    ops: &'a dyn TableOperations,
    context: &'a CommitContext<'a>,
    staging: Staging,
    attempts: u32,
}

/// What an attempt came to.
enum Step {
    Done(DeltaOutcome),
    /// Nothing was changed; try again after a rest.
    Again(String),
}

impl CommitLoop<'_> {
    async fn run(&mut self, first: Base) -> Result<DeltaOutcome, TableError> {
        let mut base = Some(first);
        let mut last = String::new();
        while self.attempts < self.context.policy.max_attempts.max(1) {
            self.check_deadline()?;
            self.attempts += 1;
            match self.attempt(base.take()).await? {
                Step::Done(outcome) => return Ok(outcome),
                Step::Again(why) => last = why,
            }
            if self.attempts < self.context.policy.max_attempts {
                self.rest().await;
            }
        }
        Err(TableError::OutOfAttempts { name: self.name(), attempts: self.attempts, last })
    }

    fn name(&self) -> TableName {
        self.ops.name().clone()
    }

    fn check_deadline(&self) -> Result<(), TableError> {
        if self.context.deadline.has_passed(self.context.clock.now_ms()) {
            return Err(TableError::Deadline { name: self.name(), attempts: self.attempts });
        }
        Ok(())
    }

    /// Rests for a random part of a time that doubles, never beyond the deadline.
    async fn rest(&self) {
        let doubled = self.context.policy.min_wait_ms.saturating_mul(1_u64 << (self.attempts - 1).min(20));
        let most = doubled.min(self.context.policy.max_wait_ms).max(1);
        let part = (self.context.ids.next_u128() % u128::from(most)) as u64 + 1;
        let left = self.context.deadline.remaining_ms(self.context.clock.now_ms()).max(0).cast_unsigned();
        self.context.sleep.sleep(part.min(left)).await;
    }

    async fn attempt(&mut self, base: Option<Base>) -> Result<Step, TableError> {
        let mut base = match base {
            Some(base) => base,
            None => match self.ops.refresh().await {
                Ok(version) => Base::new(version),
                Err(error) if error.class().may_pass_later() => return Ok(Step::Again(error.to_string())),
                Err(error) => return Err(error),
            },
        };
        match self.check(&mut base).await {
            Ok(None) => self.try_on(&mut base).await,
            Ok(Some(outcome)) => Ok(Step::Done(outcome)),
            Err(error) if error.class().may_pass_later() => Ok(Step::Again(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Whether the delta is in the base already, or does not fit it.
    async fn check(&self, base: &mut Base) -> Result<Option<DeltaOutcome>, TableError> {
        let version = base.version.clone();
        self.check_same_table(&version)?;
        // A catalog may have told a conflict or a transient failure that was none.
        if version.metadata.snapshot_by_id(self.staging.identity.snapshot_id).is_some() {
            return Ok(Some(self.committed(version)));
        }
        let stale = |reason| Ok(Some(DeltaOutcome::Stale { version: version.clone(), reason }));
        match self.coverage(&version)? {
            DeltaCoverage::New => {}
            DeltaCoverage::Decided => return Ok(Some(DeltaOutcome::AlreadyCommitted { version })),
            DeltaCoverage::Mixed => return stale(StaleReason::LedgerMoved),
        }
        match self.objection(base).await? {
            Some(reason) => stale(reason),
            None => Ok(None),
        }
    }

    /// What the ledger of `base` says of the delta.
    fn coverage(&self, base: &TableVersion) -> Result<DeltaCoverage, TableError> {
        let PreparedDelta { delta, base: made_on, .. } = &self.staging.prepared;
        if mutants::is(Mutant::SkipLedgerCheck) || mutants::is(Mutant::UnknownIsFailure) && self.attempts > 1 {
            return Ok(DeltaCoverage::New);
        }
        let asked = if mutants::is(Mutant::CheckBeforeRefresh) { &made_on.version } else { base };
        Ok(coverage(&read(&asked.metadata)?, &delta.applies, &delta.claims))
    }

    fn check_same_table(&self, base: &TableVersion) -> Result<(), TableError> {
        let (expected, found) = (self.staging.prepared.delta.base.table_uuid, base.metadata.uuid());
        if expected == found {
            return Ok(());
        }
        Err(TableError::Replaced { name: self.name(), expected: expected.to_string(), found: found.to_string() })
    }

    async fn objection(&self, base: &mut Base) -> Result<Option<StaleReason>, TableError> {
        let prepared = &self.staging.prepared;
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

    async fn try_on(&mut self, base: &mut Base) -> Result<Step, TableError> {
        let attempt = Attempt { number: self.attempts, now_ms: self.context.clock.now_ms(), file_id: self.context.ids.next_u128() };
        let change = match self.staging.stage(base, read(&base.version.metadata)?, attempt).await {
            Ok(change) => change,
            Err(error) if error.class().may_pass_later() => return Ok(Step::Again(error.to_string())),
            Err(error) => return Err(error),
        };
        match self.ops.commit(&base.version, &change).await {
            Ok(version) => Ok(Step::Done(self.committed(version))),
            Err(error @ (CommitError::Conflict | CommitError::Transient { .. })) => Ok(Step::Again(error.to_string())),
            Err(CommitError::Unknown { .. }) if mutants::is(Mutant::UnknownIsSuccess) => {
                Ok(Step::Done(self.committed(base.version.clone())))
            }
            Err(CommitError::Unknown { what, .. }) if mutants::is(Mutant::UnknownIsFailure) => {
                self.staging = Staging::new(self.staging.prepared.clone(), new_identity(&base.version, self.context.ids)?);
                Ok(Step::Again(what))
            }
            Err(CommitError::Unknown { what, .. }) => self.look_up(what).await.map(Step::Done),
            Err(CommitError::Fatal { what, source }) => Err(TableError::Catalog { class: sluice_model::Class::Fatal, what, source }),
        }
    }

    /// After an unknown outcome: the table tells. Not finding the snapshot proves nothing, for the request may still be on its way; so
    /// there is no other attempt (rule C2).
    async fn look_up(&self, what: String) -> Result<DeltaOutcome, TableError> {
        let snapshot_id = self.staging.identity.snapshot_id;
        for _ in 0..self.context.policy.max_lookups.max(1) {
            if let Ok(version) = self.ops.refresh().await
                && version.metadata.snapshot_by_id(snapshot_id).is_some()
            {
                return Ok(self.committed(version));
            }
            if self.context.deadline.has_passed(self.context.clock.now_ms()) {
                break;
            }
            self.rest().await;
        }
        if mutants::is(Mutant::DeleteAfterUnknown) {
            for file in self.staging.prepared.files() {
                let _ = self.staging.prepared.base.version.file_io.delete(file.file.file_path()).await;
            }
        }
        Err(TableError::UnknownOutcome { name: self.name(), snapshot_id, what })
    }

    fn committed(&self, version: TableVersion) -> DeltaOutcome {
        let files = &self.staging.prepared.files;
        let data_files = files.iter().filter(|file| file.file.content_type() == iceberg::spec::DataContentType::Data).count();
        DeltaOutcome::Committed {
            version,
            snapshot_id: self.staging.identity.snapshot_id,
            data_files,
            delete_files: files.len() - data_files,
            gaps_closed: self.staging.gaps_closed(),
            attempts: self.attempts,
        }
    }
}
