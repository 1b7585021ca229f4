//! What a table's snapshots tell of the order of its changes, and how a table is taken back.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;

use iceberg::spec::{DataContentType, DataFileFormat, SnapshotReference, SnapshotRetention, Struct};
use sluice_model::{Class, Coordinate, OffsetLedger, PartitionKey};
use sluice_table::history::{Beginning, History, KeyChanges, Since, key_changes, redriven};
use sluice_table::rewind::{Positions, RewindOutcome, RewindPlan, RewindRefusal, Writer, commit_rewind};
use sluice_table::{RowDelta, TableVersion, ledger, live_files};
use sluice_testkit::{CommitFault, foreign, tables};
use support::compacting::compact;
use support::{Fixture, store_positions};

const KEYS: [i64; 4] = [1, 2, 3, 4];

async fn changes(version: &TableVersion, since: i64) -> KeyChanges {
    let history = History::of(&version.metadata, &tables::partition(0)).unwrap();
    key_changes(version, (&history, since), (&[1], &tables::keys(&KEYS))).await.unwrap()
}

/// The keys that were changed since a sequence number.
async fn changed(version: &TableVersion, since: i64) -> Vec<i64> {
    let found = changes(version, since).await;
    assert_eq!(found.untold.len(), 0, "{:?}", found.untold);
    KEYS.iter().zip(found.by_key).filter(|(_, by)| !by.is_empty()).map(|(key, _)| *key).collect()
}

#[tokio::test]
async fn keys_are_told_by_the_files_that_snapshots_added() {
    for partition_by in [&[][..], &["bucket(2, id)"], &["region"]] {
        let table = Fixture::small(partition_by).await;
        table.upsert(&[(1, Some("eu"), 10), (2, None, 20)], 0).await;
        let version = table.upsert(&[(2, None, 21)], 1).await;
        assert_eq!(changed(&version, 1).await, [1, 2], "{partition_by:?}");
        assert_eq!(changed(&version, 2).await, [2]);
        let mut delta = tables::delta(&version, tables::rows(&[]), (0, 2..3));
        delta = RowDelta { rows: None, delete_keys: Some(tables::keys(&[4])), ..delta };
        let version = table.apply(delta).await;
        assert_eq!(changed(&version, 3).await, [4], "a delete of a row that is not there is a change");
        assert_eq!(changed(&version, 4).await, Vec::<i64>::new());
    }
}

#[tokio::test]
async fn a_compaction_takes_no_evidence_away_and_is_none() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, None, 10), (2, None, 20)], 0).await;
    table.upsert(&[(2, None, 21)], 1).await;
    let before = table.now().await;
    let mut delta = tables::delta(&before, tables::rows(&[]), (0, 2..3));
    delta = RowDelta { rows: None, delete_keys: Some(tables::keys(&[1])), ..delta };
    table.apply(delta).await;
    let version = compact(&table).await;
    assert_eq!(live_files(&version).await.unwrap().len(), 1, "the deletes are gone from the table");
    assert_eq!(changed(&version, 2).await, [1, 2], "but not from its history");
    assert_eq!(changed(&version, 3).await, [1]);
    assert_eq!(changed(&version, 4).await, Vec::<i64>::new(), "and the compaction changed no key, though its file holds them");
}

#[tokio::test]
async fn what_other_programs_did_to_unknown_keys_is_said_to_be_unknown() {
    let table = Fixture::small(&[]).await;
    let version = table.upsert(&[(1, None, 10)], 0).await;
    let data = live_files(&version).await.unwrap()[0].path.clone();
    let positions = "memory://warehouse/positions.parquet";
    store_positions(&version, positions, &[(&data, 0)]).await;
    let version = foreign::snapshot(&*table.ops, Some(foreign::position_delete(positions, &data, Struct::empty()))).await;
    assert_eq!(changes(&version, 2).await.untold.len(), 1);
    let mut other = iceberg::spec::DataFileBuilder::default();
    other.file_path("memory://warehouse/eq.parquet".to_owned()).content(DataContentType::EqualityDeletes);
    other.file_format(DataFileFormat::Parquet).record_count(1).file_size_in_bytes(1).equality_ids(Some(vec![2]));
    let version = foreign::snapshot(&*table.ops, Some(other.build().unwrap())).await;
    assert_eq!(changes(&version, 3).await.untold.len(), 1, "deletes by another column");
    let other = foreign::data_file("memory://warehouse/rows.orc", DataContentType::Data, DataFileFormat::Orc);
    let version = foreign::snapshot(&*table.ops, Some(other)).await;
    assert_eq!(changes(&version, 4).await.untold.len(), 1, "a file that cannot be read");
    let version =
        table.apply(RowDelta { truncate: sluice_table::Truncate::All, ..tables::delta(&version, tables::rows(&[]), (0, 1..2)) }).await;
    assert_eq!(changes(&version, 5).await.untold.len(), 1, "whole files are removed");
}

#[tokio::test]
async fn a_history_tells_from_where_changes_may_be_newer() {
    let table = Fixture::small(&[]).await;
    for offset in 0..4 {
        table.services.clock.advance(1_000);
        table.upsert(&[(1, None, offset.into())], offset).await;
    }
    let version = table.now().await;
    let of = |metadata| History::of(metadata, &tables::partition(0)).unwrap();
    let history = of(&version.metadata);
    let far = i64::MAX;
    assert_eq!(history.since(Coordinate::record(2), far), Since::Sequence(3), "the batch of the offset itself");
    assert_eq!(history.since(Coordinate::record(9), far), Since::Never);
    let third = history.steps[2].timestamp_ms;
    assert_eq!(history.since(Coordinate::record(9), third), Since::Sequence(3), "or what was committed when it was refused");
    assert_eq!(history.since(Coordinate::record(0), third), Since::Sequence(1));
    let other = PartitionKey { partition: 9, ..tables::partition(0) };
    assert_eq!(History::of(&version.metadata, &other).unwrap().since(Coordinate::record(0), far), Since::Never);
    let version = foreign::expire(&*table.ops, &[history.steps[0].snapshot_id, history.steps[1].snapshot_id]).await;
    let history = of(&version.metadata);
    assert_eq!(history.beginning, Beginning::Cut);
    assert_eq!(history.since(Coordinate::record(2), far), Since::Untold, "an older one may have had it");
    assert_eq!(history.since(Coordinate::record(3), far), Since::Sequence(4));
}

#[tokio::test]
async fn snapshots_say_whose_refused_records_they_brought() {
    let table = Fixture::small(&[]).await;
    let version = table.now().await;
    let delta = tables::delta(&version, tables::rows(&[(1, None, 1)]), (0, 0..1));
    let summary = redriven(&tables::partition(3), Coordinate::record(5), Coordinate::row(9, 2)).into_iter().collect();
    let version = table.apply(RowDelta { summary, ..delta }).await;
    let redriven_in = |partition| History::of(&version.metadata, &tables::partition(partition)).unwrap().steps[0].redriven;
    assert_eq!((redriven_in(3), redriven_in(0)), (Some(Coordinate::row(9, 2)), None));
}

/// Two partitions, three commits each, the gap of partition 1 filled late.
async fn six_commits() -> (Fixture, Vec<i64>) {
    let table = Fixture::small(&[]).await;
    let mut snapshots = Vec::new();
    for (partition, offsets) in [(0, 0..2), (1, 4..6), (0, 2..4), (1, 0..2), (0, 4..6), (1, 2..4)] {
        let version = table.now().await;
        let id = i64::from(partition) * 100 + offsets.start;
        let version = table.apply(tables::upsert(&version, &[(id, None, 1)], (partition, offsets))).await;
        snapshots.push(version.metadata.current_snapshot_id().unwrap());
    }
    (table, snapshots)
}

fn to(positions: &[(i32, i64)]) -> Positions {
    positions.iter().map(|(partition, offset)| (tables::partition(*partition), *offset)).collect()
}

#[tokio::test]
async fn the_newest_snapshot_that_is_not_beyond_is_chosen_and_the_replay_is_exact() {
    let (table, snapshots) = six_commits().await;
    let version = table.now().await;
    let plan = |positions: &[(i32, i64)]| RewindPlan::of(&version.metadata, &to(positions)).unwrap().unwrap();
    let case = |positions: &[(i32, i64)]| (snapshots.iter().position(|id| *id == plan(positions).to), plan(positions).replay());
    assert_eq!(case(&[(0, 6)]), (Some(5), to(&[])), "nothing to do");
    assert_eq!(case(&[(0, 5)]), (Some(3), to(&[(0, 4), (1, 2)])), "and partition 1 from its gap on");
    assert_eq!(case(&[(0, 4)]), (Some(3), to(&[(0, 4), (1, 2)])));
    assert_eq!(case(&[(0, 3), (1, 6)]), (Some(1), to(&[(0, 2), (1, 0)])));
    assert_eq!(case(&[(1, 0)]), (Some(0), to(&[(0, 2), (1, 0)])));
}

#[tokio::test]
async fn a_rewind_takes_rows_ledger_and_properties_back_and_nothing_else() {
    let (table, snapshots) = six_commits().await;
    let before = table.now().await;
    let plan = RewindPlan::of(&before.metadata, &to(&[(0, 4)])).unwrap().unwrap();
    let landed = commit_rewind(&*table.ops, &plan, &table.services.commit_context()).await.unwrap();
    let RewindOutcome::Committed { version, .. } = landed else { panic!("{landed:?}") };
    assert_eq!(version.metadata.current_snapshot_id(), Some(snapshots[3]));
    assert_eq!(tables::read(&version).await, tables::read_at(&before, Some(snapshots[3])).await);
    assert_eq!(ledger::read(&version.metadata).unwrap(), plan.after);
    let own = version.metadata.properties().iter();
    assert_eq!(OffsetLedger::from_properties(own).unwrap(), plan.after, "expiry reads the properties");
    assert_eq!(version.metadata.current_schema_id(), before.metadata.current_schema_id());
    assert_eq!(version.metadata.snapshots().len(), 6, "what is left behind stays until it expires");
    let again = RewindPlan::of(&version.metadata, &to(&[(0, 4)])).unwrap().unwrap();
    assert_eq!((again.from, again.replay()), (again.to, to(&[])), "a second one has nothing to do");
    let version = table.upsert(&[(7, None, 7)], 4).await;
    assert_eq!(version.metadata.current_snapshot().unwrap().parent_snapshot_id(), Some(snapshots[3]), "writers go on from there");
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_refused_with_the_reason() {
    let (table, snapshots) = six_commits().await;
    let refusal =
        |version: &TableVersion, positions: &[(i32, i64)]| RewindPlan::of(&version.metadata, &to(positions)).unwrap().unwrap_err();
    let version = table.now().await;
    assert!(matches!(refusal(&version, &[(0, 0)]), RewindRefusal::BeforeFirst { .. }));
    assert!(matches!(refusal(&version, &[(7, 0)]), RewindRefusal::UnknownPartition { .. }));
    let version = foreign::expire(&*table.ops, &snapshots[..3]).await;
    let told = refusal(&version, &[(0, 2)]);
    assert!(matches!(&told, RewindRefusal::Expired { oldest, .. } if *oldest == snapshots[3]), "{told}");
    assert!(told.to_string().contains("orders-0:4") && told.to_string().contains("load it anew"), "{told}");
    assert!(RewindPlan::of(&version.metadata, &to(&[(0, 4)])).unwrap().is_ok());
    let empty = Fixture::small(&[]).await.now().await;
    assert_eq!(refusal(&empty, &[(0, 0)]), RewindRefusal::Empty);
    // A foreign snapshot whose ledger is expired.
    let table = Fixture::small(&[]).await;
    let first = table.upsert(&[(1, None, 1)], 0).await.metadata.current_snapshot_id().unwrap();
    foreign::snapshot(&*table.ops, None).await;
    table.upsert(&[(1, None, 2)], 1).await;
    let version = foreign::expire(&*table.ops, &[first]).await;
    assert!(matches!(refusal(&version, &[(0, 1)]), RewindRefusal::NoLedger { .. }));
}

#[tokio::test]
async fn what_is_left_behind_is_told() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, None, 1)], 0).await;
    let version = table.upsert(&[(1, None, 2)], 1).await;
    let tagged = version.metadata.current_snapshot_id().unwrap();
    let tag = SnapshotReference::new(tagged, SnapshotRetention::Tag { max_ref_age_ms: None });
    foreign::alter(&*table.ops, |builder| builder.set_ref("audit", tag).unwrap()).await;
    let version = foreign::snapshot(&*table.ops, None).await;
    let plan = RewindPlan::of(&version.metadata, &to(&[(0, 1)])).unwrap().unwrap();
    let told: Vec<(Writer, Vec<String>)> = plan.left_behind.iter().map(|left| (left.writer, left.references.clone())).collect();
    assert_eq!(told, [(Writer::Other, vec![]), (Writer::Sluice, vec!["audit".to_owned()])]);
}

#[tokio::test]
async fn a_rewind_is_made_once_whatever_the_catalog_says() {
    let cases = [
        (CommitFault::After(Class::Unknown), true),
        (CommitFault::After(Class::Conflict), true),
        (CommitFault::Instead(Class::Conflict), true),
        (CommitFault::Instead(Class::Transient), true),
        (CommitFault::Instead(Class::Unknown), false),
    ];
    for (fault, lands) in cases {
        let (table, faults) = Fixture::faulty(&tables::creation(&[])).await;
        table.upsert(&[(1, None, 1)], 0).await;
        table.upsert(&[(1, None, 2)], 1).await;
        let plan = RewindPlan::of(&table.now().await.metadata, &to(&[(0, 1)])).unwrap().unwrap();
        faults.on_commits([fault]);
        let outcome = commit_rewind(&*table.ops, &plan, &table.services.commit_context()).await;
        match outcome {
            Ok(RewindOutcome::Committed { .. }) => assert!(lands, "{fault:?}"),
            Ok(RewindOutcome::Stale { .. }) => panic!("{fault:?}: nobody else was there"),
            Err(error) => assert!(!lands && error.class() == Class::Unknown, "{fault:?}: {error}"),
        }
        let head = table.now().await.metadata.current_snapshot_id();
        assert_eq!(head == Some(plan.to), lands, "{fault:?}");
    }
}

#[tokio::test]
async fn a_writer_that_was_faster_is_never_rolled_back_unseen() {
    let (table, _) = six_commits().await;
    let plan = RewindPlan::of(&table.now().await.metadata, &to(&[(0, 4)])).unwrap().unwrap();
    let newer = table.upsert(&[(9, None, 9)], 6).await;
    let outcome = commit_rewind(&*table.ops, &plan, &table.services.commit_context()).await.unwrap();
    assert!(matches!(outcome, RewindOutcome::Stale { .. }), "{outcome:?}");
    assert_eq!(table.now().await.metadata.current_snapshot_id(), newer.metadata.current_snapshot_id());
    let seen: BTreeSet<i64> = tables::read(&newer).await.into_keys().collect();
    assert!(seen.contains(&9));
}
