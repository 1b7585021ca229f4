//! A lake in memory whose files have ages, and faults between it and the jobs.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use sluice_catalog::Services;
use sluice_catalog::memory::MemoryPointers;
use sluice_catalog::pointer::PointerCatalog;
use sluice_maintenance::{Context, Job, Mode, Report, Selector, Stores, run};
use sluice_model::{Class, Clock as _, Deadline, TableName};
use sluice_storage::{Condition, ListPage, MemoryObjects, NotDeleted, Object, ObjectStore, PutOutcome, StorageError, Token};
use sluice_table::{
    Catalog, CommitError, CreateOutcome, RetryPolicy, RowDelta, StagedChange, TableCreation, TableError, TableOperations, TableVersion,
};
use sluice_testkit::{TestServices, tables};

pub const HOUR: i64 = 3_600_000;
pub const WAREHOUSE: &str = "memory://warehouse";

/// Lets so many calls through; all later ones fail, as of a process that died.
#[derive(Debug, Clone)]
pub struct Fuse(Arc<AtomicI64>);

impl Default for Fuse {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(i64::MAX)))
    }
}

impl Fuse {
    pub fn set(&self, calls: i64) {
        self.0.store(calls, Ordering::SeqCst);
    }

    /// Whether it has blown.
    pub fn is_blown(&self) -> bool {
        self.0.load(Ordering::SeqCst) < 0
    }

    fn burn(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) > 0
    }
}

fn died() -> StorageError {
    StorageError { class: Class::Fatal, what: "the process died".to_owned(), source: None }
}

/// Objects that fail once the fuse has blown.
#[derive(Debug, Clone)]
pub struct FusedObjects(pub MemoryObjects, pub Fuse);

impl Stores for FusedObjects {
    fn objects(&self, _: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ObjectStore for FusedObjects {
    async fn list(&self, prefix: &str, from: Option<&Token>) -> Result<ListPage, StorageError> {
        if self.1.burn() { self.0.list(prefix, from).await } else { Err(died()) }
    }

    async fn get(&self, location: &str) -> Result<Option<Object>, StorageError> {
        if self.1.burn() { self.0.get(location).await } else { Err(died()) }
    }

    async fn put(&self, location: &str, bytes: Bytes, condition: Condition) -> Result<PutOutcome, StorageError> {
        if self.1.burn() { self.0.put(location, bytes, condition).await } else { Err(died()) }
    }

    /// A process may die in the middle of a request.
    async fn delete(&self, locations: &[String]) -> Result<Vec<NotDeleted>, StorageError> {
        if self.1.burn() {
            return self.0.delete(locations).await;
        }
        self.0.delete(&locations[..locations.len() / 2]).await?;
        Err(died())
    }
}

/// What happens to the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// A writer commits this row first.
    Writer(i64),
    /// It is made, and the reply is lost.
    LostReply,
    /// It is not made, and nobody can tell.
    LostRequest,
}

/// A catalog with a fuse, and trouble for the next commit.
#[derive(Clone)]
pub struct Troubled {
    pub inner: Arc<dyn Catalog>,
    pub fuse: Fuse,
    pub trouble: Arc<std::sync::Mutex<Trouble>>,
    pub services: TestServices,
    pub offsets: Arc<AtomicI64>,
    /// What the catalog says of others that compact.
    pub others: Arc<std::sync::Mutex<Others>>,
}

/// What a catalog says of others that compact its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    Nobody,
    Optimizer,
    CannotBeTold,
}

#[async_trait]
impl Catalog for Troubled {
    async fn compacted_by(&self, _: &TableName) -> Result<Option<String>, TableError> {
        match *self.others.lock().unwrap() {
            Others::Nobody => Ok(None),
            Others::Optimizer => Ok(Some("an optimizer".to_owned())),
            Others::CannotBeTold => Err(TableError::Catalog { class: Class::Fatal, what: "not allowed".to_owned(), source: None }),
        }
    }

    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let loaded = self.inner.load(name).await?;
        Ok(loaded.map(|inner| Arc::new(TroubledTable { inner, troubled: self.clone() }) as Arc<dyn TableOperations>))
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
}

struct TroubledTable {
    inner: Arc<dyn TableOperations>,
    troubled: Troubled,
}

#[async_trait]
impl TableOperations for TroubledTable {
    fn name(&self) -> &TableName {
        self.inner.name()
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        if self.troubled.fuse.burn() {
            return self.inner.refresh().await;
        }
        Err(TableError::Catalog { class: Class::Fatal, what: "the process died".to_owned(), source: None })
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        if !self.troubled.fuse.burn() {
            return Err(CommitError::Fatal { what: "the process died".to_owned(), source: None });
        }
        let trouble = std::mem::replace(&mut *self.troubled.trouble.lock().unwrap(), Trouble::None);
        let lost = || CommitError::Unknown { what: "no reply".to_owned(), source: None };
        match trouble {
            Trouble::None => self.inner.commit(base, change).await,
            Trouble::Writer(id) => {
                let offset = self.troubled.offsets.fetch_add(1, Ordering::SeqCst);
                // Everything is in memory: nothing waits.
                futures::executor::block_on(async {
                    let version = self.inner.refresh().await.unwrap();
                    let delta = tables::upsert(&version, &[(id, Some("raced"), i128::from(offset))], (0, offset..offset + 1));
                    tables::apply(&*self.inner, delta, &self.troubled.services).await;
                });
                self.inner.commit(base, change).await
            }
            Trouble::LostReply => {
                self.inner.commit(base, change).await?;
                Err(lost())
            }
            Trouble::LostRequest => Err(lost()),
        }
    }
}

/// A lake in memory.
pub struct Lake {
    pub objects: MemoryObjects,
    pub stores: FusedObjects,
    pub catalog: Troubled,
    pub services: TestServices,
    pub fuse: Fuse,
    pub offsets: Arc<AtomicI64>,
}

impl Lake {
    pub fn new(seed: u64) -> Self {
        let services = TestServices::seeded(seed);
        let objects = MemoryObjects::new(services.clock.clone());
        let given = Services { clock: services.clock.clone(), ids: services.ids.clone() };
        let catalog = PointerCatalog::over(MemoryPointers::default(), (objects.file_io(), WAREHOUSE), given);
        let (fuse, offsets) = (Fuse::default(), Arc::new(AtomicI64::new(0)));
        let troubled = Troubled {
            inner: Arc::new(catalog),
            fuse: fuse.clone(),
            trouble: Arc::new(std::sync::Mutex::new(Trouble::None)),
            services: services.clone(),
            offsets: Arc::clone(&offsets),
            others: Arc::new(std::sync::Mutex::new(Others::Nobody)),
        };
        Self { stores: FusedObjects(objects.clone(), fuse.clone()), objects, catalog: troubled, services, fuse, offsets }
    }

    pub async fn table(&self, name: &str, partition_by: &[&str]) -> Arc<dyn TableOperations> {
        tables::create(&*self.catalog.inner, name, &tables::creation(partition_by)).await
    }

    /// The table, without any trouble in between.
    pub async fn ops(&self, name: &str) -> Arc<dyn TableOperations> {
        self.catalog.inner.load(&tables::name(name)).await.unwrap().unwrap()
    }

    pub async fn now(&self, name: &str) -> TableVersion {
        self.ops(name).await.refresh().await.unwrap()
    }

    pub async fn upsert(&self, name: &str, values: &[(i64, Option<&str>, i128)]) -> TableVersion {
        let (ops, offset) = (self.ops(name).await, self.offsets.fetch_add(1, Ordering::SeqCst));
        let version = ops.refresh().await.unwrap();
        tables::apply(&*ops, tables::upsert(&version, values, (0, offset..offset + 1)), &self.services).await
    }

    pub async fn delete(&self, name: &str, ids: &[i64]) -> TableVersion {
        let ops = self.ops(name).await;
        let version = ops.refresh().await.unwrap();
        tables::apply(&*ops, RowDelta { delete_keys: Some(tables::keys(ids)), ..RowDelta::on(&version) }, &self.services).await
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            catalog: &self.catalog,
            stores: &self.stores,
            clock: self.services.clock.as_ref(),
            ids: self.services.ids.as_ref(),
            sleep: self.services.clock.as_ref(),
            deadline: Deadline::NONE,
            policy: RetryPolicy::default(),
        }
    }

    pub fn trouble(&self, trouble: Trouble) {
        *self.catalog.trouble.lock().unwrap() = trouble;
    }

    /// Runs a job on one table.
    pub async fn run<J: Job>(&self, job: &J, name: &str) -> Report {
        self.run_in(job, name, Mode::Execute { lease_ms: HOUR }).await
    }

    pub async fn run_in<J: Job>(&self, job: &J, name: &str, mode: Mode) -> Report {
        let selector = Selector { tables: vec![tables::name(name).to_string()], except: vec![] };
        let mut reports = run(job, (&selector, mode), &self.context(), &mut |_, _| {}).await.unwrap();
        assert_eq!(reports.len(), 1);
        reports.remove(0)
    }

    pub fn wait(&self, ms: i64) {
        self.services.clock.advance(ms);
    }

    /// Every object there is.
    pub async fn everything(&self) -> BTreeSet<String> {
        let (mut found, mut from) = (BTreeSet::new(), None);
        loop {
            let page = self.objects.list("memory://", from.as_ref()).await.unwrap();
            found.extend(page.objects.into_iter().map(|object| object.location));
            from = page.next;
            if from.is_none() {
                return found;
            }
        }
    }

    /// Writes a file that is no table's.
    pub async fn litter(&self, location: &str) {
        self.objects.put(location, Bytes::from_static(b"x"), Condition::Always).await.unwrap();
    }

    pub fn now_ms(&self) -> i64 {
        self.services.clock.now_ms()
    }
}
