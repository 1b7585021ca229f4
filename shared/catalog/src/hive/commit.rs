//! The commit: one `alter_table` that names the metadata location it expects, under the table's lock where that is needed.
//!
//! Servers from 2.3.10 and 4.0 on compare the expected location and fail the request (HIVE-26882); older ones ignore it and overwrite. And a writer
//! that only locks, as Iceberg's engines do unless told otherwise, overwrites what was committed while it held the lock. So a commit locks
//! unless both are known not to be (docs/adr/0012-hive-lock.md).

use hive_metastore::{EnvironmentContext, Table, ThriftHiveMetastoreAlterTableWithEnvironmentContextException as AlterException};
use pilota::FastStr;
use sluice_model::TableName;
use sluice_table::CommitError;
use uuid::Uuid;

use super::connection::{CallError, told};
use super::entry::{self, METADATA_LOCATION, place_of, previous_of};
use super::lock::Lock;
use super::probe::NEVER_HERE;
use super::store::{HivePointers, text};
use crate::HiveLock;
use crate::pointer::{NewPointer, Pointer, PointerStore as _};

const COMMITTING: &str = "committing";

/// What the server answered to the request that commits.
pub(super) enum Altered {
    Done,
    /// It gave an exception. Others' code may run in a metastore after it has stored the change, so this alone does not say that nothing was changed.
    Excepted(AlterException),
}

/// What is to be changed.
#[derive(Clone, Copy)]
struct Swap<'a> {
    entry: &'a Table,
    from: &'a str,
    new: NewPointer<'a>,
}

impl HivePointers {
    pub(super) async fn commit(&self, old: &Pointer<Table>, new: NewPointer<'_>) -> Result<(), CommitError> {
        let swap = Swap { entry: &old.entry, from: &old.location, new };
        if self.needs_lock(swap).await? { self.locked(swap).await } else { self.unlocked(swap).await }
    }

    async fn needs_lock(&self, swap: Swap<'_>) -> Result<bool, CommitError> {
        match self.lock_setting() {
            HiveLock::Always => Ok(true),
            HiveLock::Auto if !entry::declared_lock_free(swap.entry, swap.new.metadata) => Ok(true),
            // Not finding out is not finding that it does.
            HiveLock::Auto => Ok(!self.compares_expected(swap.new.name).await.unwrap_or(false)),
            HiveLock::Never if self.compares_expected(swap.new.name).await.map_err(CommitError::before)? => Ok(false),
            HiveLock::Never => Err(CommitError::Fatal { what: told(COMMITTING, &NEVER_HERE), source: None }),
        }
    }

    async fn unlocked(&self, swap: Swap<'_>) -> Result<(), CommitError> {
        match self.alter(swap.entry, swap.from, swap.new).await {
            Ok(Altered::Done) => Ok(()),
            Ok(Altered::Excepted(exception)) => self.judge(exception, swap).await,
            Err(error) => Err(error.committing(COMMITTING)),
        }
    }

    async fn locked(&self, swap: Swap<'_>) -> Result<(), CommitError> {
        let place = place_of(swap.new.name).map_err(CommitError::before)?;
        let mark = format!("sluice-{}", Uuid::from_u128(self.services.ids.next_u128()));
        let lock = self.locker().acquire(place, &mark).await.map_err(CommitError::before)?;
        // Others may have changed the table, or its parameters, while we waited.
        let current = match self.get(swap.new.name).await {
            Ok(Some(current)) if current.location == swap.from => current,
            Ok(Some(_) | None) => return released(lock, Err(CommitError::Conflict)).await,
            Err(error) => return released(lock, Err(CommitError::before(error))).await,
        };
        let swap = Swap { entry: &current.entry, ..swap };
        let (answer, held) = lock.keep(self.alter(swap.entry, swap.from, swap.new)).await;
        match answer {
            Ok(Altered::Done) if held => released(lock, Ok(())).await,
            Ok(Altered::Done) => released(lock, Err(unknown("the lock was lost meanwhile"))).await,
            Ok(Altered::Excepted(exception)) => {
                let judged = self.judge(exception, swap).await;
                released(lock, judged).await
            }
            Err(CallError::Lost(why)) => self.after_lost(lock, swap, &why).await,
            Err(error) => released(lock, Err(error.committing(COMMITTING))).await,
        }
    }

    /// The request may still be on its way. A server that ignores the expected location would let it overwrite what another writer commits after us, so
    /// there the lock is left to the server's timeout, unless the change is seen to be made.
    async fn after_lost(&self, lock: Lock<'_>, swap: Swap<'_>, why: &str) -> Result<(), CommitError> {
        match self.get(swap.new.name).await {
            Ok(Some(now)) if now.location == swap.new.location => released(lock, Ok(())).await,
            Ok(_) | Err(_) if self.compares_expected(swap.new.name).await.unwrap_or(false) => released(lock, Err(unknown(why))).await,
            Ok(_) | Err(_) => Err(unknown(why)),
        }
    }

    pub(super) async fn alter(&self, entry: &Table, from: &str, new: NewPointer<'_>) -> Result<Altered, CallError> {
        self.alter_expecting(entry::moved(entry, from, new), from).await
    }

    /// Replaces a table's entry if its metadata location is the expected one, on a server that compares it.
    pub(super) async fn alter_expecting(&self, entry: Table, expected: &str) -> Result<Altered, CallError> {
        let (database, table) = (entry.db_name.clone().unwrap_or_default(), entry.table_name.clone().unwrap_or_default());
        let context: [(FastStr, FastStr); 3] = [
            ((*hive_metastore::EXPECTED_PARAMETER_KEY).into(), METADATA_LOCATION.into()),
            ((*hive_metastore::EXPECTED_PARAMETER_VALUE).into(), expected.to_owned().into()),
            // Else the server lists the table's folder to count files.
            ("DO_NOT_UPDATE_STATS".into(), "true".into()),
        ];
        let context = EnvironmentContext { properties: Some(context.into_iter().collect()) };
        let answer =
            self.connection.call(async |client| client.alter_table_with_environment_context(database, table, entry, context).await).await?;
        match answer {
            Ok(()) => Ok(Altered::Done),
            Err(exception) => Ok(Altered::Excepted(exception)),
        }
    }

    /// What an exception means is told by the table, not by its text: the request has been answered, so what is not there now will not come.
    async fn judge(&self, exception: AlterException, swap: Swap<'_>) -> Result<(), CommitError> {
        let now = match self.get(swap.new.name).await {
            Ok(now) => now,
            Err(error) => return Err(unknown(&format!("{exception:?}, and looking at the table failed: {error}"))),
        };
        match now {
            None => Err(CommitError::Conflict),
            Some(now) if now.location == swap.new.location => Ok(()),
            Some(now) if now.location == swap.from => Err(unchanged(exception, swap.new.name)),
            // Ours was made, and another came on top: it will be found in the table's history.
            Some(now) if previous_of(&now.entry) == Some(swap.new.location) => Err(unknown(&format!("{exception:?}"))),
            Some(_) => Err(CommitError::Conflict),
        }
    }
}

fn unchanged(exception: AlterException, name: &TableName) -> CommitError {
    match exception {
        AlterException::O1(error) => {
            let why = format!(
                "`{name}`: {} (a change of columns that Hive forbids is allowed by hive.metastore.disallow.incompatible.col.type.changes = false)",
                text(error.message)
            );
            CommitError::Fatal { what: told(COMMITTING, &why), source: None }
        }
        AlterException::O2(error) => CommitError::Transient { what: told(COMMITTING, &text(error.message)), source: None },
    }
}

fn unknown(why: &str) -> CommitError {
    CommitError::Unknown { what: told(COMMITTING, &why), source: None }
}

async fn released(lock: Lock<'_>, outcome: Result<(), CommitError>) -> Result<(), CommitError> {
    lock.release().await;
    outcome
}
