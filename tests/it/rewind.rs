//! A table is taken back and the source replayed: the same rows, the same ledger.

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_model::{Deadline, TableName};
use sluice_redrive::rewind::{Position, RewindEnd, RewindReply, RewindRequest};
use sluice_redrive::{Fate, Mode, RedriveError};
use sluice_table::{Catalog, ledger};
use sluice_testkit::foreign;

use crate::crashing::{Fuse, Moment, Mortal};
use crate::lake::{Sent, sent};
use crate::redrive::{Shared, bad, execute, good, mended, redrive, strict};

fn request(to: &[&str], mode: Mode) -> RewindRequest {
    let to = to.iter().map(|text| Position::parse(text).unwrap()).collect();
    RewindRequest { table: TableName::parse("erp.a").unwrap(), to, mode }
}

async fn rewind(shared: &Shared, to: &[&str]) -> RewindReply {
    shared.redrive(&mended()).rewind(&request(to, Mode::Execute), Deadline::NONE).await.unwrap()
}

fn replay(reply: &RewindReply) -> Vec<(i32, i64)> {
    reply.replay.iter().map(|replay| (replay.key.partition, replay.from)).collect()
}

/// Inserts, updates and deletes of two partitions, in order.
fn history() -> Vec<Sent> {
    let mut records = Vec::new();
    for offset in 0..12 {
        for partition in 0..2 {
            let id = i64::from(partition) * 10 + offset % 4;
            let op = if offset % 5 == 4 { "D" } else { "U" };
            records.push(Sent { partition, ..sent(offset, "a", op, json!({"id": id, "n": offset})) });
        }
    }
    records
}

async fn send_cut(shared: &Shared, records: &[Sent], size: usize) {
    for batch in records.chunks(size) {
        shared.send(&strict(), batch).await;
    }
}

async fn the_ledger(shared: &Shared) -> String {
    ledger::read(&shared.table("erp.a").await.refresh().await.unwrap().metadata).unwrap().to_text()
}

#[tokio::test]
async fn a_rewind_and_a_replay_give_the_same_rows() {
    for offset in [3, 4, 7, 11] {
        for cut in [1, 3, 100] {
            let shared = Shared::new();
            send_cut(&shared, &history(), 4).await;
            let (rows, ledger) = (shared.rows("erp.a").await, the_ledger(&shared).await);
            let reply = rewind(&shared, &[&format!("t:0:{offset}")]).await;
            assert_eq!(reply.end, RewindEnd::Done);
            assert_ne!(shared.rows("erp.a").await, rows);
            let from = replay(&reply);
            assert!(from.iter().all(|(_, from)| *from <= offset) && from.len() == 2, "{from:?}");
            let again: Vec<Sent> = history()
                .into_iter()
                .filter(|record| from.iter().any(|(partition, from)| record.partition == *partition && record.offset >= *from))
                .collect();
            send_cut(&shared, &again, cut).await;
            assert_eq!((shared.rows("erp.a").await, the_ledger(&shared).await), (rows, ledger), "from {offset}, cut {cut}");
            assert_eq!(shared.send(&strict(), &history()).await.replayed, 24, "and nothing more is applied");
        }
    }
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_tells_the_same() {
    let shared = Shared::new();
    send_cut(&shared, &history(), 4).await;
    let rows = shared.rows("erp.a").await;
    let planned = shared.redrive(&mended()).rewind(&request(&["t:0:5"], Mode::DryRun), Deadline::NONE).await.unwrap();
    assert_eq!((planned.end, shared.rows("erp.a").await), (RewindEnd::Planned, rows));
    assert!(planned.warnings.iter().any(|warning| warning.contains("t-1 was not named")), "{:?}", planned.warnings);
    let done = rewind(&shared, &["t:0:5"]).await;
    assert_eq!(RewindReply { end: RewindEnd::Planned, ..done.clone() }, planned);
    let again = rewind(&shared, &["t:0:5"]).await;
    assert_eq!((again.end, again.replay.len(), again.from_snapshot), (RewindEnd::NothingToDo, 0, done.to_snapshot));
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let shared = Shared::new();
    send_cut(&shared, &history(), 4).await;
    let with = |table: &str, to: &[&str]| RewindRequest { table: TableName::parse(table).unwrap(), ..request(to, Mode::Execute) };
    let function = shared.redrive(&mended());
    let refused = async |request: RewindRequest| function.rewind(&request, Deadline::NONE).await.unwrap_err();
    assert!(matches!(refused(with("erp.a", &[])).await, RedriveError::Request(_)));
    assert!(matches!(refused(with("ops.error_records", &["t:0:1"])).await, RedriveError::Request(_)));
    assert!(matches!(refused(with("erp.none", &["t:0:1"])).await, RedriveError::NoTable(_)));
    assert!(matches!(refused(with("erp.a", &["t:0:0"])).await, RedriveError::Refused { .. }));
    let unknown = refused(with("erp.a", &["t:5:1"])).await.to_string();
    assert!(unknown.contains("knows nothing of it/0/t-5; it knows it/0/t-0"), "{unknown}");
}

#[tokio::test]
async fn the_schema_stays_and_refused_records_are_told_of() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[good(1, 2), bad(2, 3, 5)]).await;
    shared.send(&mended(), &[bad(3, 4, 6)]).await;
    let reply = rewind(&shared, &["t:0:1"]).await;
    assert_eq!((reply.dead_letters, reply.reopened, replay(&reply)), (1, 0, vec![(0, 1)]));
    assert_eq!(shared.rows("erp.a").await, ["id=1 extra=null"]);
    let again = shared.send(&strict(), &[good(1, 2), bad(2, 3, 5), bad(3, 4, 6)]).await;
    assert_eq!((again.replayed, again.rows), (1, 2), "the refused one is decided by the error table");
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    assert_eq!(shared.rows("erp.a").await, ["id=1 extra=null", "id=2 extra=null", "id=3 extra=5", "id=4 extra=6"]);
}

/// A refused record that was redriven behind the position.
async fn redriven(shared: &Shared) {
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[good(1, 2), bad(2, 3, 5)]).await;
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    assert!(shared.errors().await[0].contains("resolution=applied"));
}

const COMPLETE: [&str; 3] = ["id=1 extra=null", "id=2 extra=null", "id=3 extra=5"];

#[tokio::test]
async fn redriven_records_that_go_back_are_open_again() {
    let shared = Shared::new();
    redriven(&shared).await;
    let reply = rewind(&shared, &["t:0:1"]).await;
    assert_eq!((reply.reopened, reply.dead_letters), (1, 1));
    assert!(reply.warnings.iter().any(|warning| warning.contains("redriven")), "{:?}", reply.warnings);
    assert!(shared.errors().await[0].contains("resolution=null"));
    shared.send(&strict(), &[good(1, 2), bad(2, 3, 5)]).await;
    assert_eq!(shared.run(&mended(), execute()).await.count(Fate::Applied), 1);
    assert_eq!(shared.rows("erp.a").await, COMPLETE);
}

#[tokio::test]
async fn a_rewind_that_dies_anywhere_loses_no_redriven_record() {
    for moment in [Moment::Before, Moment::After] {
        let mut deaths = 0;
        for calls in 0..100 {
            let shared = Shared::new();
            redriven(&shared).await;
            let fuse = Fuse::new(calls, moment);
            let mortal: Arc<dyn Catalog> = Arc::new(Mortal { inner: Arc::clone(&shared.catalog), fuse: Arc::clone(&fuse) });
            let (dying, asked) = (redrive(&mended(), mortal, &shared.services), request(&["t:0:1"], Mode::Execute));
            let died = tokio::select! {
                biased;
                () = fuse.blown() => true,
                reply = dying.rewind(&asked, Deadline::NONE) => { reply.unwrap(); false }
            };
            rewind(&shared, &["t:0:1"]).await;
            shared.send(&strict(), &[good(1, 2), bad(2, 3, 5)]).await;
            shared.run(&mended(), execute()).await;
            assert_eq!(shared.rows("erp.a").await, COMPLETE, "died {moment:?} call {calls}");
            if !died {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 5, "{deaths}");
    }
}

#[tokio::test]
async fn a_rollback_by_another_program_is_noticed_by_redrive() {
    let shared = Shared::new();
    shared.send(&strict(), &[good(0, 1)]).await;
    shared.send(&strict(), &[good(1, 2), bad(2, 3, 5)]).await;
    let table = shared.table("erp.a").await;
    let before = table.refresh().await.unwrap().metadata.current_snapshot_id().unwrap();
    shared.run(&mended(), execute()).await;
    foreign::roll_back(table.as_ref(), before).await;
    let dry = shared.run(&mended(), json!({})).await;
    assert_eq!((dry.reopened, dry.selected), (1, 0), "a dry run only tells");
    let reply = shared.run(&mended(), execute()).await;
    assert_eq!((reply.reopened, reply.count(Fate::Applied)), (1, 1), "{reply:?}");
    assert_eq!(shared.rows("erp.a").await, COMPLETE);
    let _: Value = json!(reply);
}
