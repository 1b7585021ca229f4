//! Conflicts, throttling, lost replies: the invocation succeeds or fails, and after the redelivery every record is there once.

use std::sync::Arc;

use serde_json::json;
use sluice_model::Class;
use sluice_testkit::{CommitFault, FaultPlan, FaultyCatalog, TestServices};

use crate::lake::{Lake, Sent, config, content, event, memory, sent};

fn batch() -> Vec<Sent> {
    (0..6).map(|offset| sent(offset, "log", "I", if offset == 4 { json!({"id": "bad"}) } else { json!({"id": offset}) })).collect()
}

fn settings() -> serde_json::Value {
    config(json!({
        "table_defaults": {"mode": "append", "key": []},
        "tables": {"erp.log": {"columns": {"id": {"type": "long"}}}},
        "commit": {"max_attempts": 4},
    }))
}

fn faulty(plan: &Arc<FaultPlan>) -> Lake {
    let services = TestServices::seeded(3);
    let catalog = Arc::new(FaultyCatalog::new(memory(&services), Arc::clone(plan)));
    Lake::over(settings(), catalog, services)
}

async fn recovers(faults: &[CommitFault]) {
    let plan = Arc::new(FaultPlan::default());
    let lake = faulty(&plan);
    plan.on_commits(faults.iter().copied());
    for _ in 0..=faults.len() {
        let reply = lake.invoke(&event(&batch())).await;
        if reply.is_ok() && plan.commits_left() == 0 {
            break;
        }
    }
    lake.send(&batch()).await;
    let content = content(lake.ingest.catalog.as_ref()).await;
    assert_eq!(content["erp.log"].len(), 5, "{faults:?}");
    assert_eq!(content["ops.error_records"].len(), 1, "{faults:?}");
}

#[tokio::test]
async fn every_pair_of_faults_is_survived() {
    let classes = [Class::Conflict, Class::Transient, Class::Unknown];
    let mut kinds = vec![CommitFault::None];
    kinds.extend(classes.map(CommitFault::Instead));
    kinds.push(CommitFault::After(Class::Unknown));
    for first in &kinds {
        for second in &kinds {
            for third in &kinds {
                recovers(&[*first, *second, *third]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_lost_reply_is_found_by_looking() {
    let plan = Arc::new(FaultPlan::default());
    let lake = faulty(&plan);
    plan.on_commits([CommitFault::After(Class::Unknown), CommitFault::After(Class::Unknown)]);
    let tally = lake.send(&batch()).await;
    assert_eq!((tally.rows, tally.dead_letters), (5, 1));
}

#[tokio::test]
async fn an_unknown_outcome_that_cannot_be_found_fails_the_invocation() {
    let plan = Arc::new(FaultPlan::default());
    let lake = faulty(&plan);
    lake.send(&batch()[..1]).await;
    plan.on_commits([CommitFault::Instead(Class::Unknown)]);
    let error = lake.invoke(&event(&batch()[1..3])).await.unwrap_err();
    assert_eq!(error.class(), Class::Unknown);
    assert_eq!(lake.send(&batch()[1..3]).await.rows, 2);
}
