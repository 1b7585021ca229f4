//! Invocations at the same time, over the same and over overlapping records: nothing is lost, nothing doubled.

use serde_json::json;
use sluice_model::BatchTally;

use crate::lake::{Lake, Sent, config, event, sent};

/// Records 0..count, each a row of an append table, every seventh one bad.
fn records(count: i64) -> Vec<Sent> {
    let row = |offset| sent(offset, "log", "I", if offset % 7 == 3 { json!({"id": "bad"}) } else { json!({"id": offset}) });
    (0..count).map(row).collect()
}

fn appending() -> Lake {
    Lake::new(config(json!({
        "table_defaults": {"mode": "append", "key": []},
        "tables": {"erp.log": {"columns": {"id": {"type": "long"}}}},
    })))
}

#[tokio::test]
async fn two_invocations_of_one_batch_apply_it_once() {
    let lake = appending();
    let event = event(&records(20));
    let (first, second) = futures::join!(lake.invoke(&event), lake.invoke(&event));
    let mut both = BatchTally::default();
    both.add(&first.unwrap().tally);
    both.add(&second.unwrap().tally);
    assert_eq!((both.rows, both.dead_letters, both.replayed), (17, 3, 20));
    assert_eq!(lake.content().await["erp.log"].len(), 17);
    assert_eq!(lake.content().await["ops.error_records"].len(), 3);
}

#[tokio::test]
async fn overlapping_windows_in_any_order_apply_each_record_once() {
    let all = records(60);
    for seed in 0..40_usize {
        let lake = appending();
        let windows = (0..6).map(|index| {
            let start = (index * 13 + seed * 7) % 50;
            event(&all[start..(start + 10 + seed % 5).min(60)])
        });
        let windows: Vec<Vec<u8>> = windows.collect();
        let results = futures::future::join_all(windows.iter().map(|window| lake.invoke(window))).await;
        assert!(results.iter().all(Result::is_ok), "seed {seed}: {results:?}");
        // Whatever the windows left out comes last, as Kafka would redeliver it.
        lake.invoke(&event(&all)).await.unwrap();
        let content = lake.content().await;
        assert_eq!(content["erp.log"].len(), 51, "seed {seed}");
        assert_eq!(content["ops.error_records"].len(), 9, "seed {seed}");
    }
}

#[tokio::test]
async fn racing_upserts_of_disjoint_partitions_all_arrive() {
    let lake = Lake::new(config(json!({})));
    let of_partition = |partition: i32| {
        let row = move |offset: i64| {
            let record = sent(offset, "item", "U", json!({"id": i64::from(partition) * 1_000 + offset, "n": offset}));
            event(&[Sent { partition, ..record }])
        };
        (0..5).map(row).collect::<Vec<_>>()
    };
    let partitions: Vec<Vec<Vec<u8>>> = (0..6).map(of_partition).collect();
    let lake = &lake;
    let deliveries = partitions.iter().map(|events| async move {
        for event in events {
            lake.invoke(event).await.unwrap();
        }
    });
    futures::future::join_all(deliveries).await;
    assert_eq!(lake.content().await["erp.item"].len(), 30);
}
