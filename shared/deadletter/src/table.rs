//! The error table: created when missing, written through the one commit engine, exactly once by its own ledger.

use std::collections::BTreeMap;

use sluice_model::mutants::{self, Mutant};
use sluice_model::{Claims, Coordinate, Coverage, OffsetLedger, PartitionKey, TableName, Transform, TransformedColumn};
use sluice_table::{Catalog, CommitContext, RowDelta, TableCreation, TableError, TableVersion, WriteOptions};

use crate::columns::{error_table_schema, rows};
use crate::open::{ErrorTableCommit, Open};
use crate::{DeadLetter, Repetition};

/// What became of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterFate {
    /// It is in the table now.
    Written,
    /// It was in the table before.
    Replayed,
}

/// The error table of a catalog.
pub struct ErrorTable {
    name: TableName,
    open: Option<Open>,
}

/// How often a batch of letters is resolved again because another invocation wrote some of them.
const MAX_ROUNDS: usize = 16;

impl ErrorTable {
    /// Opens the table of that name; a missing one is created with its first letters.
    ///
    /// # Errors
    /// What the catalog, the storage or the stored ledger said.
    pub async fn open(catalog: &dyn Catalog, name: &TableName) -> Result<Self, TableError> {
        Ok(Self { name: name.clone(), open: Open::load(catalog, name).await? })
    }

    /// What the table's ledger knows of a coordinate.
    #[must_use]
    pub fn coverage(&self, key: &PartitionKey, coordinate: Coordinate) -> Coverage {
        self.open.as_ref().map_or(Coverage::New, |open| open.ledger.coverage(key, coordinate))
    }

    /// Writes the letters that the table does not hold yet, in one commit. The fates are in the order of the letters.
    ///
    /// # Errors
    /// [`TableError`] when the commit failed or its outcome is unknown: then no data table may claim the batch.
    pub async fn write(
        &mut self,
        catalog: &dyn Catalog,
        letters: &[DeadLetter],
        tools: (&WriteOptions<'_>, &CommitContext<'_>),
    ) -> Result<Vec<LetterFate>, TableError> {
        for _ in 0..MAX_ROUNDS {
            let open = self.open_or_create(catalog).await?;
            let fates: Vec<LetterFate> = letters.iter().map(|letter| fate(&open.ledger, letter)).collect();
            let mut fresh: Vec<DeadLetter> = Vec::new();
            for (letter, fate) in letters.iter().zip(&fates) {
                match fate {
                    LetterFate::Written => fresh.push(open.flagged(letter)),
                    LetterFate::Replayed => {}
                }
            }
            if fresh.is_empty() {
                return Ok(fates);
            }
            let delta = delta(&open.version, &fresh, tools.1.clock.now_ms())?;
            match open.commit(delta, tools).await? {
                ErrorTableCommit::Done => return Ok(fates),
                ErrorTableCommit::Moved => {}
            }
        }
        Err(TableError::OutOfAttempts {
            name: self.name.clone(),
            attempts: MAX_ROUNDS as u32,
            last: "other invocations keep writing".into(),
        })
    }

    async fn open_or_create(&mut self, catalog: &dyn Catalog) -> Result<&mut Open, TableError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                catalog.create(&self.name, &creation()).await?;
                Open::load(catalog, &self.name).await?.ok_or_else(|| TableError::Missing(self.name.clone()))?
            }
        };
        Ok(self.open.insert(open))
    }
}

impl Open {
    /// The letter, marked when the table may hold it already.
    fn flagged(&self, letter: &DeadLetter) -> DeadLetter {
        let repetition = match self.ledger.coverage(&letter.key, letter.coordinate) {
            Coverage::BelowFloor => Repetition::Possible,
            Coverage::New | Coverage::Decided => Repetition::First,
        };
        DeadLetter { repetition, ..letter.clone() }
    }
}

fn fate(ledger: &OffsetLedger, letter: &DeadLetter) -> LetterFate {
    match ledger.coverage(&letter.key, letter.coordinate) {
        Coverage::Decided => LetterFate::Replayed,
        Coverage::New | Coverage::BelowFloor => LetterFate::Written,
    }
}

fn delta(version: &TableVersion, letters: &[DeadLetter], now_ms: i64) -> Result<RowDelta, TableError> {
    let target = sluice_table::arrow::arrow_schema(&sluice_table::schema::to_model(&version.metadata)?)?;
    let rows = rows(letters, &target, now_ms).map_err(TableError::arrow("the error table's columns"))?;
    let mut claims = Claims::default();
    let mut applies = Vec::with_capacity(letters.len());
    for letter in letters {
        match letter.repetition {
            // Below the floor nothing can be claimed: the ledger has given up telling there.
            Repetition::Possible => {}
            Repetition::First if mutants::is(Mutant::LettersWithoutLedger) => {}
            Repetition::First => {
                claims.add(&letter.key, letter.claim);
                applies.push((letter.key.clone(), letter.coordinate));
            }
        }
    }
    Ok(RowDelta { rows: Some(rows), claims, applies, ..RowDelta::on(version) })
}

fn creation() -> TableCreation {
    TableCreation {
        partition_by: vec![TransformedColumn { column: "arrived_at".to_owned(), transform: Transform::Day }],
        properties: BTreeMap::from([("comment".to_owned(), "Records that Sluice refused, with the reason".to_owned())]),
        ..TableCreation::of(error_table_schema())
    }
}
