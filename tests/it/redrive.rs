//! Refused records are tried again: in order, exactly once, and never over newer changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use sluice_deadletter::NoTopic;
use sluice_ingest::Ingest;
use sluice_model::{Deadline, ReasonCode, TableName};
use sluice_redrive::{Fate, Redrive, RedriveError, Reply, Request};
use sluice_runtime::Settings;
use sluice_table::{Catalog, CommitError, CreateOutcome, StagedChange, TableCreation, TableError, TableOperations, TableVersion};
use sluice_testkit::{CommitFault, FaultPlan, FaultyCatalog, TestServices, foreign};

use crate::crashing::{Fuse, Moment, Mortal};
use crate::lake::{Lake, Sent, config, memory, rows_of, sent};

/// A catalog that lakes of several configurations share.
pub struct Shared {
    pub catalog: Arc<dyn Catalog>,
    pub services: TestServices,
}

impl Shared {
    pub fn new() -> Self {
        let services = TestServices::seeded(11);
        Self { catalog: memory(&services), services }
    }

    fn lake(&self, over: &Value) -> Lake {
        Lake::over(config(over.clone()), Arc::clone(&self.catalog), self.services.clone())
    }

    /// Time passes, and a batch is applied.
    pub async fn send(&self, over: &Value, records: &[Sent]) -> sluice_model::BatchTally {
        self.services.clock.advance(1_000);
        self.lake(over).send(records).await
    }

    pub async fn rows(&self, table: &str) -> Vec<String> {
        rows_of(self.catalog.as_ref(), &TableName::parse(table).unwrap(), |_| true).await
    }

    /// Code, resolution and attempts of each refused record, by offset.
    pub async fn errors(&self) -> Vec<String> {
        let shown = ["offset", "code", "resolution", "attempts"];
        rows_of(self.catalog.as_ref(), &TableName::parse("ops.error_records").unwrap(), |name| shown.contains(&name)).await
    }

    pub async fn table(&self, name: &str) -> Arc<dyn TableOperations> {
        self.catalog.load(&TableName::parse(name).unwrap()).await.unwrap().unwrap()
    }

    pub fn redrive(&self, over: &Value) -> Redrive {
        redrive(over, Arc::clone(&self.catalog), &self.services)
    }

    pub async fn run(&self, over: &Value, request: Value) -> Reply {
        self.services.clock.advance(1_000);
        let reply = self.redrive(over).run(&Request::read(&request).unwrap(), Deadline::NONE).await.unwrap();
        assert_eq!(reply.unbalanced(), 0, "{reply:?}");
        reply
    }
}

pub fn redrive(over: &Value, catalog: Arc<dyn Catalog>, services: &TestServices) -> Redrive {
    let settings = Settings::from_value(config(over.clone())).unwrap();
    let (clock, ids, sleep) = (services.clock.clone(), services.ids.clone(), services.clock.clone());
    Redrive { ingest: Ingest { settings, catalog, topic: Arc::new(NoTopic), clock, ids, sleep } }
}

pub fn strict() -> Value {
    json!({})
}

/// Fields without a column become one: what [`strict`] refuses is mended.
pub fn mended() -> Value {
    json!({"table_defaults": {"on_unknown_column": "add"}})
}

pub fn execute() -> Value {
    json!({"dry_run": false})
}

pub fn bad(offset: i64, id: i64, extra: i64) -> Sent {
    sent(offset, "a", "U", json!({"id": id, "extra": extra}))
}

pub fn good(offset: i64, id: i64) -> Sent {
    sent(offset, "a", "U", json!({"id": id}))
}

#[tokio::test]
async fn what_was_mended_is_applied_once_and_resolved() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    assert_eq!(shared.send(&strict(), &[bad(1, 2, 5), bad(2, 3, 6), good(3, 9)]).await.dead_letters, 2);
    let reply = shared.run(&mended(), execute()).await;
    assert_eq!((reply.selected, reply.count(Fate::Applied)), (2, 2), "{reply:?}");
    let rows = ["id=1 extra=null", "id=2 extra=5", "id=3 extra=6", "id=9 extra=null"];
    assert_eq!(shared.rows("erp.a").await, rows);
    let errors = shared.errors().await;
    assert!(errors.iter().all(|row| row.contains("resolution=applied")) && errors.len() == 2, "{errors:?}");
    assert_eq!(shared.run(&mended(), execute()).await.selected, 0, "nothing is left");
    let again = shared.send(&mended(), &[bad(1, 2, 5), bad(2, 3, 6), good(3, 9)]).await;
    assert_eq!((again.replayed, again.rows), (3, 0), "the original delivery stays decided");
    assert_eq!(shared.rows("erp.a").await, rows);
}

#[tokio::test]
async fn a_dry_run_tells_what_would_be_and_changes_nothing() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 5), sent(2, "a", "nonsense", json!({})), sent(3, "new", "I", json!({"id": [1]}))]).await;
    let before = (shared.rows("erp.a").await, shared.errors().await, shared.table("ops.error_records").await.refresh().await.unwrap());
    let reply = shared.run(&mended(), json!({})).await;
    assert!(reply.dry_run);
    assert_eq!((reply.selected, reply.count(Fate::Applied), reply.count(Fate::Refused)), (3, 1, 2), "{reply:?}");
    assert_eq!(reply.refused_by_code.get(&ReasonCode::OpUnknown), Some(&1));
    assert_eq!(reply.groups.iter().find(|group| group.fate == Fate::Applied).unwrap().example, "t:0:1");
    assert_eq!((shared.rows("erp.a").await, shared.errors().await), (before.0, before.1));
    let after = shared.table("ops.error_records").await.refresh().await.unwrap();
    assert_eq!(after.metadata_location, before.2.metadata_location, "not even the error table was committed");
    assert_eq!(shared.catalog.tables().await.unwrap().len(), 2, "no table was made");
}

#[tokio::test]
async fn what_fails_again_says_why_now_and_counts_its_attempts() {
    let shared = Shared::new();
    shared.send(&strict(), &[sent(0, "a", "I", json!({"id": 1, "n": 1}))]).await;
    shared.send(&strict(), &[sent(1, "a", "I", json!({"id": 2, "n": "x", "extra": 1})), sent(2, "a", "zap", json!({"id": 3}))]).await;
    assert_eq!(
        shared.errors().await[0],
        "offset=1 code=UNKNOWN_COLUMN attempts=null resolution=null".replace("UNKNOWN_COLUMN", "TYPE_MISMATCH")
    );
    let checked = json!({"table_defaults": {"on_unknown_column": "add", "coerce": "lenient"}});
    for attempt in 1..=2 {
        let reply = shared.run(&checked, execute()).await;
        assert_eq!((reply.count(Fate::Refused), reply.selected), (2, 2), "{reply:?}");
        let errors = shared.errors().await;
        assert_eq!(errors[0], format!("offset=1 code=TYPE_MISMATCH attempts={attempt} resolution=null"));
        assert_eq!(errors[1], format!("offset=2 code=OP_UNKNOWN attempts={attempt} resolution=null"));
    }
    let spelt = json!({"source": {"formats": [{"type": "envelope", "operations": {"insert": ["zap", "I"]}}]}});
    assert_eq!(shared.run(&spelt, execute()).await.count(Fate::Applied), 1);
    assert_eq!(shared.rows("erp.a").await, ["id=1 n=1", "id=3 n=null"]);
}

#[tokio::test]
async fn a_change_that_others_of_its_key_followed_is_not_applied_unless_told_to() {
    let later: [(&str, Sent); 2] = [("update", good(5, 2)), ("delete", sent(5, "a", "D", json!({"id": 2})))];
    for (what, later) in later {
        let shared = Shared::new();
        shared.send(&strict(), &[good(0, 1), good(1, 2)]).await;
        shared.send(&strict(), &[bad(2, 2, 5), bad(3, 1, 6)]).await;
        shared.send(&strict(), &[later]).await;
        let reply = shared.run(&mended(), execute()).await;
        assert_eq!(reply.refused_by_code.get(&ReasonCode::Superseded), Some(&1), "{what}: {reply:?}");
        assert_eq!(reply.count(Fate::Applied), 1, "{what}: the other key was not changed");
        assert!(shared.errors().await[0].contains("code=SUPERSEDED attempts=1 resolution=null"), "{what}");
        assert!(!shared.rows("erp.a").await.contains(&"id=2 extra=5".to_owned()), "{what}");
        let forced = shared.run(&mended(), json!({"dry_run": false, "overwrite": true})).await;
        assert_eq!(forced.count(Fate::Applied), 1, "{what}");
        assert_eq!(shared.rows("erp.a").await, ["id=1 extra=6", "id=2 extra=5"], "{what}");
    }
}

#[tokio::test]
async fn a_change_in_the_same_batch_counts_as_later() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[good(1, 2), bad(2, 2, 5)]).await;
    assert_eq!(shared.run(&mended(), execute()).await.refused_by_code.get(&ReasonCode::Superseded), Some(&1));
}

#[tokio::test]
async fn the_old_key_of_a_changed_key_counts_too() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    let rekeyed = json!({"meta": {"table": "a", "op": "U"}, "before": {"id": 1}, "data": {"id": 2, "extra": 3}});
    shared.send(&strict(), &[Sent { partition: 0, offset: 1, value: rekeyed }]).await;
    shared.send(&strict(), &[good(2, 1)]).await;
    assert_eq!(shared.run(&mended(), execute()).await.refused_by_code.get(&ReasonCode::Superseded), Some(&1));
}

#[tokio::test]
async fn refused_changes_of_one_key_are_applied_in_order_run_by_run() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 1), bad(2, 2, 2)]).await;
    shared.send(&strict(), &[bad(3, 2, 3), bad(4, 7, 4)]).await;
    for (offsets, rows) in [("t:0:1", "extra=1"), ("t:0:2", "extra=2"), ("t:0:3-4", "extra=3")] {
        let reply = shared.run(&mended(), json!({"dry_run": false, "offsets": [offsets]})).await;
        assert_eq!(reply.count(Fate::Refused), 0, "{offsets}: {reply:?}");
        assert!(shared.rows("erp.a").await.contains(&format!("id=2 {rows}")), "{offsets}");
    }
}

#[tokio::test]
async fn a_refused_change_never_overwrites_a_later_refused_one_that_came_first() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 1)]).await;
    shared.send(&strict(), &[bad(2, 2, 2)]).await;
    assert_eq!(shared.run(&mended(), json!({"dry_run": false, "offsets": ["t:0:2"]})).await.count(Fate::Applied), 1);
    assert_eq!(shared.run(&mended(), execute()).await.refused_by_code.get(&ReasonCode::Superseded), Some(&1));
    assert!(shared.rows("erp.a").await.contains(&"id=2 extra=2".to_owned()));
}

#[tokio::test]
async fn when_the_snapshots_are_expired_nothing_is_guessed() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 1), good(2, 5)]).await;
    shared.send(&strict(), &[good(3, 6)]).await;
    let table = shared.table("erp.a").await;
    let version = table.refresh().await.unwrap();
    let current = version.metadata.current_snapshot_id().unwrap();
    let old: Vec<i64> = version.metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).filter(|id| *id != current).collect();
    foreign::expire(table.as_ref(), &old).await;
    let reply = shared.run(&mended(), execute()).await;
    assert_eq!(reply.refused_by_code.get(&ReasonCode::OrderUnknown), Some(&1), "{reply:?}");
    assert!(reply.groups[0].detail.as_ref().unwrap().contains("--overwrite"));
}

#[tokio::test]
async fn with_a_version_column_the_stored_row_decides() {
    let strict = json!({"table_defaults": {"version": "v"}});
    let mended = json!({"table_defaults": {"version": "v", "on_unknown_column": "add"}});
    let row = |offset, id: i64, v: i64, extra: Option<i64>| {
        let mut data = json!({"id": id, "v": v});
        if let Some(extra) = extra {
            data["extra"] = json!(extra);
        }
        sent(offset, "a", "U", data)
    };
    let shared = Shared::new();
    shared.send(&strict, &[row(0, 1, 1, None), row(1, 2, 1, None), row(2, 3, 1, None), row(3, 4, 1, None)]).await;
    let refused = [row(4, 1, 5, Some(1)), row(5, 2, 5, Some(1)), row(6, 3, 5, Some(1)), row(7, 4, 5, Some(1)), row(8, 5, 5, Some(1))];
    shared.send(&strict, &refused).await;
    // Newer, equal, older; deleted; not there at all.
    let later = [row(9, 1, 6, None), row(10, 2, 5, None), row(11, 3, 4, None), sent(12, "a", "D", json!({"id": 4, "v": 6}))];
    shared.send(&strict, &later).await;
    let reply = shared.run(&mended, execute()).await;
    assert_eq!((reply.count(Fate::Stale), reply.count(Fate::Applied), reply.count(Fate::Refused)), (2, 2, 1), "{reply:?}");
    assert_eq!(shared.rows("erp.a").await, ["id=1 v=6 extra=null", "id=2 v=5 extra=null", "id=3 v=5 extra=1", "id=5 v=5 extra=1"]);
    let errors = shared.errors().await;
    let ends: Vec<&str> = errors.iter().map(|row| row.split_once("resolution=").unwrap().1).collect();
    assert_eq!(ends, ["stale", "stale", "applied", "null", "applied"]);
}

#[tokio::test]
async fn a_row_that_is_only_marked_as_deleted_stays_so() {
    let strict = json!({"table_defaults": {"version": "v", "soft_delete": "gone"}});
    let mended = json!({"table_defaults": {"version": "v", "soft_delete": "gone", "on_unknown_column": "add"}});
    let shared = Shared::new();
    shared.send(&strict, &[sent(0, "a", "I", json!({"id": 1, "v": 1}))]).await;
    shared.send(&strict, &[sent(1, "a", "U", json!({"id": 1, "v": 2, "extra": 1}))]).await;
    shared.send(&strict, &[sent(2, "a", "D", json!({"id": 1, "v": 3}))]).await;
    assert_eq!(shared.run(&mended, execute()).await.refused_by_code.get(&ReasonCode::Superseded), Some(&1));
    assert!(shared.rows("erp.a").await[0].contains("gone=true"));
}

#[tokio::test]
async fn rows_that_are_only_added_are_always_added() {
    let with = |mode: &str, unknown: &str| json!({"table_defaults": {"mode": mode, "on_unknown_column": unknown}});
    for mode in ["append", "changelog"] {
        let shared = Shared::new();
        shared.send(&with(mode, "dead-letter"), &[good(0, 1)]).await;
        shared.send(&with(mode, "dead-letter"), &[bad(1, 1, 7)]).await;
        shared.send(&with(mode, "dead-letter"), &[good(2, 1)]).await;
        let reply = shared.run(&with(mode, "add"), execute()).await;
        assert_eq!(reply.count(Fate::Applied), 1, "{mode}: {reply:?}");
        assert_eq!(shared.rows("erp.a").await.len(), 3, "{mode}");
    }
}

#[tokio::test]
async fn an_old_truncate_takes_no_newer_rows_away() {
    let emptying = json!({"table_defaults": {"on_truncate": "delete-all"}});
    for mode in ["upsert", "append"] {
        let shared = Shared::new();
        let strict = json!({"table_defaults": {"mode": mode}});
        let both = json!({"table_defaults": {"mode": mode, "on_truncate": "delete-all"}});
        let truncate = || Sent { partition: 0, offset: 1, value: json!({"meta": {"table": "a", "op": "T"}}) };
        shared.send(&strict, &[good(0, 1)]).await;
        shared.send(&strict, &[truncate()]).await;
        assert_eq!(shared.run(&both, json!({})).await.count(Fate::Applied), 1, "{mode}: nothing followed");
        shared.send(&strict, &[good(2, 2)]).await;
        assert_eq!(shared.run(&both, execute()).await.refused_by_code.get(&ReasonCode::Superseded), Some(&1), "{mode}");
        assert_eq!(shared.rows("erp.a").await.len(), 2, "{mode}");
    }
    // And a record from before a truncate is not put back after it.
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 5)]).await;
    shared.send(&emptying, &[Sent { partition: 0, offset: 2, value: json!({"meta": {"table": "a", "op": "T"}}) }]).await;
    assert_eq!(shared.run(&mended(), execute()).await.refused_by_code.get(&ReasonCode::OrderUnknown), Some(&1));
}

#[tokio::test]
async fn records_that_cannot_be_read_or_are_cut_keep_what_they_are() {
    let shared = Shared::new();
    let small = json!({"errors": {"max_raw_bytes": 40}});
    let unreadable = br#"{"eventSource":"aws:kafka","records":{"t-0":[{"topic":"t","partition":0,"offset":7,"value":"@@"}]}}"#;
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.lake(&strict()).invoke(unreadable).await.unwrap();
    shared.send(&small, &[bad(8, 2, 5), good(9, 1)]).await;
    let reply = shared.run(&mended(), execute()).await;
    assert_eq!((reply.count(Fate::Refused), reply.count(Fate::Cut)), (1, 1), "{reply:?}");
    assert_eq!(reply.refused_by_code.get(&ReasonCode::MalformedRecord), Some(&1));
    let version = shared.table("ops.error_records").await.refresh().await.unwrap();
    let stages = rows_of(shared.catalog.as_ref(), &TableName::parse("ops.error_records").unwrap(), |name| name == "stage").await;
    assert!(stages.contains(&"stage=door".to_owned()), "{stages:?} {}", version.metadata_location);
}

#[tokio::test]
async fn a_record_from_below_the_ledger_is_not_added_a_second_time() {
    let append = json!({"table_defaults": {"mode": "append", "on_missing_table": "create"}});
    let shared = Shared::new();
    // Every second offset: the 81st interval closes the oldest gap.
    for offset in 0..85 {
        shared.send(&append, &[good(offset * 2, 1)]).await;
    }
    let tally = shared.send(&append, &[good(1, 1)]).await;
    assert_eq!(tally.dead_letters_by_code.get(&ReasonCode::OffsetBelowLedger), Some(&1));
    for attempt in 1..=2 {
        let reply = shared.run(&append, execute()).await;
        assert_eq!(reply.refused_by_code.get(&ReasonCode::OffsetBelowLedger), Some(&1), "{reply:?}");
        assert!(shared.errors().await[0].contains(&format!("code=OFFSET_BELOW_LEDGER attempts={attempt}")));
    }
    assert_eq!(shared.run(&append, json!({"dry_run": false, "overwrite": true})).await.count(Fate::Applied), 1);
    assert_eq!(shared.rows("erp.a").await.len(), 86);
}

#[tokio::test]
async fn selection_is_by_table_code_time_offsets_and_number() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1), sent(1, "b", "I", json!({"id": 1}))]).await;
    shared.send(&strict(), &[bad(2, 2, 1), sent(3, "b", "I", json!({"id": "x"})), bad(4, 3, 1)]).await;
    let select = |request: Value| async { shared.run(&mended(), request).await.selected };
    assert_eq!(select(json!({})).await, 3);
    assert_eq!(select(json!({"table": "erp.b"})).await, 1);
    assert_eq!(select(json!({"code": "unknown_column"})).await, 2);
    assert_eq!(select(json!({"offsets": ["t:0:0-2", "t:0:3"]})).await, 2);
    assert_eq!(select(json!({"limit": 2})).await, 2);
    assert_eq!(select(json!({"until": "2026-03-01T00:00:01Z"})).await, 0);
    assert_eq!(select(json!({"since": "2026-03-01T00:00:01Z"})).await, 3);
    let wrong = shared.redrive(&mended()).run(&Request { table: Some("b".to_owned()), ..Request::default() }, Deadline::NONE).await;
    assert!(matches!(wrong, Err(RedriveError::Request(_))));
    let other = json!({"source": {"id": "another"}});
    assert_eq!(shared.run(&other, execute()).await.selected, 0, "records of another source are not this pipeline's");
}

#[tokio::test]
async fn numbers_of_an_error_table_that_was_dropped_are_not_those_of_the_next() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 5)]).await;
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    shared.catalog.drop_table(&TableName::parse("ops.error_records").unwrap()).await.unwrap();
    shared.send(&json!({}), &[sent(2, "a", "U", json!({"id": 3, "other": 1}))]).await;
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    assert_eq!(shared.rows("erp.a").await.len(), 3);
}

#[tokio::test]
async fn numbers_are_not_given_again_when_the_error_table_is_rolled_back() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 5)]).await;
    let table = shared.table("ops.error_records").await;
    let before = table.refresh().await.unwrap().metadata.current_snapshot_id().unwrap();
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    foreign::roll_back(table.as_ref(), before).await;
    shared.send(&json!({}), &[sent(2, "a", "U", json!({"id": 3, "other": 1}))]).await;
    let reply = shared.run(&mended(), json!({"dry_run": false, "offsets": ["t:0:2"]})).await;
    assert_eq!(reply.count(Fate::Applied), 1, "{reply:?}");
    assert!(shared.rows("erp.a").await.contains(&"id=3 extra=null other=1".to_owned()), "it is not taken for the other one");
}

/// Two tables, two partitions, one record that stays refused, one that a later change followed.
async fn troubled(shared: &Shared) {
    shared.send(&strict(), &[good(0, 1), sent(1, "b", "I", json!({"id": 1}))]).await;
    let mut refused = vec![
        bad(2, 2, 5),
        sent(3, "b", "U", json!({"id": 1, "extra": 1})),
        bad(4, 2, 6),
        bad(5, 8, 1),
        sent(6, "a", "zap", json!({"id": 4})),
    ];
    refused.push(Sent { partition: 1, ..bad(0, 30, 9) });
    shared.send(&strict(), &refused).await;
    shared.send(&strict(), &[good(7, 8)]).await;
}

async fn content(shared: &Shared) -> Vec<Vec<String>> {
    vec![shared.rows("erp.a").await, shared.rows("erp.b").await, shared.errors().await]
}

#[tokio::test]
async fn a_run_that_dies_anywhere_is_finished_by_the_next() {
    let reference = Shared::new();
    troubled(&reference).await;
    let reply = reference.run(&mended(), execute()).await;
    assert_eq!((reply.count(Fate::Applied), reply.count(Fate::Refused)), (4, 2), "{reply:?}");
    let expected = content(&reference).await;
    for moment in [Moment::Before, Moment::After] {
        let mut deaths = 0;
        for calls in 0..1_000 {
            let shared = Shared::new();
            troubled(&shared).await;
            shared.services.clock.advance(1_000);
            let fuse = Fuse::new(calls, moment);
            let mortal: Arc<dyn Catalog> = Arc::new(Mortal { inner: Arc::clone(&shared.catalog), fuse: Arc::clone(&fuse) });
            let (dying, request) = (redrive(&mended(), mortal, &shared.services), Request::read(&execute()).unwrap());
            let died = tokio::select! {
                biased;
                () = fuse.blown() => true,
                reply = dying.run(&request, Deadline::NONE) => { reply.unwrap(); false }
            };
            shared.run(&mended(), execute()).await;
            let found = content(&shared).await;
            // What stays refused was perhaps tried twice.
            let plain = |content: &[Vec<String>]| -> Vec<Vec<String>> {
                let told = |row: &String| row.replace("attempts=2", "attempts=1").replace("resolution=decided", "resolution=applied");
                content.iter().map(|rows| rows.iter().map(told).collect()).collect()
            };
            assert_eq!(plain(&found), plain(&expected), "died {moment:?} call {calls}");
            if !died {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 15, "{deaths}");
    }
}

#[tokio::test]
async fn lost_replies_and_conflicts_of_every_commit_change_nothing() {
    let reference = Shared::new();
    troubled(&reference).await;
    reference.run(&mended(), execute()).await;
    let expected = content(&reference).await;
    use sluice_model::Class;
    let faults = [
        CommitFault::After(Class::Unknown),
        CommitFault::Instead(Class::Conflict),
        CommitFault::After(Class::Conflict),
        CommitFault::Instead(Class::Transient),
    ];
    for fault in faults {
        for at in 0..8 {
            let shared = Shared::new();
            troubled(&shared).await;
            shared.services.clock.advance(1_000);
            let plan = Arc::new(FaultPlan::default());
            plan.on_commits(std::iter::repeat_n(CommitFault::None, at).chain([fault]));
            let faulty: Arc<dyn Catalog> = Arc::new(FaultyCatalog::new(Arc::clone(&shared.catalog), plan));
            let reply = redrive(&mended(), faulty, &shared.services).run(&Request::read(&execute()).unwrap(), Deadline::NONE).await;
            assert!(reply.is_ok(), "{fault:?} at {at}: {:?}", reply.err());
            assert_eq!(content(&shared).await, expected, "{fault:?} at {at}");
        }
    }
}

#[tokio::test]
async fn a_commit_of_unknown_outcome_is_found_out_by_the_next_run() {
    use sluice_model::Class;
    for at in 0..8 {
        let shared = Shared::new();
        troubled(&shared).await;
        let plan = Arc::new(FaultPlan::default());
        plan.on_commits(std::iter::repeat_n(CommitFault::None, at).chain([CommitFault::Instead(Class::Unknown)]));
        let faulty: Arc<dyn Catalog> = Arc::new(FaultyCatalog::new(Arc::clone(&shared.catalog), Arc::clone(&plan)));
        let reply = redrive(&mended(), faulty, &shared.services).run(&Request::read(&execute()).unwrap(), Deadline::NONE).await;
        assert!(reply.is_err() || plan.commits_left() > 0, "at {at}");
        shared.run(&mended(), execute()).await;
        assert_eq!(shared.rows("erp.a").await, ["id=1 extra=null", "id=2 extra=6", "id=30 extra=9", "id=8 extra=null"], "at {at}");
    }
}

#[tokio::test]
async fn two_runs_at_once_apply_each_record_once() {
    let append = json!({"table_defaults": {"mode": "append", "on_unknown_column": "add"}});
    for seed in 0..10 {
        let shared = Shared::new();
        let strict = json!({"table_defaults": {"mode": "append"}});
        shared.send(&strict, &[good(0, 1)]).await;
        let refused: Vec<Sent> = (1..6).map(|offset| bad(offset, 1, offset)).collect();
        shared.send(&strict, &refused).await;
        shared.services.clock.advance(1_000 + seed);
        let (one, two) = (shared.redrive(&append), shared.redrive(&append));
        let request = Request::read(&execute()).unwrap();
        let (one, two) = tokio::join!(one.run(&request, Deadline::NONE), two.run(&request, Deadline::NONE));
        assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
        assert_eq!(shared.rows("erp.a").await.len(), 6, "{one:?} {two:?}");
        assert!(shared.errors().await.iter().all(|row| !row.contains("resolution=null")));
    }
}

/// A catalog where another writer is faster at the first commit to `erp.a`, and gives the table a column.
struct Meddling {
    shared: Arc<dyn Catalog>,
    services: TestServices,
    done: Arc<AtomicBool>,
}

#[async_trait]
impl Catalog for Meddling {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let (shared, services, done) = (Arc::clone(&self.shared), self.services.clone(), Arc::clone(&self.done));
        let table = self.shared.load(name).await?;
        Ok(table.map(|inner| Arc::new(MeddledTable { inner, meddling: Meddling { shared, services, done } }) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        self.shared.create(name, creation).await
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        self.shared.tables().await
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        self.shared.drop_table(name).await
    }
}

struct MeddledTable {
    inner: Arc<dyn TableOperations>,
    meddling: Meddling,
}

#[async_trait]
impl TableOperations for MeddledTable {
    fn name(&self) -> &TableName {
        self.inner.name()
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        self.inner.refresh().await
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        let Meddling { shared, services, done } = &self.meddling;
        if self.name().as_str() == "erp.a" && !done.swap(true, Ordering::SeqCst) {
            let over = json!({"table_defaults": {"mode": "append", "on_unknown_column": "add"}});
            let lake = Lake::over(config(over), Arc::clone(shared), services.clone());
            let other = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(lake.send(&[bad(90, 90, 90)]));
            });
            other.join().unwrap();
        }
        self.inner.commit(base, change).await
    }
}

#[tokio::test]
async fn what_one_round_refused_no_later_round_applies() {
    let with = |checks: Value| json!({"table_defaults": {"mode": "append", "checks": checks}});
    let shared = Shared::new();
    shared.send(&with(json!([])), &[good(0, 1)]).await;
    shared.send(&with(json!(["id < 50"])), &[bad(1, 60, 1), good(2, 61)]).await;
    shared.services.clock.advance(1_000);
    let meddling = Meddling { shared: Arc::clone(&shared.catalog), services: shared.services.clone(), done: Arc::default() };
    let function = redrive(&with(json!([])), Arc::new(meddling), &shared.services);
    let reply = function.run(&Request::read(&execute()).unwrap(), Deadline::NONE).await.unwrap();
    // The first round refused the record with the unknown column; in the second the column was there.
    assert_eq!((reply.count(Fate::Applied), reply.refused_by_code.get(&ReasonCode::UnknownColumn)), (1, Some(&1)), "{reply:?}");
    assert_eq!(shared.rows("erp.a").await, ["id=1 extra=null", "id=61 extra=null", "id=90 extra=90"]);
    assert_eq!(shared.run(&with(json!([])), execute()).await.count(Fate::Applied), 1);
    assert_eq!(shared.rows("erp.a").await, ["id=1 extra=null", "id=60 extra=1", "id=61 extra=null", "id=90 extra=90"]);
}

#[tokio::test]
async fn an_older_error_table_gets_the_columns() {
    use sluice_deadletter::columns::error_table_schema;
    let shared = Shared::new();
    let mut schema = error_table_schema();
    schema.columns.truncate(22);
    schema.last_column_id = 25;
    let name = TableName::parse("ops.error_records").unwrap();
    shared.catalog.create(&name, &TableCreation::of(schema)).await.unwrap();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[bad(1, 2, 5)]).await;
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    assert_eq!(shared.errors().await, ["offset=1 code=UNKNOWN_COLUMN redrive=".replace(" redrive=", " attempts=null resolution=applied")]);
    assert_eq!(shared.send(&strict(), &[bad(2, 3, 5), sent(3, "a", "zap", json!({}))]).await.dead_letters, 1, "and ingest goes on with it");
}
