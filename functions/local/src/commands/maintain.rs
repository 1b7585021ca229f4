//! `sluice compact | expire | manifests | orphans | maintain`: the maintenance jobs.

use std::path::Path;

use serde_json::{Value, json};
use sluice_maintain::{Configuration, JobName, Maintain, MaintainError, Reply, Request, RequestMode, start};
use sluice_maintenance::compact::{CompactionPlan, WhereOthersCompact};
use sluice_maintenance::expire::ExpirePlan;
use sluice_maintenance::manifests::ManifestPlan;
use sluice_maintenance::orphans::{OrphanPlan, PlanFormat};
use sluice_maintenance::{Outcome, Plan, Report};
use sluice_model::Deadline;

use crate::cli::{JobArgs, OrphanArgs, PlanForm};
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Runs jobs one after the other, each on all tables.
///
/// # Errors
/// Exit code 3 when no table is selected, 1 when a table failed.
pub(crate) async fn jobs(config: &Path, (jobs, args): (&[JobName], &JobArgs), output: &Output) -> Result<(), Failure> {
    let maintain = open(config).await?;
    let mode = if args.dry_run { RequestMode::Plan } else { RequestMode::Execute };
    for job in jobs {
        let mut request = request(&args.tables, &args.except, mode);
        request.where_others_compact = args.force.then_some(WhereOthersCompact::GoOn);
        serve(&maintain, (*job, &request), output).await?;
    }
    Ok(())
}

/// Looks for orphans, or removes those that a plan names.
///
/// # Errors
/// As [`jobs`], and when the plan cannot be read or written.
pub(crate) async fn orphans(config: &Path, args: &OrphanArgs, output: &Output) -> Result<(), Failure> {
    let maintain = open(config).await?;
    if let Some(path) = &args.execute {
        let reply = maintain.execute_orphans(read_plan(path)?, Deadline::NONE).await?;
        print(JobName::Orphans, &reply, output);
        return failed(reply);
    }
    let request = request(&args.tables, &args.except, RequestMode::Plan);
    // The plans beside the tables are for the function; here they go where the operator wants them.
    let reply = serve(&maintain, (JobName::Orphans, &request), output).await?;
    if let Some(folder) = &args.out {
        write_plans(&reply, (folder, args.format), output)?;
    }
    Ok(())
}

/// What the configuration describes.
///
/// # Errors
/// When it is wrong, or the catalog or the storage cannot be opened.
pub(crate) async fn open(config: &Path) -> Result<Maintain, Failure> {
    Ok(start(Configuration::read(config).await?).await?)
}

fn request(tables: &[String], except: &[String], mode: RequestMode) -> Request {
    let tables = Some(tables.to_vec()).filter(|tables| !tables.is_empty());
    Request { tables, except: except.to_vec(), mode: Some(mode), ..Request::default() }
}

async fn serve(maintain: &Maintain, (job, request): (JobName, &Request), output: &Output) -> Result<Reply, Failure> {
    let reply = match maintain.serve(job, request, Deadline::NONE).await {
        Ok(reply) => reply,
        Err(MaintainError::Tables(reply)) => {
            print(job, &reply, output);
            return Err(MaintainError::Tables(reply).into());
        }
        Err(error) => return Err(error.into()),
    };
    if reply.reports.is_empty() {
        let message = format!("no table is selected by {:?}", request.selector(&maintain.settings.selector));
        return Err(Failure::not_found(message, "`sluice table list` shows the tables of the catalog"));
    }
    print(job, &reply, output);
    Ok(reply)
}

fn failed(reply: Reply) -> Result<(), Failure> {
    if reply.failures().is_empty() { Ok(()) } else { Err(MaintainError::Tables(Box::new(reply)).into()) }
}

fn read_plan(path: &Path) -> Result<OrphanPlan, Failure> {
    let wrong = |message: String| Failure { exit: Exit::NotFound, message, hint: "`sluice orphans --out FOLDER` writes plans".to_owned() };
    let file = std::fs::read(path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
    OrphanPlan::from_file(&file.into()).map_err(|error| wrong(format!("{}: {error}", path.display())))
}

fn write_plans(reply: &Reply, (folder, form): (&Path, PlanForm), output: &Output) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.display()), "give another folder with --out");
    std::fs::create_dir_all(folder).map_err(wrong)?;
    for report in reply.reports.iter().filter(|report| report.outcome == Outcome::Planned) {
        let format = match form {
            PlanForm::Json => PlanFormat::Json,
            PlanForm::Parquet => PlanFormat::Parquet,
        };
        let no_plan = |error: String| Failure::failed(format!("the plan of `{}`: {error}", report.table), "look at it with --json");
        let plan: OrphanPlan = serde_json::from_value(report.plan.clone()).map_err(|error| no_plan(error.to_string()))?;
        let file = plan.to_file(format).map_err(|error| no_plan(error.to_string()))?;
        let path = folder.join(format!("{}.{}", report.table, format.ending()));
        std::fs::write(&path, file).map_err(wrong)?;
        output.line(&format!("look at it, then: sluice orphans --execute {}", path.display()));
    }
    Ok(())
}

fn print(job: JobName, reply: &Reply, output: &Output) {
    for report in &reply.reports {
        output.result(&json!(report), |output| {
            output.heading(&format!("{} {}", report.job, report.table));
            show_plan(job, &report.plan, output);
            show(report, output);
            output.line("");
        });
    }
}

fn show_plan(job: JobName, plan: &Value, output: &Output) {
    match job {
        JobName::Compact => show_as::<CompactionPlan>(plan, output),
        JobName::Expire => show_as::<ExpirePlan>(plan, output),
        JobName::Orphans => show_as::<OrphanPlan>(plan, output),
        JobName::Manifests => show_as::<ManifestPlan>(plan, output),
    }
}

fn show_as<P: Plan>(plan: &Value, output: &Output) {
    /// More rows would hide the rest.
    const MOST_ROWS: usize = 40;
    // A table that failed before it had a plan has none.
    let Ok(plan) = serde_json::from_value::<P>(plan.clone()) else { return };
    output.line(&plan.headline());
    let (header, rows) = plan.rows();
    if !rows.is_empty() {
        output.table(&header, &rows[..rows.len().min(MOST_ROWS)]);
        if rows.len() > MOST_ROWS {
            output.faint(&format!("and {} more; --json shows all", rows.len() - MOST_ROWS));
        }
    }
}

fn show(report: &Report, output: &Output) {
    match &report.outcome {
        Outcome::NothingDue => output.faint("nothing to do"),
        Outcome::Planned => output.faint("only planned"),
        Outcome::Done => output.good(&format!("done in {} ms", report.duration_ms)),
        Outcome::Partial(left) => output.good(&format!("a part is done in {} ms; left: {left}", report.duration_ms)),
        Outcome::StoodDown(why) => output.faint(&format!("left alone: {why}")),
        Outcome::Failed(why) => output.bad(why),
    }
    let (before, after, work) = (&report.before, &report.after, &report.work);
    match report.outcome {
        Outcome::Done | Outcome::Partial(_) => {
            let rows = [
                ("data files", before.data_files, after.data_files),
                ("delete files", before.delete_files, after.delete_files),
                ("bytes", before.bytes, after.bytes),
                ("snapshots", before.snapshots, after.snapshots),
            ];
            let rows: Vec<Vec<String>> =
                rows.iter().map(|(name, before, after)| vec![(*name).to_owned(), before.to_string(), after.to_string()]).collect();
            output.table(&["", "before", "after"], &rows);
            output.line(&format!("{} commits, {} conflicts, {} objects deleted", work.commits, work.conflicts, work.objects_deleted));
            work.notes.iter().for_each(|note| output.faint(note));
        }
        Outcome::NothingDue | Outcome::Planned | Outcome::StoodDown(_) | Outcome::Failed(_) => {}
    }
}
