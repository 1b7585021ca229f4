//! The redrive Lambda: a thin shell around [`sluice_redrive::Redrive`].

use std::path::PathBuf;

use sluice_ingest::start;
use sluice_redrive::{Redrive, lambda};
use sluice_runtime::environment;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    environment::init_logs();
    let path = PathBuf::from(environment::config_path());
    let ingest = start::start(start::Configuration::read(&path).await?).await?;
    lambda::serve(Redrive { ingest }).await
}
