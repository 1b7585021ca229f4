//! `sluice`: runs the functions here, and the operator's verbs.

mod cli;
mod commands;
mod corpus;
mod failure;
mod output;
#[cfg(feature = "run")]
mod run_args;
#[cfg(not(feature = "run"))]
#[path = "run_args_without.rs"]
mod run_args;
mod value;

use std::process::ExitCode;

use clap::Parser as _;

use tokio::runtime::Builder;

use crate::cli::{Cli, Command};
use crate::output::{Form, Output};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(if cli.json { Form::Json } else { Form::Text });
    let runtime = match builder(&cli.command).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&failure::Failure::failed(format!("cannot start: {error}"), "is the system out of threads?")),
    };
    let ended = runtime.block_on(commands::run(cli, &output));
    // What was not waited for is not waited for here either: an invocation that outlived its grace is like one that crashed.
    runtime.shutdown_background();
    sluice_runtime::traces::flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.fail(&failure),
    }
}

/// One thread is enough for a command; `run` has sockets to serve while it computes.
fn builder(command: &Command) -> Builder {
    if !matches!(command, Command::Run(_)) {
        return Builder::new_current_thread();
    }
    sluice_runtime::environment::init_logs();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    builder
}
