//! One job for one request.

use std::sync::Arc;

use serde::Serialize;
use sluice_maintenance::lease::FOLDER;
use sluice_maintenance::orphans::OrphanPlan;
use sluice_maintenance::{
    Compact, Context, Expire, Job, MaintenanceError, MaintenanceSettings, Manifests, Mode, Orphans, Outcome, Plan as _, Report, Selector,
    Stores, run,
};
use sluice_model::{Clock, Deadline, IdSource};
use sluice_storage::{Condition, StorageError};
use sluice_table::{Catalog, RetryPolicy, Sleep};

use crate::{JobName, Request, RequestMode};

/// The functions: made once at the start, used by every invocation.
pub struct Maintain {
    /// `[maintenance]`.
    pub settings: MaintenanceSettings,
    /// Where the tables are.
    pub catalog: Arc<dyn Catalog>,
    /// Where their files are.
    pub stores: Arc<dyn Stores>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Unique numbers.
    pub ids: Arc<dyn IdSource>,
    /// Waiting between attempts.
    pub sleep: Arc<dyn Sleep>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reply {
    /// One for each table.
    pub reports: Vec<Report>,
    /// Where the plans of orphan removal were written.
    pub plans: Vec<String>,
}

impl Reply {
    /// The tables that failed, for a person; empty when none did.
    #[must_use]
    pub fn failures(&self) -> String {
        let failures = self.reports.iter().filter_map(|report| match &report.outcome {
            Outcome::Failed(why) => Some(format!("`{}`: {why}", report.table)),
            Outcome::NothingDue | Outcome::Planned | Outcome::Done | Outcome::Partial(_) | Outcome::StoodDown(_) => None,
        });
        failures.collect::<Vec<_>>().join("; ")
    }
}

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub enum MaintainError {
    /// The request is wrong.
    #[error("REQUEST_INVALID: {0}")]
    Request(String),
    /// The catalog or the storage did not answer.
    #[error(transparent)]
    Maintenance(#[from] MaintenanceError),
    /// Some tables failed; the others are done.
    #[error("TABLES_FAILED: {}", .0.failures())]
    Tables(Box<Reply>),
}

impl MaintainError {
    /// A stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST_INVALID",
            Self::Maintenance(_) => "MAINTENANCE_FAILED",
            Self::Tables(_) => "TABLES_FAILED",
        }
    }

    /// What became of the tables all the same.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        match self {
            Self::Request(_) | Self::Maintenance(_) => &[],
            Self::Tables(reply) => &reply.reports,
        }
    }
}

impl From<StorageError> for MaintainError {
    fn from(error: StorageError) -> Self {
        Self::Maintenance(error.into())
    }
}

impl Maintain {
    /// Time, catalog and the rest, until `deadline`.
    #[must_use]
    pub fn context(&self, deadline: Deadline) -> Context<'_> {
        Context {
            catalog: self.catalog.as_ref(),
            stores: self.stores.as_ref(),
            clock: self.clock.as_ref(),
            ids: self.ids.as_ref(),
            sleep: self.sleep.as_ref(),
            deadline,
            policy: RetryPolicy { max_attempts: self.settings.max_attempts, ..RetryPolicy::default() },
        }
    }

    /// Runs a job on all tables that the request selects, then fails if one of them failed.
    ///
    /// # Errors
    /// [`MaintainError`]; whatever was not done is done by the next run.
    #[tracing::instrument(name = "maintenance", skip_all, fields(job = job.as_str()))]
    pub async fn serve(&self, job: JobName, request: &Request, deadline: Deadline) -> Result<Reply, MaintainError> {
        let (settings, mode) = (&self.settings, request.mode(job));
        if request.plan.is_some() && job != JobName::Orphans {
            return Err(MaintainError::Request("only orphan removal executes a plan that was written down".to_owned()));
        }
        let reply = match (job, mode) {
            (JobName::Compact, mode) => self.run(&self.compact(request), request, (mode, deadline)).await?,
            (JobName::Expire, mode) => self.run(&Expire { settings: settings.expire.clone() }, request, (mode, deadline)).await?,
            (JobName::Manifests, mode) => self.run(&Manifests { settings: settings.manifests.clone() }, request, (mode, deadline)).await?,
            (JobName::Orphans, RequestMode::Plan) => self.plan_orphans(request, deadline).await?,
            (JobName::Orphans, RequestMode::Execute) => self.remove_orphans(request, deadline).await?,
        };
        if reply.failures().is_empty() { Ok(reply) } else { Err(MaintainError::Tables(Box::new(reply))) }
    }

    fn compact(&self, request: &Request) -> Compact {
        let mut settings = self.settings.compact.clone();
        settings.where_others_compact = request.where_others_compact.unwrap_or(settings.where_others_compact);
        Compact { settings }
    }

    async fn run<J: Job>(&self, job: &J, request: &Request, (mode, deadline): (RequestMode, Deadline)) -> Result<Reply, MaintainError> {
        let mode = match mode {
            RequestMode::Plan => Mode::Plan,
            RequestMode::Execute => Mode::Execute { lease_ms: self.settings.lease_ms },
        };
        let selector = request.selector(&self.settings.selector);
        let reports = run(job, (&selector, mode), &self.context(deadline), &mut |_, _| {}).await?;
        Ok(Reply { reports, plans: Vec::new() })
    }

    /// The plans are written beside their tables, under a name that orphan removal passes by.
    async fn plan_orphans(&self, request: &Request, deadline: Deadline) -> Result<Reply, MaintainError> {
        let (selector, context) = (request.selector(&self.settings.selector), self.context(deadline));
        let mut plans: Vec<OrphanPlan> = Vec::new();
        let job = Orphans { settings: self.settings.orphans.clone() };
        let reports = run(&job, (&selector, Mode::Plan), &context, &mut |_, plan: &OrphanPlan| plans.push(plan.clone())).await?;
        let mut written = Vec::new();
        for plan in plans.iter().filter(|plan| !plan.is_empty()) {
            let Some((table, version)) = sluice_maintenance::run::open(&plan.table, &context).await? else { continue };
            let (folder, format) = (version.metadata.location().trim_end_matches('/'), request.format.unwrap_or_default());
            let location = format!("{folder}/{FOLDER}/orphans/{}.{}", plan.listed_ms, format.ending());
            table.objects.put(&location, plan.to_file(format)?, Condition::Always).await?;
            written.push(location);
        }
        Ok(Reply { reports, plans: written })
    }

    async fn remove_orphans(&self, request: &Request, deadline: Deadline) -> Result<Reply, MaintainError> {
        let needs = "orphan removal deletes only what a plan names: ask for a plan first, look at it, and give its location as `plan`";
        let location = request.plan.as_ref().ok_or_else(|| MaintainError::Request(needs.to_owned()))?;
        let object = self.stores.objects(location)?.get(location).await?;
        let object = object.ok_or_else(|| MaintainError::Request(format!("there is no plan at {location}")))?;
        let plan = OrphanPlan::from_file(&object.bytes).map_err(|error| MaintainError::Request(format!("{location}: {error}")))?;
        self.execute_orphans(plan, deadline).await
    }

    /// Deletes what the plan names, after looking again.
    ///
    /// # Errors
    /// [`MaintainError`] when the catalog did not answer.
    pub async fn execute_orphans(&self, plan: OrphanPlan, deadline: Deadline) -> Result<Reply, MaintainError> {
        let selector = Selector { tables: vec![plan.table.to_string()], except: Vec::new() };
        let job = Planned { job: Orphans { settings: self.settings.orphans.clone() }, plan };
        let mode = Mode::Execute { lease_ms: self.settings.lease_ms };
        let reports = run(&job, (&selector, mode), &self.context(deadline), &mut |_, _| {}).await?;
        if reports.is_empty() {
            return Err(MaintainError::Request(format!("there is no table `{}`", job.plan.table)));
        }
        Ok(Reply { reports, plans: Vec::new() })
    }
}

/// Orphan removal whose plan was made before.
struct Planned {
    job: Orphans,
    plan: OrphanPlan,
}

#[async_trait::async_trait]
impl Job for Planned {
    type Plan = OrphanPlan;

    const NAME: &'static str = "orphans";

    async fn plan(&self, _table: &sluice_maintenance::Table<'_>) -> Result<OrphanPlan, MaintenanceError> {
        Ok(self.plan.clone())
    }

    async fn execute(
        &self,
        table: &sluice_maintenance::Table<'_>,
        plan: &OrphanPlan,
        lease: &sluice_maintenance::lease::Lease,
    ) -> Result<sluice_maintenance::report::Work, MaintenanceError> {
        self.job.execute(table, plan, lease).await
    }
}
