//! Orphan removal: files in a table's folders that nothing needs. The most dangerous job, so it is the most careful: it lists first and reads the table afterwards, leaves everything that is
//! young, of unknown age, hidden or ambiguous, refuses at any sign of another table, and deletes only what a plan names that somebody could look at, after looking again.

mod execute;
mod find;
mod guard;
mod locations;
mod plan;
mod plan_file;
mod quarantine;
mod settings;

use async_trait::async_trait;

use crate::lease::Lease;
use crate::report::Work;
use crate::{Job, MaintenanceError, Table};

pub use locations::lossy;
pub use plan::{Kept, OrphanPlan, PlannedOrphan};
pub use plan_file::PlanFormat;
pub use settings::OrphanSettings;

/// The job.
#[derive(Debug, Clone, Default)]
pub struct Orphans {
    /// How it is done.
    pub settings: OrphanSettings,
}

#[async_trait]
impl Job for Orphans {
    type Plan = OrphanPlan;

    const NAME: &'static str = "orphans";

    async fn plan(&self, table: &Table<'_>) -> Result<OrphanPlan, MaintenanceError> {
        find::find(table, &self.settings).await
    }

    async fn execute(&self, table: &Table<'_>, plan: &OrphanPlan, lease: &Lease) -> Result<Work, MaintenanceError> {
        execute::execute((table, lease), plan, &self.settings).await
    }
}
