//! The jobs on `lambda_runtime`.

use std::path::PathBuf;
use std::sync::Arc;

use lambda_runtime::{Context, Diagnostic, Error, LambdaEvent, service_fn};
use serde_json::Value;
use sluice_maintenance::Report;
use sluice_model::Deadline;
use sluice_runtime::{environment, traces};
use sluice_telemetry::{Place, cut};

use crate::account::event;
use crate::answer::answer;
use crate::{Configuration, JobName, Maintain, MaintainError, Request, start};

/// Time kept back for the last commit and the reply, in milliseconds.
const RESERVE_MS: i64 = 30_000;

/// Serves invocations of one job until the execution environment ends.
///
/// # Errors
/// When the configuration is wrong, or the Runtime API cannot be reached.
pub async fn serve(job: JobName) -> Result<(), Error> {
    environment::init_logs();
    let maintain = Arc::new(start(Configuration::read(&PathBuf::from(environment::config_path())).await?).await?);
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        let maintain = Arc::clone(&maintain);
        async move { handle(&maintain, (job, &event.payload), &event.context).await }
    });
    lambda_runtime::run(handler).await
}

/// One invocation: the reports on success, a function error otherwise. Either way one line on the standard output says what happened.
async fn handle(maintain: &Maintain, (job, asked): (JobName, &Value), context: &Context) -> Result<Value, Diagnostic> {
    let started_ms = maintain.clock.now_ms();
    let deadline_ms = i64::try_from(context.deadline).unwrap_or(i64::MAX);
    let result = match Request::read(asked) {
        Ok(request) => maintain.serve(job, &request, Deadline::at(deadline_ms, RESERVE_MS, started_ms)).await,
        Err(message) => Err(MaintainError::Request(message)),
    };
    let now_ms = maintain.clock.now_ms();
    let reports: &[Report] = match &result {
        Ok(reply) => &reply.reports,
        Err(error) => error.reports(),
    };
    let mut account = event(reports, now_ms);
    account.job = job.as_str();
    account.request_id.clone_from(&context.request_id);
    account.duration_ms = now_ms - started_ms;
    account.mb_seconds = mb_seconds(account.duration_ms.max(0).cast_unsigned());
    account.failure = result.as_ref().err().map(|error| (error.code().to_owned(), error.to_string()));
    environment::print_line(&account.line(Place { function: &context.env_config.function_name, now_ms }));
    traces::flush();
    match result {
        Ok(reply) => Ok(answer(&reply, account.mb_seconds)),
        Err(error) => Err(Diagnostic { error_type: error.code().to_owned(), error_message: cut(&error.to_string()).to_owned() }),
    }
}

/// The megabytes of memory that the function has, times the seconds that it took; 1,024 make a GB-second. `None` outside of Lambda.
fn mb_seconds(ms: u64) -> Option<u64> {
    environment::memory_mb().map(|mb| mb.saturating_mul(ms) / 1_000)
}
