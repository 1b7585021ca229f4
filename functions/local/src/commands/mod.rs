//! The commands, one file each.

mod config_schema;
mod corpus;
mod cost;
mod demo;
mod errors;
mod health;
mod init;
mod invoke;
mod maintain;
mod redrive;
mod rewind;
#[cfg(feature = "run")]
mod run;
pub(crate) mod table;
mod validate;

use std::path::Path;

use sluice_ingest::{Ingest, start};
use sluice_maintain::JobName;
use sluice_maintenance::health::Storage;

use crate::cli::{Cli, Command, ErrorsCommand, TableCommand};
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
        Command::ConfigSchema => {
            output.line(&config_schema::text());
            Ok(())
        }
        Command::Validate => validate::run(&cli.config, output).await,
        Command::Invoke(args) => invoke::run(&open(&cli.config).await?, &args, output).await,
        #[cfg(feature = "run")]
        Command::Run(args) => run::run(&cli.config, args, output).await,
        #[cfg(not(feature = "run"))]
        Command::Run(args) => Err(without_kafka(&args)),
        Command::Compact(args) => maintain::jobs(&cli.config, (&[JobName::Compact], &args), output).await,
        Command::Expire(args) => maintain::jobs(&cli.config, (&[JobName::Expire], &args), output).await,
        Command::Manifests(args) => maintain::jobs(&cli.config, (&[JobName::Manifests], &args), output).await,
        // Compaction leaves small manifests, both leave snapshots: the order frees the most.
        Command::Maintain(args) => {
            maintain::jobs(&cli.config, (&[JobName::Compact, JobName::Manifests, JobName::Expire], &args), output).await
        }
        Command::Orphans(args) => maintain::orphans(&cli.config, &args, output).await,
        Command::Table(TableCommand::Health { tables, storage, html }) => {
            let listed = if storage { Storage::Listed } else { Storage::Unlisted };
            health::run(&cli.config, (&tables, listed, html.as_deref()), output).await
        }
        Command::Table(command) => table::run(&open(&cli.config).await?, &command, output).await,
        Command::Errors(ErrorsCommand::Redrive(args)) => redrive::run(open(&cli.config).await?, &args, output).await,
        Command::Errors(command) => errors::run(&open(&cli.config).await?, &command, output).await,
        Command::Rewind(args) => rewind::run(open(&cli.config).await?, args, output).await,
        Command::Cost(args) => {
            cost::run(&args, output);
            Ok(())
        }
        Command::Corpus(args) => corpus::run(&args, output).await,
    }
}

/// The function that the configuration file describes.
async fn open(config: &Path) -> Result<Ingest, Failure> {
    Ok(start::start(start::Configuration::read(config).await?).await?)
}

/// What is said where `run` is not built in.
#[cfg(not(feature = "run"))]
fn without_kafka(args: &crate::run_args::RunArgs) -> Failure {
    let asked = args.given.join(" ");
    let message = format!("`run {asked}`: this program was built without Kafka");
    Failure { exit: crate::failure::Exit::Config, message, hint: "build it with --features kafka".to_owned() }
}
