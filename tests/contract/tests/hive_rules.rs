//! What a Hive Metastore asks for beyond the contract: other people's parameters and tables, locks, servers that differ.

use std::sync::Arc;
use std::time::Duration;

use hive_metastore::{
    EnvironmentContext, FieldSchema, LockComponent, LockLevel, LockRequest, LockState, LockType, StorageDescriptor, Table,
    ThriftHiveMetastoreClient, ThriftHiveMetastoreClientBuilder,
};
use sluice_catalog::{HiveCatalog, HiveConfig, HiveLock};
use sluice_model::{Class, TableName};
use sluice_table::{Catalog, TableCreation, TableOperations};
use sluice_testkit::tables::{apply, creation, delta, read, rows};
use sluice_testkit::{TestServices, foreign};
use volo_thrift::MaybeException;
use volo_thrift::codec::default::DefaultMakeCodec;

use crate::{Warehouses, address, services};

const HIVE_2: &str = "HMS_2_URI";
const HIVE_3: &str = "HMS_3_URI";

/// A metastore, seen by Sluice and as it is.
struct Lake {
    catalog: HiveCatalog,
    raw: ThriftHiveMetastoreClient,
    database: &'static str,
    _warehouses: Warehouses,
}

impl Lake {
    async fn open(variable: &str, database: &'static str, choose: impl FnOnce(&mut HiveConfig)) -> Self {
        let (warehouses, uri) = (Warehouses::default(), address(variable));
        let mut options = HiveConfig::at(uri.clone(), format!("file://{}", warehouses.next()));
        choose(&mut options);
        let socket: std::net::SocketAddr = uri.trim_start_matches("thrift://").parse().unwrap();
        let builder = ThriftHiveMetastoreClientBuilder::new("raw").address(socket).rpc_timeout(None);
        let raw = builder.make_codec(DefaultMakeCodec::buffered()).build();
        Self { catalog: HiveCatalog::open(options, services()).await.unwrap(), raw, database, _warehouses: warehouses }
    }

    fn name(&self, table: &str) -> TableName {
        TableName::parse(&format!("{}.{table}", self.database)).unwrap()
    }

    async fn create(&self, table: &str, creation: &TableCreation) -> Arc<dyn TableOperations> {
        self.catalog.create(&self.name(table), creation).await.unwrap();
        self.catalog.load(&self.name(table)).await.unwrap().unwrap()
    }

    async fn raw_table(&self, table: &str) -> Table {
        match self.raw.get_table(self.database.into(), table.to_owned().into()).await.unwrap() {
            MaybeException::Ok(table) => table,
            MaybeException::Exception(exception) => panic!("{exception:?}"),
        }
    }

    async fn raw_create(&self, table: Table) {
        let made = self.raw.create_table(table).await.unwrap();
        assert!(matches!(made, MaybeException::Ok(())));
    }

    async fn raw_alter(&self, table: &str, change: impl FnOnce(&mut Table)) {
        let mut entry = self.raw_table(table).await;
        change(&mut entry);
        let context = EnvironmentContext { properties: None };
        let done =
            self.raw.alter_table_with_environment_context(self.database.into(), table.to_owned().into(), entry, context).await.unwrap();
        assert!(matches!(done, MaybeException::Ok(())));
    }

    /// Another client's exclusive lock, which it never releases: it has crashed.
    async fn crash_with_lock(&self, table: &str) -> i64 {
        let component = LockComponent {
            r#type: LockType::EXCLUSIVE,
            level: LockLevel::TABLE,
            dbname: self.database.into(),
            tablename: Some(table.to_owned().into()),
            ..LockComponent::default()
        };
        let request = LockRequest {
            component: vec![component],
            user: "crashed".into(),
            hostname: "gone".into(),
            agent_info: Some("crashed".into()),
            txnid: None,
        };
        match self.raw.lock(request).await.unwrap() {
            MaybeException::Ok(response) => {
                assert_eq!(response.state, LockState::ACQUIRED);
                response.lockid
            }
            MaybeException::Exception(exception) => panic!("{exception:?}"),
        }
    }

    async fn names(&self) -> Vec<String> {
        match self.raw.get_all_tables(self.database.into()).await.unwrap() {
            MaybeException::Ok(names) => names.iter().map(ToString::to_string).collect(),
            MaybeException::Exception(exception) => panic!("{exception:?}"),
        }
    }
}

fn parameter<'t>(table: &'t Table, key: &str) -> Option<&'t str> {
    table.parameters.as_ref().unwrap().get(key).map(|value| value.as_str())
}

/// One row at one offset, tried once.
async fn commit_once(ops: &dyn TableOperations, offset: i64, services: &TestServices) -> Result<(), Class> {
    let version = ops.refresh().await.unwrap();
    let delta = delta(&version, rows(&[(offset, None, 1)]), (0, offset..offset + 1));
    let prepared = sluice_table::prepare(&version, delta, &services.write_options()).await.unwrap();
    let mut context = services.commit_context();
    context.policy.max_attempts = 1;
    match sluice_table::commit_delta(ops, prepared, &context).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.class()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_put_there_stays_and_what_would_lie_goes() {
    for (variable, database) in [(HIVE_2, "kept"), (HIVE_3, "kept")] {
        let lake = Lake::open(variable, database, |_| {}).await;
        let services = TestServices::seeded(41);
        let ops = lake.create("t", &creation(&[])).await;
        lake.raw_alter("t", |table| {
            let parameters = table.parameters.get_or_insert_default();
            for (key, value) in [("owner_team", "sales"), ("numRows", "7"), ("current-snapshot-id", "1"), ("sluice.ledger.old", "x")] {
                parameters.insert(key.into(), value.into());
            }
            let columns = table.sd.as_mut().unwrap().cols.as_mut().unwrap();
            columns[1].comment = Some("by hand".into());
        })
        .await;
        let before = lake.raw_table("t").await;
        let version = ops.refresh().await.unwrap();
        apply(&*ops, delta(&version, rows(&[(1, None, 1)]), (0, 0..1)), &services).await;
        let now = ops.refresh().await.unwrap();
        let table = lake.raw_table("t").await;
        assert_eq!(parameter(&table, "owner_team"), Some("sales"));
        assert_eq!(parameter(&table, "metadata_location"), Some(now.metadata_location.as_str()));
        assert_eq!(parameter(&table, "previous_metadata_location"), parameter(&before, "metadata_location"));
        for gone in ["numRows", "current-snapshot-id", "sluice.ledger.old"] {
            assert_eq!(parameter(&table, gone), None, "{gone}");
        }
        let shown = |table: &Table| {
            let columns = table.sd.clone().unwrap().cols.unwrap();
            let text = |text: Option<pilota::FastStr>| text.map(|text| text.to_string()).unwrap_or_default();
            columns.into_iter().map(|column| (text(column.name), text(column.r#type), text(column.comment))).collect::<Vec<_>>()
        };
        let column = |name: &str, kind: &str, comment: &str| (name.to_owned(), kind.to_owned(), comment.to_owned());
        let mut expected = vec![column("id", "bigint", ""), column("region", "string", "by hand"), column("total", "decimal(12,2)", "")];
        assert_eq!(shown(&table), expected);
        foreign::alter(&*ops, |builder| builder.add_current_schema(wider()).unwrap()).await;
        expected.push(column("at", "timestamp", "when"));
        assert_eq!(shown(&lake.raw_table("t").await), expected);
    }
}

/// The small table's schema with one column more.
fn wider() -> iceberg::spec::Schema {
    let mut schema = sluice_testkit::tables::schema();
    let mut at = sluice_model::Column::optional(4, "at", sluice_model::ColumnType::TimestampTz);
    at.doc = Some("when".to_owned());
    schema.columns.push(at);
    schema.last_column_id = 4;
    sluice_table::schema::to_iceberg(&schema).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_others_are_left_alone() {
    for variable in [HIVE_2, HIVE_3] {
        let lake = Lake::open(variable, "others", |_| {}).await;
        lake.create("ours", &creation(&[])).await;
        let column = FieldSchema { name: Some("id".into()), r#type: Some("int".into()), comment: None };
        for (table, kind) in [("plain", "MANAGED_TABLE"), ("looked_at", "VIRTUAL_VIEW")] {
            let view = kind == "VIRTUAL_VIEW";
            lake.raw_create(Table {
                table_name: Some(table.into()),
                db_name: Some("others".into()),
                table_type: Some(kind.into()),
                view_original_text: view.then(|| "SELECT 1".into()),
                view_expanded_text: view.then(|| "SELECT 1".into()),
                partition_keys: Some(Vec::new()),
                parameters: Some(Default::default()),
                sd: Some(StorageDescriptor {
                    cols: Some(vec![column.clone()]),
                    serde_info: Some(Default::default()),
                    ..StorageDescriptor::default()
                }),
                ..Table::default()
            })
            .await;
            for error in [
                lake.catalog.load(&lake.name(table)).await.map(|_| ()).unwrap_err(),
                lake.catalog.create(&lake.name(table), &creation(&[])).await.map(|_| ()).unwrap_err(),
                lake.catalog.drop_table(&lake.name(table)).await.map(|_| ()).unwrap_err(),
            ] {
                assert_eq!(error.class(), Class::Fatal);
                assert!(error.to_string().contains("is no Iceberg table"), "{error}");
            }
        }
        let listed = lake.catalog.tables().await.unwrap();
        assert!(listed.contains(&lake.name("ours")) && !listed.contains(&lake.name("plain")), "{listed:?}");
        assert_eq!(lake.raw_table("plain").await.table_type.as_deref(), Some("MANAGED_TABLE"));
        let upper = TableName::parse("others.Ours").unwrap();
        let error = lake.catalog.load(&upper).await.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("lower case"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_locks_only_where_the_server_compares() {
    let services = TestServices::seeded(43);
    let compares = Lake::open(HIVE_2, "free", |options| options.lock = HiveLock::Never).await;
    let ops = compares.create("t", &creation(&[])).await;
    compares.crash_with_lock("t").await;
    assert_eq!(commit_once(&*ops, 0, &services).await, Ok(()));
    assert_eq!(compares.names().await, ["t"], "the scratch view is left");
    let ignores = Lake::open(HIVE_3, "free", |options| options.lock = HiveLock::Never).await;
    let ops = ignores.create("t", &creation(&[])).await;
    assert_eq!(commit_once(&*ops, 0, &services).await, Err(Class::Fatal));
    assert_eq!(ignores.names().await, ["t"], "the scratch view is left");
    assert!(ops.refresh().await.unwrap().metadata.current_snapshot().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auto_goes_without_only_where_that_is_declared_and_the_server_compares() {
    let mut declared = creation(&[]);
    declared.properties.insert("engine.hive.lock-enabled".to_owned(), "false".to_owned());
    for (variable, table, creation, free) in [
        (HIVE_2, "said", &declared, true),
        (HIVE_2, "unsaid", &creation(&[]), false),
        (HIVE_3, "said", &declared, false),
        (HIVE_3, "unsaid", &creation(&[]), false),
    ] {
        let lake = Lake::open(variable, "auto", |options| options.lock_wait_ms = 1_000).await;
        let services = TestServices::seeded(44);
        let ops = lake.create(table, creation).await;
        let lock = lake.crash_with_lock(table).await;
        // The one attempt waits in vain where it locks.
        let expected = if free { Ok(()) } else { Err(Class::Conflict) };
        assert_eq!(commit_once(&*ops, 0, &services).await, expected, "{variable} {table}");
        let _ = lake.raw.unlock(hive_metastore::UnlockRequest { lockid: lock }).await.unwrap();
        assert_eq!(commit_once(&*ops, 1, &services).await, Ok(()), "{variable} {table}");
    }
}

/// The server forgets a dead client's lock (after ten seconds here); until then others wait, and nothing of theirs is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_holder_of_the_lock_is_outlived() {
    for variable in [HIVE_2, HIVE_3] {
        let lake = Lake::open(variable, "crashed", |options| options.lock_wait_ms = 60_000).await;
        let services = TestServices::seeded(45);
        let ops = lake.create("t", &creation(&[])).await;
        lake.crash_with_lock("t").await;
        let commit = tokio::time::timeout(Duration::from_secs(60), commit_once(&*ops, 0, &services)).await;
        assert_eq!(commit, Ok(Ok(())), "{variable}");
        // Ours was released: the next one need not wait for the server to forget it.
        lake.crash_with_lock("t").await;
    }
}

/// Processes of their own, all at once, on both kinds of server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_lose_nothing() {
    for (variable, lock) in [(HIVE_2, HiveLock::Never), (HIVE_2, HiveLock::Always), (HIVE_3, HiveLock::Always)] {
        let table = format!("t_{lock:?}").to_lowercase();
        let lakes = [0; 4].map(|_| Lake::open(variable, "busy", |options| options.lock = lock));
        let lakes = futures::future::join_all(lakes).await;
        lakes[0].create(&table, &creation(&[])).await;
        let write = async |lake: &Lake, writer: i32| {
            let services = TestServices::seeded(60 + u64::try_from(writer).unwrap());
            let ops = lake.catalog.load(&lake.name(&table)).await.unwrap().unwrap();
            for offset in 0..8_i64 {
                let version = ops.refresh().await.unwrap();
                let delta = delta(&version, rows(&[(i64::from(writer) * 100 + offset, None, 1)]), (writer, offset..offset + 1));
                let prepared = sluice_table::prepare(&version, delta, &services.write_options()).await.unwrap();
                let mut context = services.commit_context();
                context.policy.max_attempts = 100;
                sluice_table::commit_delta(&*ops, prepared, &context).await.unwrap();
            }
        };
        futures::join!(write(&lakes[0], 0), write(&lakes[1], 1), write(&lakes[2], 2), write(&lakes[3], 3));
        let now = lakes[0].catalog.load(&lakes[0].name(&table)).await.unwrap().unwrap().refresh().await.unwrap();
        assert_eq!(read(&now).await.len(), 32, "{variable} {lock:?}");
        assert_eq!(now.metadata.snapshots().len(), 32);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validation_tells_how_commits_are_kept_apart() {
    for (variable, lock, expected) in [
        (HIVE_2, HiveLock::Auto, Some("compares the expected metadata location; commits take the table's lock, but not for")),
        (HIVE_2, HiveLock::Never, Some("compares the expected metadata location; commits take no lock")),
        (HIVE_3, HiveLock::Auto, Some("ignores the expected metadata location; commits take the table's lock")),
        (HIVE_3, HiveLock::Never, None),
    ] {
        let lake = Lake::open(variable, "default", |options| options.lock = lock).await;
        match (lake.catalog.check_server().await, expected) {
            (Ok(Some(told)), Some(expected)) => assert!(told.contains(expected), "{told}"),
            (Err(error), None) => assert!(error.to_string().contains("set catalog.hive.lock"), "{error}"),
            (told, _) => panic!("{variable} {lock:?}: {told:?}"),
        }
        assert!(lake.names().await.is_empty(), "the scratch view is left");
    }
    let nobody = HiveConfig::at("thrift://127.0.0.1:1", "file:///tmp/nowhere");
    let error = HiveCatalog::open(nobody, services()).await.unwrap().tables().await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
