//! Running one case in a fresh embedded lake.

use std::path::Path;

use serde_json::{Value, json};
use sluice_ingest::Ingest;
use sluice_ingest::start::{self, Configuration};
use sluice_model::config::ConfigCode;
use sluice_model::{BatchTally, Deadline};
use sluice_runtime::ConfigError;

use super::case::{Case, CaseSchema};
use super::setup::Tools;
use super::{compare, event, setup};

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything came out as it must.
    Pass,
    /// Something did not.
    Fail,
    /// The case needs something that this version does not do.
    Unsupported,
}

impl Outcome {
    /// The outcome's name in reports.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unsupported => "unsupported",
        }
    }
}

/// A case's outcome and why.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// Why it failed or is not supported; empty when it passed.
    pub reason: String,
}

impl Verdict {
    fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: reason.into() }
    }
}

/// Runs a case in a folder of its own, which is removed afterwards; or in `keep`, which stays.
pub(crate) async fn run_case(case: &Case, keep: Option<&Path>) -> Verdict {
    let result = match keep {
        Some(parent) => in_folder(case, &parent.join(&case.id)).await,
        None => match tempfile::tempdir() {
            Ok(folder) => in_folder(case, folder.path()).await,
            Err(error) => Err(format!("no temporary folder: {error}")),
        },
    };
    result.unwrap_or_else(|reason| Verdict::new(Outcome::Fail, reason))
}

async fn in_folder(case: &Case, folder: &Path) -> Result<Verdict, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    match Configuration::from_value(configuration(case, folder), folder) {
        Ok(configuration) => {
            write_config(case, folder)?;
            run(case, configuration).await
        }
        Err(error) => Ok(refused(case, &error)),
    }
}

/// The configuration beside the lake, so that `sluice --config` can look at it.
fn write_config(case: &Case, folder: &Path) -> Result<(), String> {
    let text = toml::to_string(&configuration(case, folder)).map_err(|error| error.to_string())?;
    std::fs::write(folder.join("sluice.toml"), text).map_err(|error| error.to_string())
}

/// The case's configuration over the base: an embedded lake in the folder.
fn configuration(case: &Case, folder: &Path) -> Value {
    let path = folder.display();
    let mut config = json!({
        "catalog": {"type": "sql", "name": "lake", "warehouse": format!("file://{path}/warehouse"), "uri": format!("sqlite://{path}/catalog.db")},
        "source": {"id": "corpus"},
        "errors": {"table": "ops.error_records"},
    });
    merge(&mut config, &case.config);
    if let Some(registries) = config.get_mut("registries").and_then(Value::as_object_mut) {
        for registry in registries.values_mut().filter_map(Value::as_object_mut) {
            registry.insert("path".to_owned(), json!(format!("{path}/schemas")));
        }
    }
    write_schemas(&case.schemas, &folder.join("schemas"));
    config
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A registry that cannot be written is missing to the case, which then says so.
fn write_schemas(schemas: &[CaseSchema], folder: &Path) {
    let _ = std::fs::create_dir_all(folder);
    for schema in schemas {
        let extension = match schema.kind.as_str() {
            "AVRO" => "avsc",
            "PROTOBUF" => "proto",
            _ => "json",
        };
        let text = schema.schema.as_str().map_or_else(|| schema.schema.to_string(), str::to_owned);
        for name in [Some(schema.id.to_string()), schema.uuid.clone()].into_iter().flatten() {
            let _ = std::fs::write(folder.join(format!("{name}.{extension}")), &text);
        }
    }
}

/// The function refused to start: as the case expects, or because it needs what this version does not do.
fn refused(case: &Case, error: &ConfigError) -> Verdict {
    let expected = format!("config-error:{}", error.code().as_str());
    if !case.expect.invocations.is_empty() && case.expect.invocations.iter().all(|invocation| *invocation == expected) {
        return Verdict::new(Outcome::Pass, "");
    }
    match error.code() {
        ConfigCode::ConfigUnsupported => {
            let listed: Vec<String> = error.problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
            Verdict::new(Outcome::Unsupported, listed.join("; "))
        }
        ConfigCode::ConfigInvalid | ConfigCode::KeyTypeNotAllowed | ConfigCode::TableNameCollision => {
            Verdict::new(Outcome::Fail, format!("the configuration was refused: {error}"))
        }
    }
}

async fn run(case: &Case, configuration: Configuration) -> Result<Verdict, String> {
    let ingest = start::start(configuration).await.map_err(|error| error.to_string())?;
    let tools = Tools { ingest: &ingest, options: ingest.write_options(), context: ingest.commit_context(Deadline::NONE) };
    for table in &case.tables {
        setup::create(&tools, table).await.map_err(|error| format!("setting up {}: {error}", table.name))?;
    }
    let mut tally = BatchTally::default();
    let mut found = Vec::new();
    for (index, batch) in case.batches.iter().enumerate() {
        let payload = event::payload(batch)?;
        let expected = case.expect.invocations.get(index).map_or("ok", String::as_str);
        found.extend(invoke(&ingest, &payload, expected, &mut tally).await.map(|text| format!("invocation {index}: {text}")));
    }
    found.extend(compare::differences(&ingest, case, &tally).await?);
    let outcome = if found.is_empty() { Outcome::Pass } else { Outcome::Fail };
    Ok(Verdict::new(outcome, found.join("; ")))
}

/// Invokes the function; a difference to what was expected, if there is one.
async fn invoke(ingest: &Ingest, payload: &[u8], expected: &str, tally: &mut BatchTally) -> Option<String> {
    match (ingest.invoke(payload, Deadline::NONE).await, expected) {
        (Ok(reply), "ok") => {
            tally.add(&reply.tally);
            None
        }
        (Ok(_), other) => Some(format!("succeeded, expected {other}")),
        (Err(_), "error") => None,
        (Err(error), other) => Some(format!("failed with {error}, expected {other}")),
    }
}
