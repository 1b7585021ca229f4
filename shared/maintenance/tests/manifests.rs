//! Manifest rewriting (R6, M1).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use sluice_maintenance::manifests::ManifestSettings;
use sluice_maintenance::{Manifests, Outcome};
use sluice_table::ledger;
use sluice_testkit::{foreign, tables};
use support::{Lake, Trouble};

fn job() -> Manifests {
    Manifests { settings: ManifestSettings { min_manifests: 2, ..ManifestSettings::default() } }
}

async fn lake() -> Lake {
    let lake = Lake::new(13);
    lake.table("t", &["region"]).await;
    for batch in 0..6 {
        lake.upsert("t", &[(batch, Some("eu"), 1), (batch + 1, None, 2)]).await;
    }
    lake
}

#[tokio::test]
async fn m1_live_entries_stay_as_they_are() {
    let lake = lake().await;
    let version = lake.now("t").await;
    let (rows, entries) = (tables::read(&version).await, foreign::entries(&version).await);
    let kept = ledger::read(&version.metadata).unwrap();
    let report = lake.run(&job(), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    let version = lake.now("t").await;
    assert_eq!(foreign::entries(&version).await, entries, "paths, snapshots and both sequence numbers");
    assert_eq!(tables::read(&version).await, rows);
    assert_eq!(ledger::read(&version.metadata).unwrap(), kept);
    let snapshot = version.metadata.current_snapshot().unwrap();
    assert_eq!(foreign::manifest_paths(&version, snapshot.manifest_list()).await.len(), 2, "one of data, one of deletes");
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::NothingDue);
}

#[tokio::test]
async fn a_writer_in_between_goes_first() {
    let lake = lake().await;
    lake.trouble(Trouble::Writer(3));
    let report = lake.run(&job(), "t").await;
    assert_eq!(report.outcome, Outcome::Done, "{report:?}");
    let rows = tables::read(&lake.now("t").await).await;
    assert_eq!(rows[&3].0.as_deref(), Some("raced"));
    assert_eq!(rows.len(), 7);
}

#[tokio::test]
async fn a_lost_reply_is_one_commit() {
    let lake = lake().await;
    lake.trouble(Trouble::LostReply);
    assert_eq!(lake.run(&job(), "t").await.outcome, Outcome::Done);
    assert_eq!(lake.now("t").await.metadata.snapshots().len(), 7);
}
