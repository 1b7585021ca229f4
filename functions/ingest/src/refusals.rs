//! Where a batch's refused units are kept: an ordinary batch writes dead letters; a batch of refused records that are tried again has them in the error table
//! already, and says anew why each is refused.

use async_trait::async_trait;
use sluice_deadletter::{DeadLetter, ErrorTable, LetterFate};
use sluice_model::{Coordinate, Coverage, Deadline, PartitionKey, Rejection};

use crate::batch::{Batch, Decision};
use crate::{Ingest, IngestError, letters};

/// Keeps refused units, and knows which were kept before.
#[async_trait]
pub trait Refusals: Send + Sync {
    /// Whether a coordinate was refused, and decided by that, before.
    fn coverage(&self, key: &PartitionKey, coordinate: Coordinate) -> Coverage;

    /// Keeps refused units, sorted by their index, and gives what is decided of each. They are safe when this comes back: then tables may claim them.
    ///
    /// # Errors
    /// [`IngestError`] when they are not safe: no table may claim them.
    async fn keep(
        &mut self,
        batch: &Batch<'_>,
        refused: Vec<(usize, Rejection)>,
        deadline: Deadline,
    ) -> Result<Vec<(usize, Decision)>, IngestError>;
}

/// Refused units become dead letters: in the error topic, then in the error table.
pub struct DeadLetters<'i> {
    ingest: &'i Ingest,
    errors: ErrorTable,
}

impl<'i> DeadLetters<'i> {
    /// Opens the error table.
    ///
    /// # Errors
    /// [`IngestError::ErrorTable`] when it cannot be read.
    pub async fn open(ingest: &'i Ingest) -> Result<Self, IngestError> {
        let table = &ingest.settings.errors.table;
        let errors = ErrorTable::open(ingest.catalog.as_ref(), table).await;
        Ok(Self { ingest, errors: errors.map_err(|source| IngestError::ErrorTable { table: table.clone(), source })? })
    }
}

#[async_trait]
impl Refusals for DeadLetters<'_> {
    fn coverage(&self, key: &PartitionKey, coordinate: Coordinate) -> Coverage {
        self.errors.coverage(key, coordinate)
    }

    async fn keep(
        &mut self,
        batch: &Batch<'_>,
        refused: Vec<(usize, Rejection)>,
        deadline: Deadline,
    ) -> Result<Vec<(usize, Decision)>, IngestError> {
        let max_raw_bytes = self.ingest.settings.errors.max_raw_bytes;
        let written: Vec<(usize, DeadLetter)> = refused
            .into_iter()
            .filter_map(|(unit, rejection)| Some((unit, letters::letter(batch, unit, rejection, max_raw_bytes)?)))
            .collect();
        if written.is_empty() {
            return Ok(Vec::new());
        }
        let letters: Vec<DeadLetter> = written.iter().map(|(_, letter)| letter.clone()).collect();
        self.ingest.topic.publish(&letters).await?;
        let tools = (&self.ingest.write_options(), &self.ingest.commit_context(deadline));
        let fates = self.errors.write(self.ingest.catalog.as_ref(), &letters, tools).await;
        let fates = fates.map_err(|source| IngestError::ErrorTable { table: self.ingest.settings.errors.table.clone(), source })?;
        let decided = written.into_iter().zip(fates).map(|((unit, letter), fate)| match fate {
            LetterFate::Written => (unit, Decision::DeadLetter(letter.rejection)),
            LetterFate::Replayed => (unit, Decision::Replayed),
        });
        Ok(decided.collect())
    }
}
