//! The binary `sluice` as a user meets it: the conformance cases, exit codes, JSON everywhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::binaries::SLUICE;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sluice(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(&*SLUICE).current_dir(folder).env_remove("SLUICE_CONFIG").args(arguments).output().unwrap()
}

fn json_lines(output: &Output) -> Vec<Value> {
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_case_in_scope_passes_and_the_others_say_why_they_are_not() {
    let output = sluice(&root(), &["--json", "corpus", "tests/corpus"]);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for verdict in json_lines(&output).iter().filter(|verdict| verdict.get("id").is_some()) {
        let outcome = verdict["outcome"].as_str().unwrap().to_owned();
        assert_ne!(outcome, "fail", "{verdict}");
        assert_eq!(outcome == "unsupported", verdict["reason"] != "", "{verdict}");
        *counts.entry(outcome).or_default() += 1;
    }
    assert!(output.status.success());
    let unsupported = counts.get("unsupported").copied().unwrap_or_default();
    assert!(counts["pass"] >= 122 && unsupported <= 32, "{counts:?}");
}

#[test]
fn every_case_of_our_own_passes() {
    let output = sluice(&root(), &["--json", "corpus", "tests/cases"]);
    let verdicts = json_lines(&output);
    let cases: Vec<&Value> = verdicts.iter().filter(|verdict| verdict.get("id").is_some()).collect();
    let failed: Vec<&&Value> = cases.iter().filter(|verdict| verdict["outcome"] != "pass").collect();
    assert!(failed.is_empty() && cases.len() >= 400, "{} cases, not passed: {failed:?}", cases.len());
}

#[test]
fn exit_codes_are_those_of_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| sluice(folder.path(), arguments).status.code();
    assert_eq!(code(&["table", "list"]), Some(2), "no configuration");
    assert_eq!(code(&["init"]), Some(0));
    assert_eq!(code(&["init"]), Some(2), "never over a file that is there");
    assert_eq!(code(&["validate"]), Some(0));
    assert_eq!(code(&["table", "show", "no.table"]), Some(3));
    assert_eq!(code(&["errors", "show", "t:0:1"]), Some(3));
    assert_eq!(code(&["corpus", "."]), Some(3), "no cases");
    std::fs::write(folder.path().join("event.json"), "{}").unwrap();
    assert_eq!(code(&["invoke", "ingest", "--event", "event.json"]), Some(1));
    assert_eq!(code(&["nonsense"]), Some(2));
    std::fs::write(
        folder.path().join("case.json"),
        r#"{"id":"x","name":"x","batches":[{"lambda_event":{}}],"expect":{"invocations":["ok"]}}"#,
    )
    .unwrap();
    assert_eq!(code(&["corpus", "."]), Some(4));
}

#[test]
fn validate_tries_the_warehouse_and_leaves_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let config = |warehouse: &str| {
        let text = format!(
            "[catalog]\ntype = \"sql\"\nwarehouse = \"{warehouse}\"\nuri = \"sqlite://catalog.db\"\n[source]\nid = \"x\"\n[[source.formats]]\ntype = \"row\"\n"
        );
        std::fs::write(folder.path().join("sluice.toml"), text).unwrap();
        sluice(folder.path(), &["validate"])
    };
    let good = config("lake");
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    assert!(String::from_utf8_lossy(&good.stdout).contains("new tables can be written, read and deleted below file://"));
    assert_eq!(std::fs::read_dir(folder.path().join("lake")).unwrap().count(), 0);
    let bad = config("sluice.toml/lake");
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("permission to read, write and delete there is needed"));
}

#[test]
fn the_demo_runs_and_its_lake_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let demo = sluice(folder.path(), &["--json", "demo", "--dir", "lake"]);
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
    let with = |arguments: &[&str]| sluice(folder.path(), &[&["--config", "lake/sluice.toml", "--json"], arguments].concat());
    let tables = json_lines(&with(&["table", "list"])).remove(0);
    assert_eq!(tables.as_array().unwrap().len(), 7);
    let history = json_lines(&with(&["table", "history", "lake.orders"])).remove(0);
    assert!(history[0]["ledger"].as_str().unwrap().contains("erp.cdc"), "{history}");
    let letter = json_lines(&with(&["errors", "show", "erp.cdc:0:106"])).remove(0);
    assert_eq!(letter["code"], "TYPE_MISMATCH");
    let again = sluice(folder.path(), &["demo", "--dir", "lake"]);
    assert!(again.status.success(), "a demo folder can be used again");
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/precious"), "x").unwrap();
    assert_eq!(sluice(folder.path(), &["demo", "--dir", "mine"]).status.code(), Some(2), "a foreign folder is not touched");
    assert!(folder.path().join("mine/precious").exists());
}

/// Mends what the demo's records were refused for, and goes back and forth, as the README and docs/operations.md say.
#[test]
fn refused_records_are_redriven_and_a_table_is_rewound() {
    let folder = tempfile::tempdir().unwrap();
    assert!(sluice(folder.path(), &["demo", "--dir", "lake"]).status.success());
    let with = |arguments: &[&str]| sluice(folder.path(), &[&["--config", "lake/sluice.toml", "--json"], arguments].concat());
    let told = |arguments: &[&str]| {
        let output = with(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        json_lines(&output).remove(0)
    };
    let rows = || told(&["table", "rows", "lake.orders", "--limit", "0"]).as_array().unwrap().len();
    let before = rows();
    let path = folder.path().join("lake/sluice.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("[table_defaults]", "[table_defaults]\non_naive_timestamp = \"UTC\"")).unwrap();
    let dry = told(&["errors", "redrive", "--dry-run", "--code", "TIME_ZONE_MISSING"]);
    assert_eq!((&dry["selected"], &dry["fates"]["applied"], rows()), (&Value::from(1), &Value::from(1), before));
    let done = told(&["errors", "redrive", "--table", "lake.orders", "--offsets", "erp.cdc:0:110-130"]);
    assert_eq!((&done["fates"]["applied"], rows()), (&Value::from(1), before + 1), "{done}");
    let open = told(&["errors", "list", "--limit", "0"]).as_array().unwrap().len();
    let all = told(&["errors", "list", "--all", "--limit", "0"]);
    assert_eq!(all.as_array().unwrap().iter().filter(|row| row["resolution"] == "applied").count(), 1);
    assert_eq!(open + 1, all.as_array().unwrap().len());
    assert_eq!(with(&["errors", "redrive", "--since", "yesterday"]).status.code(), Some(2));
    let planned = told(&["rewind", "--table", "lake.orders", "--to", "erp.cdc:0:105", "--dry-run"]);
    assert_eq!((&planned["end"], &planned["reopened"]), (&Value::from("planned"), &Value::from(1)), "{planned}");
    let back = told(&["rewind", "--table", "lake.orders", "--to", "erp.cdc:0:105"]);
    assert!(back["replay"].as_array().unwrap().iter().any(|replay| replay["topic"] == "erp.cdc" && replay["from"] == 105), "{back}");
    assert!(rows() < before);
    assert_eq!(told(&["errors", "list", "--limit", "0"]).as_array().unwrap().len(), open + 1, "what went back is open again");
    assert_eq!(told(&["rewind", "--table", "lake.orders", "--to", "erp.cdc:0:105"])["end"], "nothing-to-do");
    assert_eq!(with(&["rewind", "--table", "lake.orders", "--to", "erp.cdc:0:1"]).status.code(), Some(4));
    assert_eq!(with(&["rewind", "--table", "no.table", "--to", "erp.cdc:0:1"]).status.code(), Some(3));
    assert_eq!(with(&["rewind", "--table", "lake.orders", "--to", "nonsense"]).status.code(), Some(2));
}
