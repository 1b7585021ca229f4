//! The sample events: each is executed, and its outcome is what events/README.md says. Then each way of delivering them again must leave
//! the same tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sluice_model::BatchTally;

use crate::lake::Lake;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../events")
}

fn lake() -> Lake {
    let text = std::fs::read_to_string(folder().join("sluice.toml")).unwrap();
    let mut lake = Lake::new(crate::lake::config(json!({})));
    lake.ingest.settings = sluice_runtime::Settings::from_toml(&text).unwrap();
    lake
}

/// The events in order: name and payload.
fn events() -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join("kafka")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())).collect()
}

/// The outcome as a row of the table in events/README.md.
fn outcome(name: &str, tally: &BatchTally) -> String {
    let codes: Vec<String> = tally.dead_letters_by_code.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let BatchTally { rows, deletes, control, stale, replayed, .. } = tally;
    format!("| {name} | {rows} | {deletes} | {control} | {stale} | {replayed} | {} |", codes.join(", "))
}

#[tokio::test]
async fn every_event_has_the_outcome_that_its_readme_says() {
    let lake = lake();
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let documented: Vec<&str> = readme.lines().filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit()).collect();
    let mut found = Vec::new();
    for (name, event) in events() {
        found.push(outcome(&name, &lake.invoke(&event).await.unwrap().tally));
    }
    assert_eq!(found.join("\n"), documented.join("\n"));
}

async fn after(deliveries: impl IntoIterator<Item = Vec<u8>>) -> BTreeMap<String, Vec<String>> {
    let lake = lake();
    for event in deliveries {
        lake.invoke(&event).await.unwrap();
    }
    lake.content().await
}

#[tokio::test]
async fn delivering_everything_twice_changes_nothing() {
    let once = after(events().into_iter().map(|(_, event)| event)).await;
    let each_twice = after(events().into_iter().flat_map(|(_, event)| [event.clone(), event])).await;
    assert_eq!(each_twice, once);
    let all_twice = after(events().into_iter().chain(events()).map(|(_, event)| event)).await;
    assert_eq!(all_twice, once);
}

#[tokio::test]
async fn two_invocations_of_each_event_at_once_change_nothing() {
    let once = after(events().into_iter().map(|(_, event)| event)).await;
    let lake = lake();
    for (name, event) in events() {
        let (first, second) = futures::join!(lake.invoke(&event), lake.invoke(&event));
        let (first, second) = (first.unwrap().tally, second.unwrap().tally);
        assert!(first.replayed + second.replayed + first.control + second.control >= first.received, "{name}");
    }
    assert_eq!(lake.content().await, once);
}

#[tokio::test]
async fn a_second_delivery_is_all_replayed_but_for_control_that_no_table_remembers() {
    let lake = lake();
    for (name, event) in events() {
        let first = lake.invoke(&event).await.unwrap().tally;
        let second = lake.invoke(&event).await.unwrap().tally;
        // A table that took rows of the batch claims all of it, heartbeats included; without one nothing remembers them.
        let forgotten = if first.rows + first.deletes > 0 { 0 } else { first.control };
        assert_eq!((second.control, second.replayed), (forgotten, first.received - forgotten), "{name}");
    }
}

/// The records of an event, one event each, in the order of the batch.
fn one_by_one(event: &[u8]) -> Vec<Vec<u8>> {
    let event: Value = serde_json::from_slice(event).unwrap();
    let groups = event["records"].as_object().unwrap();
    let records = groups.iter().flat_map(|(group, records)| records.as_array().unwrap().iter().map(move |record| (group, record)));
    records.map(|(group, record)| serde_json::to_vec(&json!({"records": {group: [record]}})).unwrap()).collect()
}

#[tokio::test]
async fn cutting_the_batches_differently_changes_nothing() {
    // What a batch decides as a whole (types inferred together, a version that orders it) has its own cases; these events do not depend on it.
    let whole = |event: &[u8]| serde_json::to_vec(&serde_json::from_slice::<Value>(event).unwrap()).unwrap();
    let once = after(events().into_iter().map(|(_, event)| whole(&event))).await;
    let single = after(events().into_iter().flat_map(|(_, event)| one_by_one(&event))).await;
    assert_eq!(single, once);
}

#[tokio::test]
async fn public_sample_events_are_taken_or_refused_with_a_code() {
    // Shapes that public repositories show, written anew: keys absent and empty, headers with signed bytes, map keys that name another partition.
    let accepted = [
        json!({"eventSource": "aws:kafka", "records": {"mytopic-01": [{"topic": "mytopic1", "partition": 0, "offset": 15, "timestamp": 1_596_480_920_837_i64, "timestampType": "CREATE_TIME", "value": "aGVsbG8="}]}}),
        json!({"eventSource": "aws:SelfManagedKafka", "bootstrapServers": "b:9092", "records": {"t-0": [{"topic": "t", "partition": 0, "offset": 15, "key": "", "value": "aGVsbG8=", "headers": [{"h": [104, -36, 0, 127, -128]}]}]}}),
        json!({"records": {}}),
    ];
    let lake = lake();
    for event in accepted {
        lake.invoke(&serde_json::to_vec(&event).unwrap()).await.unwrap();
    }
    let refused = [
        (json!({"KafkaBatchInfo": {"batchSize": 1}, "payload": {"records": {"t-0": []}}}), "EVENT_ON_FAILURE_RECORD"),
        (json!([{"topic": "t", "partition": 5, "offset": 1, "value": "aGk="}]), "EVENT_PIPES_BATCH"),
        (json!({"source": "aws.events", "detail-type": "Scheduled Event"}), "EVENT_NOT_KAFKA"),
    ];
    for (event, code) in refused {
        let error = lake.invoke(&serde_json::to_vec(&event).unwrap()).await.unwrap_err();
        assert!(error.to_string().starts_with(code), "{error}");
    }
}
