//! The ingest function in this process.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sluice_ingest::Ingest;
use sluice_mapping::{Account, Function, FunctionError};
use sluice_model::Deadline;
use tokio::runtime::Handle;

/// Runs the function on threads for blocking work: an invocation computes for long stretches, and must not keep the runtime from its sockets.
pub(super) struct LocalFunction(pub(super) Arc<Ingest>);

#[async_trait]
impl Function for LocalFunction {
    async fn invoke(&self, event: Bytes, timeout_ms: u64) -> Result<Account, FunctionError> {
        let ingest = Arc::clone(&self.0);
        let runtime = Handle::current();
        let invoked = tokio::task::spawn_blocking(move || {
            let now_ms = ingest.clock.now_ms();
            let deadline = Deadline::at(now_ms.saturating_add_unsigned(timeout_ms), ingest.settings.commit.reserve_ms, now_ms);
            runtime.block_on(ingest.invoke(&event, deadline))
        });
        let reply = invoked.await.map_err(|error| FunctionError::Failed(error.to_string()))?;
        let reply = reply.map_err(|error| FunctionError::Failed(error.to_string()))?;
        let answer = serde_json::to_vec(&reply).map_err(|error| FunctionError::NotAnAccount(error.to_string()))?;
        Account::read(&answer)
    }
}
