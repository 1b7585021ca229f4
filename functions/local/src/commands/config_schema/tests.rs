//! The page and the code say the same.

use std::collections::BTreeSet;

use super::*;
use crate::commands::config_schema::keys::{read, with};

/// A general path as one of the configuration that has everything once.
fn in_everything(path: &str) -> String {
    let path = path.replace("[]", "[0]");
    let path = path.replacen("tables.*", "tables.\"a.b\"", 1);
    path.replace("registries.*", "registries.\"r\"").replace("columns.*", "columns.\"c\"")
}

#[test]
fn every_key_of_the_code_is_in_the_page_and_no_other() {
    let read: BTreeSet<String> = keys().into_keys().collect();
    let told: BTreeSet<String> = entries(PAGE).iter().flat_map(|entry| entry.paths().collect::<Vec<_>>()).collect();
    assert!(read.len() > 150, "{}", read.len());
    let is_table = |path: &String| read.iter().any(|key| key.starts_with(&format!("{path}.")));
    let (silent, gone): (Vec<_>, Vec<_>) =
        (read.difference(&told).collect(), told.difference(&read).filter(|path| !is_table(path)).collect());
    assert!(silent.is_empty() && gone.is_empty(), "not in docs/configuration.md: {silent:#?}\nonly there: {gone:#?}");
}

#[test]
fn every_choice_is_named() {
    let (keys, entries) = (keys(), entries(PAGE));
    for entry in &entries {
        for path in entry.paths() {
            let Some((Shape::Choice(choices), _)) = keys.get(&path) else { continue };
            let default = entry.default.as_ref().and_then(Value::as_str);
            let silent = |choice: &&&str| {
                default != Some(**choice)
                    && !entry.meaning.contains(&format!("`{choice}`"))
                    && !entry.meaning.contains(&format!("`\"{choice}\"`"))
            };
            let missing: Vec<_> = choices.iter().filter(silent).collect();
            assert!(missing.is_empty(), "{path} may be {missing:?} too");
        }
    }
}

/// Writing a default down changes nothing.
#[test]
fn every_default_of_the_page_is_true() {
    let (keys, mut tried) = (keys(), 0);
    for entry in entries(PAGE) {
        let Some(default) = &entry.default else { continue };
        for path in entry.paths() {
            // A row may name a whole table, which is told below.
            let Some((_, config)) = keys.get(&path) else { continue };
            let written = with(config, &in_everything(&path), default).unwrap();
            assert!(read(&written).0 == read(config).0, "{path} = {default} changes the settings");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_wrong_default_would_be_found() {
    let config = &keys()["commit.max_attempts"].1;
    let written = with(config, "commit.max_attempts", &json!(19)).unwrap();
    assert_ne!(read(&written).0, read(config).0);
}

#[test]
fn the_schema_in_docs_is_this_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sluice.schema.json");
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == text() + "\n", "run `cargo run --package sluice-local -- config-schema > docs/sluice.schema.json`");
}
