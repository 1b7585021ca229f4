//! Where a batch's refused units are kept: an ordinary batch writes dead letters; a batch of refused records that are tried again has them in the error table
//! already, and says anew why each is refused.

use async_trait::async_trait;
use sluice_deadletter::{DeadLetter, ErrorTable, LetterFate};
use sluice_model::{Coordinate, Coverage, Deadline, PartitionKey, Rejection};
use sluice_runtime::settings::OnTopicFailure;

use crate::batch::{Batch, Decision};
use crate::reply::TopicTally;
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

    /// What the error topic took so far.
    fn error_topic(&self) -> TopicTally {
        TopicTally::default()
    }
}

/// Refused units become dead letters: in the error topic, then in the error table.
pub struct DeadLetters<'i> {
    ingest: &'i Ingest,
    errors: ErrorTable,
    topic: TopicTally,
}

impl<'i> DeadLetters<'i> {
    /// Opens the error table.
    ///
    /// # Errors
    /// [`IngestError::ErrorTable`] when it cannot be read.
    pub async fn open(ingest: &'i Ingest) -> Result<Self, IngestError> {
        let table = &ingest.settings.errors.table;
        let errors = ErrorTable::open(ingest.catalog.as_ref(), table).await;
        Ok(Self {
            ingest,
            errors: errors.map_err(|source| IngestError::ErrorTable { table: table.clone(), source })?,
            topic: TopicTally::default(),
        })
    }
}

impl DeadLetters<'_> {
    /// Gives the topic the letters that the error table does not hold: those that it holds were there before.
    async fn publish(&mut self, letters: &[DeadLetter], deadline: Deadline) -> Result<(), IngestError> {
        let is_new = |letter: &&DeadLetter| self.errors.coverage(&letter.key, letter.coordinate) != Coverage::Decided;
        let fresh: Vec<&DeadLetter> = letters.iter().filter(is_new).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let error = match self.ingest.topic.publish(&fresh, deadline).await {
            Ok(published) => {
                self.topic.add(TopicTally::of(published, 0));
                return Ok(());
            }
            Err(error) => error,
        };
        match self.ingest.settings.errors.on_failure {
            OnTopicFailure::Block => Err(error.into()),
            OnTopicFailure::Continue => {
                let failed = fresh.len().saturating_sub(error.published.letters);
                tracing::warn!(%error, letters = failed, "dead letters are in the error table only");
                self.topic.add(TopicTally::of(error.published, failed));
                Ok(())
            }
        }
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
        let letter = |(unit, rejection)| Some((unit, letters::letter(batch, unit, rejection, max_raw_bytes)?));
        let (units, letters): (Vec<usize>, Vec<DeadLetter>) = refused.into_iter().filter_map(letter).unzip();
        if letters.is_empty() {
            return Ok(Vec::new());
        }
        self.publish(&letters, deadline).await?;
        let tools = (&self.ingest.write_options(), &self.ingest.commit_context(deadline));
        let fates = self.errors.write(self.ingest.catalog.as_ref(), &letters, tools).await;
        let fates = fates.map_err(|source| IngestError::ErrorTable { table: self.ingest.settings.errors.table.clone(), source })?;
        let decided = units.into_iter().zip(letters).zip(fates).map(|((unit, letter), fate)| match fate {
            LetterFate::Written => (unit, Decision::DeadLetter(letter.rejection)),
            LetterFate::Replayed => (unit, Decision::Replayed),
        });
        Ok(decided.collect())
    }

    fn error_topic(&self) -> TopicTally {
        self.topic
    }
}
