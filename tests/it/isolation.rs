//! One broken table never stops the others (promise R4), and dead letters come before the data tables' claims.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use sluice_deadletter::{DeadLetter, ErrorTopic, Published, TopicError};
use sluice_model::{Class, Deadline, ReasonCode, TableName};
use sluice_table::{Catalog, CreateOutcome, TableCreation, TableError, TableOperations};
use sluice_testkit::TestServices;

use crate::lake::{Lake, Sent, config, event, memory, sent};

/// A catalog that may not load one table.
struct Denying {
    inner: Arc<dyn Catalog>,
    denied: TableName,
    class: Class,
}

#[async_trait]
impl Catalog for Denying {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        if *name == self.denied {
            return Err(TableError::Catalog { class: self.class, what: "access denied".to_owned(), source: None });
        }
        self.inner.load(name).await
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        self.inner.create(name, creation).await
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        self.inner.tables().await
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        self.inner.drop_table(name).await
    }
}

fn denying(table: &str, class: Class, over: serde_json::Value) -> Lake {
    let services = TestServices::seeded(9);
    let catalog = Denying { inner: memory(&services), denied: TableName::parse(table).unwrap(), class };
    Lake::over(config(over), Arc::new(catalog), services)
}

fn batch() -> Vec<Sent> {
    ["a", "b", "c"].iter().zip(0..).map(|(table, offset)| sent(offset, table, "I", json!({"id": 1}))).collect()
}

#[tokio::test]
async fn fatal_trouble_with_one_table_dead_letters_its_records_and_commits_the_others() {
    let lake = denying("erp.b", Class::Fatal, json!({}));
    let tally = lake.send(&batch()).await;
    assert_eq!((tally.rows, tally.dead_letters_by_code.get(&ReasonCode::TableUnavailable)), (2, Some(&1)));
}

#[tokio::test]
async fn on_unavailable_block_fails_the_invocation_after_the_others_committed() {
    let lake = denying("erp.b", Class::Fatal, json!({"tables": {"erp.b": {"on_unavailable": "block"}}}));
    let error = lake.invoke(&event(&batch())).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
    assert!(error.to_string().contains("erp.b"), "{error}");
    assert_eq!(crate::lake::rows(lake.ingest.catalog.as_ref(), &TableName::parse("erp.a").unwrap()).await.len(), 1);
    assert_eq!(crate::lake::rows(lake.ingest.catalog.as_ref(), &TableName::parse("erp.c").unwrap()).await.len(), 1);
}

#[tokio::test]
async fn transient_trouble_fails_the_invocation_and_dead_letters_nothing() {
    let lake = denying("erp.b", Class::Transient, json!({}));
    let error = lake.invoke(&event(&batch())).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert!(!lake.ingest.catalog.tables().await.unwrap().iter().any(|name| name.as_str() == "ops.error_records"));
}

#[tokio::test]
async fn without_the_error_table_no_data_table_claims_a_batch_with_refused_records() {
    let lake = denying("ops.error_records", Class::Fatal, json!({}));
    let mut records = batch();
    records.push(sent(3, "a", "nonsense", json!({"id": 2})));
    assert!(lake.invoke(&event(&records)).await.is_err());
    assert!(lake.ingest.catalog.tables().await.unwrap().is_empty());
}

/// A topic that is down.
struct DownTopic;

#[async_trait]
impl ErrorTopic for DownTopic {
    async fn publish(&self, _letters: &[&DeadLetter], _deadline: Deadline) -> Result<Published, TopicError> {
        Err(TopicError { class: Class::Transient, what: "no broker".to_owned(), published: Published::default() })
    }
}

#[tokio::test]
async fn the_error_topic_comes_before_the_error_table() {
    let mut lake = Lake::new(config(json!({})));
    lake.ingest.topic = Arc::new(DownTopic);
    let records = [sent(0, "a", "nonsense", json!({"id": 2})), sent(1, "a", "I", json!({"id": 1}))];
    assert!(lake.invoke(&event(&records)).await.is_err());
    let rows = lake.content().await;
    assert!(rows.get("ops.error_records").is_none_or(Vec::is_empty), "{rows:?}");
    assert!(rows.get("erp.a").is_none_or(Vec::is_empty), "{rows:?}");
    lake.ingest.topic = Arc::new(sluice_deadletter::NoTopic);
    let tally = lake.send(&records).await;
    assert_eq!((tally.rows, tally.dead_letters), (1, 1));
}

#[tokio::test]
async fn a_dead_letter_stays_decided_when_the_table_would_take_it_later() {
    let services = TestServices::seeded(4);
    let catalog = memory(&services);
    let strict =
        Lake::over(config(json!({"table_defaults": {"on_unknown_column": "dead-letter"}})), Arc::clone(&catalog), services.clone());
    strict.send(&[sent(0, "a", "I", json!({"id": 1}))]).await;
    assert_eq!(strict.send(&[sent(1, "a", "I", json!({"id": 2, "extra": 1}))]).await.dead_letters, 1);
    let lenient = Lake::over(config(json!({"table_defaults": {"on_unknown_column": "add"}})), catalog, services);
    let again = lenient.send(&[sent(1, "a", "I", json!({"id": 2, "extra": 1}))]).await;
    assert_eq!((again.replayed, again.rows), (1, 0));
    assert_eq!(lenient.content().await["erp.a"], ["id=1"], "and it leaves no trace in the schema");
}
