//! The one commit loop: a change is judged on the table as it is, staged, committed, and after an unknown outcome looked for.

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use sluice_model::mutants::{self, Mutant};
use sluice_model::{IdSource, TableName};
use uuid::Uuid;

use crate::manifests::Base;
use crate::snapshot_producer::SnapshotIdentity;
use crate::{CommitContext, CommitError, StagedChange, TableError, TableOperations, TableVersion};

/// What one attempt adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) now_ms: i64,
    pub(crate) file_id: u128,
}

/// A change on its way into a table. What stays the same over all attempts is in it.
#[async_trait]
pub(crate) trait Change: Send + Sync {
    /// Why it does not fit a base.
    type Refusal: Send;

    /// The table that it was made for.
    fn table_uuid(&self) -> Uuid;

    /// Whether it is in the table.
    fn has_landed(&self, metadata: &TableMetadata) -> bool;

    /// The error of a change that may be in the table or not.
    fn unknown(&self, name: TableName, what: String) -> TableError;

    /// Why the change must not be made on that base, if so. Asked about the very version that the commit replaces.
    async fn judge(&mut self, base: &mut Base, attempts: u32) -> Result<Option<Self::Refusal>, TableError>;

    /// The change on that base.
    async fn stage(&mut self, base: &mut Base, attempt: Attempt) -> Result<StagedChange, TableError>;

    /// Begins as another commit with the same content. For the deliberate faults of the simulation only.
    fn begin_anew(&mut self, _identity: SnapshotIdentity) {}

    /// Deletes the change's files. For the deliberate faults of the simulation only.
    async fn delete_files(&self) {}
}

/// How the loop ended, if not in an error.
pub(crate) enum Ended<R> {
    /// The change is in the table.
    Landed {
        /// The table as the commit, or the look for it, found it.
        version: TableVersion,
        /// How often it was tried.
        attempts: u32,
    },
    /// It does not fit the table.
    Refused {
        /// The table as it is.
        version: TableVersion,
        /// Why.
        refusal: R,
    },
}

/// Commits a change once. The first attempt is made on the given base, if there is one.
///
/// Nothing is ever deleted here.
pub(crate) async fn commit<C: Change>(
    ops: &dyn TableOperations,
    change: &mut C,
    (first, context): (Option<Base>, &CommitContext<'_>),
) -> Result<Ended<C::Refusal>, TableError> {
    CommitLoop { ops, context, change, attempts: 0 }.run(first).await
}

/// Random ids meet by accident never, but the bound makes a broken source of ids an error and not a hang.
pub(crate) fn new_identity(version: &TableVersion, ids: &dyn IdSource) -> Result<SnapshotIdentity, TableError> {
    for _ in 0..8 {
        // The highest bit is the sign; 0 is no id.
        let snapshot_id = (ids.next_u128() as u64 >> 1).cast_signed();
        if snapshot_id > 0 && version.metadata.snapshot_by_id(snapshot_id).is_none() {
            return Ok(SnapshotIdentity { snapshot_id, commit_id: Uuid::from_u128(ids.next_u128()) });
        }
    }
    Err(TableError::Invalid("the source of ids repeats itself".to_owned()))
}

struct CommitLoop<'a, C> {
    ops: &'a dyn TableOperations,
    context: &'a CommitContext<'a>,
    change: &'a mut C,
    attempts: u32,
}

/// What an attempt came to.
enum Step<R> {
    Done(Ended<R>),
    /// Nothing was changed; try again after a rest.
    Again(String),
}

impl<C: Change> CommitLoop<'_, C> {
    async fn run(&mut self, mut base: Option<Base>) -> Result<Ended<C::Refusal>, TableError> {
        let mut last = String::new();
        while self.attempts < self.context.policy.max_attempts.max(1) {
            self.check_deadline()?;
            self.attempts += 1;
            match self.attempt(base.take()).await {
                Ok(Step::Done(ended)) => return Ok(ended),
                Ok(Step::Again(why)) => last = why,
                Err(error) => return Err(error),
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

    async fn attempt(&mut self, base: Option<Base>) -> Result<Step<C::Refusal>, TableError> {
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
            Ok(Some(ended)) => Ok(Step::Done(ended)),
            Err(error) if error.class().may_pass_later() => Ok(Step::Again(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Whether the change is in the base already, or does not fit it.
    async fn check(&mut self, base: &mut Base) -> Result<Option<Ended<C::Refusal>>, TableError> {
        self.check_same_table(&base.version)?;
        // A catalog may have told a conflict or a transient failure that was none.
        if self.change.has_landed(&base.version.metadata) {
            return Ok(Some(self.landed(base.version.clone())));
        }
        let refusal = self.change.judge(base, self.attempts).await?;
        Ok(refusal.map(|refusal| Ended::Refused { version: base.version.clone(), refusal }))
    }

    fn check_same_table(&self, base: &TableVersion) -> Result<(), TableError> {
        let (expected, found) = (self.change.table_uuid(), base.metadata.uuid());
        if expected == found {
            return Ok(());
        }
        Err(TableError::Replaced { name: self.name(), expected: expected.to_string(), found: found.to_string() })
    }

    async fn try_on(&mut self, base: &mut Base) -> Result<Step<C::Refusal>, TableError> {
        let attempt = Attempt { number: self.attempts, now_ms: self.context.clock.now_ms(), file_id: self.context.ids.next_u128() };
        let change = match self.change.stage(base, attempt).await {
            Ok(change) => change,
            Err(error) if error.class().may_pass_later() => return Ok(Step::Again(error.to_string())),
            Err(error) => return Err(error),
        };
        match self.ops.commit(&base.version, &change).await {
            Ok(version) => Ok(Step::Done(self.landed(version))),
            Err(error @ (CommitError::Conflict | CommitError::Transient { .. })) => Ok(Step::Again(error.to_string())),
            Err(CommitError::Unknown { .. }) if mutants::is(Mutant::UnknownIsSuccess) => Ok(Step::Done(self.landed(base.version.clone()))),
            Err(CommitError::Unknown { what, .. }) if mutants::is(Mutant::UnknownIsFailure) => {
                self.change.begin_anew(new_identity(&base.version, self.context.ids)?);
                Ok(Step::Again(what))
            }
            Err(CommitError::Unknown { what, .. }) => self.look_up(what).await.map(Step::Done),
            Err(CommitError::Fatal { what, source }) => Err(TableError::Catalog { class: sluice_model::Class::Fatal, what, source }),
        }
    }

    /// After an unknown outcome: the table tells. Not finding the change proves nothing, for the request may still be on its way; so
    /// there is no other attempt (rule C2).
    async fn look_up(&self, what: String) -> Result<Ended<C::Refusal>, TableError> {
        for _ in 0..self.context.policy.max_lookups.max(1) {
            if let Ok(version) = self.ops.refresh().await
                && self.change.has_landed(&version.metadata)
            {
                return Ok(self.landed(version));
            }
            if self.context.deadline.has_passed(self.context.clock.now_ms()) {
                break;
            }
            self.rest().await;
        }
        if mutants::is(Mutant::DeleteAfterUnknown) {
            self.change.delete_files().await;
        }
        Err(self.change.unknown(self.name(), what))
    }

    const fn landed(&self, version: TableVersion) -> Ended<C::Refusal> {
        Ended::Landed { version, attempts: self.attempts }
    }
}
