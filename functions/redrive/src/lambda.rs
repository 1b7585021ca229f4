//! The function on `lambda_runtime`.

use std::sync::Arc;

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use serde_json::Value;
use sluice_model::Deadline;
use sluice_runtime::traces;

use crate::{Redrive, RedriveError, Reply, Request};

/// Serves invocations until the execution environment ends.
///
/// # Errors
/// When the Runtime API cannot be reached.
pub async fn serve(redrive: Redrive) -> Result<(), Error> {
    let redrive = Arc::new(redrive);
    let handler = service_fn(move |event: LambdaEvent<Value>| {
        let redrive = Arc::clone(&redrive);
        async move {
            let deadline_ms = i64::try_from(event.context.deadline).unwrap_or(i64::MAX);
            let answer = handle(&redrive, &event.payload, deadline_ms).await;
            traces::flush();
            answer
        }
    });
    lambda_runtime::run(handler).await
}

#[tracing::instrument(name = "redrive", skip_all)]
async fn handle(redrive: &Redrive, event: &Value, deadline_ms: i64) -> Result<Reply, Diagnostic> {
    let ingest = &redrive.ingest;
    let request = Request::read(event).map_err(|message| failed(&RedriveError::Request(message)))?;
    let deadline = Deadline::at(deadline_ms, ingest.settings.commit.reserve_ms, ingest.clock.now_ms());
    match redrive.run(&request, deadline).await {
        Ok(reply) => {
            tracing::info!(selected = reply.selected, left = reply.left, fates = ?reply.fates, dry_run = reply.dry_run, "redriven");
            Ok(reply)
        }
        Err(error) => {
            tracing::error!(error = %error, "the redrive is not finished; the next run goes on");
            Err(failed(&error))
        }
    }
}

fn failed(error: &RedriveError) -> Diagnostic {
    let message = error.to_string();
    Diagnostic { error_type: message.split(':').next().unwrap_or("REDRIVE_FAILED").to_owned(), error_message: message }
}
