//! Snapshot expiry: old snapshots leave the metadata, and the files that only they reached leave the storage.

mod execute;
mod plan;
mod record;
mod settings;

use async_trait::async_trait;

use crate::lease::Lease;
use crate::report::Work;
use crate::{Job, MaintenanceError, Table};

pub(crate) use plan::gc_forbidden;
pub use plan::{ExpirePlan, PlannedSnapshot};
pub use record::Record;
pub use settings::ExpireSettings;

/// The job.
#[derive(Debug, Clone, Default)]
pub struct Expire {
    /// How it is done.
    pub settings: ExpireSettings,
}

#[async_trait]
impl Job for Expire {
    type Plan = ExpirePlan;

    const NAME: &'static str = "expire";

    async fn plan(&self, table: &Table<'_>) -> Result<ExpirePlan, MaintenanceError> {
        let version = table.now().await?;
        let unfinished = record::unfinished(table, version.metadata.location()).await?.len();
        plan::plan((table, &version), unfinished, &self.settings)
    }

    async fn execute(&self, table: &Table<'_>, plan: &ExpirePlan, lease: &Lease) -> Result<Work, MaintenanceError> {
        execute::execute((table, lease), plan, &self.settings).await
    }
}
