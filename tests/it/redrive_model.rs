//! Random histories of good changes, bad ones and deletes, with redrives in between that die and lose replies, against a model that knows only the order of the
//! changes: the row of each key is that of the last of its changes that was applied, whenever that was; nothing is lost, and nothing waits without a reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sluice_model::{Class, Coordinate, Coverage, Deadline, IdSource as _, PartitionKey, TableName};
use sluice_redrive::Request;
use sluice_table::{Catalog, ledger};
use sluice_testkit::services::SeededIds;
use sluice_testkit::{CommitFault, FaultPlan, FaultyCatalog};

use crate::crashing::{Fuse, Moment, Mortal};
use crate::lake::{Sent, rows_of, sent};
use crate::redrive::{Shared, execute, redrive};

/// Histories of a run, of 25 steps each; `REDRIVE_HISTORIES` asks for more, `REDRIVE_FIRST` begins elsewhere.
const HISTORIES: u64 = 12;

/// Changes whose `n` is negative are bad until that is allowed.
fn configuration(mode: &str, bad: Bad) -> Value {
    let checks = match bad {
        Bad::Allowed => json!([]),
        Bad::Refused => json!(["n >= 0"]),
    };
    json!({"table_defaults": {"mode": mode, "checks": checks}})
}

#[derive(Clone, Copy)]
enum Bad {
    Allowed,
    Refused,
}

struct Change {
    batch: usize,
    id: i64,
    /// `None` deletes.
    n: Option<i64>,
    bad: bool,
}

struct History {
    shared: Shared,
    random: SeededIds,
    mode: &'static str,
    /// By partition and offset.
    changes: BTreeMap<(i32, i64), Change>,
    sent: Vec<Vec<Sent>>,
}

impl History {
    fn below(&self, end: u64) -> u64 {
        (self.random.next_u128() % u128::from(end)) as u64
    }

    async fn batch(&mut self) {
        let partition = self.below(2) as i32;
        let mut records = Vec::new();
        for _ in 0..=self.below(4) {
            let offset = self.changes.keys().filter(|(own, _)| *own == partition).count() as i64;
            let id = i64::from(partition) * 10 + self.below(3) as i64;
            let (bad, delete) = (self.below(3) == 0, self.mode == "upsert" && self.below(5) == 0);
            let n = (!delete).then_some(if bad { -offset - 1 } else { offset });
            let op = if delete { "D" } else { "U" };
            let value = sent(offset, "a", op, n.map_or_else(|| json!({"id": id}), |n| json!({"id": id, "n": n})));
            records.push(Sent { partition, ..value });
            self.changes.insert((partition, offset), Change { batch: self.sent.len(), id, n, bad: bad && !delete });
        }
        self.sent.push(records.clone());
        self.shared.send(&configuration(self.mode, Bad::Refused), &records).await;
    }

    /// A redrive that may die, lose a reply or be refused; what becomes of it does not matter.
    async fn trouble(&self) {
        let over = configuration(self.mode, if self.below(4) > 0 { Bad::Allowed } else { Bad::Refused });
        self.shared.services.clock.advance(1_000);
        let limit = 1 + self.below(6);
        let request = Request::read(&json!({"dry_run": self.below(6) == 0, "limit": limit})).unwrap();
        let (fuse, faults) =
            (Fuse::new(self.below(25) as usize, if self.below(2) == 0 { Moment::Before } else { Moment::After }), FaultPlan::default());
        let fault = match self.below(4) {
            0 => CommitFault::After(Class::Unknown),
            1 => CommitFault::Instead(Class::Unknown),
            2 => CommitFault::Instead(Class::Conflict),
            _ => CommitFault::None,
        };
        faults.on_commits(std::iter::repeat_n(CommitFault::None, self.below(6) as usize).chain([fault]));
        let mortal: Arc<dyn Catalog> = Arc::new(Mortal { inner: Arc::clone(&self.shared.catalog), fuse: Arc::clone(&fuse) });
        let function = redrive(&over, Arc::new(FaultyCatalog::new(mortal, Arc::new(faults))), &self.shared.services);
        tokio::select! {
            biased;
            () = fuse.blown() => {}
            _ = function.run(&request, Deadline::NONE) => {}
        }
    }

    /// Whether the table has the record that is queued under a number: a run may have died before it said so.
    async fn has(&self, number: i64) -> bool {
        let lane = PartitionKey {
            source: "redrive:it".into(),
            epoch: 0,
            topic: self.shared.table("ops.error_records").await.refresh().await.unwrap().metadata.uuid().to_string().into(),
            partition: 0,
        };
        let version = self.shared.table("erp.a").await.refresh().await.unwrap();
        ledger::read(&version.metadata).unwrap().coverage(&lane, Coordinate::record(number)) == Coverage::Decided
    }

    /// The refused changes, and whether each is in the table.
    async fn refused(&self) -> BTreeMap<(i32, i64), bool> {
        let name = TableName::parse("ops.error_records").unwrap();
        if self.shared.catalog.load(&name).await.unwrap().is_none() {
            return BTreeMap::new();
        }
        let shown = ["partition", "offset", "resolution", "redrive_offset"];
        let rows = rows_of(self.shared.catalog.as_ref(), &name, |column| shown.contains(&column)).await;
        let mut found = BTreeMap::new();
        for row in &rows {
            let cells: BTreeMap<&str, &str> = row.split(' ').map(|cell| cell.split_once('=').unwrap()).collect();
            assert!(["null", "applied", "decided"].contains(&cells["resolution"]), "{row}");
            let is_there = match cells["redrive_offset"].parse() {
                Ok(number) => self.has(number).await,
                Err(_) => false,
            };
            assert!(is_there || cells["resolution"] == "null", "{row} is resolved, and the table does not have it");
            found.insert((cells["partition"].parse().unwrap(), cells["offset"].parse().unwrap()), is_there);
        }
        assert_eq!(found.len(), rows.len(), "no record stands there twice");
        found
    }

    /// The rows that the applied changes come to.
    fn expected(&self, refused: &BTreeMap<(i32, i64), bool>) -> Vec<String> {
        let applied = self.changes.iter().filter(|(place, _)| refused.get(place).copied().unwrap_or(true));
        let mut rows: Vec<String> = if self.mode == "append" {
            applied.map(|(_, change)| format!("id={} n={}", change.id, change.n.unwrap())).collect()
        } else {
            let mut by_key: BTreeMap<i64, Option<i64>> = BTreeMap::new();
            for (_, change) in applied {
                by_key.insert(change.id, change.n);
            }
            by_key.into_iter().filter_map(|(id, n)| Some(format!("id={id} n={}", n?))).collect()
        };
        rows.sort();
        rows
    }

    async fn check(&self, seed: u64) {
        let refused = self.refused().await;
        let bad: Vec<&(i32, i64)> = self.changes.iter().filter(|(_, change)| change.bad).map(|(place, _)| place).collect();
        assert_eq!(refused.keys().collect::<Vec<_>>(), bad, "seed {seed}: every bad change is kept, and no other");
        let found = match self.shared.catalog.load(&TableName::parse("erp.a").unwrap()).await.unwrap() {
            Some(_) => self.shared.rows("erp.a").await,
            None => Vec::new(),
        };
        let plain: Vec<String> = found.iter().map(|row| row.replace("n=null", "n=-")).collect();
        assert_eq!(plain, self.expected(&refused), "seed {seed} {}", self.mode);
    }

    /// When nothing goes wrong, only changes wait that others of their key came with or followed.
    async fn end(&self, seed: u64) {
        let reply = self.shared.run(&configuration(self.mode, Bad::Allowed), execute()).await;
        assert!(reply.failures.is_empty(), "{reply:?}");
        let refused = self.refused().await;
        for ((partition, offset), _) in refused.iter().filter(|(_, resolved)| !**resolved) {
            let own = &self.changes[&(*partition, *offset)];
            let followed = self.changes.iter().any(|(place, other)| {
                let is_applied = refused.get(place).copied().unwrap_or(true);
                let is_later = place.1 > *offset || other.batch == own.batch;
                place.0 == *partition && place.1 != *offset && other.id == own.id && is_applied && is_later
            });
            assert!(followed && self.mode == "upsert", "seed {seed}: {partition}:{offset} waits for no reason: {reply:?}");
        }
    }
}

async fn history(seed: u64) {
    let mode = if seed.is_multiple_of(4) { "append" } else { "upsert" };
    let mut history = History { shared: Shared::new(), random: SeededIds::new(seed), mode, changes: BTreeMap::new(), sent: Vec::new() };
    history.shared.send(&configuration(mode, Bad::Refused), &[Sent { partition: 7, ..sent(0, "a", "I", json!({"id": 99, "n": 0})) }]).await;
    history.changes.insert((7, 0), Change { batch: usize::MAX, id: 99, n: Some(0), bad: false });
    for _ in 0..25 {
        match history.below(8) {
            0..=3 => history.batch().await,
            4..=6 => history.trouble().await,
            _ => {
                if let Some(batch) = history.sent.get(history.below(1 + history.sent.len() as u64) as usize) {
                    history.shared.send(&configuration(mode, if history.below(2) == 0 { Bad::Allowed } else { Bad::Refused }), batch).await;
                }
            }
        }
        history.check(seed).await;
    }
    history.end(seed).await;
    history.check(seed).await;
}

#[tokio::test]
async fn random_histories_end_as_the_model_says() {
    let asked = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let first = asked("REDRIVE_FIRST", 1);
    for seed in first..first + asked("REDRIVE_HISTORIES", HISTORIES) {
        history(seed).await;
    }
}
