//! The expiry job, rule by rule (R16, R18–R25), and public failures of others.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;

use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, SnapshotReference, SnapshotRetention, StatisticsFile};
use sluice_maintenance::compact::CompactSettings;
use sluice_maintenance::expire::ExpireSettings;
use sluice_maintenance::{Compact, Expire, Mode, Outcome};
use sluice_storage::ObjectStore as _;
use sluice_table::{FileContent, TableCreation, TableVersion, live_files};
use sluice_testkit::{foreign, tables, vectors};
use support::{HOUR, Lake, Trouble};

fn keep(snapshots: usize) -> Expire {
    Expire { settings: ExpireSettings { min_snapshots_to_keep: snapshots, ..ExpireSettings::default() } }
}

fn compact() -> Compact {
    Compact { settings: CompactSettings { min_input_files: 2, min_delete_files: 1, ..CompactSettings::default() } }
}

async fn lake(commits: i64) -> Lake {
    let lake = Lake::new(7);
    lake.table("t", &[]).await;
    for batch in 0..commits {
        lake.upsert("t", &[(batch, Some("eu"), 1), (1, None, i128::from(batch))]).await;
        lake.wait(HOUR);
    }
    lake
}

fn ids(version: &TableVersion) -> BTreeSet<i64> {
    version.metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).collect()
}

fn nth(version: &TableVersion, number: usize) -> i64 {
    version.metadata.history()[number].snapshot_id
}

#[tokio::test]
async fn r18_the_newest_stay_and_files_that_only_the_others_reached_go() {
    let lake = lake(6).await;
    lake.run(&compact(), "t").await;
    lake.upsert("t", &[(1, None, 99)]).await;
    let before = lake.everything().await;
    let rows = tables::read(&lake.now("t").await).await;
    let report = lake.run(&keep(2), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    let version = lake.now("t").await;
    assert_eq!(ids(&version).len(), 2);
    assert_eq!(tables::read(&version).await, rows);
    let gone: BTreeSet<String> = before.difference(&lake.everything().await).cloned().collect();
    let of = |ending: &str| gone.iter().filter(|path| path.ends_with(ending)).count();
    assert_eq!(of(".parquet"), 12, "six data and six delete files that the compaction replaced: {gone:#?}");
    assert_eq!(gone.iter().filter(|path| path.contains("/snap-")).count(), 6);
    assert_eq!(report.work.objects_deleted as usize, gone.len());
    assert!(!lake.everything().await.iter().any(|path| path.contains("_sluice/expire")), "the record is gone");
    assert_eq!(lake.run(&keep(2), "t").await.outcome, Outcome::NothingDue);
}

#[tokio::test]
async fn r18_age_tags_and_branches_keep_snapshots() {
    let lake = lake(8).await;
    let version = lake.now("t").await;
    let (tag, branch) = (nth(&version, 0), nth(&version, 3));
    foreign::alter(&*lake.ops("t").await, |builder| {
        let tagged = SnapshotReference::new(tag, SnapshotRetention::Tag { max_ref_age_ms: None });
        let branched = SnapshotReference::new(branch, SnapshotRetention::branch(Some(2), None, None));
        builder.set_ref("release", tagged).unwrap().set_ref("audit", branched).unwrap()
    })
    .await;
    let by_age = Expire { settings: ExpireSettings { min_snapshots_to_keep: 1, max_snapshot_age_ms: 2 * HOUR, max_ref_age_ms: None } };
    lake.run(&by_age, "t").await;
    // Of `main` those of the last two hours, the tag's, and two of the branch, of whose own age nothing is said.
    let expected: BTreeSet<i64> = [0, 2, 3, 6, 7].into_iter().map(|number| nth(&version, number)).collect();
    assert_eq!(ids(&lake.now("t").await), expected);
    let old_refs = Expire { settings: ExpireSettings { max_ref_age_ms: Some(6 * HOUR), ..by_age.settings } };
    lake.run(&old_refs, "t").await;
    let expected: BTreeSet<i64> = [2, 3, 6, 7].into_iter().map(|number| nth(&version, number)).collect();
    assert_eq!(ids(&lake.now("t").await), expected, "the old tag is gone");
}

#[tokio::test]
async fn r18_the_tables_own_properties_go_before_the_configuration() {
    let lake = lake(6).await;
    foreign::alter(&*lake.ops("t").await, |builder| {
        builder.set_properties([("history.expire.min-snapshots-to-keep".to_owned(), "5".to_owned())].into()).unwrap()
    })
    .await;
    lake.run(&keep(1), "t").await;
    assert_eq!(ids(&lake.now("t").await).len(), 5);
}

#[tokio::test]
async fn r16_the_newest_snapshot_with_a_writers_mark_is_never_expired() {
    let lake = lake(2).await;
    let marked = foreign::mark(&*lake.ops("t").await, &[("flink.job-id", "a"), ("flink.max-committed-checkpoint-id", "7")]).await;
    let other = foreign::mark(&*lake.ops("t").await, &[("flink.job-id", "b"), ("flink.max-committed-checkpoint-id", "1")]).await;
    for batch in 0..5 {
        lake.upsert("t", &[(batch, None, 1)]).await;
    }
    lake.run(&keep(1), "t").await;
    let left = ids(&lake.now("t").await);
    assert_eq!(left.len(), 3);
    for version in [marked, other] {
        assert!(left.contains(&version.metadata.current_snapshot_id().unwrap()));
    }
}

#[tokio::test]
async fn r19_a_tag_made_between_look_and_commit_keeps_its_snapshot() {
    let lake = lake(5).await;
    let context = lake.context();
    let (table, version) = sluice_maintenance::run::open(&tables::name("t"), &context).await.unwrap().unwrap();
    let plan = sluice_maintenance::Job::plan(&keep(1), &table).await.unwrap();
    let tag = nth(&version, 1);
    foreign::alter(&*lake.ops("t").await, |builder| {
        builder.set_ref("late", SnapshotReference::new(tag, SnapshotRetention::Tag { max_ref_age_ms: None })).unwrap()
    })
    .await;
    let asked = sluice_maintenance::lease::Lease::ask(&table, version.metadata.location(), HOUR).await.unwrap();
    let sluice_maintenance::lease::Asked::Got(lease) = asked else { panic!("free") };
    let files = lake.everything().await;
    let work = sluice_maintenance::Job::execute(&keep(1), &table, &plan, &lease).await.unwrap();
    assert_eq!((work.commits, work.conflicts), (0, 1));
    assert!(lake.everything().await.is_superset(&files));
    lease.give_back(&table).await.unwrap();
    lake.run(&keep(1), "t").await;
    assert!(ids(&lake.now("t").await).contains(&tag));
}

/// Public failure: one Puffin file holds the deletion vectors of several data files; expiring the snapshot that dropped one of them deleted the file under the others.
#[tokio::test]
async fn r20_a_shared_puffin_file_lives_while_any_of_its_vectors_does() {
    let lake = Lake::new(9);
    lake.table("t", &[]).await;
    lake.upsert("t", &[(1, None, 1)]).await;
    let puffin = format!("{}/data/shared.puffin", lake.now("t").await.metadata.location());
    lake.litter(&puffin).await;
    let vector = |offset: i64| {
        let mut builder = DataFileBuilder::default();
        builder.file_path(puffin.clone()).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Puffin);
        builder.record_count(1).file_size_in_bytes(1).content_offset(Some(offset)).content_size_in_bytes(Some(1));
        builder.build().unwrap()
    };
    foreign::snapshot(&*lake.ops("t").await, Some(vector(4))).await;
    foreign::snapshot(&*lake.ops("t").await, Some(vector(40))).await;
    let vectors = |version: TableVersion| async move {
        foreign::entries(&version).await.into_iter().filter(|entry| entry.0.ends_with("puffin")).count()
    };
    assert_eq!(vectors(lake.now("t").await).await, 2);
    foreign::without(&*lake.ops("t").await, &puffin, 4).await;
    assert_eq!(vectors(lake.now("t").await).await, 1, "one of the two is out of the table");
    lake.wait(HOUR);
    let report = lake.run(&keep(1), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    assert!(ids(&lake.now("t").await).len() <= 2, "only the newest, and the newest with a ledger");
    assert!(lake.everything().await.contains(&puffin), "the vector at 40 is live in it");
}

/// The same with real vectors, which compactions take out of the table one after the other.
#[tokio::test]
async fn r20_a_puffin_file_goes_after_the_last_of_its_vectors() {
    let lake = Lake::new(9);
    let creation = TableCreation { format_version: 3, ..tables::creation(&["bucket(2, id)"]) };
    tables::create(&*lake.catalog.inner, "t", &creation).await;
    let version = lake.upsert("t", &[(1, None, 1), (2, None, 2), (3, None, 3), (4, None, 4), (5, None, 5), (6, None, 6)]).await;
    let files: Vec<_> = live_files(&version).await.unwrap().into_iter().filter(|file| file.content == FileContent::Data).collect();
    assert_eq!(files.len(), 2);
    let puffin = format!("{}/data/shared.puffin", version.metadata.location());
    let deleted: Vec<_> = files.iter().map(|file| (file.path.clone(), vec![0])).collect();
    let version = vectors::delete(&*lake.ops("t").await, &puffin, &deleted).await;
    let rows = tables::read(&version).await;
    assert_eq!(rows.len(), 4);
    let vectors = |version: TableVersion| async move {
        live_files(&version).await.unwrap().iter().filter(|file| file.path.ends_with("puffin")).count()
    };
    let one_group = Compact { settings: CompactSettings { max_bytes: 1, ..compact().settings } };
    for left in [1, 0] {
        lake.run(&one_group, "t").await;
        assert_eq!(vectors(lake.now("t").await).await, left);
        lake.wait(200 * HOUR);
        let report = lake.run(&keep(1), "t").await;
        assert_eq!(report.outcome, Outcome::Done, "{report:?}");
        assert_eq!(lake.everything().await.contains(&puffin), left == 1);
        assert_eq!(tables::read(&lake.now("t").await).await, rows);
    }
}

/// Public failure: an unreadable manifest list of a snapshot that stays was only logged, and the files that it named were deleted.
#[tokio::test]
async fn r21_when_anything_that_stays_cannot_be_read_nothing_is_deleted() {
    for what in ["list", "manifest"] {
        let lake = lake(5).await;
        let version = lake.now("t").await;
        let kept = version.metadata.snapshot_by_id(nth(&version, 3)).unwrap();
        let list = kept.manifest_list().to_owned();
        let path = if what == "list" { list } else { foreign::manifest_paths(&version, &list).await[0].clone() };
        let whole = lake.objects.get(&path).await.unwrap().unwrap();
        lake.litter(&path).await;
        let files = lake.everything().await;
        let report = lake.run(&keep(2), "t").await;
        assert!(matches!(report.outcome, Outcome::Failed(_)), "{what}: {report:?}");
        assert_eq!(ids(&lake.now("t").await).len(), 5, "{what}");
        assert!(lake.everything().await.is_superset(&files), "{what}");
        lake.objects.put(&path, whole.bytes, sluice_storage::Condition::Always).await.unwrap();
        assert_eq!(lake.run(&keep(2), "t").await.outcome, Outcome::Done, "{what}");
    }
}

#[tokio::test]
async fn r22_a_run_that_died_is_finished_by_the_next_wherever_it_died() {
    let whole = lake(5).await;
    whole.run(&compact(), "t").await;
    whole.run(&keep(1), "t").await;
    let expected = whole.everything().await;
    for calls in 0..40 {
        let lake = lake(5).await;
        lake.run(&compact(), "t").await;
        let rows = tables::read(&lake.now("t").await).await;
        lake.fuse.set(calls);
        let _ = sluice_maintenance::run(
            &keep(1),
            (&sluice_maintenance::Selector::default(), Mode::Execute { lease_ms: HOUR }),
            &lake.context(),
            &mut |_, _| {},
        )
        .await;
        let blown = lake.fuse.is_blown();
        lake.fuse.set(i64::MAX);
        assert_eq!(tables::read(&lake.now("t").await).await, rows, "after {calls} calls");
        lake.wait(2 * HOUR);
        lake.run(&keep(1), "t").await;
        assert_eq!(tables::read(&lake.now("t").await).await, rows, "after {calls} calls");
        let left: Vec<String> =
            lake.everything().await.into_iter().filter(|path| path.ends_with(".parquet") || path.contains("/snap-")).collect();
        let wanted = expected.iter().filter(|path| path.ends_with(".parquet") || path.contains("/snap-")).count();
        assert_eq!(left.len(), wanted, "after {calls} calls: {left:#?}");
        if !blown {
            return;
        }
    }
    panic!("the run never came through");
}

#[tokio::test]
async fn r23_gc_enabled_false_forbids_it() {
    let lake = lake(4).await;
    foreign::alter(&*lake.ops("t").await, |builder| {
        builder.set_properties([("gc.enabled".to_owned(), "false".to_owned())].into()).unwrap()
    })
    .await;
    let report = lake.run(&keep(1), "t").await;
    assert_eq!(report.outcome, Outcome::NothingDue);
    assert!(report.plan["not_due"].as_str().unwrap().contains("gc.enabled"));
}

#[tokio::test]
async fn r24_statistics_go_with_their_snapshot_unless_another_names_the_same_file() {
    let lake = lake(4).await;
    let version = lake.now("t").await;
    let location = version.metadata.location().to_owned();
    let (own, shared) = (format!("{location}/metadata/own.stats"), format!("{location}/metadata/shared.stats"));
    lake.litter(&own).await;
    lake.litter(&shared).await;
    let statistics = |snapshot_id: i64, path: &str| StatisticsFile {
        snapshot_id,
        statistics_path: path.to_owned(),
        file_size_in_bytes: 1,
        file_footer_size_in_bytes: 1,
        key_metadata: None,
        blob_metadata: vec![],
    };
    let (first, second, last) = (nth(&version, 0), nth(&version, 1), nth(&version, 3));
    foreign::alter(&*lake.ops("t").await, |builder| {
        let builder = builder.set_statistics(statistics(first, &own)).set_statistics(statistics(second, &shared));
        builder.set_statistics(statistics(last, &shared))
    })
    .await;
    lake.run(&keep(1), "t").await;
    let left = lake.everything().await;
    assert!(!left.contains(&own) && left.contains(&shared));
    assert_eq!(lake.now("t").await.metadata.statistics_iter().count(), 1);
}

#[tokio::test]
async fn i6_a_lost_reply_is_looked_up_and_a_lost_request_deletes_nothing() {
    let lake = lake(4).await;
    lake.trouble(Trouble::LostRequest);
    let files = lake.everything().await;
    let report = lake.run(&keep(1), "t").await;
    assert!(matches!(report.outcome, Outcome::Failed(_)), "{report:?}");
    assert!(lake.everything().await.is_superset(&files));
    lake.trouble(Trouble::LostReply);
    assert_eq!(lake.run(&keep(1), "t").await.outcome, Outcome::Done);
    assert_eq!(ids(&lake.now("t").await).len(), 1);
}
