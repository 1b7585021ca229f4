//! A kill between every two steps: wherever the process dies, the next delivery completes the batch, and every record is there once.

use std::sync::Arc;

use serde_json::json;

use crate::crashing::{Fuse, Moment, Mortal};
use crate::lake::{Lake, Sent, config, content, event, memory, sent};

/// Two tables, a new one among them, two bad records, an update and a delete.
fn batch() -> Vec<Sent> {
    vec![
        sent(0, "orders", "I", json!({"id": 1, "total": 10})),
        sent(1, "items", "I", json!({"id": 1, "sku": "a"})),
        sent(2, "orders", "I", json!({"id": "x"})),
        sent(3, "orders", "U", json!({"id": 1, "total": 11})),
        sent(4, "items", "I", json!({"id": 2, "sku": "b", "extra": 1})),
        sent(5, "orders", "X", json!({"id": 3})),
        sent(6, "items", "D", json!({"id": 1})),
        sent(7, "log", "I", json!({"id": 1, "line": "a"})),
        sent(8, "log", "I", json!({"id": 1, "line": "b"})),
    ]
}

fn settings() -> serde_json::Value {
    config(json!({"table_defaults": {"on_unknown_column": "add"}, "tables": {"erp.log": {"mode": "append"}}}))
}

/// Runs the batch with a process that dies at call `calls`; whether it died.
async fn dies_at(lake: &Lake, calls: usize, moment: Moment) -> bool {
    let fuse = Fuse::new(calls, moment);
    let catalog = Arc::new(Mortal { inner: Arc::clone(&lake.ingest.catalog), fuse: Arc::clone(&fuse) });
    let mortal = Lake::over(settings(), catalog, lake.services.clone());
    let event = event(&batch());
    tokio::select! {
        biased;
        () = fuse.blown() => true,
        reply = mortal.invoke(&event) => {
            reply.unwrap();
            false
        }
    }
}

async fn survives_deaths(moment: Moment) -> usize {
    let reference = Lake::new(settings());
    reference.send(&batch()).await;
    let expected = reference.content().await;
    assert_eq!(expected["ops.error_records"].len(), 2);
    for calls in 0..1_000 {
        let services = sluice_testkit::TestServices::seeded(calls as u64 + 1);
        let lake = Lake::over(settings(), memory(&services), services);
        let died = dies_at(&lake, calls, moment).await;
        lake.send(&batch()).await;
        assert_eq!(content(lake.ingest.catalog.as_ref()).await, expected, "died {moment:?} call {calls}");
        if !died {
            return calls;
        }
    }
    panic!("the batch needs more than 1,000 calls");
}

#[tokio::test]
async fn a_kill_before_any_call_loses_and_doubles_nothing() {
    assert!(survives_deaths(Moment::Before).await > 15);
}

#[tokio::test]
async fn a_kill_after_any_call_loses_and_doubles_nothing() {
    assert!(survives_deaths(Moment::After).await > 15);
}
