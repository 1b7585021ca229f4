//! The ingest Lambda: a thin shell around [`sluice_ingest::Ingest`].

use std::path::PathBuf;
use std::sync::Arc;

use sluice_ingest::{lambda, start};
use sluice_runtime::environment;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    environment::init_logs();
    let path = PathBuf::from(environment::config_path());
    let ingest = start::start(start::Configuration::read(&path).await?).await?;
    lambda::serve(Arc::new(ingest)).await
}
