//! The jobs on `lambda_runtime`.

use std::path::PathBuf;
use std::sync::Arc;

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use serde_json::{Value, json};
use sluice_model::Deadline;
use sluice_runtime::environment;

use crate::{Configuration, JobName, Maintain, Request, start};

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
        async move {
            let deadline_ms = i64::try_from(event.context.deadline).unwrap_or(i64::MAX);
            handle(&maintain, (job, &event.payload), deadline_ms).await
        }
    });
    lambda_runtime::run(handler).await
}

async fn handle(maintain: &Maintain, (job, event): (JobName, &Value), deadline_ms: i64) -> Result<Value, Diagnostic> {
    let started = maintain.clock.now_ms();
    let request = Request::read(event).map_err(|message| failed(&format!("REQUEST_INVALID: {message}")))?;
    let result = maintain.serve(job, &request, Deadline::at(deadline_ms, RESERVE_MS, started)).await;
    let ms = maintain.clock.now_ms().saturating_sub(started).max(0).cast_unsigned();
    match result {
        Ok(reply) => {
            let reply = json!({"reports": reply.reports, "plans": reply.plans, "mb_seconds": mb_seconds(ms)});
            tracing::info!(reply = %reply, "maintained");
            Ok(reply)
        }
        Err(error) => {
            tracing::error!(error = %error, "maintenance failed; the next run goes on");
            Err(failed(&error.to_string()))
        }
    }
}

/// The megabytes of memory that the function has, times the seconds that it took; 1,024 make a GB-second. `None` outside of Lambda.
fn mb_seconds(ms: u64) -> Option<u64> {
    environment::memory_mb().map(|mb| mb.saturating_mul(ms) / 1_000)
}

fn failed(message: &str) -> Diagnostic {
    let code = message.split(':').next().unwrap_or("MAINTENANCE_FAILED").to_owned();
    Diagnostic { error_type: code, error_message: message.to_owned() }
}
