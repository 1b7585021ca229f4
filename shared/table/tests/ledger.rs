//! The ledger inside the table, whatever others do to it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use sluice_model::{Coordinate, Coverage, OffsetLedger};
use sluice_table::{DeltaOutcome, StaleReason, ledger};
use sluice_testkit::{foreign, tables};
use support::Fixture;

fn coverage(version: &sluice_table::TableVersion, offset: i64) -> Coverage {
    ledger::read(&version.metadata).unwrap().coverage(&tables::partition(0), Coordinate::record(offset))
}

fn property_names(version: &sluice_table::TableVersion) -> usize {
    version.metadata.properties().keys().filter(|name| name.starts_with(OffsetLedger::PROPERTY_PREFIX)).count()
}

#[tokio::test]
async fn it_stands_in_summary_and_properties_of_the_same_commit() {
    let table = Fixture::small(&[]).await;
    let version = table.upsert(&[(1, None, 1)], 5).await;
    let summary = &version.metadata.current_snapshot().unwrap().summary().additional_properties;
    let from_summary = OffsetLedger::parse(&summary[OffsetLedger::SUMMARY_KEY]).unwrap();
    let from_properties = OffsetLedger::from_properties(version.metadata.properties().iter()).unwrap();
    assert_eq!(from_summary, from_properties);
    assert_eq!((coverage(&version, 5), coverage(&version, 4), coverage(&version, 6)), (Coverage::Decided, Coverage::New, Coverage::New));
}

#[tokio::test]
async fn a_rollback_takes_it_back() {
    let table = Fixture::small(&[]).await;
    let first = table.upsert(&[(1, None, 1)], 0).await;
    let second = table.upsert(&[(2, None, 2)], 1).await;
    let other = tables::delta(&second, tables::rows(&[(3, None, 3)]), (1, 0..1));
    let third = table.apply(other).await;
    assert_eq!(property_names(&third), 2);
    let rolled = foreign::roll_back(&*table.ops, first.metadata.current_snapshot_id().unwrap()).await;
    assert_eq!((coverage(&rolled, 0), coverage(&rolled, 1)), (Coverage::Decided, Coverage::New));
    let version = table.upsert(&[(2, None, 22)], 1).await;
    assert_eq!(coverage(&version, 1), Coverage::Decided);
    assert_eq!(property_names(&version), 1, "the property of a partition that was rolled back is gone");
}

#[tokio::test]
async fn foreign_snapshots_on_top_do_not_hide_it() {
    let table = Fixture::small(&[]).await;
    table.upsert(&[(1, None, 1)], 0).await;
    let version = foreign::snapshot(&*table.ops, None).await;
    assert_eq!(coverage(&version, 0), Coverage::Decided);
    assert_eq!(coverage(&table.upsert(&[(2, None, 2)], 1).await, 0), Coverage::Decided);
}

#[tokio::test]
async fn expiry_that_cuts_the_ancestry_does_not_lose_it() {
    let table = Fixture::small(&[]).await;
    let ours = table.upsert(&[(1, None, 1)], 0).await;
    foreign::snapshot(&*table.ops, None).await;
    let cut = foreign::expire(&*table.ops, &[ours.metadata.current_snapshot_id().unwrap()]).await;
    assert_eq!(cut.metadata.snapshots().len(), 1);
    assert_eq!(coverage(&cut, 0), Coverage::Decided);
    let again = tables::upsert(&cut, &[(1, None, 1)], (0, 0..1));
    assert!(matches!(table.commit_on(&cut, again).await.unwrap(), DeltaOutcome::AlreadyCommitted { .. }));
}

#[tokio::test]
async fn a_whole_ancestry_without_one_means_that_nothing_is_decided() {
    let table = Fixture::small(&[]).await;
    assert!(ledger::read(&table.now().await.metadata).unwrap().is_empty());
    let version = foreign::snapshot(&*table.ops, None).await;
    assert!(ledger::read(&version.metadata).unwrap().is_empty());
}

#[tokio::test]
async fn it_is_asked_about_the_refreshed_table() {
    let table = Fixture::small(&[]).await;
    let base = table.now().await;
    let (first, same) = (tables::upsert(&base, &[(1, None, 1)], (0, 0..2)), tables::upsert(&base, &[(1, None, 1)], (0, 0..2)));
    let longer = tables::upsert(&base, &[(1, None, 1)], (0, 1..4));
    table.commit_on(&base, first).await.unwrap();
    assert!(matches!(table.commit_on(&base, same).await.unwrap(), DeltaOutcome::AlreadyCommitted { .. }));
    let outcome = table.commit_on(&base, longer).await.unwrap();
    assert!(matches!(outcome, DeltaOutcome::Stale { reason: StaleReason::LedgerMoved, .. }), "{outcome:?}");
}
