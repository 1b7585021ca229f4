//! Deletion vectors in reads and in compaction, rule by rule (R2, R3, R9, R10, R12).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use iceberg::spec::{DataContentType, DataFileFormat, FormatVersion};
use sluice_model::Class;
use sluice_table::rewrite::{FileFacts, RewriteOptions, RewriteOutcome, RewrittenGroup, TableFiles, commit_rewrite, rewrite_group};
use sluice_table::{FileContent, TableCreation, TableVersion, live_files};
use sluice_testkit::{foreign, oracle, tables, vectors};
use support::compacting::{compact, groups, options, rewrite_all};
use support::{Fixture, rows, store_positions};

async fn three_upserts(partition_by: &[&str]) -> Fixture {
    let table = Fixture::of(&TableCreation { format_version: 3, ..tables::creation(partition_by) }).await;
    table.upsert(&[(1, Some("eu"), 10), (2, Some("us"), 20), (3, None, 30), (6, Some("us"), 60)], 0).await;
    table.upsert(&[(2, Some("eu"), 21), (4, Some(""), 40)], 1).await;
    table.upsert(&[(1, Some("us"), 11), (5, Some("eu"), 50)], 2).await;
    table
}

/// Where the live rows with these ids are, as a foreign writer deletes them.
async fn places(version: &TableVersion, ids: &[i64]) -> Vec<(String, Vec<u64>)> {
    let live = oracle::live(version, version.metadata.current_snapshot_id().unwrap()).await;
    let found: Vec<_> = live.into_iter().filter(|row| ids.contains(&row.id)).collect();
    assert_eq!(found.len(), ids.len());
    found.into_iter().map(|row| (row.path, vec![row.position.cast_unsigned()])).collect()
}

/// Deletes rows by vectors, all in one Puffin file.
async fn delete(table: &Fixture, ids: &[i64]) -> TableVersion {
    let version = table.now().await;
    let puffin = format!("memory://warehouse/vectors-{}.puffin", version.metadata.last_sequence_number());
    vectors::delete(&*table.ops, &puffin, &places(&version, ids).await).await
}

async fn vectors_of(version: &TableVersion) -> Vec<FileFacts> {
    let facts = TableFiles::load(version, None).await.unwrap().unwrap().facts();
    facts.into_iter().filter(|file| file.path.ends_with(".puffin")).collect()
}

async fn commit(table: &Fixture, files: &TableFiles, groups: &[RewrittenGroup]) -> RewriteOutcome {
    commit_rewrite(&*table.ops, (files, groups), &table.services.commit_context()).await.unwrap()
}

#[tokio::test]
async fn r3_vectors_are_applied_by_readers_and_compactions_together_with_deletes_by_key() {
    for partition_by in [&[][..], &["region"], &["bucket(2, id)"]] {
        let table = three_upserts(partition_by).await;
        let mut expected = tables::read(&table.now().await).await;
        delete(&table, &[4, 6]).await;
        // A second vector on a file replaces the first.
        let version = delete(&table, &[3]).await;
        expected.retain(|id, _| ![3, 4, 6].contains(id));
        assert_eq!(tables::read(&version).await, expected, "{partition_by:?}");
        assert_eq!(oracle::rows(&version, version.metadata.current_snapshot_id().unwrap()).await, expected);
        let (files, groups) = rewrite_all(&table).await;
        let deleted: u64 = groups.iter().map(|group| group.report().rows_deleted).sum();
        assert_eq!(deleted, 5, "three by place and two by key");
        let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &groups).await else { panic!("stale") };
        assert_eq!(tables::read(&version).await, expected, "{partition_by:?}");
        let left = live_files(&version).await.unwrap();
        assert!(left.iter().all(|file| file.content == FileContent::Data), "{left:#?}");
    }
}

#[tokio::test]
async fn r3_a_vector_of_another_spec_or_older_than_the_file_does_not_apply() {
    let table = three_upserts(&["bucket(2, id)"]).await;
    let before = tables::read(&table.now().await).await;
    let version = delete(&table, &[1]).await;
    // The same blob, told to be of the unpartitioned spec.
    sluice_table::set_partitioning(&*table.ops, &[], &table.services.commit_context()).await.unwrap();
    let vector = &vectors_of(&version).await[0];
    foreign::without(&*table.ops, &vector.path, 4).await;
    let mut stray = iceberg::spec::DataFileBuilder::default();
    stray.file_path(vector.path.clone()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Puffin);
    stray.record_count(1).file_size_in_bytes(1_000).content_offset(Some(4)).content_size_in_bytes(Some(vector.bytes.cast_signed()));
    stray.referenced_data_file(vector.data_file.clone());
    let version = foreign::snapshot(&*table.ops, Some(stray.build().unwrap())).await;
    assert_eq!(tables::read(&version).await, before);
    let version = compact(&table).await;
    assert_eq!(tables::read(&version).await, before);
    assert_eq!(vectors_of(&version).await, [], "it is about no live file");
}

#[tokio::test]
async fn r2_deletes_by_position_do_not_count_where_there_is_a_vector() {
    for delete_memory_bytes in [1 << 20, 1] {
        let table = Fixture::small(&[]).await;
        let version = table.upsert(&[(1, None, 1), (2, None, 2), (3, None, 3)], 0).await;
        let path = live_files(&version).await.unwrap()[0].path.clone();
        store_positions(&version, "memory://positions.parquet", &[(&path, 0), (&path, 2)]).await;
        let file = foreign::data_file("memory://positions.parquet", DataContentType::PositionDeletes, DataFileFormat::Parquet);
        let version = foreign::snapshot(&*table.ops, Some(file)).await;
        assert_eq!(tables::read(&version).await, rows(&[(2, None, 2)]));
        foreign::alter(&*table.ops, |builder| builder.upgrade_format_version(FormatVersion::V3).unwrap()).await;
        // A writer has to fold the positions of before into its vector; this one has folded in one of two.
        let version = vectors::delete(&*table.ops, "memory://v.puffin", &[(path, vec![0, 1])]).await;
        assert_eq!(tables::read(&version).await, rows(&[(3, None, 3)]));
        let files = TableFiles::load(&version, None).await.unwrap().unwrap();
        let options = RewriteOptions { delete_memory_bytes, ..options(&table) };
        let group = rewrite_group(&files, &groups(&files.facts())[0], &options).await.unwrap();
        assert_eq!((group.report().rows_deleted, group.report().rows_out), (2, 1));
        let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &[group]).await else { panic!("stale") };
        assert_eq!(tables::read(&version).await, rows(&[(3, None, 3)]));
    }
}

/// Two vectors in one Puffin file: that of the file that is rewritten goes, the other stays.
#[tokio::test]
async fn r12_a_vector_goes_with_its_data_file_and_the_others_of_its_puffin_file_stay() {
    let table = three_upserts(&["bucket(2, id)"]).await;
    let live = oracle::live(&table.now().await, table.now().await.metadata.current_snapshot_id().unwrap()).await;
    let first = &live[0];
    let other = live.iter().find(|row| row.partition != first.partition).unwrap();
    let version = delete(&table, &[first.id, other.id]).await;
    let held = vectors_of(&version).await;
    assert_eq!(held.len(), 2);
    assert!(held[0].path == held[1].path && held[0].data_file != held[1].data_file);
    let expected = tables::read(&version).await;
    let files = TableFiles::load(&version, None).await.unwrap().unwrap();
    let scope = files.facts().iter().find(|file| file.path == first.path).unwrap().scope;
    let of_first = files.facts().into_iter().filter(|file| file.scope == scope).collect::<Vec<_>>();
    let group = rewrite_group(&files, &groups(&of_first)[0], &options(&table)).await.unwrap();
    let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &[group]).await else { panic!("stale") };
    let left = vectors_of(&version).await;
    assert_eq!(left.iter().map(|file| file.data_file.as_deref()).collect::<Vec<_>>(), [Some(other.path.as_str())]);
    assert_eq!(tables::read(&version).await, expected);
    let summary = &version.metadata.current_snapshot().unwrap().summary().additional_properties;
    assert_eq!(summary["removed-dvs"], "1");
    assert!(!summary.contains_key("removed-position-delete-files"));
    let version = compact(&table).await;
    assert_eq!((vectors_of(&version).await, tables::read(&version).await), (vec![], expected));
}

#[tokio::test]
async fn r9_a_concurrent_vector_refuses_its_group_and_no_other() {
    let table = three_upserts(&["bucket(2, id)"]).await;
    let (files, groups) = rewrite_all(&table).await;
    assert_eq!(groups.len(), 2);
    let version = delete(&table, &[1]).await;
    let expected = tables::read(&version).await;
    let RewriteOutcome::Stale { groups: stale, reason, .. } = commit(&table, &files, &groups).await else { panic!("committed") };
    assert_eq!(stale.len(), 1);
    assert!(reason.contains(".puffin") && reason.contains("being rewritten"), "{reason}");
    let others: Vec<RewrittenGroup> =
        groups.iter().enumerate().filter(|(at, _)| !stale.contains(at)).map(|(_, group)| group.clone()).collect();
    let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &others).await else { panic!("stale") };
    assert_eq!(tables::read(&version).await, expected);
    let version = compact(&table).await;
    assert_eq!((vectors_of(&version).await, tables::read(&version).await), (vec![], expected));
}

/// The Puffin file of the vector that was applied is still live by another of its vectors.
#[tokio::test]
async fn r10_a_vector_that_was_replaced_meanwhile_refuses_its_group() {
    let table = three_upserts(&[]).await;
    delete(&table, &[3, 4, 5]).await;
    let (files, groups) = rewrite_all(&table).await;
    let version = delete(&table, &[6]).await;
    let expected = tables::read(&version).await;
    assert!(vectors_of(&version).await.iter().any(|vector| files.facts().iter().any(|before| before.path == vector.path)));
    let RewriteOutcome::Stale { reason, .. } = commit(&table, &files, &groups).await else { panic!("committed") };
    assert!(reason.contains("whose deletes are applied"), "{reason}");
    assert_eq!(tables::read(&compact(&table).await).await, expected);
}

#[tokio::test]
async fn vectors_are_applied_in_portions_that_fit() {
    let table = Fixture::of(&TableCreation { format_version: 3, ..tables::creation(&[]) }).await;
    let mut deleted = Vec::new();
    for batch in 0..8_i64 {
        let values: Vec<(i64, Option<&str>, i128)> = (0..2_000).map(|row| (batch * 2_000 + row, None, 1)).collect();
        table.upsert(&values, batch).await;
    }
    for file in live_files(&table.now().await).await.unwrap().into_iter().filter(|file| file.content == FileContent::Data) {
        deleted.push((file.path, (0..2_000).filter(|position| position % 3 == 0).collect()));
    }
    let version = vectors::delete(&*table.ops, "memory://many.puffin", &deleted).await;
    let expected = tables::read(&version).await;
    assert_eq!(expected.len(), 16_000 - 8 * 667);
    let files = TableFiles::load(&version, None).await.unwrap().unwrap();
    let paths = groups(&files.facts()).remove(0);
    let roomy = rewrite_group(&files, &paths, &options(&table)).await.unwrap().report();
    // The keys of the upserts do not fit either, so more passes than vectors.
    let tight = RewriteOptions { delete_memory_bytes: 16 << 10, ..options(&table) };
    let group = rewrite_group(&files, &paths, &tight).await.unwrap();
    let report = group.report();
    assert!(report.passes > roomy.passes && report.delete_peak_bytes <= 16 << 10, "{report:?} {roomy:?}");
    assert_eq!((report.rows_deleted, report.rows_out), (roomy.rows_deleted, roomy.rows_out));
    let RewriteOutcome::Committed { version, .. } = commit(&table, &files, &[group]).await else { panic!("stale") };
    assert!(tables::read(&version).await == expected);
}

/// Nothing is read of a table whose deletes cannot be told, and nothing of it is rewritten.
#[tokio::test]
async fn a_vector_that_cannot_be_trusted_is_an_error() {
    for (at, byte, said) in [(4, 0xff, "its length is"), (8, 0, "magic"), (20, 0xff, "checksum")] {
        let table = three_upserts(&[]).await;
        let version = delete(&table, &[3]).await;
        let path = vectors_of(&version).await[0].path.clone();
        let mut bytes = version.file_io.new_input(&path).unwrap().read().await.unwrap().to_vec();
        bytes[at] = byte;
        version.file_io.new_output(&path).unwrap().write(bytes.into()).await.unwrap();
        let target = sluice_table::arrow::arrow_schema(&tables::schema()).unwrap();
        let error = sluice_table::scan(&version, None, &target).await.unwrap_err();
        assert!(error.class() == Class::Fatal && error.to_string().contains(said), "{error}");
        let files = TableFiles::load(&version, None).await.unwrap().unwrap();
        let error = rewrite_group(&files, &groups(&files.facts())[0], &options(&table)).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn c2_two_vectors_of_one_data_file_are_an_error() {
    let table = three_upserts(&[]).await;
    let version = delete(&table, &[3]).await;
    let vector = &vectors_of(&version).await[0];
    let mut again = iceberg::spec::DataFileBuilder::default();
    again.file_path(vector.path.clone()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Puffin);
    again.record_count(1).file_size_in_bytes(1_000).content_offset(Some(4)).content_size_in_bytes(Some(vector.bytes.cast_signed()));
    again.referenced_data_file(vector.data_file.clone());
    let version = foreign::snapshot(&*table.ops, Some(again.build().unwrap())).await;
    let files = TableFiles::load(&version, None).await.unwrap().unwrap();
    let error = rewrite_group(&files, &groups(&files.facts())[0], &options(&table)).await.unwrap_err();
    assert!(error.to_string().contains("2 deletion vectors"), "{error}");
}
