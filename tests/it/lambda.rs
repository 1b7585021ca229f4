//! The real Lambda binary, driven through a small fake of the Runtime API on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::binaries::{COMPACT, EXPIRE_SNAPSHOTS, INGEST, REDRIVE, REMOVE_ORPHANS, REWRITE_MANIFESTS};
use crate::lake::{Sent, event, sent};
use crate::maintenance::{lake, rows};

/// One invocation: the event and how long the function has.
struct Invocation {
    event: Vec<u8>,
    deadline: Duration,
}

/// What the function answered: the path it posted to, and the body.
type Answer = (String, Value);

/// The function's process and the two ends of its Runtime API.
struct Function {
    process: Child,
    invocations: Sender<Invocation>,
    answers: Receiver<Answer>,
    /// Where its standard output goes.
    output: PathBuf,
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Function {
    fn start(folder: &Path, config: &str) -> Self {
        Self::of(&INGEST, folder, config)
    }

    fn of(binary: &Path, folder: &Path, config: &str) -> Self {
        let path = folder.join("sluice.toml");
        std::fs::write(&path, config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (invocations, next) = channel();
        let (answered, answers) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(&stream, &next, &answered);
            }
        });
        let output = folder.join("stdout");
        let process = Command::new(binary)
            .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "ingest")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
            .env("SLUICE_CONFIG", &path)
            .stdout(std::fs::File::create(&output).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, invocations, answers, output }
    }

    fn invoke(&self, event: Vec<u8>, deadline: Duration) -> Answer {
        self.invocations.send(Invocation { event, deadline }).unwrap();
        self.answers.recv_timeout(Duration::from_secs(120)).unwrap()
    }

    /// All lines of the standard output; each is JSON.
    fn lines(&self) -> Vec<Value> {
        std::fs::read_to_string(&self.output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Serves one connection: GET …/next waits for an invocation, POST …/response and …/error carry an answer.
fn serve(stream: &TcpStream, invocations: &Receiver<Invocation>, answers: &Sender<Answer>) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let Some((request, body)) = read_request(&mut reader) else { return };
        if request.starts_with("GET") {
            let Ok(invocation) = invocations.recv() else { return };
            let deadline = (SystemTime::now() + invocation.deadline).duration_since(UNIX_EPOCH).unwrap().as_millis();
            let head = format!(
                "HTTP/1.1 200 OK\r\nlambda-runtime-aws-request-id: r1\r\nlambda-runtime-deadline-ms: {deadline}\r\n\
                 lambda-runtime-invoked-function-arn: arn:aws:lambda:eu-west-1:1:function:ingest\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n",
                invocation.event.len()
            );
            writer.write_all(head.as_bytes()).unwrap();
            writer.write_all(&invocation.event).unwrap();
        } else {
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            answers.send((path, serde_json::from_slice(&body).unwrap_or(Value::Null))).unwrap();
            writer.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut request = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if request.is_empty() {
            request.clone_from(&line);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((request, body))
}

const CONFIG: &str = r#"
[catalog]
type = "sql"
warehouse = "warehouse"
uri = "sqlite://catalog.db"
[source]
id = "lambda-test"
[[source.formats]]
type = "envelope"
[route]
table = "erp.{table}"
[table_defaults]
on_missing_table = "create"
key = ["id"]
[commit]
reserve_ms = 1000
"#;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn the_function_answers_with_its_account_and_survives_bad_events() {
    let folder = tempfile::tempdir().unwrap();
    let function = Function::start(folder.path(), CONFIG);
    let records = [sent(0, "a", "I", json!({"id": 1})), sent(1, "a", "X", json!({"id": 2}))];
    let (path, reply) = function.invoke(event(&records), MINUTE);
    assert!(path.ends_with("/response"), "{path} {reply}");
    assert_eq!((reply["tally"]["rows"].as_u64(), reply["tally"]["dead_letters"].as_u64()), (Some(1), Some(1)));
    let (path, error) = function.invoke(b"{\"no\":\"records\"}".to_vec(), MINUTE);
    assert!(path.ends_with("/error"), "{path}");
    assert_eq!(error["errorType"], "EVENT_NOT_KAFKA");
    let (_, again) = function.invoke(event(&records), MINUTE);
    assert_eq!(again["tally"]["replayed"], 2, "{again}");
}

#[test]
fn refused_records_are_redriven_by_a_function_that_only_looks_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let records = [sent(0, "a", "I", json!({"id": 1})), sent(1, "a", "X", json!({"id": 2}))];
    Function::start(folder.path(), CONFIG).invoke(event(&records), MINUTE);
    let mended = CONFIG.replace("type = \"envelope\"", "type = \"envelope\"\noperations = { insert = [\"I\", \"X\"] }");
    let function = Function::of(&REDRIVE, folder.path(), &mended);
    let ask = |request: Value| function.invoke(request.to_string().into_bytes(), MINUTE);
    let (path, reply) = ask(json!({}));
    assert!(path.ends_with("/response"), "{path} {reply}");
    assert_eq!((&reply["dry_run"], &reply["fates"]), (&json!(true), &json!({"applied": 1})));
    let (path, error) = ask(json!({"tabel": "erp.a", "dry_run": false}));
    assert_eq!((path.ends_with("/error"), &error["errorType"]), (true, &json!("REQUEST_INVALID")), "{error}");
    let (_, reply) = ask(json!({"table": "erp.b", "dry_run": false}));
    assert_eq!(reply["selected"], 0, "its table was not known when it was refused");
    let (_, reply) = ask(json!({"code": "OP_UNKNOWN", "dry_run": false}));
    assert_eq!((&reply["dry_run"], &reply["fates"]), (&json!(false), &json!({"applied": 1})));
    let (_, reply) = ask(json!({"dry_run": false}));
    assert_eq!(reply["selected"], 0);
}

#[test]
fn an_event_of_six_megabytes_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let function = Function::start(folder.path(), CONFIG);
    let text = "x".repeat(400);
    let records: Vec<Sent> = (0..9_000).map(|offset| sent(offset, "big", "I", json!({"id": offset, "text": text}))).collect();
    let event = event(&records);
    assert!((5_500_000..6_300_000).contains(&event.len()), "{}", event.len());
    let (path, reply) = function.invoke(event, MINUTE);
    assert!(path.ends_with("/response"), "{path} {reply}");
    assert_eq!(reply["tally"]["rows"], 9_000);
}

#[test]
fn a_deadline_that_is_too_near_fails_cleanly_and_the_redelivery_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let function = Function::start(folder.path(), CONFIG);
    let records = [sent(0, "a", "I", json!({"id": 1}))];
    // The reserve is longer than the time that is left: nothing may be started.
    let (path, error) = function.invoke(event(&records), Duration::from_millis(900));
    assert!(path.ends_with("/error"), "{path} {error}");
    assert_eq!(error["errorType"], "DEADLINE");
    let (_, reply) = function.invoke(event(&records), MINUTE);
    assert_eq!(reply["tally"]["rows"], 1);
}

#[test]
fn an_invocation_writes_one_line_which_is_its_account_and_its_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let function = Function::start(folder.path(), CONFIG);
    let event = event(&[sent(0, "a", "I", json!({"id": 1})), sent(1, "b", "I", json!({"id": 2})), sent(2, "a", "X", json!({"id": 3}))]);
    let (_, reply) = function.invoke(event.clone(), MINUTE);
    let [line] = function.lines().try_into().unwrap();
    let names: Vec<&str> = metrics(&line).collect();
    for name in ["records_received", "unbalanced", "commits", "commit_duration_ms", "dead_letters_OP_UNKNOWN", "event_bytes"] {
        assert!(names.contains(&name), "{name} is missing: {line}");
    }
    assert!(names.iter().all(|name| !line[name].is_null()), "{line}");
    assert_eq!((&line["FunctionName"], &line["request_id"], &line["tally"]), (&json!("ingest"), &json!("r1"), &reply["tally"]));
    assert_eq!(["commits", "records_committed", "unbalanced"].map(|name| line[name].as_i64()), [Some(2), Some(2), Some(0)]);
    assert_eq!((line["event_bytes"].as_u64(), line["commit_duration_ms"].as_array().unwrap().len()), (Some(event.len() as u64), 2));
    function.invoke(b"{}".to_vec(), MINUTE);
    let [_, failed] = function.lines().try_into().unwrap();
    assert_eq!((&failed["error_type"], failed["invocations_failed"].as_i64()), (&json!("EVENT_NOT_KAFKA"), Some(1)));
    assert!(metrics(&failed).all(|name| name != "unbalanced" && name != "records_received"), "{failed}");
}

/// The answer of a function, which must not be an error.
fn answered(function: &Function, request: &Value) -> Value {
    let (path, reply) = function.invoke(request.to_string().into_bytes(), Duration::from_secs(900));
    assert!(path.ends_with("/response"), "{path} {reply}");
    reply
}

fn kinds(reply: &Value) -> Vec<&str> {
    reply["reports"].as_array().unwrap().iter().map(|report| report["outcome"]["kind"].as_str().unwrap()).collect()
}

/// What the template's schedule named `schedule` asks.
fn scheduled(schedule: &str) -> Value {
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/sam/maintenance.yaml");
    let template = std::fs::read_to_string(template).unwrap();
    let (_, resource) = template.split_once(&format!("\n  {schedule}:\n")).unwrap();
    let (_, input) = resource.split_once("Input: '").unwrap();
    serde_json::from_str(input.split_once('\'').unwrap().0).unwrap()
}

#[test]
fn the_maintenance_functions_do_what_their_schedules_ask_and_change_no_row() {
    let lake = lake();
    let config = std::fs::read_to_string(lake.path().join("sluice.toml")).unwrap();
    let before = rows(lake.path());
    let functions = [
        // First, because compaction leaves too few manifests to rewrite.
        (&REWRITE_MANIFESTS, "RewriteManifestsTimer", "done"),
        (&COMPACT, "CompactTimer", "done"),
        (&EXPIRE_SNAPSHOTS, "ExpireSnapshotsTimer", "done"),
        (&REMOVE_ORPHANS, "RemoveOrphansTimer", "nothing-due"),
    ];
    for (binary, schedule, expected) in functions {
        let function = Function::of(binary, lake.path(), &config);
        let reply = answered(&function, &scheduled(schedule));
        assert!(kinds(&reply).contains(&expected), "{schedule}: {reply:#}");
        assert_eq!((rows(lake.path()), reply["mb_seconds"].is_u64()), (before.clone(), true), "{schedule}");
        // A plain EventBridge rule asks with its own event, and once more there is less to do.
        let nightly = include_str!("../../events/schedule/nightly.json");
        let again = answered(&function, &serde_json::from_str(nightly).unwrap());
        assert!(kinds(&again).iter().all(|kind| *kind == "nothing-due"), "{schedule}: {again:#}");
        let (path, error) = function.invoke(b"{\"tabels\": [\"*\"]}".to_vec(), MINUTE);
        assert_eq!((path.ends_with("/error"), &error["errorType"]), (true, &json!("REQUEST_INVALID")), "{error}");
        let [did, _, refused] = function.lines().try_into().unwrap();
        assert_eq!((&did["message"], &refused["invocations_failed"]), (&json!("maintained"), &json!(1)));
        assert!(metrics(&did).all(|name| !did[name].is_null()), "{did}");
    }
    assert_eq!(rows(lake.path()), before);
}

#[test]
fn compaction_tells_what_readers_had_to_bear() {
    let lake = lake();
    let config = std::fs::read_to_string(lake.path().join("sluice.toml")).unwrap();
    let function = Function::of(&COMPACT, lake.path(), &config);
    let reply = answered(&function, &json!({"mode": "plan"}));
    let worst = |key: &str| reply["reports"].as_array().unwrap().iter().filter_map(|report| report["burden"][key].as_i64()).max().unwrap();
    let [line] = function.lines().try_into().unwrap();
    let told = |name: &str| line[name].as_array().unwrap()[0].as_i64().unwrap();
    assert_eq!(
        ["small_files", "delete_files", "equality_deletes"].map(worst),
        ["table_small_files", "table_delete_files", "table_equality_deletes"].map(told)
    );
    assert!(worst("small_files") > 1, "{reply:#}");
    assert_eq!((&line["job"], line["tables_maintained"].as_i64()), (&json!("compact"), Some(0)));
}

/// The names of the metrics that CloudWatch takes from a line.
fn metrics(line: &Value) -> impl Iterator<Item = &str> {
    let [directive] = line["_aws"]["CloudWatchMetrics"].as_array().unwrap().as_slice() else { panic!("{line}") };
    assert_eq!(directive["Dimensions"], json!([["FunctionName"]]));
    directive["Metrics"].as_array().unwrap().iter().map(|metric| metric["Name"].as_str().unwrap())
}
