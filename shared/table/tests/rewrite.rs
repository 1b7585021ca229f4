//! Compaction's commits, rule by rule (R4, R7–R12, R16).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use iceberg::spec::{DataContentType, DataFileFormat, Operation};
use sluice_model::Class;
use sluice_table::arrow::arrow_schema;
use sluice_table::rewrite::{FileFacts, RewriteOptions, RewriteOutcome, RewrittenGroup, TableFiles, commit_rewrite, rewrite_group};
use sluice_table::{FileContent, RowDelta, TableVersion, ledger, live_files};
use sluice_testkit::{CommitFault, foreign, tables};
use support::compacting::{compact, groups, options, rewrite_all};
use support::{Fixture, rows, store_positions};

async fn commit(table: &Fixture, files: &TableFiles, groups: &[RewrittenGroup]) -> RewriteOutcome {
    commit_rewrite(&*table.ops, (files, groups), &table.services.commit_context()).await.unwrap()
}

async fn counts(version: &TableVersion) -> (usize, usize) {
    let files = live_files(version).await.unwrap();
    let data = files.iter().filter(|file| file.content == FileContent::Data).count();
    (data, files.len() - data)
}

async fn three_upserts(partition_by: &[&str]) -> Fixture {
    let table = Fixture::small(partition_by).await;
    table.upsert(&[(1, Some("eu"), 10), (2, Some("us"), 20), (3, None, 30)], 0).await;
    table.upsert(&[(2, Some("eu"), 21), (4, Some(""), 40)], 1).await;
    table.upsert(&[(1, Some("us"), 11), (5, Some("eu"), 50)], 2).await;
    table
}

#[tokio::test]
async fn r7_a_compaction_changes_files_and_not_rows() {
    for partition_by in [&[][..], &["region"], &["bucket(2, id)"], &["region", "bucket(2, id)"]] {
        let table = three_upserts(partition_by).await;
        let before = tables::read(&table.now().await).await;
        let version = compact(&table).await;
        assert_eq!(tables::read(&version).await, before, "{partition_by:?}");
        let (data, deletes) = counts(&version).await;
        assert_eq!(deletes, 0, "{partition_by:?}");
        assert!(data <= 6);
        let snapshot = version.metadata.current_snapshot().unwrap();
        assert_eq!(snapshot.summary().operation, Operation::Replace);
        let total = |key: &str| snapshot.summary().additional_properties[key].parse::<usize>().unwrap();
        assert_eq!((total("total-data-files"), total("total-delete-files"), total("total-records")), (data, 0, before.len()));
    }
}

#[tokio::test]
async fn r7_rows_of_a_group_add_up() {
    let table = three_upserts(&[]).await;
    let (_, groups) = rewrite_all(&table).await;
    let report = groups[0].report();
    assert_eq!((report.files_in, report.rows_in, report.rows_deleted, report.rows_out), (3, 7, 2, 5));
}

#[tokio::test]
async fn r8_new_files_have_the_sequence_number_of_the_snapshot_that_was_read() {
    let table = three_upserts(&[]).await;
    let version = compact(&table).await;
    let numbers: Vec<i64> = live_files(&version).await.unwrap().iter().map(|file| file.sequence_number).collect();
    assert_eq!(numbers, [3]);
    assert_eq!(version.metadata.last_sequence_number(), 4);
}

#[tokio::test]
async fn r8_an_old_file_merged_with_a_young_one_does_not_lose_the_young_row() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, Some("eu"), 10), (9, None, 90)], 0).await;
    table.upsert(&[(1, Some("eu"), 11)], 1).await;
    let version = compact(&table).await;
    assert_eq!(tables::read(&version).await, rows(&[(1, Some("eu"), 11), (9, None, 90)]));
}

#[tokio::test]
async fn r9_a_concurrent_equality_delete_still_applies() {
    for partition_by in [&[][..], &["region"], &["bucket(2, id)"]] {
        let table = three_upserts(partition_by).await;
        let (files, groups) = rewrite_all(&table).await;
        table.upsert(&[(1, Some("eu"), 12), (6, None, 60)], 3).await;
        let expected = tables::read(&table.now().await).await;
        let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &groups).await else { panic!("stale") };
        assert_eq!(tables::read(&version).await, expected, "{partition_by:?}");
        assert!(counts(&version).await.1 > 0, "the writer's deletes touch the new files and stay");
    }
}

#[tokio::test]
async fn r9_a_concurrent_position_delete_refuses_its_group_and_no_other() {
    let table = three_upserts(&["bucket(2, id)"]).await;
    let (files, groups) = rewrite_all(&table).await;
    assert_eq!(groups.len(), 2);
    let facts = files.facts();
    let of_first = |file: &&FileFacts| file.scope == facts[0].scope && file.content == FileContent::Data;
    let path = facts.iter().find(of_first).unwrap().path.clone();
    let partition = table.partition_of(&path).await;
    let delete = foreign::position_delete("memory://warehouse/foreign-positions.parquet", &path, partition);
    foreign::snapshot(&*table.ops, Some(delete)).await;
    let RewriteOutcome::Stale { groups: stale, reason, .. } = commit(&table, &files, &groups).await else { panic!("committed") };
    assert_eq!(stale.len(), 1);
    assert!(reason.contains("foreign-positions"), "{reason}");
    let others: Vec<RewrittenGroup> =
        groups.iter().enumerate().filter(|(at, _)| !stale.contains(at)).map(|(_, group)| group.clone()).collect();
    assert!(matches!(commit(&table, &files, &others).await, RewriteOutcome::Committed { .. }));
}

#[tokio::test]
async fn r10_a_file_that_another_compaction_took_refuses_the_group() {
    let table = three_upserts(&[]).await;
    let (files, groups) = rewrite_all(&table).await;
    let (_, again) = rewrite_all(&table).await;
    let before = tables::read(&table.now().await).await;
    assert!(matches!(commit(&table, &files, &groups).await, RewriteOutcome::Committed { .. }));
    assert!(matches!(commit(&table, &files, &again).await, RewriteOutcome::Stale { .. }));
    assert_eq!(tables::read(&table.now().await).await, before);
}

#[tokio::test]
async fn r10_the_start_snapshot_expired_during_compaction() {
    let table = three_upserts(&[]).await;
    let (files, groups) = rewrite_all(&table).await;
    let start = files.snapshot_id();
    table.upsert(&[(7, None, 70)], 3).await;
    foreign::expire(&*table.ops, &[start]).await;
    let RewriteOutcome::Stale { reason, .. } = commit(&table, &files, &groups).await else { panic!("committed") };
    assert!(reason.contains("no ancestor"), "{reason}");
}

#[tokio::test]
async fn r10_a_rollback_behind_the_start_refuses_all() {
    let table = three_upserts(&[]).await;
    let first = table.now().await.metadata.history()[0].snapshot_id;
    let (files, groups) = rewrite_all(&table).await;
    foreign::roll_back(&*table.ops, first).await;
    assert!(matches!(commit(&table, &files, &groups).await, RewriteOutcome::Stale { .. }));
}

#[tokio::test]
async fn r11_a_conflict_and_a_lost_reply_are_one_commit() {
    for fault in [CommitFault::Instead(Class::Conflict), CommitFault::After(Class::Unknown), CommitFault::After(Class::Transient)] {
        let (table, plan) = Fixture::faulty(&tables::creation(&["region"])).await;
        table.upsert(&[(1, Some("eu"), 10)], 0).await;
        table.upsert(&[(1, Some("eu"), 11), (2, None, 2)], 1).await;
        plan.on_commits([fault]);
        let version = compact(&table).await;
        assert_eq!(tables::read(&version).await, rows(&[(1, Some("eu"), 11), (2, None, 2)]));
        assert_eq!(version.metadata.snapshots().len(), 3, "{fault:?}");
    }
}

#[tokio::test]
async fn r11_after_an_unknown_outcome_that_is_not_found_nothing_is_deleted() {
    let (table, plan) = Fixture::faulty(&tables::creation(&[])).await;
    table.upsert(&[(1, None, 1)], 0).await;
    table.upsert(&[(1, None, 2)], 1).await;
    let (files, groups) = rewrite_all(&table).await;
    plan.on_commits([CommitFault::Instead(Class::Unknown)]);
    let error = commit_rewrite(&*table.ops, (&files, &groups), &table.services.commit_context()).await.unwrap_err();
    assert_eq!(error.class(), Class::Unknown);
    assert!(matches!(commit(&table, &files, &groups).await, RewriteOutcome::Committed { .. }), "the new files are all there");
    assert_eq!(tables::read(&table.now().await).await, rows(&[(1, None, 2)]));
}

#[tokio::test]
async fn r12_a_global_delete_stays_while_any_partition_has_older_rows() {
    let table = three_upserts(&["region"]).await;
    let before = tables::read(&table.now().await).await;
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let facts = files.facts();
    let held_back: Vec<_> = facts.iter().filter(|file| file.partition == "region=us" && file.content == FileContent::Data).collect();
    assert!(held_back.iter().any(|file| file.sequence_number == 1));
    let scopes: Vec<usize> = held_back.iter().map(|file| file.scope).collect();
    let mut rewritten = Vec::new();
    for paths in groups(&facts.iter().filter(|file| !scopes.contains(&file.scope)).cloned().collect::<Vec<_>>()) {
        rewritten.push(rewrite_group(&files, &paths, &options(&table)).await.unwrap());
    }
    let RewriteOutcome::Committed { version, deletes_removed, .. } = commit(&table, &files, &rewritten).await else { panic!("stale") };
    assert_eq!(tables::read(&version).await, before, "row 2 of `us` was deleted by a global delete of the second commit");
    assert_eq!(deletes_removed, 1, "only that of the first commit touches nothing");
}

#[tokio::test]
async fn r12_a_cold_partition_does_not_hold_back_the_deletes_of_others() {
    let table = three_upserts(&["bucket(2, id)"]).await;
    let before = tables::read(&table.now().await).await;
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let paths = groups(&files.facts());
    let group = rewrite_group(&files, &paths[0], &options(&table)).await.unwrap();
    let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &[group]).await else { panic!("stale") };
    assert_eq!(tables::read(&version).await, before);
    let rewritten = files.facts().iter().find(|file| file.path == paths[0][0]).unwrap().partition.clone();
    let left: Vec<_> = live_files(&version).await.unwrap().into_iter().filter(|file| file.content != FileContent::Data).collect();
    assert!(!left.is_empty() && left.iter().all(|file| file.partition != rewritten), "{left:#?}");
}

/// Public failure: a NULL in an equality delete never matched, and the compaction dropped the delete: the rows came back.
#[tokio::test]
async fn r4_null_in_an_equality_delete_matches_null() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, None, 10), (2, Some("eu"), 20)], 0).await;
    let mut key = tables::schema();
    key.columns.remove(0);
    key.columns.truncate(1);
    let none: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    let keys = RecordBatch::try_new(arrow_schema(&key).unwrap(), vec![none]).unwrap();
    table.apply(RowDelta { delete_keys: Some(keys), ..RowDelta::on(&table.now().await) }).await;
    let version = compact(&table).await;
    assert_eq!(counts(&version).await, (1, 0));
    assert_eq!(tables::read(&version).await, rows(&[(2, Some("eu"), 20)]));
}

#[tokio::test]
async fn deletes_that_do_not_fit_into_memory_are_applied_in_portions() {
    let table = three_upserts(&[]).await;
    let before = tables::read(&table.now().await).await;
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let tight = RewriteOptions { delete_memory_bytes: 1, ..options(&table) };
    let group = rewrite_group(&files, &groups(&files.facts())[0], &tight).await.unwrap();
    let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &[group]).await else { panic!("stale") };
    assert_eq!(tables::read(&version).await, before);
}

async fn sorted(sort_memory_bytes: usize) -> Vec<i64> {
    let mut creation = tables::creation(&[]);
    creation.sort_by.push(sluice_model::SortField::parse("id desc").unwrap());
    let table = Fixture::of(&creation).await;
    for batch in 0..6_i64 {
        let values: Vec<(i64, Option<&str>, i128)> = (0..2_000).map(|row| ((row * 7_919 + batch) % 12_007, Some("eu"), 1)).collect();
        table.upsert(&values, batch).await;
    }
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let options = RewriteOptions { sort_memory_bytes, ..options(&table) };
    let group = rewrite_group(&files, &groups(&files.facts())[0], &options).await.unwrap();
    let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &[group]).await else { panic!("stale") };
    let facts = TableFiles::load(&version, None).await.unwrap().unwrap().facts();
    assert!(facts.iter().all(|file| file.sort_order_id == Some(1)), "{facts:?}");
    let batches = sluice_table::scan(&version, None, &arrow_schema(&tables::schema()).unwrap()).await.unwrap();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn r17_rows_come_in_the_tables_order_with_much_memory_and_with_little() {
    let ids = sorted(1 << 30).await;
    assert!(ids.len() > 6_000 && ids.windows(2).all(|pair| pair[0] > pair[1]));
    assert_eq!(sorted(1).await, ids, "every batch a run");
}

#[tokio::test]
async fn r2_deletes_by_position_are_applied_and_leave_the_table() {
    let table = three_upserts(&[]).await;
    let version = table.now().await;
    let files = live_files(&version).await.unwrap();
    let second = files.iter().find(|file| file.content == FileContent::Data && file.sequence_number == 2).unwrap().path.clone();
    store_positions(&version, "memory://positions.parquet", &[(&second, 1), ("memory://elsewhere.parquet", 0)]).await;
    let file = foreign::data_file("memory://positions.parquet", DataContentType::PositionDeletes, DataFileFormat::Parquet);
    let before = tables::read(&foreign::snapshot(&*table.ops, Some(file)).await).await;
    assert_eq!(before.len(), 4, "of (2, 4) the file has lost its second row");
    let version = compact(&table).await;
    assert_eq!(tables::read(&version).await, before);
    assert_eq!(counts(&version).await, (1, 1), "by its number it might be about the new file, which has the same");
    table.upsert(&[(8, None, 80)], 3).await;
    let version = compact(&table).await;
    assert_eq!((tables::read(&version).await.len(), counts(&version).await), (5, (1, 0)));
}

#[tokio::test]
async fn r16_the_ledger_and_the_marks_of_other_writers_are_carried() {
    let table = three_upserts(&[]).await;
    foreign::mark(&*table.ops, &[("flink.job-id", "a"), ("flink.max-committed-checkpoint-id", "7")]).await;
    let before = ledger::read(&table.now().await.metadata).unwrap();
    let version = compact(&table).await;
    assert_eq!(ledger::read(&version.metadata).unwrap(), before);
    let summary = &version.metadata.current_snapshot().unwrap().summary().additional_properties;
    assert_eq!(summary["flink.max-committed-checkpoint-id"], "7");
    assert!(!before.is_empty() && summary.contains_key("sluice.ledger"));
}

#[tokio::test]
async fn what_cannot_be_rewritten_is_refused() {
    let mut creation = tables::creation(&[]);
    creation.properties.insert("encryption.key-id".to_owned(), "k".to_owned());
    let table = Fixture::of(&creation).await;
    foreign::instead(&*table.ops, vec![vec![foreign::data_file("memory://data.parquet", DataContentType::Data, DataFileFormat::Parquet)]])
        .await;
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let error = rewrite_group(&files, &groups(&files.facts())[0], &options(&table)).await.unwrap_err();
    assert!(error.to_string().contains("encrypted"), "{error}");
    let table = three_upserts(&["region"]).await;
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let all: Vec<String> = groups(&files.facts()).concat();
    let error = rewrite_group(&files, &all, &options(&table)).await.unwrap_err();
    assert!(error.to_string().contains("all of one partition"), "{error}");
}
