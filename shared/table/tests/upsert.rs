//! Upserts, their scope and their sequence numbers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use iceberg::spec::{Operation, UnboundPartitionSpec};
use sluice_model::Class;
use sluice_table::{BaseUse, DeltaOutcome, FileContent, RowDelta, StaleReason, Truncate, live_files, lookup, scan};
use sluice_testkit::{foreign, tables};
use support::{Fixture, rows};

fn summary<'a>(version: &'a sluice_table::TableVersion, key: &str) -> &'a str {
    version.metadata.current_snapshot().unwrap().summary().additional_properties.get(key).map_or("", String::as_str)
}

async fn upserts_replace(partition_by: &[&str]) -> Fixture {
    let table = Fixture::small(partition_by).await;
    table.upsert(&[(1, Some("eu"), 10), (2, Some("us"), 20), (3, None, 30)], 0).await;
    let version = table.upsert(&[(2, Some("eu"), 21), (4, Some(""), 40)], 1).await;
    assert_eq!(tables::read(&version).await, rows(&[(1, Some("eu"), 10), (2, Some("eu"), 21), (3, None, 30), (4, Some(""), 40)]));
    let delete = RowDelta { delete_keys: Some(tables::keys(&[1, 3])), ..RowDelta::on(&version) };
    let version = table.apply(delete).await;
    assert_eq!(tables::read(&version).await, rows(&[(2, Some("eu"), 21), (4, Some(""), 40)]));
    assert_eq!(version.metadata.current_snapshot().unwrap().summary().operation, Operation::Overwrite);
    table
}

#[tokio::test]
async fn an_unpartitioned_table_is_upserted() {
    let table = upserts_replace(&[]).await;
    let files = live_files(&table.now().await).await.unwrap();
    let deletes = files.iter().filter(|file| file.content == FileContent::EqualityDeletes).count();
    assert_eq!((files.len(), deletes), (5, 3));
    assert!(files.iter().all(|file| file.spec_id == 0));
}

#[tokio::test]
async fn deletes_are_scoped_to_the_partition_that_follows_from_the_key() {
    let table = upserts_replace(&["bucket(4, id)"]).await;
    let version = table.now().await;
    let files = live_files(&version).await.unwrap();
    assert!(files.iter().all(|file| file.spec_id == 0 && file.partition.starts_with("id_bucket=")), "{files:#?}");
    assert_eq!(version.metadata.partition_specs_iter().len(), 1);
}

#[tokio::test]
async fn deletes_are_global_where_the_old_partition_is_not_known() {
    let table = upserts_replace(&["region"]).await;
    let version = table.now().await;
    let global = version.metadata.partition_specs_iter().find(|spec| spec.is_unpartitioned()).unwrap();
    assert_eq!(global.spec_id(), 1);
    assert_eq!(version.metadata.default_partition_spec_id(), 0);
    for file in live_files(&version).await.unwrap() {
        let expected = if file.content == FileContent::Data { 0 } else { 1 };
        assert_eq!(file.spec_id, expected, "{file:?}");
    }
}

#[tokio::test]
async fn totals_and_sequence_numbers_are_right() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, None, 1), (2, None, 2)], 0).await;
    let version = table.upsert(&[(2, None, 3)], 1).await;
    assert_eq!(summary(&version, "total-records"), "3");
    assert_eq!(summary(&version, "added-records"), "1");
    assert_eq!(summary(&version, "total-equality-deletes"), "3");
    assert_eq!(summary(&version, "total-data-files"), "2");
    assert_eq!(summary(&version, "total-delete-files"), "2");
    let bytes: u64 = live_files(&version).await.unwrap().iter().map(|file| file.bytes).sum();
    assert_eq!(summary(&version, "total-files-size"), bytes.to_string());
    let numbers: Vec<i64> = live_files(&version).await.unwrap().iter().map(|file| file.sequence_number).collect();
    assert_eq!(
        {
            let mut n = numbers;
            n.sort_unstable();
            n
        },
        [1, 1, 2, 2]
    );
}

#[tokio::test]
async fn truncation_removes_all_and_keeps_the_new_rows() {
    let table = Fixture::small(&["region"]).await;
    table.upsert(&[(1, Some("eu"), 1), (2, Some("us"), 2)], 0).await;
    let before = table.upsert(&[(2, Some("eu"), 3)], 1).await;
    let mut delta = tables::upsert(&before, &[(9, Some("eu"), 9)], (0, 2..3));
    delta.truncate = Truncate::All;
    let version = table.apply(delta).await;
    assert_eq!(tables::read(&version).await, rows(&[(9, Some("eu"), 9)]));
    assert_eq!(live_files(&version).await.unwrap().len(), 1);
    assert_eq!(summary(&version, "total-records"), "1");
    assert_eq!(summary(&version, "total-delete-files"), "0");
    assert_eq!(summary(&version, "deleted-records"), "3");
    assert_eq!(version.metadata.current_snapshot().unwrap().summary().operation, Operation::Overwrite);
    let emptied = table.apply(RowDelta { truncate: Truncate::All, ..RowDelta::on(&version) }).await;
    assert!(tables::read(&emptied).await.is_empty());
    assert_eq!(emptied.metadata.current_snapshot().unwrap().summary().operation, Operation::Delete);
    let old = before.metadata.current_snapshot_id();
    let target = sluice_table::arrow::arrow_schema(&tables::schema()).unwrap();
    let stored: usize = scan(&emptied, old, &target).await.unwrap().iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(stored, 2);
    table.upsert(&[(5, None, 5)], 3).await;
    assert_eq!(tables::read(&table.now().await).await, rows(&[(5, None, 5)]));
}

#[tokio::test]
async fn a_delta_without_files_carries_the_ledger() {
    let table = Fixture::small(&[]).await;
    let version = table.now().await;
    let delta = RowDelta { rows: None, ..tables::delta(&version, tables::rows(&[]), (0, 0..5)) };
    let again = delta.clone();
    let committed = table.apply(delta).await;
    assert!(live_files(&committed).await.unwrap().is_empty());
    assert_eq!(sluice_table::ledger::read(&committed.metadata).unwrap().entries().count(), 1);
    assert!(matches!(table.commit_on(&version, again).await.unwrap(), DeltaOutcome::AlreadyCommitted { .. }));
}

#[tokio::test]
async fn a_pinned_delta_is_stale_when_the_snapshot_has_moved() {
    let table = Fixture::small(&[]).await;
    let version = table.now().await;
    let mut pinned = tables::upsert(&version, &[(1, None, 1)], (1, 0..1));
    pinned.base_use = BaseUse::PinnedToSnapshot;
    table.upsert(&[(2, None, 2)], 0).await;
    let outcome = table.commit_on(&version, pinned).await.unwrap();
    assert!(matches!(outcome, DeltaOutcome::Stale { reason: StaleReason::SnapshotMoved, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_changed_spec_makes_a_delta_stale_and_deletes_global() {
    let table = Fixture::small(&["bucket(2, id)"]).await;
    let old = table.upsert(&[(1, Some("eu"), 1), (2, Some("us"), 2)], 0).await;
    let made_before = tables::upsert(&old, &[(1, None, 7)], (0, 1..2));
    let spec = UnboundPartitionSpec::builder().add_partition_field(1, "id_bucket8", iceberg::spec::Transform::Bucket(8)).unwrap().build();
    foreign::alter(&*table.ops, |builder| builder.add_default_partition_spec(spec).unwrap()).await;
    let outcome = table.commit_on(&old, made_before).await.unwrap();
    assert!(matches!(outcome, DeltaOutcome::Stale { reason: StaleReason::PartitionSpecChanged, .. }), "{outcome:?}");
    let version = table.upsert(&[(1, Some("eu"), 11)], 1).await;
    assert_eq!(tables::read(&version).await, rows(&[(1, Some("eu"), 11), (2, Some("us"), 2)]));
    let files = live_files(&version).await.unwrap();
    let youngest =
        files.iter().filter(|file| file.content == FileContent::EqualityDeletes).max_by_key(|file| file.sequence_number).unwrap();
    let spec = version.metadata.partition_spec_by_id(youngest.spec_id).unwrap();
    assert!(spec.is_unpartitioned() && youngest.spec_id == 2, "{youngest:?}");
}

#[tokio::test]
async fn the_unpartitioned_spec_is_added_once() {
    let table = Fixture::small(&["region"]).await;
    let base = table.now().await;
    let (first, second) = (tables::upsert(&base, &[(1, None, 1)], (0, 0..1)), tables::upsert(&base, &[(1, Some("x"), 2)], (0, 1..2)));
    table.commit_on(&base, first).await.unwrap();
    let outcome = table.commit_on(&base, second).await.unwrap();
    let DeltaOutcome::Committed { version, attempts: 2, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(version.metadata.partition_specs_iter().len(), 2);
    assert_eq!(tables::read(&version).await, rows(&[(1, Some("x"), 2)]));
}

#[tokio::test]
async fn lookups_find_live_rows_by_key() {
    let table = Fixture::small(&["region"]).await;
    table.upsert(&[(1, Some("eu"), 1), (2, Some("us"), 2)], 0).await;
    table.upsert(&[(100, Some("eu"), 3), (2, Some("eu"), 4)], 1).await;
    let version = table.apply(RowDelta { delete_keys: Some(tables::keys(&[1])), ..RowDelta::on(&table.now().await) }).await;
    let target = sluice_table::arrow::arrow_schema(&tables::schema()).unwrap();
    let found = lookup(&version, &target, &[1], &tables::keys(&[1, 2, 3])).await.unwrap();
    assert_eq!(found.num_rows(), 1);
    let none = lookup(&version, &target, &[1], &tables::keys(&[5_000])).await.unwrap();
    assert_eq!(none.num_rows(), 0);
}

#[tokio::test]
async fn the_deadline_ends_the_attempts() {
    let table = Fixture::small(&[]).await;
    let version = table.now().await;
    let delta = tables::upsert(&version, &[(1, None, 1)], (0, 0..1));
    let prepared = sluice_table::prepare(&version, delta, &table.services.write_options()).await.unwrap();
    let mut context = table.services.commit_context();
    let now = sluice_model::Clock::now_ms(table.services.clock.as_ref());
    context.deadline = sluice_model::Deadline::at(now + 10, 20, now);
    let error = sluice_table::commit_delta(&*table.ops, prepared, &context).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert!(table.now().await.metadata.current_snapshot().is_none());
}
