//! What every catalog must do.

use std::future::Future;
use std::sync::Arc;

use sluice_model::Class;
use sluice_table::{
    Catalog, CommitError, CreateOutcome, DeltaOutcome, RowDelta, TableError, TableOperations, TableVersion, commit_delta, prepare,
};

use crate::tables::{apply, create, creation, delta, name, read, rows};
use crate::{CommitFault, FaultPlan, FaultyCatalog, TestServices};

/// Whether a namespace may lie in another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// It may, to any depth.
    Nested,
    /// It may not: creating a table in a nested one is refused.
    Flat,
}

/// Who deletes metadata files that fell out of the log, if the table wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldMetadata {
    /// The commit does.
    Deleted,
    /// The service does in its own time; clients must not.
    LeftToTheService,
}

/// Runs the suite; `make` gives an empty catalog each time.
pub async fn catalog_contract<F, Made>(namespaces: Namespaces, make: F)
where
    F: Fn() -> Made,
    Made: Future<Output = Arc<dyn Catalog>>,
{
    catalog_contract_with((namespaces, OldMetadata::Deleted), make).await;
}

/// Runs the suite on a catalog that differs in more than its namespaces.
pub async fn catalog_contract_with<F, Made>((namespaces, old): (Namespaces, OldMetadata), make: F)
where
    F: Fn() -> Made,
    Made: Future<Output = Arc<dyn Catalog>>,
{
    let services = TestServices::seeded(1);
    tables_come_and_go(&*make().await).await;
    namespaces_are_as_deep_as_they_may_be(&*make().await, namespaces).await;
    a_committed_change_is_what_the_next_reader_sees(&*make().await, &services).await;
    a_stale_base_is_a_conflict(&*make().await, &services).await;
    a_lost_reply_is_found_by_reading_again(make().await, &services).await;
    an_unknown_that_did_not_happen_stays_unknown(make().await, &services).await;
    conflicts_and_transient_errors_are_tried_again(make().await, &services).await;
    properties_of_others_are_kept(&*make().await, &services).await;
    a_replaced_table_is_not_written(&*make().await, &services).await;
    two_writers_lose_nothing_and_double_nothing(&*make().await, &services).await;
    the_metadata_log_is_kept_and_cut((&*make().await, old), &services).await;
}

async fn tables_come_and_go(catalog: &dyn Catalog) {
    assert!(catalog.load(&name("a")).await.unwrap().is_none());
    assert_eq!(catalog.create(&name("a"), &creation(&[])).await.unwrap(), CreateOutcome::Created);
    assert_eq!(catalog.create(&name("a"), &creation(&["id"])).await.unwrap(), CreateOutcome::AlreadyExists);
    assert_eq!(catalog.create(&name("b"), &creation(&["region"])).await.unwrap(), CreateOutcome::Created);
    assert_eq!(catalog.tables().await.unwrap(), [name("a"), name("b")]);
    let first = catalog.load(&name("a")).await.unwrap().unwrap().refresh().await.unwrap();
    assert!(first.metadata.default_partition_spec().is_unpartitioned());
    assert!(catalog.drop_table(&name("a")).await.unwrap());
    assert!(!catalog.drop_table(&name("a")).await.unwrap());
    assert!(catalog.load(&name("a")).await.unwrap().is_none());
    let again = create(catalog, "a", &creation(&[])).await.refresh().await.unwrap();
    assert_ne!(first.metadata.location(), again.metadata.location());
    assert_ne!(first.metadata.uuid(), again.metadata.uuid());
    let unfit = creation(&["day(id)"]);
    assert_eq!(catalog.create(&name("d"), &unfit).await.unwrap_err().class(), Class::Fatal);
}

async fn namespaces_are_as_deep_as_they_may_be(catalog: &dyn Catalog, namespaces: Namespaces) {
    let deep = sluice_model::TableName::parse("x.y.c").unwrap();
    let created = catalog.create(&deep, &creation(&[])).await;
    match namespaces {
        Namespaces::Nested => {
            assert_eq!(created.unwrap(), CreateOutcome::Created);
            assert_eq!(catalog.tables().await.unwrap(), [deep]);
        }
        Namespaces::Flat => {
            assert_eq!(created.unwrap_err().class(), Class::Fatal);
            assert!(catalog.tables().await.unwrap().is_empty());
        }
    }
}

async fn a_committed_change_is_what_the_next_reader_sees(catalog: &dyn Catalog, services: &TestServices) {
    let ops = create(catalog, "t", &creation(&[])).await;
    let version = ops.refresh().await.unwrap();
    let committed = apply(&*ops, delta(&version, rows(&[(1, Some("eu"), 100)]), (0, 0..1)), services).await;
    let seen = catalog.load(&name("t")).await.unwrap().unwrap().refresh().await.unwrap();
    assert_eq!(seen.metadata, committed.metadata);
    assert_eq!(seen.token, committed.token);
    assert_eq!(seen.metadata_location, committed.metadata_location);
    assert_eq!(read(&seen).await, [(1, (Some("eu".to_owned()), 100))].into());
    assert!(seen.metadata_location.contains("/metadata/00001-"), "{}", seen.metadata_location);
}

async fn outcome(
    ops: &dyn TableOperations,
    on: &TableVersion,
    delta: RowDelta,
    services: &TestServices,
) -> Result<DeltaOutcome, TableError> {
    let prepared = prepare(on, delta, &services.write_options()).await.unwrap();
    commit_delta(ops, prepared, &services.commit_context()).await
}

fn attempts_of(outcome: &DeltaOutcome) -> u32 {
    match outcome {
        DeltaOutcome::Committed { attempts, .. } => *attempts,
        other => panic!("not committed: {other:?}"),
    }
}

async fn a_stale_base_is_a_conflict(catalog: &dyn Catalog, services: &TestServices) {
    let ops = create(catalog, "t", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    apply(&*ops, delta(&base, rows(&[(1, None, 1)]), (0, 0..1)), services).await;
    let again = outcome(&*ops, &base, delta(&base, rows(&[(2, None, 2)]), (0, 1..2)), services).await.unwrap();
    assert_eq!(attempts_of(&again), 2);
    let now = ops.refresh().await.unwrap();
    assert_eq!(read(&now).await.len(), 2);
    let repeated = outcome(&*ops, &base, delta(&base, rows(&[(2, None, 2)]), (0, 1..2)), services).await.unwrap();
    assert!(matches!(repeated, DeltaOutcome::AlreadyCommitted { .. }), "{repeated:?}");
    let overlapping = outcome(&*ops, &base, delta(&base, rows(&[(3, None, 3)]), (0, 1..3)), services).await.unwrap();
    assert!(matches!(overlapping, DeltaOutcome::Stale { .. }), "{overlapping:?}");
    assert_eq!(ops.refresh().await.unwrap().token, now.token);
}

async fn a_lost_reply_is_found_by_reading_again(inner: Arc<dyn Catalog>, services: &TestServices) {
    let plan = Arc::new(FaultPlan::default());
    let catalog = FaultyCatalog::new(inner, Arc::clone(&plan));
    let ops = create(&catalog, "t", &creation(&[])).await;
    for (offset, class) in [(0, Class::Unknown), (1, Class::Conflict), (2, Class::Transient)] {
        let base = ops.refresh().await.unwrap();
        plan.on_commits([CommitFault::After(class)]);
        let made = outcome(&*ops, &base, delta(&base, rows(&[(offset, None, 1)]), (0, offset..offset + 1)), services).await.unwrap();
        attempts_of(&made);
        assert_eq!(read(&ops.refresh().await.unwrap()).await.len() as i64, offset + 1);
    }
}

async fn an_unknown_that_did_not_happen_stays_unknown(inner: Arc<dyn Catalog>, services: &TestServices) {
    let plan = Arc::new(FaultPlan::default());
    let catalog = FaultyCatalog::new(inner, Arc::clone(&plan));
    let ops = create(&catalog, "t", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    plan.on_commits([CommitFault::Instead(Class::Unknown)]);
    plan.on_refreshes([Class::Transient]);
    let prepared = prepare(&base, delta(&base, rows(&[(1, None, 1)]), (0, 0..1)), &services.write_options()).await.unwrap();
    let paths: Vec<String> = prepared.files().iter().map(|file| file.file.file_path().to_owned()).collect();
    let error = commit_delta(&*ops, prepared, &services.commit_context()).await.unwrap_err();
    assert_eq!(error.class(), Class::Unknown);
    for path in paths {
        assert!(base.file_io.exists(&path).await.unwrap(), "{path} was deleted");
    }
    apply(&*ops, delta(&base, rows(&[(1, None, 1)]), (0, 0..1)), services).await;
}

async fn conflicts_and_transient_errors_are_tried_again(inner: Arc<dyn Catalog>, services: &TestServices) {
    let plan = Arc::new(FaultPlan::default());
    let catalog = FaultyCatalog::new(inner, Arc::clone(&plan));
    let ops = create(&catalog, "t", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    plan.on_commits([CommitFault::Instead(Class::Conflict), CommitFault::Instead(Class::Transient)]);
    plan.on_refreshes([Class::Transient]);
    let made = outcome(&*ops, &base, delta(&base, rows(&[(1, None, 1)]), (0, 0..1)), services).await.unwrap();
    assert_eq!(attempts_of(&made), 4);
    let base = ops.refresh().await.unwrap();
    plan.on_commits([CommitFault::Instead(Class::Conflict); 8]);
    let error = outcome(&*ops, &base, delta(&base, rows(&[(2, None, 1)]), (0, 1..2)), services).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict);
    plan.on_commits([CommitFault::Instead(Class::Fatal)]);
    let error = outcome(&*ops, &base, delta(&base, rows(&[(2, None, 1)]), (0, 1..2)), services).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
}

async fn properties_of_others_are_kept(catalog: &dyn Catalog, services: &TestServices) {
    let mut wanted = creation(&[]);
    wanted.properties.insert("owner".to_owned(), "sales".to_owned());
    let ops = create(catalog, "t", &wanted).await;
    let base = ops.refresh().await.unwrap();
    let with = |key: &str, offset: i64| {
        let mut delta = delta(&base, rows(&[(offset, None, 1)]), (0, offset..offset + 1));
        delta.properties.insert(key.to_owned(), "1".to_owned());
        delta
    };
    let (first, second) = (with("a", 0), with("b", 1));
    outcome(&*ops, &base, first, services).await.unwrap();
    outcome(&*ops, &base, second, services).await.unwrap();
    let now = ops.refresh().await.unwrap();
    for (key, value) in [("owner", "sales"), ("a", "1"), ("b", "1")] {
        assert_eq!(now.metadata.properties().get(key).map(String::as_str), Some(value), "{key}");
    }
}

async fn a_replaced_table_is_not_written(catalog: &dyn Catalog, services: &TestServices) {
    let ops = create(catalog, "t", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    // Made before: with some catalogs the files of a table go with it.
    let prepared = || async { prepare(&base, delta(&base, rows(&[(1, None, 1)]), (0, 0..1)), &services.write_options()).await.unwrap() };
    let (first, second) = (prepared().await, prepared().await);
    assert!(catalog.drop_table(&name("t")).await.unwrap());
    assert!(!catalog.drop_table(&name("t")).await.unwrap());
    let gone = commit_delta(&*ops, first, &services.commit_context()).await.unwrap_err();
    assert!(matches!(gone, TableError::Missing(_)), "{gone}");
    create(catalog, "t", &creation(&[])).await;
    let replaced = commit_delta(&*ops, second, &services.commit_context()).await.unwrap_err();
    assert!(matches!(replaced, TableError::Replaced { .. }), "{replaced}");
    assert_eq!(replaced.class(), Class::Fatal);
    assert!(ops.refresh().await.unwrap().metadata.current_snapshot().is_none());
}

/// Two writers, 50 appends each, always made on the same version; every fifth batch is delivered to both.
async fn two_writers_lose_nothing_and_double_nothing(catalog: &dyn Catalog, services: &TestServices) {
    let ops = create(catalog, "t", &creation(&["bucket(2, id)"])).await;
    let mut already = 0;
    for round in 0..50_i64 {
        let base = ops.refresh().await.unwrap();
        let mine = delta(&base, rows(&[(round, None, 1)]), (0, round..round + 1));
        let twice = round % 5 == 0;
        let theirs = if twice { mine.clone() } else { delta(&base, rows(&[(1_000 + round, None, 1)]), (1, round..round + 1)) };
        let both = futures::join!(outcome(&*ops, &base, mine, services), outcome(&*ops, &base, theirs, services));
        for outcome in [both.0.unwrap(), both.1.unwrap()] {
            match outcome {
                DeltaOutcome::Committed { .. } => {}
                DeltaOutcome::AlreadyCommitted { .. } if twice => already += 1,
                other => panic!("round {round}: {other:?}"),
            }
        }
    }
    assert_eq!(already, 10);
    let now = ops.refresh().await.unwrap();
    let expected: Vec<i64> = (0..50).chain((1_000..1_050).filter(|id| id % 5 != 0)).collect();
    assert_eq!(read(&now).await.into_keys().collect::<Vec<_>>(), expected);
    assert_eq!(now.metadata.snapshots().len(), 90);
    assert_eq!(now.metadata.last_sequence_number(), 90);
    let times: Vec<i64> = now.metadata.history().iter().map(|entry| entry.timestamp_ms).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "snapshot times are not monotone");
}

async fn the_metadata_log_is_kept_and_cut((catalog, old): (&dyn Catalog, OldMetadata), services: &TestServices) {
    let mut wanted = creation(&[]);
    wanted.properties.insert("write.metadata.previous-versions-max".to_owned(), "2".to_owned());
    wanted.properties.insert("write.metadata.delete-after-commit.enabled".to_owned(), "true".to_owned());
    let ops = create(catalog, "t", &wanted).await;
    let mut locations = vec![ops.refresh().await.unwrap().metadata_location];
    for offset in 0..4 {
        let base = ops.refresh().await.unwrap();
        locations.push(apply(&*ops, delta(&base, rows(&[(offset, None, 1)]), (0, offset..offset + 1)), services).await.metadata_location);
    }
    let now = ops.refresh().await.unwrap();
    let log: Vec<&str> = now.metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str()).collect();
    assert_eq!(log, [locations[2].as_str(), locations[3].as_str()]);
    for (number, location) in locations.iter().enumerate() {
        let stays = match old {
            OldMetadata::Deleted => number >= 2,
            OldMetadata::LeftToTheService => true,
        };
        assert_eq!(now.file_io.exists(location).await.unwrap(), stays, "{location}");
    }
    let stale = ops.commit(&TableVersion { token: locations[0].clone(), ..now.clone() }, &staged(&now)).await;
    assert!(matches!(stale, Err(CommitError::Conflict)));
}

/// A change that changes nothing, for asking a catalog directly.
fn staged(version: &TableVersion) -> sluice_table::StagedChange {
    sluice_table::StagedChange {
        updates: Vec::new(),
        requirements: Vec::new(),
        metadata: version.metadata.as_ref().clone(),
        metadata_location: sluice_table::metadata_file::next_location(Some(&version.metadata_location), &version.metadata, 9),
        expired_logs: Vec::new(),
    }
}
