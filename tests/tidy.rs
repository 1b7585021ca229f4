//! The rules of the tree that a compiler does not check.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use sluice_ingest::start::{Configuration, StartError};
use sluice_model::config::ConfigCode;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Which of our crates a crate may depend on (DESIGN: dependencies point one way).
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("sluice-model", vec![]),
        ("sluice-codec", vec!["sluice-model"]),
        ("sluice-pipeline", vec!["sluice-model", "sluice-codec"]),
        ("sluice-features", vec![]),
        ("sluice-table", vec!["sluice-model", "sluice-features"]),
        ("sluice-storage", vec!["sluice-model"]),
        ("sluice-catalog", vec!["sluice-model", "sluice-storage", "sluice-table"]),
        ("sluice-deadletter", vec!["sluice-model", "sluice-table"]),
        ("sluice-kafka", vec!["sluice-model", "sluice-deadletter"]),
        ("sluice-mapping", vec!["sluice-model", "sluice-kafka"]),
        ("sluice-maintenance", vec!["sluice-model", "sluice-storage", "sluice-table"]),
        ("sluice-telemetry", vec!["sluice-model"]),
        ("sluice-start", vec!["sluice-model", "sluice-runtime", "sluice-catalog", "sluice-storage", "sluice-table"]),
        ("sluice-runtime", vec!["sluice-model", "sluice-codec", "sluice-pipeline"]),
    ])
}

/// Foreign crates that may stand only in some of ours.
const CONFINED: [(&str, &[&str]); 13] = [
    ("iceberg", &["sluice-table", "sluice-storage", "sluice-catalog", "sluice-testkit", "sluice-local"]),
    ("aws-sdk-s3", &["sluice-storage"]),
    ("aws-sdk-glue", &["sluice-catalog", "sluice-contract"]),
    ("aws-sdk-s3tables", &["sluice-catalog"]),
    ("aws-sdk-secretsmanager", &["sluice-kafka"]),
    ("aws-msk-iam-sasl-signer", &["sluice-kafka"]),
    ("rdkafka", &["sluice-kafka", "sluice-mapping", "sluice-kafka-tests", "sluice-stream"]),
    ("hive_metastore", &["sluice-catalog", "sluice-contract"]),
    ("reqwest", &["sluice-catalog"]),
    ("sqlx", &["sluice-catalog"]),
    (
        "lambda_runtime",
        &[
            "sluice-ingest",
            "sluice-redrive",
            "sluice-maintain",
            "sluice-compact",
            "sluice-expire-snapshots",
            "sluice-remove-orphans",
            "sluice-rewrite-manifests",
        ],
    ),
    (
        "tokio",
        &[
            "sluice-ingest",
            "sluice-redrive",
            "sluice-maintain",
            "sluice-compact",
            "sluice-expire-snapshots",
            "sluice-remove-orphans",
            "sluice-rewrite-manifests",
            "sluice-local",
            "sluice-tests",
            "sluice-table",
            "sluice-catalog",
            "sluice-kafka",
            "sluice-mapping",
            "sluice-start",
            "sluice-features",
            "sluice-stream",
            "sluice-kafka-tests",
        ],
    ),
    ("clap", &["sluice-local"]),
];

#[test]
fn dependencies_point_one_way() {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let rules = allowed();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind == cargo_metadata::DependencyKind::Normal);
        for dependency in normal.clone().filter(|dependency| dependency.name.starts_with("sluice-")) {
            if let Some(allowed) = rules.get(name) {
                assert!(allowed.contains(&dependency.name.as_str()), "{name} must not depend on {}", dependency.name);
            }
            assert_ne!(dependency.name, "sluice-testkit", "{name}: testkit is for tests");
        }
        for (foreign, places) in CONFINED {
            let uses = normal.clone().any(|dependency| dependency.name == foreign);
            assert!(!uses || places.contains(&name), "{name} must not depend on {foreign}");
        }
    }
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines of a file before its unit tests.
fn product_lines(text: &str) -> usize {
    text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count()
}

#[test]
fn files_have_one_subject_and_the_lambda_is_thin() {
    let mut files = Vec::new();
    for folder in ["shared", "functions"] {
        rust_files(&root().join(folder), &mut files);
    }
    let shown = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let is_test =
            path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs") || path.ends_with("properties.rs");
        assert!(is_test || product_lines(&text) < 600, "{} has {} lines", shown(path), product_lines(&text));
        assert!(text.starts_with("//!"), "{} does not say what it owns", shown(path));
    }
    let main = std::fs::read_to_string(root().join("functions/ingest/src/main.rs")).unwrap();
    assert!(main.lines().count() <= 40);
}

#[test]
fn the_environment_and_the_clock_are_read_in_one_place() {
    let mut files = Vec::new();
    for folder in ["shared", "functions"] {
        rust_files(&root().join(folder), &mut files);
    }
    let environment = Path::new("shared/runtime/src/environment.rs");
    for path in files.iter().filter(|path| !path.ends_with(environment) && !path.components().any(|part| part.as_os_str() == "tests")) {
        let text = std::fs::read_to_string(path).unwrap();
        for forbidden in ["std::env::var", "SystemTime::now", "Instant::now", "Uuid::new_v4", "Uuid::now_v7"] {
            assert!(!text.contains(forbidden), "{} uses {forbidden}", path.display());
        }
    }
}

#[test]
fn every_reason_code_is_documented() {
    let codes = std::fs::read_to_string(root().join("docs/reason-codes.md")).unwrap();
    let source = std::fs::read_to_string(root().join("shared/model/src/reason.rs")).unwrap();
    let listed = source.lines().filter_map(|line| line.trim().strip_prefix("Self::")?.split_once("=> \"")?.1.strip_suffix("\","));
    for code in listed.filter(|code| code.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())) {
        assert!(codes.contains(&format!("`{code}`")), "docs/reason-codes.md lacks {code}");
    }
}

/// The names of our own enums.
fn own_enums(files: &[PathBuf]) -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for path in files {
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
            if let Some(rest) = line.strip_prefix("enum ") {
                names.insert(rest.chars().take_while(|c| c.is_alphanumeric()).collect());
            }
        }
    }
    names.remove("");
    names
}

/// The first pattern of each arm of the match that the `_` arm at `index` closes: the lines before it with its indentation.
fn sibling_arms<'l>(lines: &[&'l str], index: usize) -> Vec<&'l str> {
    let indent = lines[index].len() - lines[index].trim_start().len();
    let before = lines[..index].iter().rev();
    let inside = before.take_while(|line| line.trim().is_empty() || line.len() - line.trim_start().len() >= indent);
    inside.filter(|line| line.len() - line.trim_start().len() == indent).map(|line| line.trim_start()).collect()
}

/// A new variant must not fall into an arm that nobody thought of (CONTRIBUTING). Matches on foreign enums, on text and on tuples are let be.
#[test]
fn our_enums_are_matched_without_a_wildcard() {
    let mut files = Vec::new();
    for folder in ["shared", "functions"] {
        rust_files(&root().join(folder), &mut files);
    }
    let ours = own_enums(&files);
    let is_ours = |arm: &str| {
        let name: String = arm.trim_start_matches("Some(").trim_start_matches("Ok(").chars().take_while(|c| c.is_alphanumeric()).collect();
        arm.contains("=>") && arm.contains(&format!("{name}::")) && ours.contains(&name)
    };
    let mut found = Vec::new();
    for path in files.iter().filter(|path| {
        !path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "testkit" || part.as_os_str() == "testing.rs")
    }) {
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("_ =>")) {
            if sibling_arms(&lines, index).iter().any(|arm| is_ours(arm)) {
                found.push(format!("{}:{}: {}", path.strip_prefix(root()).unwrap().display(), index + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// `DeadLetter` → `dead-letter`, as serde's kebab-case.
fn kebab(variant: &str) -> String {
    let mut text = String::new();
    for character in variant.chars() {
        if character.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(character.to_lowercase());
    }
    text
}

/// The arms of the enums whose first line is `opening`, a name and a brace.
fn arms(source: &str, opening: &str) -> BTreeMap<String, Vec<String>> {
    let mut enums: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in source.lines().map(str::trim) {
        match (&current, line.strip_suffix(" {").and_then(|line| line.strip_prefix(opening))) {
            (_, Some(name)) if !name.is_empty() && name.chars().all(char::is_alphanumeric) => current = Some(name.to_owned()),
            (Some(_), _) if line == "}" => current = None,
            (Some(name), _) if line.starts_with(char::is_uppercase) => {
                let arm: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
                enums.entry(name.clone()).or_default().push(kebab(&arm));
            }
            (Some(_) | None, _) => {}
        }
    }
    enums
}

/// A setting without a golden file for each of its arms is one that nobody has looked at.
#[test]
fn every_arm_of_the_configuration_has_a_golden_folder() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let choices = arms(&read("shared/pipeline/src/settings/choices.rs"), "");
    let settings = read("shared/pipeline/src/settings/mod.rs");
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in settings.lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
        let Some((key, kind)) = line.trim_end_matches(',').split_once(": Option<") else { continue };
        if let Some(arms) = choices.get(kind.trim_end_matches('>')) {
            expected.insert(key.to_owned(), arms.clone());
        }
    }
    assert!(expected.len() >= 20, "{expected:?}");
    expected.insert("formats".to_owned(), arms(&read("shared/codec/src/format.rs"), "pub enum ")["Dialect"].clone());
    let names = |folder: &Path| -> Vec<String> {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let golden = root().join("tests/golden");
    let mut found: BTreeMap<String, Vec<String>> = names(&golden).into_iter().map(|key| (key.clone(), names(&golden.join(key)))).collect();
    found.values_mut().chain(expected.values_mut()).for_each(|arms| arms.sort());
    assert_eq!(found, expected);
}

/// The configuration that the templates deploy is one that the function starts with, when it is built with the catalog.
#[tokio::test]
async fn the_configuration_of_each_stage_is_right() {
    let stages: Vec<PathBuf> = std::fs::read_dir(root().join("infra/pipeline")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(stages.len() >= 2, "{stages:?}");
    for stage in stages {
        let path = stage.join("sluice.toml");
        match Configuration::read(&path).await {
            Ok(_) => {}
            Err(StartError::Config(error)) => {
                let is_build = |code: ConfigCode| code == ConfigCode::ConfigUnsupported;
                let only_that = error.problems.iter().all(|problem| is_build(problem.code) && problem.message.contains("--features"));
                assert!(only_that, "{}: {error}", path.display());
            }
            Err(error @ (StartError::Unreadable(_) | StartError::Topic(_) | StartError::Unavailable(_))) => {
                panic!("{}: {error}", path.display())
            }
        }
    }
}
