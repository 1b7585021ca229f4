//! Orphan removal as a Lambda: a thin shell around [`sluice_maintain`].

use sluice_maintain::{JobName, lambda};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda::serve(JobName::Orphans).await
}
