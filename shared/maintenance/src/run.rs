//! A job on all selected tables, one after the other.

use sluice_model::{Deadline, TableName};
use sluice_table::TableVersion;
use tracing::{Instrument as _, info_span};

use crate::lease::{Asked, Lease};
use crate::report::Work;
use crate::{Context, Job, MaintenanceError, Measures, Outcome, Plan, Report, Selector, Table};

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only look.
    Plan,
    /// Do it; a lease is asked for so many milliseconds.
    Execute {
        /// How long the lease holds.
        lease_ms: i64,
    },
}

/// Runs the job. A table that fails does not keep the others from being cared for; its report says so. `shown` sees each plan before it is executed.
///
/// # Errors
/// When the catalog does not tell its tables.
pub async fn run<J: Job>(
    job: &J,
    (selector, mode): (&Selector, Mode),
    context: &Context<'_>,
    shown: &mut (dyn FnMut(&TableName, &J::Plan) + Send),
) -> Result<Vec<Report>, MaintenanceError> {
    let mut reports = Vec::new();
    for name in in_turn(selected(selector, context).await?, context) {
        if context.deadline.has_passed(context.now_ms()) {
            reports.push(Report::of(J::NAME, name, Outcome::Partial("the time is over; the next run goes on".to_owned())));
            continue;
        }
        let started = context.now_ms();
        let mut done = match on_table(job, (&name, mode), context, shown).instrument(info_span!("table", table = %name)).await {
            Ok(done) => done,
            Err(error) => Report::of(J::NAME, name, Outcome::Failed(error.to_string())),
        };
        done.duration_ms = context.now_ms() - started;
        reports.push(done);
    }
    Ok(reports)
}

async fn on_table<J: Job>(
    job: &J,
    (name, mode): (&TableName, Mode),
    context: &Context<'_>,
    shown: &mut (dyn FnMut(&TableName, &J::Plan) + Send),
) -> Result<Report, MaintenanceError> {
    let Some((table, version)) = open(name, context).await? else {
        return Ok(Report::of(J::NAME, name.clone(), Outcome::StoodDown("the table is gone".to_owned())));
    };
    let kept_off = match managed(version.metadata.location()) {
        Some(reason) => Some(reason),
        None => job.stands_down(&table).await?,
    };
    if let Some(reason) = kept_off {
        return Ok(Report::of(J::NAME, name.clone(), Outcome::StoodDown(reason)));
    }
    let plan = job.plan(&table).await?;
    shown(name, &plan);
    let json = serde_json::to_value(&plan).map_err(|error| MaintenanceError::BadPlan(error.to_string()))?;
    let (before, burden) = (Measures::of(&version), plan.burden());
    let report = |outcome, after, work| Report { plan: json, burden, before, after, work, ..Report::of(J::NAME, name.clone(), outcome) };
    let lease_ms = match mode {
        Mode::Plan if plan.is_empty() => return Ok(report(Outcome::NothingDue, before, Work::default())),
        Mode::Plan => return Ok(report(Outcome::Planned, before, Work::default())),
        Mode::Execute { .. } if plan.is_empty() => return Ok(report(Outcome::NothingDue, before, Work::default())),
        Mode::Execute { lease_ms } => lease_ms,
    };
    let lease = match Lease::ask(&table, version.metadata.location(), lease_ms).await? {
        Asked::Got(lease) => lease,
        Asked::Busy { holder, .. } => {
            let why = format!("another run is at work on it ({holder})");
            return Ok(report(Outcome::StoodDown(why), before, Work::default()));
        }
    };
    let worked = job.execute(&table, &plan, &lease).await;
    // A lease that cannot be given back ends by itself.
    let _ = lease.give_back(&table).await;
    let work = worked?;
    let outcome = if work.left.is_empty() { Outcome::Done } else { Outcome::Partial(work.left.clone()) };
    Ok(report(outcome, Measures::of(&table.now().await?), work))
}

async fn selected(selector: &Selector, context: &Context<'_>) -> Result<Vec<TableName>, MaintenanceError> {
    Ok(context.catalog.tables().await?.into_iter().filter(|name| selector.selects(name)).collect())
}

/// Where the time may not be enough, a run begins anywhere: otherwise the first tables, when there is always something to do on them, would keep the last ones from ever being
/// cared for.
fn in_turn(mut tables: Vec<TableName>, context: &Context<'_>) -> Vec<TableName> {
    if context.deadline != Deadline::NONE && !tables.is_empty() {
        let first = context.ids.next_u128() % tables.len() as u128;
        tables.rotate_left(usize::try_from(first).unwrap_or(0));
    }
    tables
}

/// The table and its current version, `None` when it is gone.
///
/// # Errors
/// What the catalog or the storage said.
pub async fn open<'a>(name: &TableName, context: &'a Context<'a>) -> Result<Option<(Table<'a>, TableVersion)>, MaintenanceError> {
    let Some(operations) = context.catalog.load(name).await? else { return Ok(None) };
    let version = operations.refresh().await?;
    let objects = context.stores.objects(version.metadata.location())?;
    Ok(Some((Table { name: name.clone(), operations, objects, context }, version)))
}

/// Why maintenance keeps off a table: S3 Tables compacts, expires and cleans by itself, and its buckets can neither be listed nor deleted from.
#[must_use]
pub fn managed(location: &str) -> Option<String> {
    let bucket = location.strip_prefix("s3://")?.split('/').next()?;
    bucket.ends_with("--table-s3").then(|| "it is in an S3 table bucket, which S3 Tables maintains itself".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_tables_are_left_alone() {
        assert!(managed("s3://63a8e430-6e0b-46f5-k833abtwr6s8tmtsycedn8s4yc3xhuse1b--table-s3").is_some());
        assert!(managed("s3://63a8e430--table-s3/x").is_some());
        assert_eq!(managed("s3://lake/x--table-s3"), None);
        assert_eq!(managed("file:///lake"), None);
    }
}
