//! The Lambda event of a list of records, as an event-source mapping builds it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::case::{CaseBatch, CaseRecord};

/// The payload of a batch.
///
/// # Errors
/// A sentence when the case's own encoding is wrong.
pub(crate) fn payload(batch: &CaseBatch) -> Result<Vec<u8>, String> {
    let event = match batch {
        CaseBatch::Event { lambda_event } => lambda_event.clone(),
        CaseBatch::Records(records) => from_records(records)?,
    };
    serde_json::to_vec(&event).map_err(|error| error.to_string())
}

fn from_records(records: &[CaseRecord]) -> Result<Value, String> {
    let mut sorted: Vec<&CaseRecord> = records.iter().collect();
    sorted.sort_by_key(|record| record.offset);
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in sorted {
        groups.entry(format!("{}-{}", record.topic, record.partition)).or_default().push(one(record)?);
    }
    Ok(json!({"eventSource": "SelfManagedKafka", "bootstrapServers": "b-1.demo.example:9092", "records": groups}))
}

fn one(record: &CaseRecord) -> Result<Value, String> {
    let mut fields = Map::new();
    fields.insert("topic".to_owned(), json!(record.topic));
    fields.insert("partition".to_owned(), json!(record.partition));
    fields.insert("offset".to_owned(), json!(record.offset));
    if let Some(timestamp) = record.timestamp {
        fields.insert("timestamp".to_owned(), json!(timestamp));
    }
    if let Some(kind) = &record.timestamp_type {
        fields.insert("timestampType".to_owned(), json!(kind));
    }
    fields.insert("key".to_owned(), bytes(&record.key)?);
    fields.insert("value".to_owned(), bytes(&record.value)?);
    let headers: Result<Vec<Value>, String> = record.headers.iter().map(header).collect();
    fields.insert("headers".to_owned(), Value::Array(headers?));
    Ok(Value::Object(fields))
}

fn bytes(spec: &Value) -> Result<Value, String> {
    if spec.is_null() {
        return Ok(Value::Null);
    }
    if let Some(json) = spec.get("json") {
        return Ok(json!(STANDARD.encode(json.to_string())));
    }
    if let Some(text) = spec.get("text").and_then(Value::as_str) {
        return Ok(json!(STANDARD.encode(text)));
    }
    spec.get("base64").cloned().ok_or_else(|| format!("{spec} is neither json nor text nor base64"))
}

fn header((name, value): &(String, Value)) -> Result<Value, String> {
    let bytes = match value {
        Value::Null => Value::Null,
        Value::String(text) => json!(text.bytes().map(u8::cast_signed).collect::<Vec<i8>>()),
        other => other.get("bytes").cloned().ok_or_else(|| format!("{other} is no header value"))?,
    };
    Ok(json!({ name: bytes }))
}
