//! What an invocation needs from outside, and the invocation itself.

use std::sync::Arc;

use sluice_deadletter::ErrorTopic;
use sluice_model::{Clock, Deadline, IdSource, TapeBuffer};
use sluice_runtime::{Settings, open_event};
use sluice_table::{Catalog, CommitContext, RetryPolicy, Sleep, WriteOptions};
use tracing::info_span;

use crate::batch::Batch;
use crate::{IngestError, Reply, receive, rounds};

/// The function: made once at the start, used by every invocation.
pub struct Ingest {
    /// The configuration.
    pub settings: Settings,
    /// Where the tables are.
    pub catalog: Arc<dyn Catalog>,
    /// Where dead letters go before the error table.
    pub topic: Arc<dyn ErrorTopic>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Unique numbers.
    pub ids: Arc<dyn IdSource>,
    /// Waiting between attempts.
    pub sleep: Arc<dyn Sleep>,
}

impl Ingest {
    /// Applies one event of a Kafka event-source mapping.
    ///
    /// # Errors
    /// [`IngestError`] when the event is none, or when a table or the error table could not be written: Kafka then delivers the batch
    /// again, and what was committed is recognised by its offsets.
    #[tracing::instrument(name = "batch", skip_all, fields(bytes = event.len()))]
    pub async fn invoke(&self, event: &[u8], deadline: Deadline) -> Result<Reply, IngestError> {
        let door = open_event(event)?;
        let records = door.source_records();
        let mut tokens = TapeBuffer::default();
        let reading = info_span!("read", records = records.len()).entered();
        let read = receive::read_all(&records, &self.settings, &mut tokens);
        let units = receive::units(&door, &records, &read, &self.settings);
        drop(reading);
        rounds::run(self, &Batch::new(units), deadline).await
    }

    /// How files are written.
    #[must_use]
    pub fn write_options(&self) -> WriteOptions<'_> {
        WriteOptions {
            ids: self.ids.as_ref(),
            target_file_bytes: usize::try_from(self.settings.commit.target_file_size_bytes).unwrap_or(usize::MAX),
            max_open_files: self.settings.commit.max_open_writers,
        }
    }

    /// How commits are made, until `deadline`.
    #[must_use]
    pub fn commit_context(&self, deadline: Deadline) -> CommitContext<'_> {
        CommitContext {
            clock: self.clock.as_ref(),
            ids: self.ids.as_ref(),
            sleep: self.sleep.as_ref(),
            deadline,
            policy: RetryPolicy { max_attempts: self.settings.commit.max_attempts, ..RetryPolicy::default() },
        }
    }
}
