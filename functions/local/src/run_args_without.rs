//! `sluice run` in a program without Kafka: it only says how to build one with it.

use clap::Args;

/// Arguments that are not looked at.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Whatever was given.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub given: Vec<String>,
}
