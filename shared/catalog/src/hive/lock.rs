//! The metastore's own table lock: acquired, kept alive, released.
//!
//! A lock whose holder is gone goes by itself when it has had no heartbeat for the server's `hive.txn.timeout` (300 seconds unless set), if the server
//! runs its housekeeping.

use std::time::Duration;

use hive_metastore::{
    CheckLockRequest, DataOperationType, HeartbeatRequest, LockComponent, LockLevel, LockRequest, LockState, LockType, ShowLocksRequest,
    UnlockRequest,
};
use pilota::FastStr;
use sluice_model::Class;
use sluice_table::TableError;

use super::connection::{CallError, Connection, metastore_error};

/// Between two heartbeats; servers let a lock go after minutes without one.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(3);
const FIRST_POLL: Duration = Duration::from_millis(20);
const MAX_POLL: Duration = Duration::from_secs(1);
const RELEASES: u32 = 3;

/// Who locks, and how long they wait.
pub(super) struct Locker<'a> {
    pub(super) connection: &'a Connection,
    pub(super) user: &'a str,
    pub(super) patience: Duration,
}

/// A lock that is held. It has to be released: dropping it leaves it to the server's timeout.
pub(super) struct Lock<'a> {
    connection: &'a Connection,
    id: i64,
}

impl<'a> Locker<'a> {
    /// Waits for the exclusive lock on a table. `mark` tells this request from every other.
    pub(super) async fn acquire(&self, (database, table): (FastStr, FastStr), mark: &str) -> Result<Lock<'a>, TableError> {
        let answer = self.request((database.clone(), table.clone()), mark).await;
        let (id, mut state) = match answer {
            Ok(response) => response,
            Err(CallError::Lost(why)) => self.find((database, table), mark).await.ok_or_else(|| lost(&why))?,
            Err(error) => return Err(error.reading("asking for the table's lock")),
        };
        let lock = Lock { connection: self.connection, id };
        let (mut waited, mut poll) = (Duration::ZERO, FIRST_POLL);
        while state == LockState::WAITING && waited < self.patience {
            tokio::time::sleep(poll).await;
            waited += poll;
            poll = (poll * 2).min(MAX_POLL);
            state = match lock.state().await {
                Ok(state) => state,
                Err(error) => return Err(lock.withdraw(error).await),
            };
        }
        if state == LockState::ACQUIRED { Ok(lock) } else { Err(lock.withdraw(self.in_vain(state)).await) }
    }

    fn in_vain(&self, state: LockState) -> TableError {
        let why = format!(
            "another writer holds the table's lock ({}, {} ms waited); if that writer is dead, the lock goes after the server's hive.txn.timeout, which needs \
             its housekeeping (hive.compactor.initiator.on)",
            state.to_string(),
            self.patience.as_millis()
        );
        metastore_error(Class::Transient, "locking", &why)
    }

    async fn request(&self, (database, table): (FastStr, FastStr), mark: &str) -> Result<(i64, LockState), CallError> {
        let component = LockComponent {
            r#type: LockType::EXCLUSIVE,
            level: LockLevel::TABLE,
            dbname: database,
            tablename: Some(table),
            // Without these, later servers take the lock for one of a transaction.
            operation_type: Some(DataOperationType::UNSET),
            is_acid: Some(false),
            ..LockComponent::default()
        };
        let request = LockRequest {
            component: vec![component],
            txnid: None,
            user: self.user.to_owned().into(),
            hostname: "sluice".into(),
            agent_info: Some(mark.to_owned().into()),
        };
        match self.connection.call(async |client| client.lock(request).await).await? {
            Ok(response) => Ok((response.lockid, response.state)),
            // Exceptions of transactions; we have none.
            Err(exception) => Err(CallError::Refused(format!("{exception:?}"))),
        }
    }

    /// Our lock among those of the table, when the answer to the request for it was lost.
    async fn find(&self, (database, table): (FastStr, FastStr), mark: &str) -> Option<(i64, LockState)> {
        let request = ShowLocksRequest { dbname: Some(database), tablename: Some(table), partname: None, is_extended: Some(false) };
        let response = self.connection.plain(async |client| client.show_locks(request).await).await.ok()?;
        let locks = response.locks.unwrap_or_default();
        let ours = locks.into_iter().find(|lock| lock.agent_info.as_deref() == Some(mark))?;
        Some((ours.lockid, ours.state))
    }
}

/// A lock may be left that nobody knows of; it goes by itself.
fn lost(why: &str) -> TableError {
    metastore_error(Class::Transient, "asking for the table's lock", &format!("no answer came: {why}"))
}

impl Lock<'_> {
    /// Whether it is held by now. Asking is also a heartbeat.
    async fn state(&self) -> Result<LockState, TableError> {
        let request = CheckLockRequest { lockid: self.id, txnid: None, elapsed_ms: None };
        match self.connection.call(async |client| client.check_lock(request).await).await {
            Ok(Ok(response)) => Ok(response.state),
            Ok(Err(exception)) => {
                Err(metastore_error(Class::Transient, "waiting for the table's lock", &format!("the lock was taken away: {exception:?}")))
            }
            // The next question gets an answer, or the patience ends.
            Err(CallError::Lost(_)) => Ok(LockState::WAITING),
            Err(error) => Err(error.reading("waiting for the table's lock")),
        }
    }

    /// Keeps the lock alive until `work` is done. The second value tells whether it was ours all the time, as far as can be told.
    pub(super) async fn keep<T>(&self, work: impl Future<Output = T>) -> (T, bool) {
        let mut work = std::pin::pin!(work);
        let mut held = true;
        loop {
            match tokio::time::timeout(HEARTBEAT, &mut work).await {
                Ok(done) => return (done, held),
                Err(_) => held &= self.beat().await,
            }
        }
    }

    async fn beat(&self) -> bool {
        let request = HeartbeatRequest { lockid: Some(self.id), txnid: None };
        matches!(self.connection.call(async |client| client.heartbeat(request).await).await, Ok(Ok(())))
    }

    async fn withdraw(self, error: TableError) -> TableError {
        self.release().await;
        error
    }

    /// Releases the lock. Releasing twice is no error to the server, so a lost answer is asked for again; what fails for good is left to the server's timeout.
    pub(super) async fn release(self) {
        for _ in 0..RELEASES {
            let request = UnlockRequest { lockid: self.id };
            if let Ok(Ok(()) | Err(_)) = self.connection.call(async |client| client.unlock(request).await).await {
                return;
            }
        }
    }
}
