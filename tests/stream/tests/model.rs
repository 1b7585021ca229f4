//! What the tables must hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::program::Program;
use crate::records::{Fate, Record, TABLES};

/// A refused record: its coordinate and code.
pub type Refused = (String, i32, i64, String);

/// The tables as they must be when everything is applied.
#[derive(Default)]
pub struct Model {
    rows: BTreeMap<&'static str, BTreeMap<u64, u64>>,
    pub refused: BTreeSet<Refused>,
    pub records: u64,
}

impl Model {
    /// A record stands at that place. Records of one key come in their order.
    pub fn stands(&mut self, record: &Record, (partition, offset): (i32, i64)) {
        self.records += 1;
        match &record.fate {
            Fate::Row { table, key, n } => drop(self.rows.entry(table).or_default().insert(*key, *n)),
            Fate::Delete { table, key } => drop(self.rows.entry(table).or_default().remove(key)),
            Fate::Refused(code) => drop(self.refused.insert((record.topic.to_owned(), partition, offset, (*code).to_owned()))),
            Fate::Control => {}
        }
    }

    /// Compares every table and the error table, row by row.
    pub fn compare(&self, program: &Program) {
        for table in TABLES {
            let stored = program.rows(table);
            let mut found: BTreeMap<u64, u64> = BTreeMap::new();
            for row in &stored {
                let (id, n) = (row["id"].as_u64().unwrap(), row["n"].as_u64().unwrap());
                assert_eq!(found.insert(id, n), None, "{table} has two rows of key {id}");
            }
            let expected = self.rows.get(table).cloned().unwrap_or_default();
            let differs = |key: &&u64| found.get(*key) != expected.get(*key);
            let keys: BTreeSet<u64> = found.keys().chain(expected.keys()).filter(differs).copied().collect();
            let shown: Vec<_> = keys.iter().take(5).map(|key| (key, found.get(key), expected.get(key))).collect();
            assert!(keys.is_empty(), "{table}: {} keys differ: (key, found, expected) {shown:?}", keys.len());
        }
        let stored = program.rows("ops.error_records");
        // The ledger of the error table tells a repetition only above its floor; below, a letter that may stand there twice says so.
        let (again, first): (Vec<&Value>, Vec<&Value>) = stored.iter().partition(|row| row["maybe_repeated"] == Value::Bool(true));
        let once: BTreeSet<Refused> = first.iter().map(|row| refused(row)).collect();
        assert_eq!(once.len(), first.len(), "a dead letter stands twice in the error table");
        let all: BTreeSet<Refused> = once.into_iter().chain(again.into_iter().map(refused)).collect();
        assert_eq!(all, self.refused);
    }
}

fn refused(row: &Value) -> Refused {
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("topic"), i32::try_from(row["partition"].as_i64().unwrap()).unwrap(), row["offset"].as_i64().unwrap(), text("code"))
}
