//! Faults before, after and instead of a catalog's answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sluice_model::{Class, TableName};
use sluice_table::{Catalog, CommitError, CreateOutcome, StagedChange, TableCreation, TableError, TableOperations, TableVersion};

/// What happens to one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// It goes through undisturbed.
    None,
    /// It is not made; the answer is that of [`Class`].
    Instead(Class),
    /// It is made, but the answer is that of [`Class`].
    After(Class),
}

/// The faults to come, in order; without one everything goes through.
#[derive(Debug, Default)]
pub struct FaultPlan {
    commits: Mutex<VecDeque<CommitFault>>,
    refreshes: Mutex<VecDeque<Class>>,
}

impl FaultPlan {
    /// Plans the next commits.
    pub fn on_commits(&self, faults: impl IntoIterator<Item = CommitFault>) {
        self.commits.lock().unwrap().extend(faults);
    }

    /// Lets the next refreshes fail.
    pub fn on_refreshes(&self, faults: impl IntoIterator<Item = Class>) {
        self.refreshes.lock().unwrap().extend(faults);
    }

    /// How many planned commits are still to come.
    #[must_use]
    pub fn commits_left(&self) -> usize {
        self.commits.lock().unwrap().len()
    }
}

/// A catalog whose tables fail as planned.
pub struct FaultyCatalog {
    inner: Arc<dyn Catalog>,
    plan: Arc<FaultPlan>,
}

impl FaultyCatalog {
    /// Puts `plan` between the caller and `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Catalog>, plan: Arc<FaultPlan>) -> Self {
        Self { inner, plan }
    }
}

#[async_trait]
impl Catalog for FaultyCatalog {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let plan = &self.plan;
        let table = self.inner.load(name).await?;
        Ok(table.map(|inner| Arc::new(FaultyTable { inner, plan: Arc::clone(plan) }) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        self.inner.create(name, creation).await
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        self.inner.tables().await
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        self.inner.drop_table(name).await
    }

    async fn check_warehouse(&self) -> Result<String, TableError> {
        self.inner.check_warehouse().await
    }

    async fn check_server(&self) -> Result<Option<String>, TableError> {
        self.inner.check_server().await
    }
}

struct FaultyTable {
    inner: Arc<dyn TableOperations>,
    plan: Arc<FaultPlan>,
}

#[async_trait]
impl TableOperations for FaultyTable {
    fn name(&self) -> &TableName {
        self.inner.name()
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        let fault = self.plan.refreshes.lock().unwrap().pop_front();
        match fault {
            Some(class) => Err(TableError::Catalog { class, what: "a planned fault".to_owned(), source: None }),
            None => self.inner.refresh().await,
        }
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        let fault = self.plan.commits.lock().unwrap().pop_front().unwrap_or(CommitFault::None);
        match fault {
            CommitFault::None => self.inner.commit(base, change).await,
            CommitFault::Instead(class) => Err(fault_of(class)),
            CommitFault::After(class) => {
                self.inner.commit(base, change).await?;
                Err(fault_of(class))
            }
        }
    }
}

fn fault_of(class: Class) -> CommitError {
    let what = "a planned fault".to_owned();
    match class {
        Class::Conflict => CommitError::Conflict,
        Class::Transient => CommitError::Transient { what, source: None },
        Class::Unknown => CommitError::Unknown { what, source: None },
        Class::Fatal => CommitError::Fatal { what, source: None },
    }
}
