//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sluice_model::TableName;
use sluice_redrive::rewind::Position;

/// One Kafka batch becomes one commit per Iceberg table.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The configuration file.
    #[arg(long, short, global = true, default_value = "sluice.toml", env = "SLUICE_CONFIG")]
    pub config: PathBuf,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Apply sample events of several systems to a fresh embedded lake, and show the tables.
    Demo(DemoArgs),
    /// Write a commented sluice.toml to start from.
    Init(InitArgs),
    /// Print the JSON Schema of sluice.toml, by which editors complete and check it.
    ConfigSchema,
    /// Check the configuration and the tables that it names; all problems together.
    Validate,
    /// Run a function here with the events in files.
    Invoke(InvokeArgs),
    /// Consume Kafka topics and apply them, as Lambda's event-source mapping does, until it is stopped.
    Run(crate::run_args::RunArgs),
    /// Look at tables.
    #[command(subcommand)]
    Table(TableCommand),
    /// Look at the records that were refused, and try them again.
    #[command(subcommand)]
    Errors(ErrorsCommand),
    /// Take a table back to before some offsets, to be replayed from there.
    Rewind(RewindArgs),
    /// Turn small files, and files with many deletes, into few files without deletes.
    Compact(JobArgs),
    /// Remove old snapshots, and the files that only they reached.
    Expire(JobArgs),
    /// Merge small manifests.
    Manifests(JobArgs),
    /// Find files that no table needs; remove those that a plan names.
    Orphans(OrphanArgs),
    /// Compact, merge manifests and expire, in this order.
    Maintain(JobArgs),
    /// What a pipeline on AWS comes to: invocations, commits, files, dollars.
    Cost(CostArgs),
    /// Run conformance cases.
    Corpus(CorpusArgs),
}

/// Arguments of the maintenance jobs.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Tables, as globs over namespace.table; without any those of the configuration.
    pub tables: Vec<String>,
    /// Not these.
    #[arg(long)]
    pub except: Vec<String>,
    /// Only print what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Compact also tables that a service of the catalog compacts already, such as a table optimizer of Glue.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `orphans`. Without --execute nothing is removed.
#[derive(Debug, Args)]
pub(crate) struct OrphanArgs {
    /// Tables, as globs over namespace.table; without any those of the configuration.
    pub tables: Vec<String>,
    /// Not these.
    #[arg(long)]
    pub except: Vec<String>,
    /// Write the plan of each table into this folder, to be looked at.
    #[arg(long, conflicts_with = "execute")]
    pub out: Option<PathBuf>,
    /// How plans are written.
    #[arg(long, value_enum, default_value_t = PlanForm::Json, requires = "out")]
    pub format: PlanForm,
    /// Remove the files that this plan names, after looking again.
    #[arg(long, conflicts_with_all = ["tables", "except"])]
    pub execute: Option<PathBuf>,
}

/// How plans of orphans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanForm {
    /// One JSON object.
    Json,
    /// A row for each file: much smaller, and to be looked at with SQL.
    Parquet,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the lake goes; a folder that is there already is emptied of an earlier demo first.
    #[arg(long, default_value = ".demo")]
    pub dir: PathBuf,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to write it.
    #[arg(default_value = "sluice.toml")]
    pub path: PathBuf,
}

/// The functions that can be invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Function {
    /// Applies a Kafka batch.
    Ingest,
}

/// Arguments of `invoke`.
#[derive(Debug, Args)]
pub(crate) struct InvokeArgs {
    /// The function.
    pub function: Function,
    /// Event files, one invocation each, in order.
    #[arg(long = "event", required = true, num_args = 1..)]
    pub events: Vec<PathBuf>,
}

fn table_name(text: &str) -> Result<TableName, String> {
    TableName::parse(text).ok_or_else(|| format!("`{text}` is no table name: expected namespace.table"))
}

/// What to see of tables.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// All tables of the catalog.
    List,
    /// A table's columns, partitioning, size and ledger.
    Show {
        /// namespace.table
        #[arg(value_parser = table_name)]
        name: TableName,
    },
    /// A table's rows.
    Rows {
        /// namespace.table
        #[arg(value_parser = table_name)]
        name: TableName,
        /// The most rows that are shown; 0 shows all.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// A table's condition: file sizes, deletes, snapshots, and what is due.
    Health {
        /// Tables, as globs over namespace.table; without any those of the configuration.
        tables: Vec<String>,
        /// List the storage too, to tell how much of it is needed.
        #[arg(long)]
        storage: bool,
        /// Write a page with plots to this file.
        #[arg(long)]
        html: Option<PathBuf>,
    },
    /// A table's snapshots, newest first.
    History {
        /// namespace.table
        #[arg(value_parser = table_name)]
        name: TableName,
    },
}

/// Arguments of `errors redrive`.
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    /// Only records for this table: namespace.table.
    #[arg(long)]
    pub table: Option<String>,
    /// Only this reason code.
    #[arg(long)]
    pub code: Option<String>,
    /// Only records refused at this time or later, as 2026-03-01T12:00:00Z.
    #[arg(long)]
    pub since: Option<String>,
    /// Only records refused before this time.
    #[arg(long)]
    pub until: Option<String>,
    /// Only records from these offsets: topic:partition:from-to, both included.
    #[arg(long)]
    pub offsets: Vec<String>,
    /// The most records that are tried.
    #[arg(long)]
    pub limit: Option<usize>,
    /// Only tell what would become of them now.
    #[arg(long)]
    pub dry_run: bool,
    /// Apply records even where newer changes of their key may be overwritten.
    #[arg(long)]
    pub overwrite: bool,
}

fn position(text: &str) -> Result<Position, String> {
    Position::parse(text).ok_or_else(|| format!("`{text}` is no position: expected topic:partition:offset"))
}

/// Arguments of `rewind`.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// namespace.table
    #[arg(long, value_parser = table_name)]
    pub table: TableName,
    /// The first offset of a partition that is not to be in the table any more: topic:partition:offset.
    #[arg(long, required = true, num_args = 1.., value_parser = position)]
    pub to: Vec<Position>,
    /// Only tell what would happen.
    #[arg(long)]
    pub dry_run: bool,
}

/// What to do with refused records.
#[derive(Debug, Subcommand)]
pub(crate) enum ErrorsCommand {
    /// Try them again, in their order, once their cause is mended.
    Redrive(RedriveArgs),
    /// The refused records that are not resolved, newest first.
    List {
        /// Resolved ones too.
        #[arg(long)]
        all: bool,
        /// Only this reason code.
        #[arg(long)]
        code: Option<String>,
        /// Only records for this table.
        #[arg(long)]
        table: Option<String>,
        /// The most records that are shown; 0 shows all.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// One refused record with its bytes.
    Show {
        /// Its coordinate: topic:partition:offset or topic:partition:offset:row
        coordinate: String,
    },
}

/// Arguments of `cost`.
#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// MB of record values per second.
    #[arg(long, value_parser = positive)]
    pub mb_per_s: f64,
    /// Tables that have records in a batch.
    #[arg(long, default_value_t = 1)]
    pub tables: u32,
    /// Share of them that get updates or deletes, 0 to 1.
    #[arg(long, default_value_t = 1.0)]
    pub upserted: f64,
    /// The batching window in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=300))]
    pub window_s: u32,
    /// Invocations that share the traffic at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub pollers: u32,
    /// The function's memory in MB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(128..=10_240))]
    pub memory_mb: u32,
    /// MB of record values in a full event: about 3.7; 0.5 to 1.7 for small records with headers.
    #[arg(long, default_value_t = 3.7, value_parser = positive)]
    pub event_mb: f64,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| format!("`{text}`: expected a number above 0"))
}

/// Arguments of `corpus`.
#[derive(Debug, Args)]
pub(crate) struct CorpusArgs {
    /// The folder with the cases.
    pub dir: PathBuf,
    /// Only cases whose id or name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// Keep each case's lake in a folder of its id below this one, for other readers.
    #[arg(long)]
    pub keep: Option<PathBuf>,
}
