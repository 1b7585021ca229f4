//! What an operator does with `sluice run`.

use serde_json::Value;

use crate::broker::{self, produce};
use crate::collector::Collector;
use crate::model::Model;
use crate::program::Program;
use crate::records::{ERROR_TOPIC, Fate, Record, TOPICS, config, record};
use crate::rng::Rng;

/// The same topics under another name, so that tests do not meet.
fn config_of(prefix: &str) -> String {
    config(&broker::address()).replace("cdc.", prefix)
}

async fn filled(prefix: &str, records: u64) -> (Program, Model) {
    filled_with(prefix, records, Vec::new()).await
}

/// The same with further records behind.
async fn filled_with(prefix: &str, records: u64, further: Vec<Record>) -> (Program, Model) {
    let names: Vec<String> = TOPICS.iter().map(|topic| topic.replace("cdc.", prefix)).collect();
    broker::topics(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    broker::topics(&[&ERROR_TOPIC.replace("cdc.", prefix)]).await;
    let mut rng = Rng(11);
    let mut model = Model::default();
    let records = (0..records).map(|n| record(&mut rng, n)).chain(further).map(|made| {
        let topic = names.iter().find(|name| name.ends_with(made.topic.trim_start_matches("cdc."))).unwrap().clone();
        Record { topic: topic.leak(), ..made }
    });
    produce(&broker::producer(), records.collect(), &mut model).await;
    (Program::new(&config_of(prefix)), model)
}

#[tokio::test]
async fn a_stop_ends_in_order_and_metrics_are_served_meanwhile() {
    let (program, model) = filled("stop.", 5_000).await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut running = program.start(&["run", "--metrics", &address, "--report-every-s", "1"], "run");
    running.wait_for("\"records\":5000");
    let metrics = http_get(&address);
    assert!(metrics.contains("sluice_records_total 5000"), "{metrics}");
    assert!(metrics.contains("sluice_lag 0"), "{metrics}");
    assert!(metrics.contains("sluice_table_units_total{table=\"lake.orders\",outcome=\"rows\"}"), "{metrics}");
    running.stop();
    model.compare(&program);
}

fn http_get(address: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn a_collector_gets_the_spans_and_a_dead_one_costs_no_batch() {
    let (mut program, model) = filled("spans.", 2_000).await;
    let collector = Collector::start();
    program.variables = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint.clone()), ("OTEL_SERVICE_NAME", "erp-to-lake".to_owned())];
    assert_eq!(program.run_to_end(&[])["records"], 2_000);
    for text in ["erp-to-lake", "batch", "read", "resolve", "dead_letters", "table", "write", "commit", "lake.orders"] {
        assert!(collector.has(text), "no span has `{text}`");
    }
    program.variables = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9".to_owned())];
    assert_eq!(program.run_to_end(&["--group", "again", "--start", "earliest"])["records"], 2_000);
    model.compare(&program);
}

#[tokio::test]
async fn starting_positions_are_those_of_the_command_line() {
    let (program, model) = filled("start.", 3_000).await;
    let records = |arguments: &[&str]| program.run_to_end(arguments)["records"].as_u64().unwrap();
    assert_eq!(records(&["--group", "late", "--start", "latest"]), 0);
    assert_eq!(records(&["--group", "future", "--start", "2100-01-01T00:00:00Z"]), 0);
    let (code, text) = program.fails(&["run", "--until", "end", "--group", "none", "--start", "committed"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("NO_COMMITTED_OFFSET"), "{text}");
    assert_eq!(records(&["--start", "2000-01-01T00:00:00Z"]), 3_000);
    assert_eq!(records(&[]), 0);
    model.compare(&program);
}

/// A backfill by several processes: each ends by itself, and only when all of it is applied, whoever has the last partition.
#[tokio::test]
async fn two_instances_read_to_the_end_together() {
    let (program, model) = filled("pair.", 30_000).await;
    let arguments = ["run", "--until", "end", "--batch-size", "1000", "--report-every-s", "1"];
    let pair = [program.start(&arguments, "one"), program.start(&arguments, "other")];
    let [one, other] = pair;
    one.end();
    model.compare(&program);
    other.end();
}

/// Taking a table back and replaying from where it says gives the same rows, and changes no other table.
#[tokio::test]
async fn a_rewind_and_a_replay_give_the_same_rows() {
    let (program, model) = filled("back.", 20_000).await;
    program.run_to_end(&["--batch-size", "1000"]);
    model.compare(&program);
    let rewound: Value =
        serde_json::from_str(&program.ok(&["rewind", "--table", "lake.invoices", "--to", "back.mixed:0:500", "--json"])).unwrap();
    assert_eq!(rewound["end"], "done", "{rewound}");
    assert!(program.rows("lake.invoices").len() < 2_000, "{rewound}");
    let positions: Vec<String> = rewound["replay"]
        .as_array()
        .unwrap()
        .iter()
        .map(|replay| format!("{}:{}:{}", replay["topic"].as_str().unwrap(), replay["partition"], replay["from"]))
        .collect();
    let seeks = positions.iter().flat_map(|position| ["--seek", position]);
    program.run_to_end(&seeks.collect::<Vec<_>>());
    model.compare(&program);
}

/// The whole way of a bad record: refused, on the error topic and in the error table; the cause is mended; it is redriven, once.
#[tokio::test]
async fn refused_records_are_applied_when_their_cause_is_mended() {
    let refused = |n: u64| Record {
        topic: "cdc.erp",
        key: format!("o{n}"),
        value: Some(
            format!(r#"{{"meta":{{"source":"erp","table":"orders","op":"I"}},"data":{{"id":{n},"n":{n},"total":-5}}}}"#).into_bytes(),
        ),
        headers: Vec::new(),
        fate: Fate::Refused("CHECK_FAILED"),
    };
    let (program, model) = filled_with("mend.", 3_000, (100_000..100_050).map(refused).collect()).await;
    program.run_to_end(&["--batch-size", "500"]);
    model.compare(&program);
    program.reconfigure("checks = [\"total >= 0\"]", "checks = [\"total >= -10\"]");
    let redriven = program.ok(&["errors", "redrive", "--table", "lake.orders", "--code", "CHECK_FAILED", "--json"]);
    let orders = program.rows("lake.orders");
    let late = orders.iter().filter(|row| row["id"].as_u64() >= Some(100_000) && row["total"] == -5).count();
    assert_eq!(late, 50, "{redriven}");
    let again: Value = serde_json::from_str(&program.ok(&["errors", "redrive", "--table", "lake.orders", "--json"])).unwrap();
    assert_eq!(again["fates"].get("applied"), None, "{again}");
    assert_eq!(program.rows("lake.orders"), orders);
    // What Kafka delivers again is known, redriven records too.
    program.run_to_end(&["--reset"]);
    assert_eq!(program.rows("lake.orders").len(), orders.len());
}
