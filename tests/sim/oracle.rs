//! The invariants, checked whenever a pointer has moved, a file was deleted, or an invocation has answered.
//!
//! The strongest is the one of content: at every version, a table holds exactly what the records that its ledger covers, less those in the
//! error table, make of it. Lost rows, doubled rows, wrong order and a ledger ahead of or behind the rows all break it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluice_model::{Coordinate, Coverage, OffsetLedger, PartitionKey, TableName};
use sluice_table::{Catalog, TableVersion, ledger};

use crate::reader::{Letter, Reader, Row};
use crate::records::{Fate, Record, Tab, Topic, error_table};
use crate::world::{Sim, now};

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

/// Says which invariant is broken, and how.
pub fn broken<T>(name: &str, what: impl std::fmt::Display) -> Result<T, Broken> {
    Err(Broken(format!("{name}: {what}")))
}

/// What the oracle knows.
pub struct Oracle {
    sim: Sim,
    /// The catalog as it is, without trouble.
    pub catalog: Arc<dyn Catalog>,
    pub topic: Topic,
    reader: Reader,
    pointers: BTreeMap<TableName, String>,
    /// Every file that some snapshot of a table needs, by table.
    reach: BTreeMap<TableName, BTreeSet<String>>,
    ledgers: BTreeMap<Tab, OffsetLedger>,
    /// The dead letters.
    pub letters: BTreeMap<(i32, i64), String>,
    /// Rows that other programs have added, by snapshot.
    pub foreign_added: BTreeMap<i64, Row>,
    /// Foreign rows of each snapshot that was ever current, and of none.
    foreign: BTreeMap<Option<i64>, BTreeSet<Row>>,
    /// Tables that may refuse good records, because they were denied or replaced.
    pub may_refuse: BTreeSet<Tab>,
    /// Whether the log's columns have changed while several invocations ran. Two of them that hold the same record may then differ about it, and
    /// no commit spans both tables: it may become a row and a dead letter.
    pub may_differ: bool,
}

impl Oracle {
    pub fn new(sim: &Sim, catalog: Arc<dyn Catalog>, topic: Topic) -> Self {
        Self {
            sim: sim.clone(),
            catalog,
            topic,
            reader: Reader::default(),
            pointers: BTreeMap::new(),
            reach: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            letters: BTreeMap::new(),
            foreign_added: BTreeMap::new(),
            foreign: BTreeMap::from([(None, BTreeSet::new())]),
            may_refuse: BTreeSet::new(),
            may_differ: false,
        }
    }

    /// Looks at whatever has changed since the last time.
    pub fn look(&mut self) -> Result<(), Broken> {
        let pointers = self.sim.world().pointers.clone();
        let mut changed: Vec<TableName> = Vec::new();
        changed.extend(pointers.iter().filter(|(name, pointer)| self.pointers.get(*name) != Some(pointer)).map(|(name, _)| name.clone()));
        let gone: Vec<TableName> = self.pointers.keys().filter(|name| !pointers.contains_key(*name)).cloned().collect();
        self.pointers = pointers;
        gone.iter().for_each(|name| self.forget(name));
        // The error table first: what is in it decides what the others must hold.
        changed.sort_by_key(|name| *name != error_table());
        changed.iter().try_for_each(|name| self.check_table(name))?;
        let deleted = std::mem::take(&mut self.sim.world().deleted);
        for path in deleted {
            if let Some((table, _)) = self.reach.iter().find(|(_, reach)| reach.contains(&path)) {
                return broken("F1", format!("{path}, which {table} needs, was deleted"));
            }
        }
        Ok(())
    }

    fn forget(&mut self, name: &TableName) {
        self.reach.remove(name);
        if let Some(tab) = Tab::ALL.into_iter().find(|tab| tab.name() == *name) {
            self.ledgers.remove(&tab);
        }
    }

    fn check_table(&mut self, name: &TableName) -> Result<(), Broken> {
        let table = now(self.catalog.load(name)).unwrap().unwrap();
        let version = now(table.refresh()).or_else(|error| broken("C1", format!("{name} cannot be loaded: {error}")))?;
        self.check_files(name, &version)?;
        let current = version.metadata.current_snapshot().cloned();
        let files = match &current {
            Some(snapshot) => self.reader.files(&version, snapshot).or_else(|error| broken("C1", format!("{name}: {error}")))?,
            None => std::rc::Rc::default(),
        };
        if *name == error_table() {
            let letters = self.reader.letters(&self.sim, &files).or_else(|error| broken("C1", format!("{name}: {error}")))?;
            return self.check_letters(letters);
        }
        let tab = Tab::ALL.into_iter().find(|tab| tab.name() == *name).unwrap();
        let ledger = ledger::read(&version.metadata).or_else(|error| broken("C1", format!("{name}: {error}")))?;
        let mut rows = self.reader.rows(&self.sim, &files).or_else(|error| broken("C1", format!("{name}: {error}")))?;
        self.ledgers.insert(tab, ledger);
        if tab == Tab::Log {
            self.check_foreign(&version, &mut rows)?;
        }
        self.check_rows(tab, &rows)
    }

    /// F1 and C2: whatever a snapshot needs is there.
    fn check_files(&mut self, name: &TableName, version: &TableVersion) -> Result<(), Broken> {
        let mut reach: BTreeSet<String> = version.metadata.metadata_log().iter().map(|entry| entry.metadata_file.clone()).collect();
        reach.insert(version.metadata_location.clone());
        for snapshot in version.metadata.snapshots() {
            let files = self.reader.files(version, snapshot).or_else(|error| broken("C1", format!("{name}: {error}")))?;
            reach.extend(files.reach.iter().cloned());
        }
        let world = self.sim.world();
        let missing = reach.iter().find(|path| !world.files.contains_key(*path)).cloned();
        drop(world);
        if let Some(path) = missing {
            return broken("F1", format!("{name} needs {path}, which is missing"));
        }
        self.reach.insert(name.clone(), reach);
        Ok(())
    }

    fn check_letters(&mut self, letters: Vec<Letter>) -> Result<(), Broken> {
        let count = letters.len();
        self.letters = letters.into_iter().map(|letter| (letter.at, letter.code)).collect();
        if self.letters.len() != count {
            return broken("R2", format!("a record is in the error table twice: {:?}", self.letters));
        }
        for (at, code) in &self.letters {
            let Some(record) = self.topic.get(*at) else { return broken("R5", format!("a dead letter of {at:?}, which was never sent")) };
            let refused = match record.fate {
                Fate::Refused | Fate::Depends => true,
                Fate::Row | Fate::Delete => record.tab.is_some_and(|tab| self.may_refuse.contains(&tab)) && code.starts_with("TABLE_"),
            };
            if !refused {
                return broken("R4", format!("{record:?} is good, but was refused as {code}"));
            }
        }
        Ok(())
    }

    /// Foreign rows come and go with their snapshots, and in no other way.
    fn check_foreign(&mut self, version: &TableVersion, rows: &mut Vec<Row>) -> Result<(), Broken> {
        let current = version.metadata.current_snapshot();
        let id = current.map(|snapshot| snapshot.snapshot_id());
        if !self.foreign.contains_key(&id) {
            let parent = current.and_then(|snapshot| snapshot.parent_snapshot_id());
            let mut expected = self.foreign.get(&parent).cloned().unwrap_or_default();
            expected.extend(id.and_then(|id| self.foreign_added.get(&id)).copied());
            self.foreign.insert(id, expected);
        }
        let (foreign, own): (Vec<Row>, Vec<Row>) = rows.drain(..).partition(|row| row.partition < 0);
        *rows = own;
        let expected: Vec<Row> = self.foreign[&id].iter().copied().collect();
        if foreign == expected { Ok(()) } else { broken("C1", format!("another program's rows are {foreign:?}, not {expected:?}")) }
    }

    /// Every file that the table needs.
    pub fn reach(&self, name: &TableName) -> BTreeSet<String> {
        self.reach.get(name).cloned().unwrap_or_default()
    }

    /// The table was dropped: nothing that was known of it holds any more.
    pub fn was_replaced(&mut self, tab: Tab) {
        self.forget(&tab.name());
        self.pointers.remove(&tab.name());
        if tab == Tab::Log {
            self.foreign_added.clear();
            self.foreign = BTreeMap::from([(None, BTreeSet::new())]);
        }
    }

    /// What the ledger of a table says of a record.
    pub fn covers(&self, tab: Tab, record: &Record) -> bool {
        let key = PartitionKey { source: "sim".into(), epoch: 0, topic: "t".into(), partition: record.partition };
        let coverage = self.ledgers.get(&tab).map(|ledger| ledger.coverage(&key, Coordinate::record(record.offset)));
        coverage == Some(Coverage::Decided)
    }

    /// Whether a record is decided for good: a dead letter, or covered by its table.
    pub fn is_decided(&self, record: &Record) -> bool {
        self.letters.contains_key(&(record.partition, record.offset)) || record.tab.is_some_and(|tab| self.covers(tab, record))
    }

    fn check_rows(&self, tab: Tab, rows: &[Row]) -> Result<(), Broken> {
        let mut seen = BTreeSet::new();
        for row in rows {
            let Some(record) = self.topic.get((row.partition, row.offset)) else {
                return broken("R5", format!("{tab:?} has {row:?}, which was never sent"));
            };
            if record.tab != Some(tab) || record.id != row.id || matches!(record.fate, Fate::Refused | Fate::Delete) {
                return broken("R5", format!("{tab:?} has {row:?}, which is none of its rows: {record:?}"));
            }
            if !seen.insert((row.partition, row.offset)) {
                return broken("R2", format!("{tab:?} has applied {row:?} twice"));
            }
            if !self.covers(tab, record) {
                return broken("R2", format!("{tab:?} has {row:?}, but its ledger does not cover it"));
            }
        }
        match tab {
            Tab::Log => self.check_appended(&seen),
            Tab::Item | Tab::Stock => self.check_keys(tab, rows),
        }
    }

    fn check_appended(&self, seen: &BTreeSet<(i32, i64)>) -> Result<(), Broken> {
        for record in self.topic.all().filter(|record| record.tab == Some(Tab::Log) && self.covers(Tab::Log, record)) {
            let at = (record.partition, record.offset);
            let (here, dead) = (seen.contains(&at), self.letters.get(&at));
            match (here, dead) {
                (true, None) | (false, Some(_)) => {}
                (false, None) => return broken("R2", format!("{record:?} is lost: the ledger covers it, but it is in no table")),
                // Refused by an invocation that could not reach the table, while another one could.
                (true, Some(code)) if code.starts_with("TABLE_") => {}
                (true, Some(_)) if record.fate == Fate::Depends && self.may_differ => {}
                (true, Some(code)) => return broken("R1", format!("{record:?} is a row and a dead letter ({code})")),
            }
        }
        Ok(())
    }

    fn check_keys(&self, tab: Tab, rows: &[Row]) -> Result<(), Broken> {
        let mut by_id: BTreeMap<i64, Vec<&Record>> = BTreeMap::new();
        for record in self.topic.all().filter(|record| record.tab == Some(tab) && record.fate != Fate::Refused) {
            by_id.entry(record.id).or_default().push(record);
        }
        for (id, mut records) in by_id {
            records.sort_by_key(|record| record.order);
            let held: Vec<i64> = rows.iter().filter(|row| row.id == id).map(|row| row.offset).collect();
            if held.len() > 1 {
                return broken("R3", format!("{tab:?} has {} rows of the key {id}: {held:?}", held.len()));
            }
            let allowed = self.allowed(tab, &records);
            if !allowed.contains(&held.first().copied()) {
                return broken("R3", format!("{tab:?} has the key {id} from offset {held:?}, allowed are {allowed:?} of {records:?}"));
            }
        }
        Ok(())
    }

    /// The offsets whose state a key may be in: that of its newest covered change that is no dead letter. A change refused because its table
    /// was out of reach may have been applied by another invocation.
    fn allowed(&self, tab: Tab, records: &[&Record]) -> Vec<Option<i64>> {
        let mut allowed = vec![None];
        for record in records.iter().filter(|record| self.covers(tab, record)) {
            let state = if record.fate == Fate::Delete { None } else { Some(record.offset) };
            if self.letters.contains_key(&(record.partition, record.offset)) {
                allowed.push(state);
            } else {
                allowed = vec![state];
            }
        }
        allowed
    }
}
