//! A function behind an address, on a server of a few lines.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use bytes::Bytes;
use sluice_mapping::{Function, FunctionError, HttpFunction, Progress, metrics};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const ACCOUNT: &str =
    r#"{"tally":{"received":1,"rows":1,"deletes":0,"control":0,"stale":0,"replayed":0,"dead_letters":0},"unbalanced":0,"tables":[]}"#;

/// Answers one request; gives back its first line and body.
async fn answer_once(listener: TcpListener, answer: String) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = vec![0; 4_096];
    let read = stream.read(&mut request).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&request[..read]).into_owned()
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn invoked(answer: String) -> (Result<sluice_mapping::Account, FunctionError>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let function = HttpFunction::at(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (result, request) = tokio::join!(function.invoke(Bytes::from_static(b"{}"), 5_000), answer_once(listener, answer));
    (result, request)
}

#[tokio::test]
async fn the_function_is_invoked_as_lambda_invokes_it() {
    let (result, request) = invoked(response("200 OK", "", ACCOUNT)).await;
    assert_eq!(result.unwrap().tally.rows, 1);
    assert!(request.starts_with("POST /2015-03-31/functions/ingest/invocations HTTP/1.1"), "{request}");
    assert!(request.ends_with("{}"), "{request}");
}

#[tokio::test]
async fn what_is_no_account_is_a_failure() {
    let (result, _) = invoked(response("200 OK", "x-amz-function-error: Unhandled\r\n", r#"{"errorMessage":"TABLES_FAILED"}"#)).await;
    assert!(matches!(result, Err(FunctionError::Failed(text)) if text.contains("TABLES_FAILED")));
    let (result, _) = invoked(response("502 Bad Gateway", "", "")).await;
    assert!(matches!(result, Err(FunctionError::Failed(_))));
    let (result, _) = invoked(response("200 OK", "", "null")).await;
    assert!(matches!(result, Err(FunctionError::NotAnAccount(_))));
    let function = HttpFunction::at("http://127.0.0.1:1").unwrap();
    assert!(matches!(function.invoke(Bytes::new(), 1_000).await, Err(FunctionError::Unreachable(_))));
    assert!(HttpFunction::at("https://example.com").is_err() && HttpFunction::at("nonsense").is_err());
}

#[tokio::test]
async fn metrics_are_in_the_format_of_prometheus() {
    let text = metrics::render(&Arc::new(Progress::default())).unwrap();
    assert!(text.contains("# TYPE sluice_records counter\n"), "{text}");
    assert!(text.contains("sluice_units_total{outcome=\"rows\"} 0\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}
