//! What each arm of the configuration does, side by side: `tests/golden/<key>/input.json` goes in once per arm, and what comes out
//! stands in `<key>/<arm>/expected.txt`. An arm whose input differs has an `input.json` of its own.
//!
//! `SLUICE_GOLDEN=write cargo test -p sluice-tests --test it golden` writes them anew; read the difference before you commit it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sluice_model::{Column, TableName, TableSchema};
use sluice_pipeline::type_text::parse_column_type;
use sluice_runtime::Settings;
use sluice_table::{Catalog, TableCreation, schema};

use crate::lake::{Lake, Sent, config, event, rows_of};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What the folder shows, for its reader.
    #[serde(rename = "why")]
    _why: String,
    /// JSON pointer into the configuration: the arm's name goes there.
    arm_at: String,
    /// On top of [`config`].
    #[serde(default = "nothing")]
    config: Value,
    /// Tables that are there before: by name, the columns as `[name, type, "required"?]`; the first is the key.
    #[serde(default)]
    tables: Map<String, Value>,
    /// The values of the records of each batch.
    batches: Vec<Vec<Value>>,
}

fn nothing() -> Value {
    json!({})
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Sets the value at a pointer, making objects on the way.
fn set(config: &mut Value, pointer: &str, value: &str) {
    let mut place = config;
    for step in pointer.split('/').skip(1) {
        place = match step.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[step],
        };
    }
    *place = json!(value);
}

async fn create(lake: &Lake, name: &str, columns: &Value) {
    let of = |(index, column): (usize, &Value)| {
        let text = |at: usize| column[at].as_str().unwrap();
        let kind = parse_column_type(text(1)).unwrap();
        let make = if column.get(2).is_some() { Column::required } else { Column::optional };
        make(index as i32 + 1, text(0), kind)
    };
    let columns: Vec<Column> = columns.as_array().unwrap().iter().enumerate().map(of).collect();
    let schema = TableSchema { schema_id: -1, last_column_id: columns.len() as i32, columns, identifier_ids: vec![1] };
    lake.ingest.catalog.create(&TableName::parse(name).unwrap(), &TableCreation::of(schema)).await.unwrap();
}

/// What comes out: the tally of each batch, then the tables and the dead letters.
async fn outcome(input: &Input, arm: &str) -> String {
    let mut settings = config(input.config.clone());
    set(&mut settings, &input.arm_at, arm);
    if let Err(error) = Settings::from_value(settings.clone()) {
        return format!("the function does not start:\n{error}\n");
    }
    let lake = Lake::new(settings);
    for (name, columns) in &input.tables {
        create(&lake, name, columns).await;
    }
    let mut text = String::new();
    let mut offset = 0;
    for (number, batch) in input.batches.iter().enumerate() {
        let sent = batch.iter().map(|value| {
            offset += 1;
            Sent { partition: 0, offset: offset - 1, value: value.clone() }
        });
        let invoked = lake.invoke(&event(&sent.collect::<Vec<_>>())).await;
        let line = match invoked {
            Ok(reply) => {
                let tally = reply.tally;
                let dead: usize = tally.dead_letters_by_code.values().map(|count| *count as usize).sum();
                format!("rows {} deletes {} control {} stale {} dead letters {dead}", tally.rows, tally.deletes, tally.control, tally.stale)
            }
            Err(error) => format!("failed, to be delivered again: {error}"),
        };
        writeln!(text, "batch {}: {line}", number + 1).unwrap();
    }
    text + &tables(&lake).await
}

async fn tables(lake: &Lake) -> String {
    let catalog = lake.ingest.catalog.as_ref();
    let mut text = String::new();
    for name in catalog.tables().await.unwrap() {
        let shown: Option<&[&str]> = name.to_string().starts_with("ops.").then_some(&["offset", "stage", "code", "field", "detail"]);
        writeln!(text, "\n{name}").unwrap();
        if shown.is_none() {
            writeln!(text, "  {}", columns(catalog, &name).await).unwrap();
        }
        for row in rows_of(catalog, &name, |column| shown.is_none_or(|shown| shown.contains(&column))).await {
            writeln!(text, "  {row}").unwrap();
        }
    }
    text
}

async fn columns(catalog: &dyn Catalog, name: &TableName) -> String {
    let version = catalog.load(name).await.unwrap().unwrap().refresh().await.unwrap();
    let columns = schema::to_model(&version.metadata).unwrap().columns;
    let shown = columns.iter().map(|column| format!("{} {}{}", column.name, column.kind, if column.required { " required" } else { "" }));
    format!("({})", shown.collect::<Vec<_>>().join(", "))
}

#[tokio::test]
async fn each_arm_does_what_its_golden_file_says() {
    let write = std::env::var("SLUICE_GOLDEN").is_ok_and(|value| value == "write");
    let mut wrong = Vec::new();
    for key in folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")) {
        for arm in folders(&key) {
            let own = arm.join("input.json");
            let path = if own.exists() { own } else { key.join("input.json") };
            let input: Input = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let found = outcome(&input, file_name(&arm)).await;
            let golden = arm.join("expected.txt");
            if write {
                std::fs::write(&golden, &found).unwrap();
            } else if std::fs::read_to_string(&golden).unwrap_or_default() != found {
                wrong.push(format!("{} should say:\n{found}", golden.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
