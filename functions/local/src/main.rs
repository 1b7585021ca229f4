//! `sluice`: runs the functions here, and the operator's verbs.

mod cli;
mod commands;
mod corpus;
mod failure;
mod output;
mod value;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;
use crate::output::{Form, Output};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(if cli.json { Form::Json } else { Form::Text });
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&failure::Failure::failed(format!("cannot start: {error}"), "is the system out of threads?")),
    };
    match runtime.block_on(commands::run(cli, &output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.fail(&failure),
    }
}
