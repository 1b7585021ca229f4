//! The generated Lambda event: a change stream of orders, in one of three formats, over some tables.
//!
//! 55 % inserts, 37 % updates (30 % of them with a whole row before), 8 % deletes (with the key before); 40 % of updates and deletes hit a
//! key that the stream touched a moment ago. The popularity of the tables follows Zipf's law.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::order::write_row;
use crate::random::Random;

/// The largest event that a Kafka event-source mapping sends.
pub const EVENT_BYTES: usize = 6 * 1024 * 1024 - 800;
const PARTITIONS: usize = 6;
const RECENT_KEYS: usize = 4096;

/// How a change is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A house envelope.
    Envelope,
    /// Debezium's JSON.
    Debezium,
    /// Debezium's JSON with the Connect schema in every record.
    DebeziumWithSchema,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Envelope, Self::Debezium, Self::DebeziumWithSchema];

    /// Its name in tables and arguments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Envelope => "envelope",
            Self::Debezium => "debezium",
            Self::DebeziumWithSchema => "debezium+schema",
        }
    }
}

/// The name of a table of the event.
#[must_use]
pub fn table_name(table: usize) -> String {
    if table == 0 { "orders".to_owned() } else { format!("orders_{table:02}") }
}

/// An event of at most `limit` bytes.
#[must_use]
pub fn lambda_event(kind: Kind, tables: usize, limit: usize) -> Vec<u8> {
    const HEAD: &str = r#"{"eventSource":"aws:kafka","eventSourceArn":"arn:aws:kafka:eu-north-1:123456789012:cluster/prod-cdc/0c3f9c1e-8a30-4a9b-9e2f-8a6f9d9d4b77-3","bootstrapServers":"b-1.prodcdc.abc123.c3.kafka.eu-north-1.amazonaws.com:9092,b-2.prodcdc.abc123.c3.kafka.eu-north-1.amazonaws.com:9092","records":{"#;
    let mut stream = Stream::new(tables);
    let mut groups = vec![String::new(); PARTITIONS];
    let mut offsets = [48_000_000_u64; PARTITIONS];
    let mut size = HEAD.len() + 2 + 25 * PARTITIONS;
    loop {
        let change = stream.next();
        let partition = ((change.key as usize) ^ change.table) % PARTITIONS;
        let offset = &mut offsets[partition];
        let (key, value) = (STANDARD.encode(format!(r#"{{"order_id":{}}}"#, change.key)), STANDARD.encode(change.render(kind)));
        let record = format!(
            r#"{{"topic":"cdc.shop.all","partition":{partition},"offset":{offset},"timestamp":{},"timestampType":"CREATE_TIME","key":"{key}","value":"{value}","headers":[]}}"#,
            change.ts_ms + 250
        );
        *offset += 1;
        size += record.len() + 1;
        if size > limit {
            break;
        }
        if !groups[partition].is_empty() {
            groups[partition].push(',');
        }
        groups[partition].push_str(&record);
    }
    let listed = groups.iter().enumerate().map(|(partition, records)| format!(r#""cdc.shop.all-{partition}":[{records}]"#));
    format!("{HEAD}{}}}}}", listed.collect::<Vec<_>>().join(",")).into_bytes()
}

struct Change {
    table: usize,
    op: char,
    key: i64,
    before: String,
    after: String,
    ts_ms: i64,
    lsn: i64,
}

struct Stream {
    random: Random,
    next_key: Vec<i64>,
    recent: Vec<Vec<i64>>,
    now_us: i64,
    lsn: i64,
    shares: Vec<f64>,
}

impl Stream {
    fn new(tables: usize) -> Self {
        let weights = (1..=tables).map(|rank| 1.0 / rank as f64);
        let total: f64 = weights.clone().sum();
        let shares = weights.scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        });
        Self {
            random: Random::new(7),
            next_key: vec![1_000_000_000; tables],
            recent: vec![Vec::new(); tables],
            now_us: 1_764_400_000_000_000,
            lsn: 88_000_000_000,
            shares: shares.collect(),
        }
    }

    fn next(&mut self) -> Change {
        let place = self.random.unit();
        let table = self.shares.iter().position(|share| place <= *share).unwrap_or(0);
        self.now_us += self.random.between(10, 900);
        self.lsn += self.random.between(50, 400);
        let op = match self.random.unit() {
            p if p < 0.55 => 'c',
            p if p < 0.92 => 'u',
            _ => 'd',
        };
        let key = self.key(table, op);
        let (mut before, mut after) = (String::from("null"), String::from("null"));
        if op == 'd' {
            before = format!(r#"{{"order_id":{key}}}"#);
        } else {
            after.clear();
            write_row(&mut after, &mut self.random, (key, self.now_us));
        }
        if op == 'u' && self.random.chance(0.3) {
            before.clear();
            write_row(&mut before, &mut self.random, (key, self.now_us - 5_000_000));
        }
        Change { table, op, key, before, after, ts_ms: self.now_us / 1000, lsn: self.lsn }
    }

    fn key(&mut self, table: usize, op: char) -> i64 {
        let recent = &mut self.recent[table];
        if op == 'c' {
            self.next_key[table] += self.random.between(1, 4);
            if recent.len() < RECENT_KEYS {
                recent.push(self.next_key[table]);
            } else {
                recent[self.random.between(0, RECENT_KEYS as i64) as usize] = self.next_key[table];
            }
            return self.next_key[table];
        }
        if !recent.is_empty() && self.random.chance(0.4) {
            return recent[self.random.between(0, recent.len() as i64) as usize];
        }
        self.random.between(900_000_000, 1_000_000_000)
    }
}

impl Change {
    fn render(&self, kind: Kind) -> String {
        match kind {
            Kind::Envelope => self.envelope(),
            Kind::Debezium => self.debezium(),
            Kind::DebeziumWithSchema => {
                format!(r#"{{"schema":{},"payload":{}}}"#, connect_schema(&table_name(self.table)), self.debezium())
            }
        }
    }

    fn envelope(&self) -> String {
        let Self { table, op, before, after, ts_ms, lsn, .. } = self;
        let (table, tx) = (table_name(*table), lsn / 7);
        format!(
            r#"{{"source":{{"connector":"postgresql","db":"shop","schema":"public","txId":{tx},"lsn":{lsn}}},"table":"{table}","op":"{op}","ts_ms":{ts_ms},"before":{before},"after":{after}}}"#
        )
    }

    fn debezium(&self) -> String {
        let Self { table, op, before, after, ts_ms, lsn, .. } = self;
        let (table, tx, seen, first) = (table_name(*table), lsn / 7, ts_ms + 200, lsn - 100);
        format!(
            r#"{{"before":{before},"after":{after},"source":{{"version":"3.0.2.Final","connector":"postgresql","name":"shopcdc","ts_ms":{ts_ms},"snapshot":"false","db":"shop","sequence":"[\"{first}\",\"{lsn}\"]","ts_us":{ts_ms}123,"ts_ns":{ts_ms}123000,"schema":"public","table":"{table}","txId":{tx},"lsn":{lsn},"xmin":null}},"transaction":null,"op":"{op}","ts_ms":{seen},"ts_us":{seen}456,"ts_ns":{seen}456000}}"#
        )
    }
}

fn connect_schema(table: &str) -> String {
    let fields = [
        connect_row(table, "before"),
        connect_row(table, "after"),
        r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":"true,last,false,incremental"},"default":"false","field":"snapshot"},{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},{"type":"string","optional":false,"field":"schema"},{"type":"string","optional":false,"field":"table"},{"type":"int64","optional":true,"field":"txId"},{"type":"int64","optional":true,"field":"lsn"},{"type":"int64","optional":true,"field":"xmin"}],"optional":false,"name":"io.debezium.connector.postgresql.Source","field":"source"}"#.to_owned(),
        r#"{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"}"#.to_owned(),
    ];
    let fields = fields.join(",");
    format!(r#"{{"type":"struct","fields":[{fields}],"optional":false,"name":"shopcdc.public.{table}.Envelope","version":2}}"#)
}

fn connect_row(table: &str, field: &str) -> String {
    const MICROS: &str = r#","name":"io.debezium.time.MicroTimestamp","version":1"#;
    let plain = [
        ("order_id", "int64", ""),
        ("customer_id", "int64", ""),
        ("order_no", "string", ""),
        ("status", "string", ""),
        ("currency", "string", ""),
        ("total_amount", "string", ""),
        ("tax_amount", "string", ""),
        ("created_at", "int64", MICROS),
        ("updated_at", "int64", MICROS),
        ("is_gift", "boolean", ""),
    ];
    let mut fields = String::new();
    for (name, kind, semantic) in plain {
        let optional = name != "order_id";
        let _ = write!(fields, r#"{{"type":"{kind}","optional":{optional}{semantic},"field":"{name}"}},"#);
    }
    let parts = ["street", "city", "zip", "country"].map(|part| format!(r#"{{"type":"string","optional":true,"field":"{part}"}}"#));
    let parts = parts.join(",");
    let _ = write!(fields, r#"{{"type":"struct","fields":[{parts}],"optional":true,"field":"shipping"}},"#);
    fields.push_str(r#"{"type":"string","optional":true,"field":"notes"}"#);
    format!(r#"{{"type":"struct","fields":[{fields}],"optional":true,"name":"shopcdc.public.{table}.Value","field":"{field}"}}"#)
}
