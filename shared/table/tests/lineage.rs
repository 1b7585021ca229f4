//! Row ids of format version 3: who gets them, and that they survive what moves rows and manifests (R5, R6, R15, C5).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use iceberg::spec::{FormatVersion, ManifestContentType, ManifestList};
use sluice_model::SortField;
use sluice_table::manifest_rewrite::{ManifestOutcome, manifest_facts, rewrite_manifests};
use sluice_table::rewrite::{RewriteOutcome, TableFiles, commit_rewrite, rewrite_group};
use sluice_table::{FileContent, RowDelta, TableCreation, TableVersion, Truncate};
use sluice_testkit::{foreign, oracle, tables, vectors};
use support::Fixture;
use support::compacting::{compact, groups, options, rewrite_all};

fn creation(partition_by: &[&str]) -> TableCreation {
    TableCreation { format_version: 3, ..tables::creation(partition_by) }
}

/// By key: the row's id, and the number of the commit that wrote it last.
type Lineage = BTreeMap<i64, (Option<i64>, i64)>;

async fn lineage(version: &TableVersion) -> Lineage {
    let live = oracle::live(version, version.metadata.current_snapshot_id().unwrap()).await;
    let lineage: Lineage = live.into_iter().map(|row| (row.id, (row.row_id, row.updated))).collect();
    check_c5(version, &lineage).await;
    lineage
}

/// C5: every row has an id of its own, below the table's next one, and the ranges of the files do not overlap.
async fn check_c5(version: &TableVersion, lineage: &Lineage) {
    let next = i64::try_from(version.metadata.next_row_id()).unwrap();
    let mut ids: Vec<i64> = lineage.values().map(|(id, _)| id.unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.is_sorted_by(|a, b| a < b) && ids.iter().all(|id| *id < next), "{ids:?} of {next}");
    let mut ranges = first_rows(version).await.into_values().collect::<Vec<_>>();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{ranges:?}");
    }
    assert!(ranges.last().is_none_or(|(first, rows)| first + rows <= next), "{ranges:?} of {next}");
}

/// By path: the first row id, handed down as the format says, and the rows.
async fn first_rows(version: &TableVersion) -> BTreeMap<String, (i64, i64)> {
    let list = version.metadata.current_snapshot().unwrap().manifest_list();
    let bytes = version.file_io.new_input(list).unwrap().read().await.unwrap();
    let list = ManifestList::parse_with_version(&bytes, version.metadata.format_version()).unwrap();
    let mut found = BTreeMap::new();
    for manifest in list.entries().iter().filter(|manifest| manifest.content == ManifestContentType::Data) {
        let mut next = manifest.first_row_id.unwrap() as i64;
        for entry in manifest.load_manifest(&version.file_io).await.unwrap().entries().iter().filter(|entry| entry.is_alive()) {
            let (rows, own) = (entry.record_count() as i64, entry.data_file().first_row_id());
            found.insert(entry.file_path().to_owned(), (own.unwrap_or(next), rows));
            next += if own.is_none() { rows } else { 0 };
        }
    }
    found
}

async fn three_upserts(creation: &TableCreation) -> Fixture {
    let table = Fixture::of(creation).await;
    table.upsert(&[(1, Some("eu"), 10), (2, Some("us"), 20), (3, None, 30), (6, Some("us"), 60)], 0).await;
    table.upsert(&[(2, Some("eu"), 21), (4, Some(""), 40)], 1).await;
    table.upsert(&[(1, Some("us"), 11), (5, Some("eu"), 50)], 2).await;
    table
}

/// Deletes a row by a vector.
async fn delete(table: &Fixture, id: i64) -> TableVersion {
    let version = table.now().await;
    let live = oracle::live(&version, version.metadata.current_snapshot_id().unwrap()).await;
    let row = live.into_iter().find(|row| row.id == id).unwrap();
    let puffin = format!("memory://warehouse/vectors-{id}.puffin");
    vectors::delete(&*table.ops, &puffin, &[(row.path, vec![row.position.cast_unsigned()])]).await
}

#[tokio::test]
async fn r15_a_compaction_keeps_the_lineage_of_every_row() {
    let mut sorted = creation(&[]);
    sorted.sort_by.push(SortField::parse("id desc").unwrap());
    for creation in [creation(&[]), creation(&["region"]), creation(&["bucket(2, id)"]), sorted] {
        let table = three_upserts(&creation).await;
        let before = lineage(&delete(&table, 3).await).await;
        assert_eq!(before[&4].1, 2);
        let version = compact(&table).await;
        assert_eq!(lineage(&version).await, before);
        // Files with the columns, files without, and a row that has moved twice.
        table.upsert(&[(2, Some("ap"), 22), (7, None, 70)], 3).await;
        let before = lineage(&delete(&table, 6).await).await;
        assert_eq!(before[&2].1, 6, "an upsert makes a new row of it");
        let next = table.now().await.metadata.next_row_id();
        let version = compact(&table).await;
        assert_eq!(lineage(&version).await, before);
        assert!(version.metadata.next_row_id() >= next);
    }
}

/// The files of one commit stand in one manifest, which a compaction of one of them writes anew.
#[tokio::test]
async fn r6_a_file_that_stays_in_a_manifest_that_is_written_anew_keeps_its_first_row_id() {
    let table = three_upserts(&creation(&["bucket(2, id)"])).await;
    let (before, firsts) = (lineage(&table.now().await).await, first_rows(&table.now().await).await);
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let paths = groups(&files.facts());
    assert_eq!(paths.len(), 2);
    let group = rewrite_group(&files, &paths[0], &options(&table)).await.unwrap();
    let outcome = commit_rewrite(&*table.ops, (&files, &[group]), &table.services.commit_context()).await.unwrap();
    let RewriteOutcome::Committed { version, .. } = outcome else { panic!("stale") };
    let after = first_rows(&version).await;
    for path in &paths[1] {
        assert_eq!(after[path], firsts[path]);
    }
    assert_eq!(lineage(&version).await, before);
}

async fn with_fewer_manifests(table: &Fixture) -> TableVersion {
    let version = table.now().await;
    let paths: Vec<String> = manifest_facts(&version).await.unwrap().into_iter().map(|manifest| manifest.path).collect();
    let outcome = rewrite_manifests(&*table.ops, (&version, &paths, 8 << 20), &table.services.commit_context()).await.unwrap();
    let ManifestOutcome::Committed { version, .. } = outcome else { panic!("stale") };
    version
}

#[tokio::test]
async fn r6_rewritten_manifests_keep_first_row_ids_and_vectors() {
    let table = three_upserts(&creation(&["region"])).await;
    let version = delete(&table, 3).await;
    let (rows, firsts, ids, entries) =
        (tables::read(&version).await, first_rows(&version).await, lineage(&version).await, foreign::entries(&version).await);
    let next = version.metadata.next_row_id();
    let version = with_fewer_manifests(&table).await;
    assert_eq!((first_rows(&version).await, lineage(&version).await), (firsts, ids));
    assert_eq!((tables::read(&version).await, foreign::entries(&version).await), (rows, entries));
    assert!(version.metadata.next_row_id() >= next);
    let (added, removed) = version.metadata.current_snapshot().unwrap().row_range().unwrap();
    assert_eq!(added + removed, version.metadata.next_row_id());
}

#[tokio::test]
async fn r15_a_truncate_ends_the_ids_and_new_rows_get_new_ones() {
    let table = three_upserts(&creation(&[])).await;
    let (before, next) = (lineage(&table.now().await).await, table.now().await.metadata.next_row_id());
    let mut delta = tables::upsert(&table.now().await, &[(1, None, 1)], (0, 3..4));
    delta.truncate = Truncate::All;
    let after = lineage(&table.apply(delta).await).await;
    assert_eq!(after.len(), 1);
    assert!(after[&1].0.unwrap() >= next.cast_signed() && !before.values().any(|row| row.0 == after[&1].0));
}

async fn upgraded(partition_by: &[&str]) -> Fixture {
    let table = three_upserts(&tables::creation(partition_by)).await;
    foreign::alter(&*table.ops, |builder| builder.upgrade_format_version(FormatVersion::V3).unwrap()).await;
    let live = oracle::live(&table.now().await, table.now().await.metadata.current_snapshot_id().unwrap()).await;
    assert!(live.iter().all(|row| row.row_id.is_none()), "the snapshot of before the upgrade has no row ids");
    table
}

/// The next snapshot gives ids to all rows, whoever makes it; the compaction, too, and it keeps the number of the last update.
#[tokio::test]
async fn r15_rows_of_before_an_upgrade_get_ids_from_the_next_snapshot() {
    for partition_by in [&[][..], &["bucket(2, id)"]] {
        let updated = |lineage: &Lineage| lineage.iter().map(|(id, row)| (*id, row.1)).collect::<BTreeMap<i64, i64>>();
        let by_compaction = lineage(&compact(&upgraded(partition_by).await).await).await;
        let table = upgraded(partition_by).await;
        let by_writer = lineage(&table.upsert(&[(9, None, 90)], 3).await).await;
        for id in [1, 2, 3, 4, 5, 6] {
            assert_eq!(updated(&by_compaction)[&id], updated(&by_writer)[&id], "{id}");
        }
        let by_manifests = lineage(&with_fewer_manifests(&upgraded(partition_by).await).await).await;
        assert_eq!(updated(&by_manifests), updated(&by_compaction));
        assert_eq!(lineage(&compact(&table).await).await, by_writer);
    }
}

/// The rows were copied without ids, and have got some meanwhile.
#[tokio::test]
async fn r15_a_snapshot_that_gives_ids_to_old_rows_refuses_what_was_rewritten_before() {
    let table = upgraded(&[]).await;
    let (files, groups) = rewrite_all(&table).await;
    let before = lineage(&table.upsert(&[(9, None, 90)], 3).await).await;
    let outcome = commit_rewrite(&*table.ops, (&files, &groups), &table.services.commit_context()).await.unwrap();
    let RewriteOutcome::Stale { reason, .. } = outcome else { panic!("committed") };
    assert!(reason.contains("other ids"), "{reason}");
    assert_eq!(lineage(&compact(&table).await).await, before);
}

/// The first attempt merges or rewrites manifests without row ids; until the second another program's snapshot, which carries them, has given them some.
#[tokio::test]
async fn r6_manifests_that_got_row_ids_between_two_attempts_are_copied_again() {
    let mut few = tables::creation(&[]);
    few.properties.insert("commit.manifest.min-count-to-merge".to_owned(), "4".to_owned());
    for by_writer in [true, false] {
        let table = three_upserts(&few).await;
        foreign::alter(&*table.ops, |builder| builder.upgrade_format_version(FormatVersion::V3).unwrap()).await;
        let base = table.now().await;
        let before = lineage(&foreign::snapshot(&*table.ops, None).await).await;
        if by_writer {
            let late = tables::upsert(&base, &[(30, None, 1)], (1, 0..1));
            table.commit_on(&base, late).await.unwrap();
        } else {
            let paths: Vec<String> = manifest_facts(&base).await.unwrap().into_iter().map(|manifest| manifest.path).collect();
            rewrite_manifests(&*table.ops, (&base, &paths, 8 << 20), &table.services.commit_context()).await.unwrap();
        }
        let facts = manifest_facts(&table.now().await).await.unwrap();
        assert!(facts.len() < 6, "they are merged: {facts:#?}");
        let after = lineage(&table.now().await).await;
        assert!(before.iter().all(|(id, row)| after[id] == *row), "{before:?} {after:?}");
    }
}

/// A delta without rows changes the deletes only; no id is given out and none is lost.
#[tokio::test]
async fn r15_a_delete_gives_out_no_ids() {
    let table = three_upserts(&creation(&[])).await;
    let (mut before, next) = (lineage(&table.now().await).await, table.now().await.metadata.next_row_id());
    let version = table.apply(RowDelta { delete_keys: Some(tables::keys(&[4])), ..RowDelta::on(&table.now().await) }).await;
    before.remove(&4);
    assert_eq!((lineage(&version).await, version.metadata.next_row_id()), (before, next));
    let facts = TableFiles::load(&version, None).await.unwrap().unwrap().facts();
    assert!(facts.iter().any(|file| file.content == FileContent::EqualityDeletes));
}

#[tokio::test]
async fn a_column_with_a_name_of_row_lineage_is_refused() {
    let mut named = creation(&[]);
    named.schema.columns.push(sluice_model::Column::optional(4, "_row_id", sluice_model::ColumnType::String));
    named.schema.last_column_id = 4;
    let table = Fixture::of(&named).await;
    let version = table.upsert(&[(1, None, 1)], 0).await;
    let files = TableFiles::load(&version, None).await.unwrap().unwrap();
    let error = rewrite_group(&files, &groups(&files.facts())[0], &options(&table)).await.unwrap_err();
    assert!(error.to_string().contains("row lineage"), "{error}");
}
