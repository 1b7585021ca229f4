//! What a commit asks of catalog and storage, and how that grows with a table's snapshots and manifests. `--nocapture` shows the figures of docs/performance.md.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use iceberg::spec::{FormatVersion, MAIN_BRANCH, ManifestFile, ManifestList, ManifestListWriter, Operation, Snapshot, Summary};
use rustix::time::{ClockId, clock_gettime};
use sluice_table::{TableCreation, TableOperations, TableVersion};
use sluice_testkit::tables::{create, creation, delta, rows, upsert};
use sluice_testkit::{TestServices, foreign};

use crate::counting::{Asked, Counts, catalog};

struct Warm {
    counts: Arc<Counts>,
    ops: Arc<dyn TableOperations>,
    services: TestServices,
}

impl Warm {
    async fn table(creation: &TableCreation) -> Self {
        let (counts, services) = (Arc::new(Counts::default()), TestServices::seeded(70));
        let ops = create(&catalog(&counts), "t", creation).await;
        ops.refresh().await.unwrap();
        Self { counts, ops, services }
    }

    /// One row, as an invocation on a warm table commits it. What it asked, and the CPU time of the commit alone.
    async fn append(&self, offset: i64) -> (Asked, Duration) {
        self.counts.start();
        let version = self.ops.refresh().await.unwrap();
        let delta = delta(&version, rows(&[(offset, Some("eu"), 1)]), (0, offset..offset + 1));
        let prepared = sluice_table::prepare(&version, delta, &self.services.write_options()).await.unwrap();
        let before = cpu();
        sluice_table::commit_delta(&*self.ops, prepared, &self.services.commit_context()).await.unwrap();
        (self.counts.asked(), cpu() - before)
    }

    /// The best of some, because the machine is shared.
    async fn best(&self, first: i64) -> (Asked, Duration) {
        let mut best = self.append(first).await;
        for offset in first + 1..first + 5 {
            let next = self.append(offset).await;
            best = (next.0, best.1.min(next.1));
        }
        best
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// One load and one swap; the manifest list is read; data file, manifest, manifest list and metadata are written.
const APPEND: Asked = (1, 1, 1, 4, 0);

#[tokio::test]
async fn a_warm_append_asks_for_little() {
    let warm = Warm::table(&creation(&[])).await;
    warm.append(0).await;
    assert_eq!(warm.append(1).await.0, APPEND);
    warm.counts.start();
    let version = warm.ops.refresh().await.unwrap();
    let delta = upsert(&version, &[(1, Some("eu"), 2)], (0, 2..3));
    let prepared = sluice_table::prepare(&version, delta, &warm.services.write_options()).await.unwrap();
    sluice_table::commit_delta(&*warm.ops, prepared, &warm.services.commit_context()).await.unwrap();
    // A file of deletes and its manifest more.
    assert_eq!(warm.counts.asked(), (1, 1, 1, 6, 0));
}

/// With 50 ms a request an append takes its requests one after another, and not more: load, data file, list, manifest, list, metadata, swap.
#[tokio::test]
async fn latency_is_the_number_of_requests() {
    let warm = Warm::table(&creation(&[])).await;
    warm.append(0).await;
    warm.counts.delay_ms.store(50, Ordering::SeqCst);
    let started = std::time::Instant::now();
    let (asked, _) = warm.append(1).await;
    let took = started.elapsed();
    println!("50 ms a request: an append takes {took:?}, {asked:?}");
    assert!(took >= Duration::from_millis(50 * 7));
    // Seven in a row and what this machine adds; eight would be one request too many.
    assert_eq!(asked, APPEND);
}

#[tokio::test]
async fn requests_do_not_grow_with_snapshots() {
    for count in [10, 100, 1_000, 10_000] {
        let warm = Warm::table(&creation(&[])).await;
        warm.append(0).await;
        remember(&*warm.ops, count).await;
        let (asked, cpu) = warm.best(1).await;
        println!("{count} snapshots: {asked:?}, commit {cpu:?} CPU");
        assert_eq!(asked, APPEND);
    }
}

/// Puts so many snapshots into the table's history, all of the current files.
async fn remember(ops: &dyn TableOperations, count: i64) {
    let current = ops.refresh().await.unwrap().metadata.current_snapshot().unwrap().clone();
    let snapshot = |number: i64| {
        Snapshot::builder()
            .with_snapshot_id(1_000_000 + number)
            .with_parent_snapshot_id(Some(if number == 0 { current.snapshot_id() } else { 999_999 + number }))
            .with_sequence_number(current.sequence_number() + 1 + number)
            .with_timestamp_ms(current.timestamp_ms() + 1 + number)
            .with_manifest_list(current.manifest_list().to_owned())
            .with_schema_id(0)
            .with_summary(Summary { operation: Operation::Append, additional_properties: current.summary().additional_properties.clone() })
            .build()
    };
    foreign::alter(ops, |builder| {
        (0..count).fold(builder, |builder, number| builder.set_branch_snapshot(snapshot(number), MAIN_BRANCH).unwrap())
    })
    .await;
}

#[tokio::test]
async fn requests_do_not_grow_with_manifests() {
    for count in [1, 10, 100, 1_000] {
        let mut unmerged = creation(&[]);
        unmerged.properties.insert("commit.manifest-merge.enabled".to_owned(), "false".to_owned());
        let warm = Warm::table(&unmerged).await;
        warm.append(0).await;
        list(&warm, count).await;
        let (asked, cpu) = warm.best(1).await;
        println!("{count} manifests, not merged: {asked:?}, commit {cpu:?} CPU");
        assert_eq!(asked, APPEND);
    }
}

/// Lists the table's one manifest so often, each time by another name; an append does not read them.
async fn list(warm: &Warm, count: usize) {
    let version = warm.ops.refresh().await.unwrap();
    let first = manifests(&version).await.remove(0);
    let (metadata, id) = (&version.metadata, 2_000_000);
    let path = format!("{}/metadata/many.avro", metadata.location());
    let output = version.file_io.new_output(&path).unwrap().writer().await.unwrap();
    let mut writer = ManifestListWriter::v2(output, id, metadata.current_snapshot_id(), metadata.next_sequence_number());
    let many = (0..count).map(|number| ManifestFile { manifest_path: format!("{}-{number}", first.manifest_path), ..first.clone() });
    writer.add_manifests(many).unwrap();
    writer.close().await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(id)
        .with_parent_snapshot_id(metadata.current_snapshot_id())
        .with_sequence_number(metadata.next_sequence_number())
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_manifest_list(path)
        .with_schema_id(0)
        .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
        .build();
    foreign::alter(&*warm.ops, |builder| builder.set_branch_snapshot(snapshot, MAIN_BRANCH).unwrap()).await;
}

async fn manifests(version: &TableVersion) -> Vec<ManifestFile> {
    let list = version.metadata.current_snapshot().unwrap().manifest_list();
    let bytes = version.file_io.new_input(list).unwrap().read().await.unwrap();
    ManifestList::parse_with_version(&bytes, FormatVersion::V2).unwrap().consume_entries().into_iter().collect()
}

/// A table's age does not show in the number of its manifests, nor in the requests of its commits: merging costs about one read a commit.
#[tokio::test]
async fn manifests_stay_few_and_merging_is_cheap() {
    let warm = Warm::table(&creation(&[])).await;
    let (mut reads, mut writes) = (0, 0);
    for offset in 0..250 {
        let (asked, _) = warm.append(offset).await;
        assert_eq!((asked.0, asked.1), (1, 1));
        reads += asked.2;
        writes += asked.3;
    }
    let count = manifests(&warm.ops.refresh().await.unwrap()).await.len();
    println!("250 appends: {count} manifests, {reads} reads, {writes} writes");
    assert!(count < 100, "{count}");
    assert!(reads < 2 * 250, "{reads}");
    assert!(writes <= 4 * 250 + 2, "{writes}");
}
