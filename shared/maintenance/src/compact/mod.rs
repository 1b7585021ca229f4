//! Compaction: small files, and files with many deletes, become few files without deletes.

mod due;
mod execute;
mod plan;
mod settings;

use async_trait::async_trait;
use sluice_table::rewrite::TableFiles;

use crate::lease::Lease;
use crate::report::Work;
use crate::{Job, MaintenanceError, Table};

pub use plan::{CompactionPlan, Head, PlannedFile, PlannedGroup, Why, plan};
pub use settings::{Burden, CompactSettings, ProveKeys, WhereOthersCompact};

/// The job.
#[derive(Debug, Clone, Default)]
pub struct Compact {
    /// How it is done.
    pub settings: CompactSettings,
}

#[async_trait]
impl Job for Compact {
    type Plan = CompactionPlan;

    const NAME: &'static str = "compact";

    async fn stands_down(&self, table: &Table<'_>) -> Result<Option<String>, MaintenanceError> {
        match self.settings.where_others_compact {
            WhereOthersCompact::GoOn => Ok(None),
            WhereOthersCompact::StandDown => Ok(table.context.catalog.compacted_by(&table.name).await?),
        }
    }

    async fn plan(&self, table: &Table<'_>) -> Result<CompactionPlan, MaintenanceError> {
        let version = table.now().await?;
        let head = Head::of(&table.name, &version, table.context.now_ms());
        let facts = TableFiles::load(&version, None).await?.map(|files| files.facts()).unwrap_or_default();
        Ok(plan(head, &facts, &self.settings))
    }

    async fn execute(&self, table: &Table<'_>, plan: &CompactionPlan, lease: &Lease) -> Result<Work, MaintenanceError> {
        execute::execute((table, lease), plan, &self.settings).await
    }
}
