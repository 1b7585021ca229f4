//! `[[source.formats]]`: which records are read how.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_model::{DecimalText, Operation, SourceRecord};
use wildmatch::WildMatch;

use crate::debezium::DebeziumDialect;
use crate::envelope::{EnvelopeDialect, EnvelopeFields, Pointer};

/// How records that match it are read. The first format that matches a record decides.
#[derive(Debug, Clone)]
pub struct Format {
    topic: WildMatch,
    header: BTreeMap<String, String>,
    /// The dialect.
    pub dialect: Dialect,
    /// The encoding below it.
    pub encoding: Encoding,
}

/// What the bytes of a value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON text.
    Json,
}

/// The dialects, one file each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// A house envelope.
    Envelope(Box<EnvelopeDialect>),
    /// Debezium's envelope.
    Debezium(DebeziumDialect),
    /// Debezium after its unwrapping transform.
    DebeziumFlat(DebeziumDialect),
    /// Plain rows.
    Row,
}

/// The dialects by the name that the configuration gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DialectName {
    Envelope,
    Debezium,
    DebeziumFlat,
    DebeziumMongodb,
    Dms,
    Maxwell,
    Canal,
    Goldengate,
    SapOdp,
    Salesforce,
    Row,
    DeadLetter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EncodingName {
    Json,
    Avro,
    Protobuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DecimalName {
    Text,
    Base64,
}

impl Format {
    /// Whether it is for records of that topic.
    #[must_use]
    pub fn reads_topic(&self, topic: &str) -> bool {
        self.topic.matches(topic)
    }

    /// Whether the record has the headers that it asks for.
    #[must_use]
    pub fn has_headers(&self, record: &SourceRecord<'_>) -> bool {
        self.header.iter().all(|(name, value)| record.header_text(name) == Some(value))
    }
}

/// Reads `[[source.formats]]`. `registries` are the names defined under `[registries]`.
pub fn read_formats(sections: Vec<Section>, registries: &BTreeSet<String>, problems: &mut Problems) -> Vec<Format> {
    sections.into_iter().filter_map(|section| read_format(section, registries, problems)).collect()
}

fn read_format(mut section: Section, registries: &BTreeSet<String>, problems: &mut Problems) -> Option<Format> {
    let topic: String = section.read("topic", problems).unwrap_or_else(|| "*".to_owned());
    let header = section.read("header", problems).unwrap_or_default();
    let name: Option<DialectName> = section.read("type", problems);
    let path = section.path_of("type");
    let encoding = read_encoding(&mut section, registries, problems);
    let decimals = match section.read("decimals", problems) {
        Some(DecimalName::Base64) => DecimalText::Base64Unscaled,
        Some(DecimalName::Text) | None => DecimalText::Digits,
    };
    let envelope = read_envelope(&mut section, problems);
    section.finish(problems);
    let dialect = match name {
        None => {
            problems.add(ConfigCode::ConfigInvalid, &path, "a format needs a type, such as \"envelope\" or \"debezium\"");
            None
        }
        Some(DialectName::Envelope) => Some(Dialect::Envelope(Box::new(envelope))),
        Some(DialectName::Debezium) => Some(Dialect::Debezium(DebeziumDialect { decimals })),
        Some(DialectName::DebeziumFlat) => Some(Dialect::DebeziumFlat(DebeziumDialect { decimals })),
        Some(DialectName::Row) => Some(Dialect::Row),
        Some(
            DialectName::DebeziumMongodb
            | DialectName::Dms
            | DialectName::Maxwell
            | DialectName::Canal
            | DialectName::Goldengate
            | DialectName::SapOdp
            | DialectName::Salesforce
            | DialectName::DeadLetter,
        ) => {
            let message = "this version reads envelope, debezium, debezium-flat and row";
            problems.add(ConfigCode::ConfigUnsupported, &path, message);
            None
        }
    }?;
    Some(Format { topic: WildMatch::new(&topic), header, dialect, encoding: encoding? })
}

fn read_encoding(section: &mut Section, registries: &BTreeSet<String>, problems: &mut Problems) -> Option<Encoding> {
    let encoding: Option<EncodingName> = section.read("encoding", problems);
    let registry: Option<String> = section.read("registry", problems);
    if let Some(registry) = registry
        && !registries.contains(&registry)
    {
        problems.add(ConfigCode::ConfigInvalid, &section.path_of("registry"), format!("`{registry}` is not defined under [registries]"));
    }
    match encoding {
        None | Some(EncodingName::Json) => Some(Encoding::Json),
        Some(EncodingName::Avro | EncodingName::Protobuf) => {
            problems.add(ConfigCode::ConfigUnsupported, &section.path_of("encoding"), "this version reads json");
            None
        }
    }
}

fn read_envelope(section: &mut Section, problems: &mut Problems) -> EnvelopeDialect {
    let mut pointers = section.section("fields", problems);
    let mut fields = EnvelopeFields::default();
    let named = [
        ("source", &mut fields.source),
        ("table", &mut fields.table),
        ("operation", &mut fields.operation),
        ("event_time", &mut fields.event_time),
        ("version", &mut fields.version),
        ("before", &mut fields.before),
        ("data", &mut fields.data),
    ];
    for (name, pointer) in named {
        if let Some(read) = pointers.parse(name, Pointer::parse, problems) {
            *pointer = read;
        }
    }
    pointers.finish(problems);
    EnvelopeDialect { fields, operations: read_operations(section, problems) }
}

fn read_operations(section: &mut Section, problems: &mut Problems) -> Vec<(Operation, Vec<String>)> {
    let mut spellings = section.section("operations", problems);
    let defaults: [(&str, Operation, &[&str]); 5] = [
        ("insert", Operation::Insert, &["I", "insert", "c", "create"]),
        ("snapshot", Operation::Snapshot, &["R", "r", "read", "load"]),
        ("update", Operation::Update, &["U", "u", "update"]),
        ("delete", Operation::Delete, &["D", "d", "delete"]),
        ("truncate", Operation::Truncate, &["T", "t", "truncate"]),
    ];
    let read = defaults.map(|(key, operation, default)| {
        let listed: Option<Vec<String>> = spellings.read(key, problems);
        (operation, listed.unwrap_or_else(|| default.iter().map(|text| (*text).to_owned()).collect()))
    });
    spellings.finish(problems);
    read.into()
}
