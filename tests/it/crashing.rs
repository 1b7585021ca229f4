//! A catalog whose process dies: at its n-th call it never answers again, before or after the call took effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use sluice_model::TableName;
use sluice_table::{Catalog, CommitError, CreateOutcome, StagedChange, TableCreation, TableError, TableOperations, TableVersion};

/// Whether the deadly call takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

/// Counts calls and dies at one of them.
pub struct Fuse {
    left: AtomicUsize,
    moment: Moment,
    blown: tokio::sync::Notify,
}

impl Fuse {
    pub fn new(calls: usize, moment: Moment) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(calls), moment, blown: tokio::sync::Notify::new() })
    }

    /// Comes back when the process has died.
    pub async fn blown(&self) {
        self.blown.notified().await;
    }

    /// Lets a call through, or never comes back.
    async fn pass<T>(&self, call: impl Future<Output = T>) -> T {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left != 0 {
            return call.await;
        }
        if self.moment == Moment::After {
            call.await;
        }
        self.blown.notify_one();
        std::future::pending().await
    }
}

/// A catalog with a fuse.
pub struct Mortal {
    pub inner: Arc<dyn Catalog>,
    pub fuse: Arc<Fuse>,
}

#[async_trait]
impl Catalog for Mortal {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let table = self.fuse.pass(self.inner.load(name)).await?;
        let fuse = &self.fuse;
        Ok(table.map(|inner| Arc::new(MortalTable { inner, fuse: Arc::clone(fuse) }) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        self.fuse.pass(self.inner.create(name, creation)).await
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        self.inner.tables().await
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        self.inner.drop_table(name).await
    }
}

struct MortalTable {
    inner: Arc<dyn TableOperations>,
    fuse: Arc<Fuse>,
}

#[async_trait]
impl TableOperations for MortalTable {
    fn name(&self) -> &TableName {
        self.inner.name()
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        self.fuse.pass(self.inner.refresh()).await
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        self.fuse.pass(self.inner.commit(base, change)).await
    }
}
