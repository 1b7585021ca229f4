//! `sluice demo`: the sample events of several systems, applied to a fresh embedded lake.

use std::path::Path;

use sluice_ingest::Ingest;
use sluice_model::{BatchTally, Deadline};

use crate::cli::{DemoArgs, ErrorsCommand, TableCommand};
use crate::failure::{Exit, Failure};
use crate::output::Output;

const CONFIG: &str = include_str!("../../../../events/sluice.toml");

/// Declares the sample events by their names.
macro_rules! events {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../../../events/kafka/", $name, ".json")))),+]
    };
}

const EVENTS: &[(&str, &[u8])] = events![
    "01-erp-orders",
    "02-crm-customers-and-tombstone",
    "03-shop-invoices-with-schema",
    "04-bpm-rows-by-header",
    "05-crm-tickets-flat",
    "06-mixed-systems-with-bad-records",
    "07-poison",
    "08-replay-cut-differently",
    "09-two-partitions",
    "10-schema-change",
    "11-control-events",
    "12-key-change",
    "13-integrity-checks",
    "14-versions-out-of-order",
    "15-unchanged-values",
    "16-odd-shapes",
];

/// What the demo leaves in its folder; only these are removed before it starts anew.
const OWN_FILES: [&str; 4] = ["sluice.toml", "catalog.db", "catalog.db-shm", "catalog.db-wal"];
const OWN_FOLDER: &str = "warehouse";

/// Runs the demo.
///
/// # Errors
/// When the folder cannot be prepared, or holds something else than an earlier demo.
pub(crate) async fn run(args: &DemoArgs, output: &Output) -> Result<(), Failure> {
    prepare(&args.dir)?;
    let ingest = super::open(&args.dir.join("sluice.toml")).await?;
    output.heading("Sluice demo: change events of an ERP, a CRM, a shop and a BPM engine become Iceberg tables");
    output.line("");
    let total = apply(&ingest, output).await?;
    show(&ingest, output).await?;
    output.good(&format!("{} units received, {} unaccounted for", total.received, total.unbalanced()));
    let config = args.dir.join("sluice.toml");
    output.line("try next:");
    for command in [
        "table list",
        "table history lake.orders",
        "errors show erp.cdc:0:106",
        "errors redrive --dry-run",
        "invoke ingest --event events/kafka/01-erp-orders.json",
    ] {
        output.line(&format!("  sluice --config {} {command}", config.display()));
    }
    Ok(())
}

/// Makes the folder ready: what an earlier demo left is removed, anything else is not touched.
fn prepare(dir: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", dir.display()), "give another folder with --dir");
    std::fs::create_dir_all(dir).map_err(failed)?;
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let own = OWN_FILES.iter().any(|own| name == *own) || name == OWN_FOLDER;
        if !own {
            let message = format!("{} holds {}, which is not from a demo", dir.display(), name.display());
            return Err(Failure { exit: Exit::Config, message, hint: "give an empty folder with --dir".to_owned() });
        }
    }
    for name in OWN_FILES.iter().filter(|name| dir.join(name).exists()) {
        std::fs::remove_file(dir.join(name)).map_err(failed)?;
    }
    if dir.join(OWN_FOLDER).exists() {
        std::fs::remove_dir_all(dir.join(OWN_FOLDER)).map_err(failed)?;
    }
    std::fs::write(dir.join("sluice.toml"), CONFIG).map_err(failed)
}

async fn apply(ingest: &Ingest, output: &Output) -> Result<BatchTally, Failure> {
    let mut total = BatchTally::default();
    for (name, event) in EVENTS {
        let reply = ingest.invoke(event, Deadline::NONE).await?;
        super::invoke::print(name, &reply, output);
        total.add(&reply.tally);
    }
    Ok(total)
}

async fn show(ingest: &Ingest, output: &Output) -> Result<(), Failure> {
    for name in ingest.catalog.tables().await? {
        if name != ingest.settings.errors.table {
            output.heading(name.as_str());
            super::table::run(ingest, &TableCommand::Rows { name, limit: 20 }, output).await?;
            output.line("");
        }
    }
    output.heading(&format!("{}: every refused record, and why", ingest.settings.errors.table));
    super::errors::run(ingest, &ErrorsCommand::List { all: false, code: None, table: None, limit: 0 }, output).await?;
    output.line("");
    Ok(())
}
