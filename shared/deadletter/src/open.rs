//! The error table as it stood when it was last looked at, and the one way in which it is committed.

use std::sync::Arc;

use sluice_model::{OffsetLedger, TableName};
use sluice_table::{
    Catalog, CommitContext, DeltaOutcome, RowDelta, TableError, TableOperations, TableVersion, WriteOptions, commit_delta, ledger, prepare,
};

/// How a commit on the error table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorTableCommit {
    /// The rows are as they were to be.
    Done,
    /// Another invocation was faster: look again at what is there now.
    Moved,
}

/// A version of the table with its ledger.
pub(crate) struct Open {
    operations: Arc<dyn TableOperations>,
    pub(crate) version: TableVersion,
    pub(crate) ledger: OffsetLedger,
}

impl Open {
    /// Opens the table of that name; `None` when there is none.
    pub(crate) async fn load(catalog: &dyn Catalog, name: &TableName) -> Result<Option<Self>, TableError> {
        let Some(operations) = catalog.load(name).await? else { return Ok(None) };
        let version = operations.refresh().await?;
        let ledger = ledger::read(&version.metadata)?;
        Ok(Some(Self { operations, version, ledger }))
    }

    /// Reads the table anew.
    pub(crate) async fn refresh(&mut self) -> Result<(), TableError> {
        let version = self.operations.refresh().await?;
        self.advance(version)
    }

    fn advance(&mut self, version: TableVersion) -> Result<(), TableError> {
        self.ledger = ledger::read(&version.metadata)?;
        self.version = version;
        Ok(())
    }

    /// Commits a delta that was made on this version; then this is the version that is there, whoever made it.
    pub(crate) async fn commit(
        &mut self,
        delta: RowDelta,
        (options, context): (&WriteOptions<'_>, &CommitContext<'_>),
    ) -> Result<ErrorTableCommit, TableError> {
        let prepared = prepare(&self.version, delta, options).await?;
        let (version, ended) = match commit_delta(self.operations.as_ref(), prepared, context).await? {
            DeltaOutcome::Committed { version, .. } => (version, ErrorTableCommit::Done),
            DeltaOutcome::AlreadyCommitted { version, .. } | DeltaOutcome::Stale { version, .. } => (version, ErrorTableCommit::Moved),
        };
        self.advance(version)?;
        Ok(ended)
    }
}
