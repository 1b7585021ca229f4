//! The commands, one file each.

mod corpus;
mod demo;
mod errors;
mod init;
mod invoke;
pub(crate) mod table;
mod validate;

use std::path::Path;

use sluice_ingest::{Ingest, start};

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::output::Output;

/// Runs the command.
///
/// # Errors
/// [`Failure`] with the process's exit code.
pub(crate) async fn run(cli: Cli, output: &Output) -> Result<(), Failure> {
    match cli.command {
        Command::Demo(args) => demo::run(&args, output).await,
        Command::Init(args) => init::run(&args, output),
        Command::Validate => validate::run(&cli.config, output).await,
        Command::Invoke(args) => invoke::run(&open(&cli.config).await?, &args, output).await,
        Command::Table(command) => table::run(&open(&cli.config).await?, &command, output).await,
        Command::Errors(command) => errors::run(&open(&cli.config).await?, &command, output).await,
        Command::Corpus(args) => corpus::run(&args, output).await,
    }
}

/// The function that the configuration file describes.
async fn open(config: &Path) -> Result<Ingest, Failure> {
    Ok(start::start(start::Configuration::read(config)?).await?)
}
