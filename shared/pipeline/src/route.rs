//! `[route]`: which table a change belongs to.
//!
//! A template makes the name, `case` folds it, `rename` has the last word, `allow` bounds it. Names come from data, so they are hostile until
//! proved otherwise: a placeholder may bring in ASCII letters, digits and `_` only.

use std::collections::{BTreeMap, HashMap};

use regex::{Captures, Regex};
use serde::Deserialize;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_model::{ReasonCode, Rejection, RouteFields, SourceRecord, Stage, TableName};
use wildmatch::WildMatch;

use crate::NameCase;

/// What happens when the table header and the body name different tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// Neither is believed.
    DeadLetter,
    /// The header is right.
    Header,
    /// The body is right.
    Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Source,
    Database,
    Schema,
    Table,
    Topic,
    Header(String),
    TopicGroup(usize),
}

/// The configured route.
#[derive(Debug, Clone)]
pub struct Route {
    template: Vec<Part>,
    topic_pattern: Option<Regex>,
    allow: Vec<WildMatch>,
    case: NameCase,
    table_header: Option<String>,
    on_conflict: OnConflict,
    rename: BTreeMap<String, TableName>,
    error_table: TableName,
}

/// Tables by the name that the template rendered: their names repeat from record to record.
#[derive(Debug, Default)]
pub struct KnownTables {
    by_name: HashMap<String, TableName>,
    /// The name that is being rendered.
    name: String,
}

impl KnownTables {
    fn table(&mut self, name: &str, resolve: impl FnOnce() -> Result<TableName, Rejection>) -> Result<TableName, Rejection> {
        if let Some(table) = self.by_name.get(name) {
            return Ok(table.clone());
        }
        let table = resolve()?;
        self.by_name.insert(name.to_owned(), table.clone());
        Ok(table)
    }
}

/// The longest text that a placeholder may bring in, in characters.
const MAX_PLACEHOLDER_CHARS: usize = 255;

impl Route {
    /// Reads `[route]`. `error_table` is never a target.
    pub fn from_section(mut section: Section, error_table: TableName, problems: &mut Problems) -> Self {
        let topic_pattern = section.parse("topic_pattern", |text| Regex::new(text).map_err(|error| error.to_string()), problems);
        let groups = topic_pattern.as_ref().map_or(0, |pattern: &Regex| pattern.captures_len() - 1);
        let template = section.parse("table", |text| parse_template(text, groups), problems);
        let allow: Vec<String> = section.read("allow", problems).unwrap_or_else(|| vec!["*".to_owned()]);
        let case = section.read("case", problems).unwrap_or(NameCase::Lower);
        let table_header: Option<String> = section.read("table_header", problems);
        let on_conflict = section.read("on_conflict", problems).unwrap_or(OnConflict::DeadLetter);
        let rename = read_rename(&mut section, case, problems);
        section.finish(problems);
        Self {
            template: template.unwrap_or_else(|| vec![Part::Source, Part::Literal(".".to_owned()), Part::Table]),
            topic_pattern,
            allow: allow.iter().map(|glob| WildMatch::new(glob)).collect(),
            case,
            table_header: table_header.filter(|name| !name.is_empty()),
            on_conflict,
            rename,
            error_table,
        }
    }

    /// How names are folded.
    #[must_use]
    pub const fn case(&self) -> NameCase {
        self.case
    }

    /// The table of a change. `known` remembers tables from call to call.
    ///
    /// # Errors
    /// `ROUTE_MISSING` when a placeholder of the template has no text, `ROUTE_CONFLICT` when header and body disagree,
    /// `ROUTE_NOT_ALLOWED` when the name holds other characters and is not renamed, is not allowed, or is the error table.
    pub fn table(&self, record: &SourceRecord<'_>, fields: &RouteFields<'_>, known: &mut KnownTables) -> Result<TableName, Rejection> {
        let mut name = std::mem::take(&mut known.name);
        name.clear();
        let table = self.render(record, fields, &mut name).and_then(|unsafe_part| match unsafe_part {
            Some(part) => self.resolve(&name, Some(part)),
            None => known.table(&name, || self.resolve(&name, None)),
        });
        known.name = name;
        table
    }

    /// Renders the template into `name`. The last value in it that no name may hold, if there is one.
    fn render(&self, record: &SourceRecord<'_>, fields: &RouteFields<'_>, name: &mut String) -> Result<Option<String>, Rejection> {
        let table = self.table_field(record, fields)?;
        let groups = self.topic_groups(record)?;
        let mut unsafe_part = None;
        for part in &self.template {
            let value = match part {
                Part::Literal(text) => {
                    name.push_str(text);
                    continue;
                }
                Part::Source => fields.source.as_deref(),
                Part::Database => fields.database.as_deref(),
                Part::Schema => fields.schema.as_deref(),
                Part::Table => table,
                Part::Topic => Some(record.topic_partition.topic.as_ref()),
                Part::Header(header) => record.header_text(header),
                Part::TopicGroup(index) => groups.as_ref().and_then(|groups| groups.get(*index)).map(|group| group.as_str()),
            };
            let value = value.filter(|text| !text.is_empty()).ok_or_else(|| missing(part))?;
            if !is_safe(value) {
                unsafe_part = Some(value.to_owned());
            }
            name.push_str(value);
        }
        Ok(unsafe_part)
    }

    /// What the topic pattern finds in the record's topic; a topic that it does not match names no table.
    fn topic_groups<'r>(&self, record: &'r SourceRecord<'_>) -> Result<Option<Captures<'r>>, Rejection> {
        let Some(pattern) = &self.topic_pattern else { return Ok(None) };
        let topic = &record.topic_partition.topic;
        pattern.captures(topic).map(Some).ok_or_else(|| {
            let detail = format!("the topic {topic} does not match route.topic_pattern");
            Rejection::of_field(Stage::Route, ReasonCode::RouteMissing, "topic", detail)
        })
    }

    /// Folds, renames and checks a rendered name.
    fn resolve(&self, name: &str, unsafe_part: Option<String>) -> Result<TableName, Rejection> {
        let refuse = |detail: String| Rejection::new(Stage::Route, ReasonCode::RouteNotAllowed, detail);
        let folded = self.case.fold(name);
        let renamed = self.rename.get(folded.as_ref()).cloned();
        let table = match (renamed, unsafe_part) {
            (Some(table), _) => table,
            (None, Some(part)) => {
                let detail = "may only hold ASCII letters, digits and _, 255 characters at most; map it in [route.rename]";
                return Err(refuse(format!("{} {detail}", Rejection::quote(&part))));
            }
            (None, None) => TableName::parse(&folded)
                .ok_or_else(|| refuse(format!("{} is no table name: expected namespace.table", Rejection::quote(&folded))))?,
        };
        if table == self.error_table {
            return Err(refuse(format!("`{table}` is the error table, which is never a target")));
        }
        if self.allow.iter().any(|glob| glob.matches(table.as_str())) {
            Ok(table)
        } else {
            Err(refuse(format!("`{table}` matches nothing in route.allow")))
        }
    }

    /// The text of `{table}`: from the body, or the header that names the table too.
    fn table_field<'r>(&self, record: &'r SourceRecord<'_>, fields: &'r RouteFields<'_>) -> Result<Option<&'r str>, Rejection> {
        let body = fields.table.as_deref();
        let header = self.table_header.as_deref().and_then(|name| record.header_text(name)).filter(|text| !text.is_empty());
        match (header, body) {
            (Some(header), Some(body)) if self.case.fold(header) != self.case.fold(body) => match self.on_conflict {
                OnConflict::Header => Ok(Some(header)),
                OnConflict::Body => Ok(Some(body)),
                OnConflict::DeadLetter => {
                    let detail = format!("the header says {}, the body {}", Rejection::quote(header), Rejection::quote(body));
                    Err(Rejection::new(Stage::Route, ReasonCode::RouteConflict, detail))
                }
            },
            (_, Some(body)) => Ok(Some(body)),
            (header, None) => Ok(header),
        }
    }
}

fn is_safe(value: &str) -> bool {
    let all_safe = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    all_safe && value.len() <= MAX_PLACEHOLDER_CHARS
}

fn missing(part: &Part) -> Rejection {
    let placeholder = match part {
        Part::Literal(text) => text.clone(),
        Part::Source => "{source}".to_owned(),
        Part::Database => "{database}".to_owned(),
        Part::Schema => "{schema}".to_owned(),
        Part::Table => "{table}".to_owned(),
        Part::Topic => "{topic}".to_owned(),
        Part::Header(name) => format!("{{header.{name}}}"),
        Part::TopicGroup(index) => format!("{{topic.{index}}}"),
    };
    let detail = format!("the record has no text for {placeholder}, which route.table needs");
    Rejection::of_field(Stage::Route, ReasonCode::RouteMissing, placeholder, detail)
}

fn parse_template(text: &str, groups: usize) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            parts.push(Part::Literal(rest[..open].to_owned()));
        }
        let close = rest[open..].find('}').ok_or_else(|| format!("`{text}` has a {{ without }}"))? + open;
        parts.push(parse_placeholder(&rest[open + 1..close], groups)?);
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    let literals_are_safe = parts.iter().all(|part| match part {
        Part::Literal(literal) => literal.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')),
        Part::Source | Part::Database | Part::Schema | Part::Table | Part::Topic | Part::Header(_) | Part::TopicGroup(_) => true,
    });
    if !literals_are_safe {
        return Err(format!("`{text}` may hold letters, digits, _ and . outside its placeholders"));
    }
    Ok(parts)
}

fn parse_placeholder(name: &str, groups: usize) -> Result<Part, String> {
    match name {
        "source" => Ok(Part::Source),
        "database" => Ok(Part::Database),
        "schema" => Ok(Part::Schema),
        "table" => Ok(Part::Table),
        "topic" => Ok(Part::Topic),
        _ => {
            if let Some(header) = name.strip_prefix("header.").filter(|header| !header.is_empty()) {
                return Ok(Part::Header(header.to_owned()));
            }
            let index: Option<usize> = name.strip_prefix("topic.").and_then(|index| index.parse().ok());
            match index {
                Some(index) if (1..=groups).contains(&index) => Ok(Part::TopicGroup(index)),
                Some(index) => Err(format!("{{topic.{index}}} needs a topic_pattern with {index} or more groups")),
                None => {
                    Err(format!("{{{name}}} is no placeholder: expected source, database, schema, table, topic, header.NAME or topic.N"))
                }
            }
        }
    }
}

fn read_rename(section: &mut Section, case: NameCase, problems: &mut Problems) -> BTreeMap<String, TableName> {
    let path = section.path_of("rename");
    let listed: BTreeMap<String, String> = section.read("rename", problems).unwrap_or_default();
    let mut rename = BTreeMap::new();
    for (from, to) in listed {
        match TableName::parse(&to) {
            Some(table) => {
                rename.insert(case.fold(&from).into_owned(), table);
            }
            None => problems.add(ConfigCode::ConfigInvalid, &format!("{path}.\"{from}\""), format!("`{to}` is no table name")),
        }
    }
    rename
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_model::{RecordTimestamp, TimestampType, TopicPartition};

    use super::*;

    fn route(config: serde_json::Value) -> Result<Route, Vec<String>> {
        let mut problems = Problems::default();
        let section = Section::new("route", config, &mut problems);
        let route = Route::from_section(section, TableName::parse("ops.error_records").unwrap(), &mut problems);
        if problems.is_empty() { Ok(route) } else { Err(problems.into_vec().into_iter().map(|p| p.path).collect()) }
    }

    fn record(topic: &str, headers: &[(&'static str, &str)]) -> SourceRecord<'static> {
        SourceRecord {
            topic_partition: TopicPartition { topic: topic.into(), partition: 0 },
            offset: 0,
            timestamp: RecordTimestamp { epoch_ms: None, kind: TimestampType::NoTimestampType },
            key: None,
            value: None,
            headers: headers.iter().map(|(name, value)| ((*name).into(), Some(value.as_bytes().to_vec()))).collect(),
            value_schema_id: None,
            key_schema_id: None,
        }
    }

    fn body(table: &str) -> RouteFields<'_> {
        RouteFields { table: Some(table.into()), source: Some("erp".into()), ..RouteFields::default() }
    }

    #[track_caller]
    fn check(config: serde_json::Value, fields: &RouteFields<'_>, expected: Result<&str, ReasonCode>) {
        let found =
            route(config).unwrap().table(&record("cdc.orders", &[("table", "invoice"), ("T", "x-1")]), fields, &mut KnownTables::default());
        assert_eq!(found.map(|name| name.to_string()).map_err(|r| r.code), expected.map(str::to_owned));
    }

    #[test]
    fn names_are_rendered_folded_renamed_and_bounded() {
        check(json!({}), &body("Orders"), Ok("erp.orders"));
        check(json!({"case": "preserve"}), &body("Orders"), Ok("erp.Orders"));
        check(json!({"table": "lake.{header.table}"}), &body("a"), Ok("lake.invoice"));
        check(json!({"table": "erp.{topic.1}", "topic_pattern": "^cdc\\.(\\w+)$"}), &body("a"), Ok("erp.orders"));
        check(json!({"table": "erp.{topic.1}", "topic_pattern": "^other\\.(\\w+)$"}), &body("a"), Err(ReasonCode::RouteMissing));
        check(json!({"rename": {"erp.Order-Hist": "erp.h"}}), &body("order-hist"), Ok("erp.h"));
        check(json!({"allow": ["crm.*"]}), &body("a"), Err(ReasonCode::RouteNotAllowed));
        check(json!({"table": "{schema}.{table}"}), &body("a"), Err(ReasonCode::RouteMissing));
        check(json!({"table": "ops.{table}"}), &body("error_records"), Err(ReasonCode::RouteNotAllowed));
        check(json!({"rename": {"erp.a": "ops.error_records"}}), &body("a"), Err(ReasonCode::RouteNotAllowed));
    }

    #[test]
    fn hostile_names_are_refused() {
        for name in ["../../x", "a.b", "a b", "a\0b", "é", "a/b", "x;drop", &"x".repeat(256)] {
            check(json!({}), &body(name), Err(ReasonCode::RouteNotAllowed));
        }
        check(json!({}), &body(&"x".repeat(255)), Ok(&format!("erp.{}", "x".repeat(255))));
    }

    #[test]
    fn header_and_body_are_compared_after_folding() {
        let with = |on_conflict: &str| json!({"table_header": "table", "on_conflict": on_conflict});
        check(with("dead-letter"), &body("INVOICE"), Ok("erp.invoice"));
        check(with("dead-letter"), &body("payment"), Err(ReasonCode::RouteConflict));
        check(with("header"), &body("payment"), Ok("erp.invoice"));
        check(with("body"), &body("payment"), Ok("erp.payment"));
    }

    #[test]
    fn wrong_templates_are_configuration_problems() {
        for (config, path) in [
            (json!({"table": "{nope}"}), "route.table"),
            (json!({"table": "{topic.1}"}), "route.table"),
            (json!({"table": "{table"}), "route.table"),
            (json!({"topic_pattern": "("}), "route.topic_pattern"),
            (json!({"on_conflict": "x"}), "route.on_conflict"),
            (json!({"typo": 1}), "route.typo"),
            (json!({"rename": {"a": "b"}}), "route.rename.\"a\""),
        ] {
            assert_eq!(route(config).err(), Some(vec![path.to_owned()]));
        }
    }
}
