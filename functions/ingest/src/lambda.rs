//! The handler on `lambda_runtime`.
//!
//! `lambda_runtime` would copy the event into an owned type before the handler sees it. A layer takes the body instead (a reference count, no
//! copy) and hands it over by request id, so that a 6 MB event is read where it lies.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use lambda_runtime::{Context, Diagnostic, Error, LambdaEvent, LambdaInvocation, Runtime, service_fn};
use serde::de::IgnoredAny;
use sluice_model::Deadline;
use sluice_runtime::{environment, traces};
use sluice_telemetry::Place;
use tower::{Layer, Service};

use crate::report::{Reporter, code};
use crate::{Ingest, IngestError, Reply};

/// Bodies that were taken and not handled yet, by request id.
type Bodies = Arc<Mutex<HashMap<String, Bytes>>>;

/// Serves invocations until the execution environment ends.
///
/// # Errors
/// When the Runtime API cannot be reached.
pub async fn serve(ingest: Arc<Ingest>) -> Result<(), Error> {
    let bodies = Bodies::default();
    let taken = Arc::clone(&bodies);
    let reporter = Arc::new(Reporter::default());
    let handler = service_fn(move |event: LambdaEvent<IgnoredAny>| {
        let (ingest, bodies, reporter) = (Arc::clone(&ingest), Arc::clone(&taken), Arc::clone(&reporter));
        async move {
            let body = take(&bodies, &event.context.request_id);
            handle(&ingest, &body, (&event.context, &reporter)).await
        }
    });
    Runtime::new(handler).layer(TakeBody(bodies)).run().await
}

/// One invocation: the account on success, a function error otherwise. Either way one line on the standard output says what happened.
async fn handle(ingest: &Ingest, body: &[u8], (context, reporter): (&Context, &Reporter)) -> Result<Reply, Diagnostic> {
    let started_ms = ingest.clock.now_ms();
    let deadline_ms = i64::try_from(context.deadline).unwrap_or(i64::MAX);
    let deadline = Deadline::at(deadline_ms, ingest.settings.commit.reserve_ms, started_ms);
    let result = ingest.invoke(body, deadline).await;
    let now_ms = ingest.clock.now_ms();
    let mut event = reporter.event(&result, started_ms, now_ms);
    event.request_id.clone_from(&context.request_id);
    event.event_bytes = body.len();
    environment::print_line(&event.line(Place { function: &context.env_config.function_name, now_ms }));
    traces::flush();
    result.map_err(|error| diagnostic(&error))
}

fn diagnostic(error: &IngestError) -> Diagnostic {
    Diagnostic { error_type: code(error), error_message: error.to_string() }
}

fn take(bodies: &Bodies, request_id: &str) -> Bytes {
    bodies.lock().unwrap_or_else(PoisonError::into_inner).remove(request_id).unwrap_or_default()
}

#[derive(Clone)]
struct TakeBody(Bodies);

impl<S> Layer<S> for TakeBody {
    type Service = TakeBodyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TakeBodyService { inner, bodies: Arc::clone(&self.0) }
    }
}

#[derive(Clone)]
struct TakeBodyService<S> {
    inner: S,
    bodies: Bodies,
}

impl<S: Service<LambdaInvocation>> Service<LambdaInvocation> for TakeBodyService<S>
where
    S::Future: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>>>>;

    fn poll_ready(&mut self, context: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut invocation: LambdaInvocation) -> Self::Future {
        let body = std::mem::replace(&mut invocation.body, Bytes::from_static(b"null"));
        let id = invocation.context.request_id.clone();
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).insert(id, body);
        Box::pin(self.inner.call(invocation))
    }
}
