//! The compaction job: what it plans, how it yields, what it leaves.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;

use sluice_maintenance::compact::{Burden, CompactSettings, CompactionPlan, ProveKeys, WhereOthersCompact};
use sluice_maintenance::health::{Storage, health};
use sluice_maintenance::{Compact, Context, MaintenanceSettings, Mode, Outcome, Selector, run};
use sluice_model::{Deadline, TableName};
use sluice_table::{FileContent, TableCreation, live_files};
use sluice_testkit::{foreign, tables, vectors};
use support::{HOUR, Lake, Others, Trouble};

fn job() -> Compact {
    Compact { settings: CompactSettings { min_input_files: 2, min_delete_files: 1, ..CompactSettings::default() } }
}

async fn lake() -> Lake {
    let lake = Lake::new(5);
    lake.table("t", &["bucket(2, id)"]).await;
    for batch in 0..6 {
        lake.upsert("t", &[(batch, Some("eu"), 1), (batch + 1, None, 2), (batch + 2, None, 3)]).await;
    }
    lake
}

#[tokio::test]
async fn c7_a_second_run_has_nothing_to_do() {
    let lake = lake().await;
    let before = tables::read(&lake.now("t").await).await;
    let report = lake.run(&job(), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    assert_eq!((report.after.data_files, report.after.delete_files), (2, 0));
    assert!(report.before.data_files > 2 && report.work.rows_deleted > 0);
    assert_eq!(tables::read(&lake.now("t").await).await, before);
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::NothingDue);
}

#[tokio::test]
async fn a_plan_is_pure_data_and_the_same_each_time() {
    let lake = lake().await;
    let snapshots = lake.now("t").await.metadata.snapshots().len();
    let first = lake.run_in(&job(), "t", Mode::Plan).await;
    let second = lake.run_in(&job(), "t", Mode::Plan).await;
    assert_eq!((first.outcome, first.plan.clone()), (Outcome::Planned, second.plan));
    let plan: sluice_maintenance::compact::CompactionPlan = serde_json::from_value(first.plan.clone()).unwrap();
    assert_eq!(serde_json::to_value(&plan).unwrap(), first.plan);
    assert_eq!(lake.now("t").await.metadata.snapshots().len(), snapshots);
    assert!(!lake.everything().await.iter().any(|path| path.contains("_sluice")), "a dry run writes nothing");
}

#[tokio::test]
async fn i3_a_writer_between_look_and_commit_goes_first_and_nothing_is_lost() {
    let lake = lake().await;
    let mut expected = tables::read(&lake.now("t").await).await;
    expected.insert(3, (Some("raced".to_owned()), 6));
    lake.trouble(Trouble::Writer(3));
    let report = lake.run(&job(), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    assert_eq!(tables::read(&lake.now("t").await).await, expected);
}

/// Public failure: a commit timed out after it had succeeded, and the files that it had brought were deleted.
#[tokio::test]
async fn i6_a_commit_that_timed_out_after_success_is_a_success() {
    let lake = lake().await;
    let before = tables::read(&lake.now("t").await).await;
    lake.trouble(Trouble::LostReply);
    let report = lake.run(&job(), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    lake.trouble(Trouble::LostRequest);
    lake.upsert("t", &[(90, None, 1)]).await;
    lake.upsert("t", &[(90, None, 2)]).await;
    let files = lake.everything().await;
    let report = lake.run(&job(), "t").await;
    assert!(matches!(report.outcome, Outcome::Failed(_)), "{report:?}");
    assert!(lake.everything().await.is_superset(&files), "after an unknown outcome nothing is deleted");
    let now = tables::read(&lake.now("t").await).await;
    assert_eq!(now.len(), before.len() + 1);
}

#[tokio::test]
async fn c8_what_is_beyond_the_budget_is_done_by_the_next_run() {
    let lake = lake().await;
    let before = tables::read(&lake.now("t").await).await;
    let tight = Compact { settings: CompactSettings { max_bytes: 1, ..job().settings } };
    let first = lake.run(&tight, "t").await;
    assert!(matches!(first.outcome, Outcome::Partial(_)), "{first:?}");
    let second = lake.run(&tight, "t").await;
    assert_eq!(second.outcome, Outcome::Done, "{second:?}");
    assert_eq!(lake.run(&tight, "t").await.outcome, Outcome::NothingDue);
    assert_eq!(tables::read(&lake.now("t").await).await, before);
}

#[tokio::test]
async fn a_table_is_due_by_its_commits_and_the_time_since_the_last_run() {
    let lake = lake().await;
    let slow = Compact { settings: CompactSettings { min_commits: 7, min_interval_ms: 1_000, ..job().settings } };
    assert_eq!(lake.run(&slow, "t").await.outcome, Outcome::NothingDue);
    lake.upsert("t", &[(1, None, 9)]).await;
    assert_eq!(lake.run(&slow, "t").await.outcome, Outcome::Done);
    for batch in 0..8 {
        lake.upsert("t", &[(batch, None, 10)]).await;
    }
    let report = lake.run_in(&slow, "t", Mode::Plan).await;
    assert!(report.plan["not_due"].as_str().unwrap().contains("min_interval_ms"), "{report:?}");
    lake.wait(2_000);
    assert_eq!(lake.run(&slow, "t").await.outcome, Outcome::Done);
}

#[tokio::test]
async fn a_table_is_due_as_soon_as_one_of_the_triggers_that_are_on_is_reached() {
    let lake = lake().await;
    let due = |due: Burden| Compact { settings: CompactSettings { due, ..job().settings } };
    // Six upserts of three rows into at most two buckets, with a delete file beside each data file.
    let out_of_reach = Burden { small_files: 13, small_file_bytes: 1 << 40, delete_files: 13, equality_deletes: 19 };
    let report = lake.run_in(&due(out_of_reach), "t", Mode::Plan).await;
    let told = report.plan["not_due"].as_str().unwrap();
    assert!(told.contains("equality_deletes 18 of 19"), "{told}");
    for one in [
        Burden { small_files: 6, ..Burden::default() },
        Burden { small_file_bytes: 6 * 500, ..out_of_reach },
        Burden { delete_files: 6, ..out_of_reach },
        Burden { equality_deletes: 18, ..out_of_reach },
    ] {
        assert_eq!(lake.run_in(&due(one), "t", Mode::Plan).await.outcome, Outcome::Planned, "{one:?}");
    }
}

#[tokio::test]
async fn what_is_proved_of_keys_is_in_the_report_and_a_key_in_two_rows_is_not_committed() {
    let proving = Compact { settings: CompactSettings { prove_keys: ProveKeys::Group, ..job().settings } };
    let lake = lake().await;
    let report = lake.run(&proving, "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    assert_eq!(report.work.notes.iter().filter(|note| note.contains("keys unique in the table")).count(), 2, "{report:?}");
    for offset in [500, 501] {
        let version = lake.now("t").await;
        let rows = tables::rows(&[(77, None, i128::from(offset))]);
        tables::apply(&*lake.ops("t").await, tables::delta(&version, rows, (0, offset..offset + 1)), &lake.services).await;
    }
    let snapshot = lake.now("t").await.metadata.current_snapshot_id();
    let report = lake.run(&proving, "t").await;
    assert!(matches!(&report.outcome, Outcome::Failed(why) if why.contains("prove_keys")), "{report:?}");
    assert_eq!(lake.now("t").await.metadata.current_snapshot_id(), snapshot);
}

#[tokio::test]
async fn where_a_service_of_the_catalog_compacts_we_do_not_unless_we_are_told_to() {
    let lake = lake().await;
    let snapshot = lake.now("t").await.metadata.current_snapshot_id();
    *lake.catalog.others.lock().unwrap() = Others::Optimizer;
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::StoodDown("an optimizer".to_owned()));
    *lake.catalog.others.lock().unwrap() = Others::CannotBeTold;
    assert!(matches!(lake.run(&job(), "t").await.outcome, Outcome::Failed(_)), "what cannot be told is not that there is nobody");
    assert_eq!(lake.now("t").await.metadata.current_snapshot_id(), snapshot);
    let forced = Compact { settings: CompactSettings { where_others_compact: WhereOthersCompact::GoOn, ..job().settings } };
    assert_eq!(lake.run(&forced, "t").await.outcome, Outcome::Done);
}

/// A vector is planned for, told by the health of the table, and taken out with its file.
#[tokio::test]
async fn deletion_vectors_make_a_file_due_and_count_as_deletes() {
    let lake = Lake::new(5);
    let creation = TableCreation { format_version: 3, ..tables::creation(&["bucket(2, id)"]) };
    tables::create(&*lake.catalog.inner, "t", &creation).await;
    let rows = tables::rows(&[(1, None, 1), (2, None, 2), (3, None, 3), (4, None, 4)]);
    let delta = tables::delta(&lake.now("t").await, rows, (0, 0..1));
    let version = tables::apply(&*lake.ops("t").await, delta, &lake.services).await;
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::NothingDue);
    let files = live_files(&version).await.unwrap();
    let puffin = format!("{}/data/v.puffin", version.metadata.location());
    let deleted: Vec<_> = files.iter().map(|file| (file.path.clone(), vec![0])).collect();
    let version = vectors::delete(&*lake.ops("t").await, &puffin, &deleted).await;
    let settings = MaintenanceSettings::default();
    let health = health(&tables::name("t"), (&settings, Storage::Unlisted), &lake.context()).await.unwrap().unwrap();
    assert_eq!((health.data_files, health.position_delete_files, health.position_deletes), (2, 2, 2));
    assert!(health.partitions.iter().all(|partition| partition.delete_files == 1), "{health:?}");
    let rows = tables::read(&version).await;
    let report = lake.run(&job(), "t").await;
    assert_eq!((report.outcome, report.work.rows_deleted, report.after.delete_files), (Outcome::Done, 2, 0));
    assert_eq!(tables::read(&lake.now("t").await).await, rows);
}

#[tokio::test]
async fn i5_of_two_runs_one_works() {
    let lake = lake().await;
    let version = lake.now("t").await;
    let context = lake.context();
    let (table, _) = sluice_maintenance::run::open(&tables::name("t"), &context).await.unwrap().unwrap();
    let ask = |ms: i64| sluice_maintenance::lease::Lease::ask(&table, version.metadata.location(), ms);
    let sluice_maintenance::lease::Asked::Got(first) = ask(1_000).await.unwrap() else { panic!("free") };
    assert!(matches!(lake.run(&job(), "t").await.outcome, Outcome::StoodDown(_)));
    first.check(&table).await.unwrap();
    lake.wait(2_000);
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::Done);
    let error = first.check(&table).await.unwrap_err();
    assert!(error.to_string().contains("another run holds the lease"), "the stale one may not go on: {error}");
}

#[tokio::test]
async fn partitions_of_another_spec_stay_in_their_spec() {
    let lake = lake().await;
    let ops = lake.ops("t").await;
    sluice_table::set_partitioning(&*ops, &[], &lake.services.commit_context()).await.unwrap();
    for batch in 0..4 {
        lake.upsert("t", &[(batch, Some("new"), 1), (batch + 50, None, 2)]).await;
    }
    let before = tables::read(&lake.now("t").await).await;
    let report = lake.run(&job(), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    let version = lake.now("t").await;
    assert_eq!(tables::read(&version).await, before);
    let files = live_files(&version).await.unwrap();
    let specs: Vec<i32> = files.iter().filter(|file| file.content == FileContent::Data).map(|file| file.spec_id).collect();
    assert_eq!(specs.len(), 3, "{files:#?}");
    assert!(specs.contains(&0) && specs.contains(&1));
}

#[tokio::test]
async fn a_plan_whose_snapshot_is_expired_does_nothing() {
    let lake = lake().await;
    let context = lake.context();
    let (table, version) = sluice_maintenance::run::open(&tables::name("t"), &context).await.unwrap().unwrap();
    let plan = sluice_maintenance::Job::plan(&job(), &table).await.unwrap();
    lake.upsert("t", &[(1, None, 9)]).await;
    foreign::expire(&*lake.ops("t").await, &[version.metadata.current_snapshot_id().unwrap()]).await;
    let sluice_maintenance::lease::Asked::Got(lease) =
        sluice_maintenance::lease::Lease::ask(&table, version.metadata.location(), 1_000).await.unwrap()
    else {
        panic!("free")
    };
    let work = sluice_maintenance::Job::execute(&job(), &table, &plan, &lease).await.unwrap();
    assert_eq!(work.commits, 0);
    assert!(work.left.contains("plan again"), "{work:?}");
}

/// Each run has time for one table only.
#[tokio::test]
async fn no_table_waits_for_ever_behind_others() {
    let lake = Lake::new(7);
    for name in ["a", "b", "c"] {
        lake.table(name, &[]).await;
        lake.upsert(name, &[(1, None, 1)]).await;
        lake.upsert(name, &[(2, None, 1)]).await;
    }
    let (selector, mut served) = (Selector { tables: vec!["*".to_owned()], except: vec![] }, BTreeSet::new());
    for _ in 0..20 {
        let context = Context { deadline: Deadline::at(lake.now_ms() + HOUR, 0, lake.now_ms()), ..lake.context() };
        let mut shown = |name: &TableName, _: &CompactionPlan| {
            served.insert(name.clone());
            lake.wait(HOUR);
        };
        let reports = run(&job(), (&selector, Mode::Plan), &context, &mut shown).await.unwrap();
        assert_eq!(reports.iter().filter(|report| matches!(report.outcome, Outcome::Partial(_))).count(), 2);
    }
    assert_eq!(served.len(), 3, "{served:?}");
}
