//! A rewrite in bounded memory, and what it proves of keys.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use sluice_table::rewrite::{KeyProof, Keys, RewriteOptions, RewriteOutcome, RewrittenGroup, TableFiles, commit_rewrite, rewrite_group};
use sluice_table::{FileContent, RowDelta, TableCreation, TableError};
use sluice_testkit::tables;
use support::{Fixture, rows, store_positions};

fn options(table: &Fixture) -> RewriteOptions<'_> {
    RewriteOptions {
        ids: table.services.ids.as_ref(),
        target_file_bytes: 128 << 20,
        delete_memory_bytes: 8 << 20,
        sort_memory_bytes: 64 << 20,
        keys: KeyProof::Off,
    }
}

/// Rewrites the data files of the scope that the first one has.
async fn rewrite(table: &Fixture, options: &RewriteOptions<'_>) -> Result<(TableFiles, RewrittenGroup), TableError> {
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let facts: Vec<_> = files.facts().into_iter().filter(|file| file.content == FileContent::Data).collect();
    let paths: Vec<String> = facts.iter().filter(|file| file.scope == facts[0].scope).map(|file| file.path.clone()).collect();
    let group = rewrite_group(&files, &paths, options).await?;
    Ok((files, group))
}

async fn commit(table: &Fixture, files: &TableFiles, group: RewrittenGroup) {
    let outcome = commit_rewrite(&*table.ops, (files, &[group]), &table.services.commit_context()).await.unwrap();
    assert!(matches!(outcome, RewriteOutcome::Committed { .. }));
}

fn many(ids: std::ops::Range<i64>, total: i128) -> Vec<(i64, Option<&'static str>, i128)> {
    ids.map(|id| (id, Some("eu"), total)).collect()
}

#[tokio::test]
async fn one_delete_file_larger_than_the_memory_is_applied_in_portions_that_fit() {
    let table = Fixture::small(&[]).await;
    table.upsert(&many(0..30_000, 1), 0).await;
    table.upsert(&many(10_000..30_000, 2), 1).await;
    let before = tables::read(&table.now().await).await;
    let roomy = rewrite(&table, &options(&table)).await.unwrap().1.report();
    assert_eq!((roomy.passes, roomy.rows_deleted), (1, 20_000));
    let tight = RewriteOptions { delete_memory_bytes: 64 << 10, ..options(&table) };
    let (files, group) = rewrite(&table, &tight).await.unwrap();
    let report = group.report();
    assert!(report.passes > 4 && report.delete_peak_bytes <= 64 << 10, "{report:?}");
    assert!(roomy.delete_peak_bytes > 4 * report.delete_peak_bytes, "{roomy:?}");
    assert_eq!(report.rows_deleted, 20_000);
    commit(&table, &files, group).await;
    assert_eq!(tables::read(&table.now().await).await, before);
}

#[tokio::test]
async fn a_key_in_many_delete_files_has_one_entry() {
    let (few, often) = (Fixture::small(&[]).await, Fixture::small(&[]).await);
    for offset in 0..2 {
        few.upsert(&many(0..2_000, 1), offset).await;
    }
    for offset in 0..12 {
        often.upsert(&many(0..2_000, 1), offset).await;
    }
    let peaks = [&few, &often].map(|table| async { rewrite(table, &options(table)).await.unwrap().1.report() });
    let [few, often] = peaks;
    let (few, often) = (few.await, often.await);
    assert_eq!(often.rows_deleted, 22_000);
    assert_eq!(few.delete_peak_bytes, often.delete_peak_bytes);
}

#[tokio::test]
async fn positions_larger_than_the_memory_are_applied_in_portions_that_fit() {
    let table = Fixture::small(&[]).await;
    let version = table.upsert(&many(0..20_000, 1), 0).await;
    let path = sluice_table::live_files(&version).await.unwrap()[0].path.clone();
    let deleted: Vec<(&str, i64)> = (0..20_000).filter(|position| position % 2 == 0).map(|position| (path.as_str(), position)).collect();
    store_positions(&version, "memory://positions.parquet", &deleted).await;
    let (content, format) = (iceberg::spec::DataContentType::PositionDeletes, iceberg::spec::DataFileFormat::Parquet);
    let file = sluice_testkit::foreign::data_file("memory://positions.parquet", content, format);
    sluice_testkit::foreign::snapshot(&*table.ops, Some(file)).await;
    let tight = RewriteOptions { delete_memory_bytes: 64 << 10, ..options(&table) };
    let (files, group) = rewrite(&table, &tight).await.unwrap();
    let report = group.report();
    assert!(report.passes > 2 && report.delete_peak_bytes <= 64 << 10, "{report:?}");
    commit(&table, &files, group).await;
    let left = tables::read(&table.now().await).await;
    assert_eq!(left.len(), 10_000);
    assert!(left.keys().all(|id| id % 2 == 1));
}

/// Letters that hardly compress.
fn letters(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + (state % 90) as u8)
    };
    (0..120).map(letter).collect()
}

#[tokio::test]
async fn a_large_file_is_read_by_its_row_groups_and_gives_the_same_rows() {
    let table = Fixture::small(&[]).await;
    let texts: Vec<String> = (0..110_000).map(letters).collect();
    let values: Vec<(i64, Option<&str>, i128)> =
        texts.iter().zip(0..).map(|(text, id)| (id, Some(text.as_str()), i128::from(id))).collect();
    table.upsert(&values, 0).await;
    // The first rewrite makes one file of what the writer has split.
    let (files, group) = rewrite(&table, &options(&table)).await.unwrap();
    commit(&table, &files, group).await;
    table.upsert(&many(5..10, 7), 1).await;
    let largest = TableFiles::load(&table.now().await, None).await.unwrap().unwrap().facts().into_iter().map(|file| file.bytes).max();
    assert!(largest.unwrap() > 8 << 20, "{largest:?}");
    let (files, group) = rewrite(&table, &options(&table)).await.unwrap();
    assert_eq!((group.report().rows_out, group.report().rows_deleted), (110_000, 5));
    commit(&table, &files, group).await;
    let mut expected = rows(&values);
    expected.extend(rows(&many(5..10, 7)));
    assert!(tables::read(&table.now().await).await == expected, "other rows than were written");
}

fn proving(table: &Fixture, delete_memory_bytes: u64) -> RewriteOptions<'_> {
    RewriteOptions { keys: KeyProof::Group, delete_memory_bytes, ..options(table) }
}

#[tokio::test]
async fn keys_that_stand_once_are_proved_in_much_memory_and_in_little() {
    let table = Fixture::small(&[]).await;
    table.upsert(&many(0..5_000, 1), 0).await;
    table.upsert(&many(4_000..6_000, 2), 1).await;
    for memory in [1 << 20, 32 << 10] {
        assert_eq!(rewrite(&table, &proving(&table, memory)).await.unwrap().1.report().keys, Keys::UniqueInTable, "{memory}");
    }
    assert_eq!(rewrite(&table, &options(&table)).await.unwrap().1.report().keys, Keys::NotAsked);
    assert_eq!(
        rewrite(&table, &proving(&table, 64)).await.unwrap().1.report().keys,
        Keys::TooMany,
        "64 parts of 64 bytes do not hold them"
    );
}

#[tokio::test]
async fn a_key_in_two_rows_refuses_the_group() {
    let table = Fixture::small(&[]).await;
    table.upsert(&many(0..100, 1), 0).await;
    let version = table.now().await;
    table.apply(tables::delta(&version, tables::rows(&many(42..43, 2)), (0, 1..2))).await;
    let snapshots = table.now().await.metadata.snapshots().len();
    let Err(error) = rewrite(&table, &proving(&table, 1 << 20)).await else { panic!("proved") };
    assert!(error.to_string().contains("stands in two rows") && error.to_string().contains("prove_keys"), "{error}");
    assert_eq!(table.now().await.metadata.snapshots().len(), snapshots);
    rewrite(&table, &options(&table)).await.unwrap();
}

/// The row moves between regions, so another partition may hold the key, and a delete may have missed it there.
#[tokio::test]
async fn what_is_proved_goes_as_far_as_the_partition_is_determined_by_the_key() {
    for (partition_by, proved) in [("region", Keys::UniqueInGroup), ("bucket(2, id)", Keys::UniqueInTable)] {
        let table = Fixture::small(&[partition_by]).await;
        table.upsert(&[(1, Some("eu"), 1), (2, Some("us"), 2), (3, Some("us"), 3)], 0).await;
        table.upsert(&[(1, Some("us"), 9)], 1).await;
        assert_eq!(rewrite(&table, &proving(&table, 1 << 20)).await.unwrap().1.report().keys, proved, "{partition_by}");
    }
}

#[tokio::test]
async fn a_table_without_identifier_fields_has_nothing_to_prove() {
    let mut schema = tables::schema();
    schema.identifier_ids.clear();
    let table = Fixture::of(&TableCreation::of(schema)).await;
    table.apply(RowDelta { rows: Some(tables::rows(&many(0..3, 1))), ..RowDelta::on(&table.now().await) }).await;
    assert_eq!(rewrite(&table, &proving(&table, 1 << 20)).await.unwrap().1.report().keys, Keys::NoKey);
}
