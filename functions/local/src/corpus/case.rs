//! A case, as it stands in its file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One case.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Case {
    /// Its id, such as `d05a`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The configuration, merged over a base.
    #[serde(default)]
    pub config: Value,
    /// The tables before.
    #[serde(default)]
    pub tables: Vec<CaseTable>,
    /// Schemas for registries of type `file`.
    #[serde(default)]
    pub schemas: Vec<CaseSchema>,
    /// One entry an invocation.
    #[serde(default)]
    pub batches: Vec<CaseBatch>,
    /// The exact result.
    pub expect: Expectation,
}

/// A table before the first invocation.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CaseTable {
    /// namespace.table
    pub name: String,
    /// 2 or 3.
    pub format_version: u8,
    /// The columns.
    pub columns: Vec<CaseColumn>,
    /// Names of the key's columns.
    #[serde(default)]
    pub identifier_fields: Vec<String>,
    /// Transforms.
    #[serde(default)]
    pub partition_spec: Vec<String>,
    /// Iceberg properties.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// The rows, appended under the table's own spec.
    #[serde(default)]
    pub rows: Vec<Map<String, Value>>,
    /// Specs and rows that came before.
    #[serde(default)]
    pub spec_history: Vec<SpecStep>,
}

/// A column of a table before.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CaseColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether null is forbidden.
    #[serde(default)]
    pub required: bool,
    /// Its comment.
    #[serde(default)]
    pub doc: Option<String>,
}

/// An earlier partition spec and the rows written under it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SpecStep {
    /// Transforms.
    pub partition_spec: Vec<String>,
    /// Rows.
    #[serde(default)]
    pub rows: Vec<Map<String, Value>>,
}

/// A schema of a registry.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CaseSchema {
    /// The numeric id.
    pub id: Value,
    /// The UUID, for Glue.
    #[serde(default)]
    pub uuid: Option<String>,
    /// AVRO, PROTOBUF or JSON.
    #[serde(rename = "type")]
    pub kind: String,
    /// The schema.
    pub schema: Value,
}

/// One invocation's input.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum CaseBatch {
    /// A raw payload.
    Event {
        /// The payload.
        lambda_event: Value,
    },
    /// Records, to be put into an event.
    Records(Vec<CaseRecord>),
}

/// A Kafka record.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CaseRecord {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Milliseconds.
    #[serde(default)]
    pub timestamp: Option<i64>,
    /// Kafka's timestamp type.
    #[serde(default)]
    pub timestamp_type: Option<String>,
    /// Names with text or `{"bytes": [signed]}`.
    #[serde(default)]
    pub headers: Vec<(String, Value)>,
    /// null, `{"json"}`, `{"text"}` or `{"base64"}`.
    #[serde(default)]
    pub key: Value,
    /// Likewise.
    #[serde(default)]
    pub value: Value,
}

/// What must come out.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Expectation {
    /// `ok`, `error` or `config-error:CODE`, one a batch.
    pub invocations: Vec<String>,
    /// The full content of the tables.
    #[serde(default)]
    pub tables: BTreeMap<String, ExpectedTable>,
    /// All dead letters.
    #[serde(default)]
    pub dead_letters: Vec<ExpectedLetter>,
    /// Totals over all batches.
    #[serde(default)]
    pub counts: Option<BTreeMap<String, u64>>,
}

/// A table after.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ExpectedTable {
    /// All rows, in any order.
    pub rows: Vec<Map<String, Value>>,
    /// Names and types, where the schema changed.
    #[serde(default)]
    pub columns: Option<BTreeMap<String, String>>,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct ExpectedLetter {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i64,
    /// The offset.
    pub offset: i64,
    /// The row, where the case gives it.
    #[serde(default)]
    pub row: Option<i64>,
    /// The reason code.
    pub code: String,
}
