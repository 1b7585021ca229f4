//! `sluice.toml`: read once at the start, all problems told together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use sluice_codec::{Format, Limits, read_formats};
use sluice_model::TableName;
use sluice_model::config::{ConfigCode, ConfigProblem, Problems, Section};
use sluice_pipeline::route::Route;
use sluice_pipeline::settings::{TableOverrides, TableSettings, check_settings};

/// The configuration is wrong; the function refuses to start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} problem(s):\n{}", .problems.len(), list(.problems))]
pub struct ConfigError {
    /// All problems, in the order of the file.
    pub problems: Vec<ConfigProblem>,
}

impl ConfigError {
    /// The most telling code: what is wrong goes before what is merely not supported yet.
    #[must_use]
    pub fn code(&self) -> ConfigCode {
        self.problems.iter().map(|problem| problem.code).min_by_key(|code| severity(*code)).unwrap_or(ConfigCode::ConfigInvalid)
    }
}

const fn severity(code: ConfigCode) -> u8 {
    match code {
        ConfigCode::ConfigInvalid => 0,
        ConfigCode::TableNameCollision => 1,
        ConfigCode::KeyTypeNotAllowed => 2,
        ConfigCode::ConfigUnsupported => 3,
    }
}

fn list(problems: &[ConfigProblem]) -> String {
    problems.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n")
}

/// `[source]`.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// The stable name of the Kafka cluster.
    pub id: Arc<str>,
    /// Raised when a topic is created anew.
    pub epoch: u32,
    /// How records are read.
    pub formats: Vec<Format>,
}

/// What happens when the error topic cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnTopicFailure {
    /// The invocation fails and the batch is redelivered.
    Block,
    /// The error table alone takes the record.
    Continue,
}

/// `[errors]`.
#[derive(Debug, Clone)]
pub struct ErrorSettings {
    /// The error table.
    pub table: TableName,
    /// What happens when the error topic cannot be reached.
    pub on_failure: OnTopicFailure,
    /// The longest key or value that is kept raw, in bytes.
    pub max_raw_bytes: usize,
}

/// `[commit]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitSettings {
    /// When a data file is closed, in bytes.
    pub target_file_size_bytes: u64,
    /// Attempts of one commit.
    pub max_attempts: u32,
    /// Time kept back before the function's deadline, in milliseconds.
    pub reserve_ms: i64,
    /// Data files that are written at once.
    pub max_open_writers: usize,
}

/// Everything that `sluice.toml` says.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `[catalog]`, read by the catalog crate.
    pub catalog: Value,
    /// `[source]`.
    pub source: SourceSettings,
    /// `[route]`.
    pub route: Route,
    /// `[limits]`, as far as it bounds values.
    pub limits: Limits,
    /// `[errors]`.
    pub errors: ErrorSettings,
    /// `[commit]`.
    pub commit: CommitSettings,
    table_defaults: TableOverrides,
    tables: BTreeMap<String, TableOverrides>,
}

impl Settings {
    /// Reads TOML text.
    ///
    /// # Errors
    /// [`ConfigError`] with all problems.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::from_value(parse_toml(text)?)
    }

    /// Reads the configuration as a JSON value of the same shape.
    ///
    /// # Errors
    /// [`ConfigError`] with all problems.
    pub fn from_value(value: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let settings = Self::read(value, &mut problems);
        if problems.is_empty() { Ok(settings) } else { Err(ConfigError { problems: problems.into_vec() }) }
    }

    /// Reads what can be read, and adds what is wrong to `problems`.
    pub fn read(value: Value, problems: &mut Problems) -> Self {
        let mut root = Section::new("", value, problems);
        let registries = read_registries(&mut root, problems);
        let errors = read_errors(root.section("errors", problems), problems);
        let route = Route::from_section(root.section("route", problems), errors.table.clone(), problems);
        let (limits, max_open_writers) = read_limits(root.section("limits", problems), problems);
        let table_defaults = TableOverrides::from_section(root.section("table_defaults", problems), problems);
        let settings = Self {
            catalog: root.take("catalog").unwrap_or(Value::Null),
            source: read_source(root.section("source", problems), &registries, problems),
            tables: read_tables(&mut root, &table_defaults, &route, problems),
            commit: read_commit(root.section("commit", problems), max_open_writers, problems),
            route,
            limits,
            errors,
            table_defaults,
        };
        // The maintenance functions read it; they are not here.
        root.take("maintenance");
        root.finish(problems);
        settings
    }

    /// The settings of a table whose Iceberg properties are `properties`.
    ///
    /// # Errors
    /// The problems of its `sluice.*` properties.
    pub fn table(&self, name: &TableName, properties: &BTreeMap<String, String>) -> Result<TableSettings, Vec<ConfigProblem>> {
        let mut problems = Problems::default();
        let own = TableOverrides::from_properties(properties.iter(), &mut problems);
        let file = self.tables.get(name.as_str());
        let layers: Vec<&TableOverrides> = file.into_iter().chain([&self.table_defaults, &own]).collect();
        let settings = TableSettings::resolve(&layers);
        check_settings(name.as_str(), &settings, &mut problems);
        if problems.is_empty() { Ok(settings) } else { Err(problems.into_vec()) }
    }

    /// The tables that the file has a section for.
    pub fn configured_tables(&self) -> impl Iterator<Item = TableName> {
        self.tables.keys().filter_map(|name| TableName::parse(name))
    }
}

/// TOML text as a JSON value of the same shape.
///
/// # Errors
/// [`ConfigError`] when the text is no TOML.
pub fn parse_toml(text: &str) -> Result<Value, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let problem = ConfigProblem { code: ConfigCode::ConfigInvalid, path: "sluice.toml".to_owned(), message: error.to_string() };
        ConfigError { problems: vec![problem] }
    })
}

fn read_source(mut section: Section, registries: &BTreeSet<String>, problems: &mut Problems) -> SourceSettings {
    let id: Option<String> = section.read("id", problems);
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| {
        let message = "a stable name of the Kafka cluster is needed: it is part of the offset ledger's key";
        problems.add(ConfigCode::ConfigInvalid, &section.path_of("id"), message);
        String::new()
    });
    let epoch = section.read("epoch", problems).unwrap_or(0);
    // How `sluice run` reads the source: read by the Kafka crate.
    section.take("kafka");
    let listed = section.section_list("formats", problems);
    if listed.is_empty() {
        problems.add(ConfigCode::ConfigInvalid, &section.path_of("formats"), "at least one [[source.formats]] is needed");
    }
    let formats = read_formats(listed, registries, problems);
    section.finish(problems);
    SourceSettings { id: id.into(), epoch, formats }
}

/// The names defined under `[registries]`. Their content is checked here and used by the encodings that need one.
fn read_registries(root: &mut Section, problems: &mut Problems) -> BTreeSet<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum RegistryKind {
        Confluent,
        Glue,
        File,
    }
    let mut names = BTreeSet::new();
    for (name, mut section) in root.sections("registries", problems) {
        let kind: Option<RegistryKind> = section.read("type", problems);
        let _url: Option<String> = section.read("url", problems);
        let _path: Option<String> = section.read("path", problems);
        match kind {
            Some(RegistryKind::Confluent | RegistryKind::Glue | RegistryKind::File) => {}
            None => problems.add(ConfigCode::ConfigInvalid, &section.path_of("type"), "a registry needs a type: confluent, glue or file"),
        }
        section.finish(problems);
        names.insert(name);
    }
    names
}

fn read_errors(mut section: Section, problems: &mut Problems) -> ErrorSettings {
    let parse = |text: &str| TableName::parse(text).ok_or("expected namespace.table");
    let table = section.parse("table", parse, problems);
    // The topic is read by the Kafka crate, which knows what this program was built with.
    for key in ["topic", "brokers", "security", "properties"] {
        section.take(key);
    }
    let on_failure = section.read("on_failure", problems).unwrap_or(OnTopicFailure::Block);
    let max_raw_bytes = section.read("max_raw_bytes", problems).unwrap_or(1_048_576);
    section.finish(problems);
    ErrorSettings { table: table.unwrap_or_else(|| TableName::of("ops", "error_records")), on_failure, max_raw_bytes }
}

fn read_limits(mut section: Section, problems: &mut Problems) -> (Limits, usize) {
    let defaults = Limits::default();
    let limits = Limits {
        max_value_bytes: section.read("max_value_bytes", problems).unwrap_or(defaults.max_value_bytes),
        max_depth: section.read("max_depth", problems).unwrap_or(defaults.max_depth),
    };
    let max_open_writers: usize = section.read("max_open_writers", problems).unwrap_or(64);
    if max_open_writers == 0 {
        problems.add(ConfigCode::ConfigInvalid, &section.path_of("max_open_writers"), "at least 1 is needed");
    }
    let memory_bytes: Option<u64> = section.read("memory_bytes", problems);
    if memory_bytes.is_some_and(|bytes| bytes > 0) {
        let message = "this version does not bound memory by itself; a batch is bounded by the event, 6 MB";
        problems.add(ConfigCode::ConfigUnsupported, &section.path_of("memory_bytes"), message);
    }
    section.finish(problems);
    (limits, max_open_writers)
}

fn read_commit(mut section: Section, max_open_writers: usize, problems: &mut Problems) -> CommitSettings {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum CommitMode {
        Direct,
        Staged,
    }
    match section.read("mode", problems) {
        Some(CommitMode::Direct) | None => {}
        Some(CommitMode::Staged) => problems.add(ConfigCode::ConfigUnsupported, &section.path_of("mode"), "this version commits directly"),
    }
    let settings = CommitSettings {
        target_file_size_bytes: section.read("target_file_size_bytes", problems).unwrap_or(134_217_728),
        max_attempts: section.read("max_attempts", problems).unwrap_or(20),
        reserve_ms: section.read("reserve_ms", problems).unwrap_or(10_000),
        max_open_writers,
    };
    if settings.max_attempts == 0 {
        problems.add(ConfigCode::ConfigInvalid, &section.path_of("max_attempts"), "at least 1 is needed");
    }
    section.finish(problems);
    settings
}

fn read_tables(root: &mut Section, defaults: &TableOverrides, route: &Route, problems: &mut Problems) -> BTreeMap<String, TableOverrides> {
    let mut tables = BTreeMap::new();
    check_settings("table_defaults", &TableSettings::resolve(&[defaults]), problems);
    for (name, section) in root.sections("tables", problems) {
        let path = section.path().to_owned();
        let overrides = TableOverrides::from_section(section, problems);
        if TableName::parse(&name).is_none() {
            problems.add(ConfigCode::ConfigInvalid, &path, "expected a table's full name: namespace.table");
        }
        check_settings(&path, &TableSettings::resolve(&[&overrides, defaults]), problems);
        if tables.insert(route.case().fold(&name).into_owned(), overrides).is_some() {
            let message = format!("another configured table folds to `{}` too; they would share rows", route.case().fold(&name));
            problems.add(ConfigCode::TableNameCollision, &path, message);
        }
    }
    tables
}
