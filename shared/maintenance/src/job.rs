//! What all jobs have in common.

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::compact::Burden;
use crate::lease::Lease;
use crate::report::Work;
use crate::{MaintenanceError, Table};

/// What a job means to do: plain data.
pub trait Plan: Serialize + DeserializeOwned + Send + Sync {
    /// Whether there is nothing to do.
    fn is_empty(&self) -> bool;

    /// What the table's readers have to bear, where the job looked at that.
    fn burden(&self) -> Option<Burden> {
        None
    }

    /// For a person: one sentence.
    fn headline(&self) -> String;

    /// For a person: a header and rows.
    fn rows(&self) -> (Vec<&'static str>, Vec<Vec<String>>);
}

/// A job on one table at a time.
#[async_trait]
pub trait Job: Send + Sync {
    /// What it means to do.
    type Plan: Plan;

    /// Its name, as in the command line.
    const NAME: &'static str;

    /// Why the job keeps off this table, if it does; asked before a plan is made.
    ///
    /// # Errors
    /// When that cannot be told.
    async fn stands_down(&self, table: &Table<'_>) -> Result<Option<String>, MaintenanceError> {
        let _ = table;
        Ok(None)
    }

    /// Looks at the table and says what to do. Nothing is changed.
    ///
    /// # Errors
    /// When the table cannot be read, or the job would not be safe on it.
    async fn plan(&self, table: &Table<'_>) -> Result<Self::Plan, MaintenanceError>;

    /// Does what the plan says, as far as time allows and the table still fits it. The lease is asked before each commit and each deletion.
    ///
    /// # Errors
    /// When something went wrong that the next run must look at; what was done until then stays done.
    async fn execute(&self, table: &Table<'_>, plan: &Self::Plan, lease: &Lease) -> Result<Work, MaintenanceError>;
}
