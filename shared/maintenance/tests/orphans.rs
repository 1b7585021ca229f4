//! Orphan removal, rule by rule (O1–O11), and public failures of others.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use sluice_maintenance::orphans::{OrphanPlan, OrphanSettings};
use sluice_maintenance::{Job, Mode, Orphans, Outcome, Report};
use sluice_storage::{Condition, ObjectStore as _};
use sluice_testkit::{foreign, tables};
use support::{HOUR, Lake};

fn job() -> Orphans {
    Orphans { settings: OrphanSettings::default() }
}

const DAYS_4: i64 = 96 * HOUR;

async fn lake() -> (Lake, String) {
    let lake = Lake::new(11);
    lake.table("t", &["region"]).await;
    for batch in 0..5 {
        lake.upsert("t", &[(batch, Some("a/b"), 1), (batch + 1, None, 2)]).await;
    }
    let location = lake.now("t").await.metadata.location().to_owned();
    (lake, location)
}

fn plan_of(report: &Report) -> OrphanPlan {
    assert_eq!(report.outcome, Outcome::Planned, "{report:?}");
    serde_json::from_value(report.plan.clone()).unwrap()
}

fn refusal(report: &Report) -> &str {
    let Outcome::Failed(why) = &report.outcome else { panic!("{report:?}") };
    assert!(why.contains("refused"), "{why}");
    why
}

#[tokio::test]
async fn an_orphan_that_is_old_goes_and_everything_else_stays() {
    let (lake, location) = lake().await;
    let orphans = [format!("{location}/data/region=null/lost.parquet"), format!("{location}/metadata/lost-m0.avro")];
    for orphan in &orphans {
        lake.litter(orphan).await;
    }
    lake.wait(DAYS_4);
    lake.litter(&format!("{location}/data/young.parquet")).await;
    lake.litter(&format!("{location}/data/_SUCCESS")).await;
    let before = lake.everything().await;
    let plan = plan_of(&lake.run_in(&job(), "t", Mode::Plan).await);
    assert_eq!(plan.orphans.iter().map(|orphan| orphan.location.clone()).collect::<Vec<_>>(), orphans);
    assert_eq!((plan.kept.young, plan.kept.hidden), (1, 1));
    assert_eq!(lake.everything().await, before, "a plan deletes nothing");
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::Done);
    let mut expected = before;
    for orphan in &orphans {
        expected.remove(orphan);
    }
    expected.insert(format!("{location}/_sluice/lease.json"));
    assert_eq!(lake.everything().await, expected);
    tables::read(&lake.now("t").await).await;
}

#[tokio::test]
async fn o1_young_files_and_those_of_unknown_age_stay() {
    let (lake, location) = lake().await;
    lake.litter(&format!("{location}/data/x.parquet")).await;
    lake.wait(71 * HOUR);
    assert_eq!(lake.run_in(&job(), "t", Mode::Plan).await.outcome, Outcome::NothingDue);
    lake.wait(2 * HOUR);
    assert_eq!(plan_of(&lake.run_in(&job(), "t", Mode::Plan).await).orphans.len(), 1);
    let impatient = Orphans { settings: OrphanSettings { older_than_ms: 0, ..OrphanSettings::default() } };
    lake.litter(&format!("{location}/data/y.parquet")).await;
    lake.wait(23 * HOUR);
    assert_eq!(plan_of(&lake.run_in(&impatient, "t", Mode::Plan).await).orphans.len(), 1, "never under a day, whatever is asked for");
}

#[tokio::test]
async fn o2_o3_what_any_snapshot_statistic_or_metadata_log_needs_stays() {
    let (lake, _) = lake().await;
    let version = lake.now("t").await;
    foreign::roll_back(&*lake.ops("t").await, version.metadata.history()[1].snapshot_id).await;
    lake.wait(DAYS_4);
    let report = lake.run_in(&job(), "t", Mode::Plan).await;
    assert_eq!(report.outcome, Outcome::NothingDue, "files of snapshots that nothing leads to are needed: {report:?}");
}

/// Public failure: two tables shared a location, and the clean-up of one deleted the other's files.
#[tokio::test]
async fn o4_two_tables_that_share_a_place_are_refused() {
    let (lake, location) = lake().await;
    lake.table("other", &[]).await;
    lake.upsert("other", &[(1, None, 1)]).await;
    let ops = lake.ops("other").await;
    foreign::alter(&*ops, |builder| builder.set_location(format!("{location}/nested"))).await;
    lake.wait(DAYS_4);
    assert!(refusal(&lake.run_in(&job(), "t", Mode::Plan).await).contains("not apart"));
    foreign::alter(&*ops, |builder| builder.set_location(location.clone())).await;
    assert!(refusal(&lake.run_in(&job(), "t", Mode::Plan).await).contains("not apart"));
}

#[tokio::test]
async fn o4_metadata_of_a_table_that_the_catalog_does_not_know_is_refused() {
    let (lake, location) = lake().await;
    lake.table("other", &[]).await;
    let other = lake.now("other").await;
    let bytes = lake.objects.get(&other.metadata_location).await.unwrap().unwrap().bytes;
    lake.objects.put(&format!("{location}/deep/metadata/00000-x.metadata.json"), bytes, Condition::Always).await.unwrap();
    lake.wait(DAYS_4);
    assert!(refusal(&lake.run_in(&job(), "t", Mode::Plan).await).contains("another table"));
}

/// Public failure: references spelled s3a:// while the listing said s3://, so every live file looked like an orphan.
#[tokio::test]
async fn o6_spellings_that_may_be_the_same_file_are_refused() {
    let (lake, location) = lake().await;
    let version = lake.now("t").await;
    let live = sluice_table::live_files(&version).await.unwrap();
    let path = live.iter().find(|file| file.path.contains("%2F")).unwrap().path.clone();
    for alias in [
        path.replace("%2F", "%2f"),
        path.replace("/data/", "//data/"),
        path.to_uppercase().replace("MEMORY://WAREHOUSE", "memory://warehouse"),
    ] {
        let alias = alias.replacen(&location.to_uppercase().replace("MEMORY://WAREHOUSE", "memory://warehouse"), &location, 1);
        assert_ne!(alias, path);
        lake.litter(&alias).await;
        lake.wait(DAYS_4);
        assert!(refusal(&lake.run_in(&job(), "t", Mode::Plan).await).contains("differs only in"), "{alias}");
        lake.objects.delete(&[alias]).await.unwrap();
    }
    assert_eq!(lake.run_in(&job(), "t", Mode::Plan).await.outcome, Outcome::NothingDue);
}

#[tokio::test]
async fn o8_when_most_files_look_useless_the_table_is_taken_to_be_misread() {
    let (lake, location) = lake().await;
    for number in 0..200 {
        lake.litter(&format!("{location}/data/{number}.parquet")).await;
    }
    lake.wait(DAYS_4);
    assert!(refusal(&lake.run_in(&job(), "t", Mode::Plan).await).contains("max_percent"));
    let sure = Orphans { settings: OrphanSettings { max_percent: 100, max_files: 7, ..OrphanSettings::default() } };
    let plan = plan_of(&lake.run_in(&sure, "t", Mode::Plan).await);
    assert_eq!((plan.orphans.len(), plan.kept.later), (7, 193), "never more than the cap");
}

#[tokio::test]
async fn o8_what_cannot_be_read_whole_is_refused() {
    let (lake, location) = lake().await;
    lake.litter(&format!("{location}/data/x.parquet")).await;
    lake.wait(DAYS_4);
    let version = lake.now("t").await;
    lake.litter(version.metadata.current_snapshot().unwrap().manifest_list()).await;
    assert!(matches!(lake.run(&job(), "t").await.outcome, Outcome::Failed(_)));
    assert!(lake.everything().await.contains(&format!("{location}/data/x.parquet")));
}

#[tokio::test]
async fn o9_a_planned_file_that_is_needed_by_the_time_of_deletion_stays() {
    let (lake, location) = lake().await;
    let (late, lost) = (format!("{location}/data/late.parquet"), format!("{location}/data/lost.parquet"));
    lake.litter(&late).await;
    lake.litter(&lost).await;
    lake.wait(DAYS_4);
    let context = lake.context();
    let (table, version) = sluice_maintenance::run::open(&tables::name("t"), &context).await.unwrap().unwrap();
    let plan = job().plan(&table).await.unwrap();
    assert_eq!(plan.orphans.len(), 2);
    let delete = foreign::data_file(&late, iceberg::spec::DataContentType::PositionDeletes, iceberg::spec::DataFileFormat::Parquet);
    sluice_table::set_partitioning(&*lake.ops("t").await, &[], &lake.services.commit_context()).await.unwrap();
    foreign::snapshot(&*lake.ops("t").await, Some(delete)).await;
    let asked = sluice_maintenance::lease::Lease::ask(&table, version.metadata.location(), HOUR).await.unwrap();
    let sluice_maintenance::lease::Asked::Got(lease) = asked else { panic!("free") };
    let work = job().execute(&table, &plan, &lease).await.unwrap();
    assert_eq!(work.objects_deleted, 1, "{work:?}");
    let left = lake.everything().await;
    assert!(left.contains(&late) && !left.contains(&lost));
}

#[tokio::test]
async fn a_planned_file_that_was_written_again_stays() {
    let (lake, location) = lake().await;
    let path = format!("{location}/data/again.parquet");
    lake.litter(&path).await;
    lake.wait(DAYS_4);
    let context = lake.context();
    let (table, version) = sluice_maintenance::run::open(&tables::name("t"), &context).await.unwrap().unwrap();
    let plan = job().plan(&table).await.unwrap();
    lake.litter(&path).await;
    lake.wait(DAYS_4);
    let asked = sluice_maintenance::lease::Lease::ask(&table, version.metadata.location(), HOUR).await.unwrap();
    let sluice_maintenance::lease::Asked::Got(lease) = asked else { panic!("free") };
    assert_eq!(job().execute(&table, &plan, &lease).await.unwrap().objects_deleted, 0);
}

#[tokio::test]
async fn o11_tables_that_forbid_it_are_refused() {
    let (lake, location) = lake().await;
    lake.litter(&format!("{location}/data/x.parquet")).await;
    lake.wait(DAYS_4);
    let set = |key: &'static str, value: &'static str| {
        let lake = &lake;
        async move {
            let properties = [(key.to_owned(), value.to_owned())].into();
            foreign::alter(&*lake.ops("t").await, |builder| builder.set_properties(properties).unwrap()).await
        }
    };
    set("gc.enabled", "false").await;
    assert!(refusal(&lake.run_in(&job(), "t", Mode::Plan).await).contains("gc.enabled"));
    set("gc.enabled", "true").await;
    set("encryption.key-id", "k").await;
    assert!(matches!(lake.run_in(&job(), "t", Mode::Plan).await.outcome, Outcome::Failed(_)));
}

fn aside(prefix: &str) -> Orphans {
    Orphans { settings: OrphanSettings { quarantine: Some(prefix.to_owned()), ..OrphanSettings::default() } }
}

#[tokio::test]
async fn a_quarantine_keeps_what_is_taken_out_and_writes_down_where_it_was() {
    let (lake, location) = lake().await;
    let orphan = format!("{location}/data/region=null/lost.parquet");
    lake.litter(&orphan).await;
    lake.wait(DAYS_4);
    let before = lake.everything().await;
    let report = lake.run(&aside("memory://quarantine/lake/"), "t").await;
    assert_eq!((report.outcome, report.work.objects_deleted), (Outcome::Done, 1));
    let after = lake.everything().await;
    let new: Vec<&String> = after.difference(&before).filter(|path| !path.contains("/_sluice/")).collect();
    let [copy, record] = new.as_slice() else { panic!("{new:?}") };
    assert!(copy.starts_with("memory://quarantine/lake/") && copy.ends_with("/data/region=null/lost.parquet"), "{copy}");
    assert!(!after.contains(&orphan));
    assert_eq!(lake.objects.get(copy).await.unwrap().unwrap().bytes.as_ref(), b"x");
    let written = lake.objects.get(record).await.unwrap().unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written.bytes).unwrap();
    assert_eq!(written, serde_json::json!([{"from": orphan, "to": copy, "size": 1}]));
}

/// Whenever the run dies, the file is where it was or in the quarantine; the next run ends the work.
#[tokio::test]
async fn a_move_that_died_anywhere_has_lost_nothing() {
    for calls in 0..40 {
        let (lake, location) = lake().await;
        let orphan = format!("{location}/data/lost.parquet");
        lake.litter(&orphan).await;
        lake.wait(DAYS_4);
        let job = aside("memory://quarantine");
        lake.fuse.set(calls);
        let mode = Mode::Execute { lease_ms: HOUR };
        let _ = sluice_maintenance::run(&job, (&sluice_maintenance::Selector::default(), mode), &lake.context(), &mut |_, _| {}).await;
        lake.fuse.set(i64::MAX);
        let copied = |everything: &std::collections::BTreeSet<String>| {
            everything.iter().any(|path| path.starts_with("memory://quarantine/") && path.ends_with("lost.parquet"))
        };
        let everything = lake.everything().await;
        assert!(everything.contains(&orphan) || copied(&everything), "after {calls} calls");
        lake.wait(2 * HOUR);
        lake.run(&job, "t").await;
        let everything = lake.everything().await;
        assert!(!everything.contains(&orphan) && copied(&everything), "after {calls} calls");
    }
}

#[tokio::test]
async fn a_quarantine_among_the_files_of_a_table_is_refused() {
    let (lake, location) = lake().await;
    lake.table("other", &[]).await;
    let other = lake.now("other").await.metadata.location().to_owned();
    lake.litter(&format!("{location}/data/lost.parquet")).await;
    lake.wait(DAYS_4);
    for prefix in [format!("{location}/aside"), location.clone(), "memory://warehouse".to_owned(), format!("{other}/x")] {
        let report = lake.run_in(&aside(&prefix), "t", Mode::Plan).await;
        assert!(refusal(&report).contains("quarantine"), "{prefix}: {report:?}");
    }
}
