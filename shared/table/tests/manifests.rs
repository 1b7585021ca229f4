//! Manifests are merged when they have become many, and nothing about the files changes by that.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use iceberg::spec::{ManifestContentType, ManifestList, ManifestStatus};
use sluice_table::{FileContent, TableCreation, TableVersion, live_files};
use sluice_testkit::tables;
use support::Fixture;
use support::compacting::compact;

/// What a file was given at its commit: snapshot, data and file sequence number, first row id.
type Given = (i64, i64, i64, Option<u64>);

struct Manifests {
    count: usize,
    deleted: usize,
    files: BTreeMap<String, Given>,
}

/// The live files, with row ids handed down as the format says.
async fn manifests(version: &TableVersion) -> Manifests {
    let list = version.metadata.current_snapshot().unwrap().manifest_list();
    let bytes = version.file_io.new_input(list).unwrap().read().await.unwrap();
    let list = ManifestList::parse_with_version(&bytes, version.metadata.format_version()).unwrap();
    let mut seen = Manifests { count: list.entries().len(), deleted: 0, files: BTreeMap::new() };
    for manifest in list.entries() {
        let mut next = manifest.first_row_id.filter(|_| manifest.content == ManifestContentType::Data);
        for entry in manifest.load_manifest(&version.file_io).await.unwrap().entries() {
            if entry.status() == ManifestStatus::Deleted {
                seen.deleted += 1;
                continue;
            }
            let file = entry.data_file();
            let own = file.first_row_id().map(|id| u64::try_from(id).unwrap());
            let first = own.or(next);
            if own.is_none() {
                next = next.map(|next| next + file.record_count());
            }
            let given = (entry.snapshot_id().unwrap(), entry.sequence_number().unwrap(), entry.file_sequence_number.unwrap(), first);
            assert!(seen.files.insert(file.file_path().to_owned(), given).is_none(), "a file is listed twice");
        }
    }
    seen
}

async fn table(format_version: u8, properties: &[(&str, &str)]) -> Fixture {
    let mut creation = TableCreation { format_version, ..tables::creation(&["region"]) };
    creation.properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Fixture::of(&creation).await
}

const FEW: &[(&str, &str)] = &[("commit.manifest.min-count-to-merge", "5")];

#[tokio::test]
async fn merging_changes_nothing_about_the_files() {
    for format_version in [2, 3] {
        let merged = table(format_version, FEW).await;
        let mut known: BTreeMap<String, Given> = BTreeMap::new();
        let mut most = 0;
        for offset in 0..23 {
            let regions = [Some("eu"), Some("us"), None];
            let region = regions[usize::try_from(offset).unwrap() % 3];
            let version = merged.upsert(&[(offset, region, 1), (offset / 2, Some("eu"), 7)], offset).await;
            let seen = manifests(&version).await;
            most = most.max(seen.count);
            for (path, given) in &known {
                assert_eq!(seen.files.get(path), Some(given), "v{format_version}, {path} after commit {offset}");
            }
            known = seen.files;
            assert_eq!(seen.deleted, 0);
        }
        // Data and deletes, each below the bound and with the commit's own.
        assert!(most <= 10, "v{format_version}: {most} manifests");
        let plain = table(format_version, &[("commit.manifest-merge.enabled", "false"), FEW[0]]).await;
        let mut last = plain.now().await;
        for offset in 0..23 {
            let regions = [Some("eu"), Some("us"), None];
            let region = regions[usize::try_from(offset).unwrap() % 3];
            last = plain.upsert(&[(offset, region, 1), (offset / 2, Some("eu"), 7)], offset).await;
        }
        assert_eq!(manifests(&last).await.count, 46);
        assert_eq!(tables::read(&merged.now().await).await, tables::read(&last).await);
    }
}

/// Row ids of different files never overlap, and stay below the table's next one.
#[tokio::test]
async fn row_ids_stay_apart() {
    let table = table(3, FEW).await;
    for offset in 0..13 {
        let at = offset * 10;
        table.upsert(&[(at, Some("eu"), 1), (at + 1, Some("us"), 1), (at + 2, Some("us"), 1)], offset).await;
    }
    let version = table.now().await;
    let mut firsts: Vec<u64> = manifests(&version).await.files.into_values().filter_map(|given| given.3).collect();
    firsts.sort_unstable();
    assert_eq!(firsts.len(), 26);
    assert!(firsts.is_sorted_by(|a, b| a < b), "{firsts:?}");
    assert!(version.metadata.next_row_id() > firsts[25]);
}

/// Manifests that are as large as they may be are not written again and again.
#[tokio::test]
async fn full_manifests_are_carried_by_reference() {
    let table = table(2, &[FEW[0], ("commit.manifest.target-size-bytes", "1")]).await;
    let mut last = table.now().await;
    for offset in 0..8 {
        last = table.upsert(&[(offset, Some("eu"), 1)], offset).await;
    }
    assert_eq!(manifests(&last).await.count, 16);
}

/// The attempt after a lost race merges what is there then.
#[tokio::test]
async fn a_merge_survives_a_lost_race() {
    let table = table(2, FEW).await;
    for offset in 0..5 {
        table.upsert(&[(offset, Some("eu"), 1)], offset).await;
    }
    let base = table.now().await;
    table.upsert(&[(100, Some("eu"), 1)], 100).await;
    let late = tables::upsert(&base, &[(200, Some("eu"), 1)], (1, 0..1));
    table.commit_on(&base, late).await.unwrap();
    let seen = tables::read(&table.now().await).await;
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 100, 200]);
}

#[tokio::test]
async fn the_files_that_a_rewrite_replaces_are_told_of_in_few_manifests() {
    let table = Fixture::small(&[]).await;
    for offset in 0..12 {
        table.upsert(&[(offset, Some("eu"), 1), (offset / 2, None, 7)], offset).await;
    }
    let before = tables::read(&table.now().await).await;
    let all = live_files(&table.now().await).await.unwrap();
    let data = all.iter().filter(|file| file.content == FileContent::Data).count();
    assert!(data == 12 && all.len() > 20 && manifests(&table.now().await).await.count == all.len());
    let version = compact(&table).await;
    let seen = manifests(&version).await;
    assert_eq!((seen.files.len(), seen.deleted), (1, all.len()), "each file that left is told of once");
    assert_eq!(seen.count, 3, "the new file, the data files that left, the delete files that left");
    let summary = &version.metadata.current_snapshot().unwrap().summary().additional_properties;
    let told = |key: &str| summary.get(key).and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    assert_eq!((told("total-data-files"), told("total-delete-files"), told("deleted-data-files")), (1, 0, 12));
    assert_eq!(tables::read(&version).await, before);
    assert_eq!(manifests(&table.upsert(&[(1, None, 1)], 12).await).await.deleted, 0, "they are told of in one snapshot");
}
