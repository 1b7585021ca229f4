//! An expiry of very many files: its memory, and how it deletes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use iceberg::spec::{DataContentType, DataFile, DataFileFormat};
use sluice_maintenance::expire::ExpireSettings;
use sluice_maintenance::{Context, Expire, Mode, Outcome, Selector, Stores, run};
use sluice_storage::{Condition, ListPage, MemoryObjects, NotDeleted, Object, ObjectStore, PutOutcome, StorageError, Token};
use sluice_testkit::foreign;
use support::{HOUR, Lake};

const MANIFESTS: usize = 20;
const FILES: usize = 5_000;
/// Of a function that has 512 MB; 44 MB were measured.
const MOST_BYTES: u64 = 80 << 20;

/// Objects that remember how many were to be deleted at a time.
#[derive(Debug, Clone)]
struct Counted(MemoryObjects, Arc<Mutex<Vec<usize>>>);

impl Stores for Counted {
    fn objects(&self, _: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn list(&self, prefix: &str, from: Option<&Token>) -> Result<ListPage, StorageError> {
        self.0.list(prefix, from).await
    }

    async fn get(&self, location: &str) -> Result<Option<Object>, StorageError> {
        self.0.get(location).await
    }

    async fn put(&self, location: &str, bytes: Bytes, condition: Condition) -> Result<PutOutcome, StorageError> {
        self.0.put(location, bytes, condition).await
    }

    async fn delete(&self, locations: &[String]) -> Result<Vec<NotDeleted>, StorageError> {
        self.1.lock().unwrap().push(locations.len());
        self.0.delete(locations).await
    }
}

/// A table whose first snapshot has 100,000 files and whose second has one.
async fn lake() -> Lake {
    let lake = Lake::new(3);
    let ops = lake.table("t", &[]).await;
    let location = lake.now("t").await.metadata.location().to_owned();
    let file = |manifest: usize, file: usize| -> DataFile {
        let path = format!("{location}/data/region=eu-central-1/{manifest:05}-{file:05}-6f8f57715090da2632453988d9a1501b.parquet");
        foreign::data_file(&path, DataContentType::Data, DataFileFormat::Parquet)
    };
    let lists = (0..MANIFESTS).map(|manifest| (0..FILES).map(|number| file(manifest, number)).collect());
    foreign::instead(&*ops, lists.collect()).await;
    foreign::instead(&*ops, vec![vec![file(MANIFESTS, 0)]]).await;
    lake
}

/// `cargo test -p sluice-maintenance --test expire_large -- --nocapture` tells the figures.
#[test]
fn r25_a_hundred_thousand_files_expire_in_bounded_memory_and_in_batches() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let lake = runtime.block_on(lake());
    let store = Counted(lake.objects.clone(), Arc::default());
    let job = Expire { settings: ExpireSettings { min_snapshots_to_keep: 1, ..ExpireSettings::default() } };
    let context = Context { stores: &store, ..lake.context() };
    let mut reports = Vec::new();
    let measured = allocation_counter::measure(|| {
        let mode = Mode::Execute { lease_ms: HOUR };
        reports = runtime.block_on(run(&job, (&Selector::default(), mode), &context, &mut |_, _| {})).unwrap();
    });
    println!("expiry of {} files: at most {} bytes at a time", MANIFESTS * FILES, measured.bytes_max);
    assert_eq!(reports[0].outcome, Outcome::Done, "{:?}", reports[0].work);
    // The files, their manifests, and the manifest list.
    let expected = MANIFESTS * FILES + MANIFESTS + 1;
    assert_eq!(reports[0].work.objects_deleted as usize, expected);
    let batches = store.1.lock().unwrap().clone();
    assert!(batches.iter().all(|batch| *batch <= 1_000), "{batches:?}");
    // One more request takes the record away.
    assert_eq!(batches.len(), expected.div_ceil(1_000) + 1);
    assert!(measured.bytes_max < MOST_BYTES, "{} bytes", measured.bytes_max);
}
