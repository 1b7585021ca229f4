//! The maintenance jobs as a user meets them, and as Lambda functions do: the real binaries on a lake in a folder.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::binaries::SLUICE;

fn sluice(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(&*SLUICE).current_dir(folder).env_remove("SLUICE_CONFIG").args(arguments).output().unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = sluice(folder, &[&["--json"], arguments].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The demo's lake, whose tables are small: everything in it is worth compacting.
pub fn lake() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = sluice(folder.path(), &["demo", "--dir", "."]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = folder.path().join("sluice.toml");
    let config = std::fs::read_to_string(&path).unwrap()
        + "\n[maintenance.compact]\nmin_input_files = 2\nmin_delete_files = 1\n[maintenance.expire]\nmin_snapshots_to_keep = 1\n\
           [maintenance.manifests]\nmin_manifests = 2\n";
    std::fs::write(path, config).unwrap();
    folder
}

/// All rows of all tables, as text.
pub fn rows(folder: &Path) -> Vec<(String, Vec<String>)> {
    let tables = json(folder, &["table", "list"]);
    let names = tables[0].as_array().unwrap().iter().map(|table| table["table"].as_str().unwrap().to_owned());
    names
        .map(|name| {
            let listed = json(folder, &["table", "rows", &name, "--limit", "0"]);
            let mut rows: Vec<String> = listed[0].as_array().unwrap().iter().map(Value::to_string).collect();
            rows.sort();
            (name, rows)
        })
        .collect()
}

#[test]
fn maintain_changes_files_and_no_rows() {
    let lake = lake();
    let before = rows(lake.path());
    let planned = json(lake.path(), &["compact", "--dry-run"]);
    assert!(planned.iter().any(|report| report["outcome"]["kind"] == "planned"), "{planned:#?}");
    let reports = json(lake.path(), &["maintain"]);
    let done = |job: &str| reports.iter().filter(|report| report["job"] == job && report["outcome"]["kind"] == "done").count();
    assert!(done("compact") >= 3 && done("expire") >= 3, "{reports:#?}");
    assert_eq!(rows(lake.path()), before);
    let again = json(lake.path(), &["compact"]);
    assert!(again.iter().all(|report| report["outcome"]["kind"] == "nothing-due"), "{again:#?}");
    assert_eq!(rows(lake.path()), before);
}

#[test]
fn orphans_are_only_found_and_nothing_young_is_one() {
    let lake = lake();
    let before = rows(lake.path());
    let reports = json(lake.path(), &["orphans", "--out", "plans"]);
    assert!(reports.iter().all(|report| report["outcome"]["kind"] == "nothing-due"), "{reports:#?}");
    assert_eq!(sluice(lake.path(), &["orphans", "--execute", "plans/none.json"]).status.code(), Some(3));
    assert_eq!(rows(lake.path()), before);
}

#[test]
fn health_is_told_and_drawn() {
    let lake = lake();
    let health = json(lake.path(), &["table", "health", "lake.*", "--storage", "--html", "health.html"]);
    assert!(health.len() >= 3, "{health:#?}");
    assert!(health.iter().all(|table| table["data_files"].as_u64().unwrap() > 0 && table["storage_bytes"].as_u64().unwrap() > 0));
    let page = std::fs::read_to_string(lake.path().join("health.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script") && !page.contains("http"), "self-contained");
    assert_eq!(sluice(lake.path(), &["table", "health", "no.*"]).status.code(), Some(3));
}

#[test]
fn what_is_wrong_in_the_configuration_is_found_by_validate() {
    let folder = tempfile::tempdir().unwrap();
    assert!(sluice(folder.path(), &["init"]).status.success());
    let path = folder.path().join("sluice.toml");
    let config = std::fs::read_to_string(&path).unwrap() + "\n[maintenance.orphans]\nolder_than_ms = 1000\n";
    std::fs::write(path, config).unwrap();
    let output = sluice(folder.path(), &["validate"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("maintenance.orphans.older_than_ms"));
}
