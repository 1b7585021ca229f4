//! Records of four systems in the dialects that Sluice reads, some of them bad, and what each must become.

use serde_json::{Value, json};

use crate::rng::Rng;

/// What a record must become.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// The row of a key is `n`.
    Row { table: &'static str, key: u64, n: u64 },
    /// The key has no row.
    Delete { table: &'static str, key: u64 },
    /// It is refused, with this code.
    Refused(&'static str),
    /// It is no row.
    Control,
}

/// A record to produce.
#[derive(Debug, Clone)]
pub struct Record {
    pub topic: &'static str,
    /// Records of one key stay in one partition.
    pub key: String,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(&'static str, &'static str)>,
    pub fate: Fate,
}

pub const TOPICS: [&str; 3] = ["cdc.erp", "cdc.crm", "cdc.mixed"];
/// Where dead letters go.
pub const ERROR_TOPIC: &str = "dead.cdc.letters";
pub const TABLES: [&str; 5] = ["lake.orders", "lake.customers", "lake.invoices", "lake.tickets", "lake.instances"];
pub const KEYS: u64 = 3_000;

/// The configuration that reads them.
pub fn config(brokers: &str) -> String {
    format!(
        r#"
[catalog]
type = "sql"
warehouse = "warehouse"
uri = "sqlite://catalog.db"

[source]
id = "test"

[source.kafka]
brokers = "{brokers}"
topics = ["cdc.*"]

[source.kafka.properties]
"session.timeout.ms" = "6000"
"heartbeat.interval.ms" = "1000"

[[source.formats]]
topic = "cdc.erp"
type = "envelope"

[[source.formats]]
topic = "cdc.mixed"
header = {{ dialect = "flat" }}
type = "debezium-flat"

[[source.formats]]
topic = "cdc.mixed"
header = {{ dialect = "row" }}
type = "row"

[[source.formats]]
topic = "cdc.*"
type = "debezium"

[route]
table = "lake.{{table}}"
table_header = "table"

[table_defaults]
on_missing_table = "create"
on_unknown_column = "add"
key = ["id"]

[errors]
topic = "dead.cdc.letters"

[tables."lake.orders"]
checks = ["total >= 0"]
"#
    )
}

/// The record number `n`.
pub fn record(rng: &mut Rng, n: u64) -> Record {
    let key = rng.below(KEYS);
    match rng.below(5) {
        0 => erp(rng, key, n),
        1 => debezium(rng, ("cdc.crm", "crm", "lake.customers"), (key, n), Vec::new()),
        2 => with_schema(rng, key, n),
        3 => flat(rng, key, n),
        _ => row(rng, key, n),
    }
}

fn text(value: &Value) -> Option<Vec<u8>> {
    Some(value.to_string().into_bytes())
}

fn is_rare(rng: &mut Rng) -> bool {
    rng.below(50) == 0
}

fn erp(rng: &mut Rng, key: u64, n: u64) -> Record {
    let (topic, table) = ("cdc.erp", "lake.orders");
    let mut value = json!({"meta": {"source": "erp", "table": "orders", "op": "U"}, "data": {"id": key, "n": n, "total": n % 1_000, "note": "ü".repeat(20)}});
    let mut fate = Fate::Row { table, key, n };
    let mut raw = None;
    if is_rare(rng) {
        fate = match rng.below(5) {
            0 => {
                raw = Some(Some(br#"{"meta": {"table""#.to_vec()));
                Fate::Refused("MALFORMED_JSON")
            }
            1 => {
                value["meta"]["op"] = json!("?");
                Fate::Refused("OP_UNKNOWN")
            }
            2 => {
                value["data"]["total"] = json!(-1);
                Fate::Refused("CHECK_FAILED")
            }
            3 => {
                value["data"]["id"] = Value::Null;
                Fate::Refused("KEY_NULL")
            }
            _ => {
                value["meta"]["table"] = json!("../payroll");
                Fate::Refused("ROUTE_NOT_ALLOWED")
            }
        };
    } else if rng.below(5) == 0 {
        value["meta"]["op"] = json!("D");
        fate = Fate::Delete { table, key };
    }
    Record { topic, key: format!("o{key}"), value: raw.unwrap_or_else(|| text(&value)), headers: Vec::new(), fate }
}

fn change(rng: &mut Rng, key: u64, n: u64) -> (Value, bool) {
    let row = json!({"id": key, "n": n, "name": format!("name {n}"), "vip": n.is_multiple_of(2)});
    if rng.below(5) == 0 {
        (json!({"before": row, "after": null, "op": "d"}), true)
    } else {
        (json!({"before": null, "after": row, "op": "c"}), false)
    }
}

fn debezium(
    rng: &mut Rng,
    (topic, source, table): (&'static str, &'static str, &'static str),
    (key, n): (u64, u64),
    headers: Vec<(&'static str, &'static str)>,
) -> Record {
    let (mut value, deletes) = change(rng, key, n);
    value["source"] = json!({"name": source, "table": table.split_once('.').unwrap().1});
    let fate = if deletes { Fate::Delete { table, key } } else { Fate::Row { table, key, n } };
    let record = Record { topic, key: format!("c{key}"), value: text(&value), headers, fate };
    // What Debezium sends behind a delete.
    if rng.below(40) == 0 { Record { value: None, fate: Fate::Control, ..record } } else { record }
}

fn with_schema(rng: &mut Rng, key: u64, n: u64) -> Record {
    let mut record = debezium(rng, ("cdc.mixed", "shop", "lake.invoices"), (key, n), Vec::new());
    let Some(payload) = record.value.take() else { return record };
    let row = json!({"type": "struct", "optional": true, "fields": [
        {"field": "id", "type": "int64", "optional": false}, {"field": "n", "type": "int64", "optional": true},
        {"field": "name", "type": "string", "optional": true}, {"field": "vip", "type": "boolean", "optional": true}]});
    let field = |name: &str| {
        let mut field = row.clone();
        field["field"] = json!(name);
        field
    };
    let source = json!({"field": "source", "type": "struct", "optional": false, "fields": [
        {"field": "name", "type": "string", "optional": false}, {"field": "table", "type": "string", "optional": false}]});
    let fields = [field("before"), field("after"), source, json!({"field": "op", "type": "string", "optional": false})];
    let schema = json!({"type": "struct", "optional": false, "name": "Envelope", "fields": fields});
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    record.value = text(&json!({"schema": schema, "payload": payload}));
    record.key = format!("s{key}");
    record
}

fn flat(rng: &mut Rng, key: u64, n: u64) -> Record {
    let table = "lake.tickets";
    let (op, deleted, fate) =
        if rng.below(5) == 0 { ("d", "true", Fate::Delete { table, key }) } else { ("c", "false", Fate::Row { table, key, n }) };
    let value = json!({"id": key, "n": n, "subject": format!("late {n}"), "__op": op, "__deleted": deleted});
    let headers = vec![("dialect", "flat"), ("table", table.trim_start_matches("lake."))];
    let mut record = Record { topic: "cdc.mixed", key: format!("t{key}"), value: text(&value), headers, fate };
    if is_rare(rng) {
        record.value = Some(b"[]".to_vec());
        record.fate = Fate::Refused("TYPE_MISMATCH");
    }
    record
}

fn row(rng: &mut Rng, key: u64, n: u64) -> Record {
    let table = "lake.instances";
    let value = json!({"id": key, "n": n, "state": "ACTIVE", "vars": {"amount": n % 100}});
    let headers = vec![("dialect", "row"), ("table", table.trim_start_matches("lake."))];
    let mut record =
        Record { topic: "cdc.mixed", key: json!({"id": key}).to_string(), value: text(&value), headers, fate: Fate::Row { table, key, n } };
    if rng.below(8) == 0 {
        // A row's tombstone deletes it.
        record.value = None;
        record.fate = Fate::Delete { table, key };
    }
    record
}
