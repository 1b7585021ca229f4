//! What a REST catalog would be sent must say the same as the metadata that file catalogs write.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use iceberg::{TableRequirement, TableUpdate};
use sluice_model::{Column, ColumnType, TableName};
use sluice_table::{CommitError, RowDelta, StagedChange, TableError, TableOperations, TableVersion, Truncate};
use sluice_testkit::tables;
use support::Fixture;

struct Recording {
    inner: Arc<dyn TableOperations>,
    seen: Mutex<Vec<(TableVersion, StagedChange)>>,
}

#[async_trait]
impl TableOperations for Recording {
    fn name(&self) -> &TableName {
        self.inner.name()
    }

    async fn refresh(&self) -> Result<TableVersion, TableError> {
        self.inner.refresh().await
    }

    async fn commit(&self, base: &TableVersion, change: &StagedChange) -> Result<TableVersion, CommitError> {
        self.seen.lock().unwrap().push((base.clone(), change.clone()));
        self.inner.commit(base, change).await
    }
}

/// The metadata as a server makes it from the request's JSON.
fn as_a_server_would(base: &TableVersion, change: &StagedChange) -> TableMetadata {
    let updates: Vec<TableUpdate> = serde_json::from_str(&serde_json::to_string(&change.updates).unwrap()).unwrap();
    let requirements: Vec<TableRequirement> = serde_json::from_str(&serde_json::to_string(&change.requirements).unwrap()).unwrap();
    for requirement in &requirements {
        requirement.check(Some(&base.metadata)).unwrap();
        assert!(requirement.check(None).is_err());
    }
    let mut builder = base.metadata.as_ref().clone().into_builder(Some(base.metadata_location.clone()));
    for update in updates {
        builder = update.apply(builder).unwrap();
    }
    builder.build().unwrap().metadata
}

#[tokio::test]
async fn updates_and_metadata_say_the_same() {
    for version in [2, 3] {
        let mut creation = tables::creation(&["region"]);
        creation.format_version = version;
        let table = Fixture::of(&creation).await;
        let recording = Recording { inner: table.ops.clone(), seen: Mutex::default() };
        let mut wider = tables::schema();
        wider.columns.push(Column::optional(4, "note", ColumnType::String));
        for step in 0..4_i64 {
            let base = table.now().await;
            let mut delta = tables::upsert(&base, &[(step, Some("eu"), 1)], (0, step..step + 1));
            delta.properties.insert("step".to_owned(), step.to_string());
            delta.evolved = (step == 1).then(|| wider.clone());
            delta.truncate = if step == 3 { Truncate::All } else { Truncate::Keep };
            tables::apply(&recording, delta, &table.services).await;
        }
        tables::apply(&recording, RowDelta::on(&table.now().await), &table.services).await;
        let seen = recording.seen.lock().unwrap();
        assert_eq!(seen.len(), 5);
        for (base, change) in seen.iter() {
            assert_eq!(as_a_server_would(base, change), change.metadata);
        }
        let names: Vec<usize> = seen.iter().map(|(_, change)| change.requirements.len()).collect();
        assert_eq!(names, [5, 5, 4, 4, 4], "a new spec and a new column have a requirement of their own");
    }
}
