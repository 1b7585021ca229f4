//! The Glue Data Catalog (moto, with Glue's compare-and-set).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use aws_sdk_glue::Client;
use aws_sdk_glue::config::Region;
use aws_sdk_glue::types::{Column, DatabaseInput, StorageDescriptor, Table, TableInput};
use sluice_catalog::{AwsConfig, GlueCatalog, GlueConfig};
use sluice_model::{Class, TableName};
use sluice_table::{Catalog, TableError};
use sluice_testkit::tables::{apply, create, creation, delta, name, rows};
use sluice_testkit::{Namespaces, TestServices, catalog_contract};

use crate::aws::{empty_region, folder, service, storage};
use crate::{address, services};

async fn catalog(region: &str, warehouse: Option<String>) -> GlueCatalog {
    let config = GlueConfig { warehouse, catalog_id: None, aws: service(region), storage: storage() };
    GlueCatalog::open(config, services()).await.unwrap()
}

async fn client(region: &str) -> Client {
    let shared = aws_config::defaults(aws_config::BehaviorVersion::latest()).region(Region::new(region.to_owned())).load().await;
    Client::from_conf(aws_sdk_glue::config::Builder::from(&shared).endpoint_url(address("SLUICE_TEST_AWS_ENDPOINT")).build())
}

async fn entry(client: &Client, table: &str) -> Table {
    client.get_table().database_name("shop").name(table).send().await.unwrap().table.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn glue() {
    catalog_contract(Namespaces::Flat, || async { Arc::new(catalog(&empty_region(), Some(folder("glue"))).await) as Arc<dyn Catalog> })
        .await;
}

/// Somebody describes the table and a column, and sets a parameter: a commit with a new column keeps all of it, and old versions are not archived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_put_into_the_entry_stays() {
    let region = empty_region();
    let (catalog, client, services) = (catalog(&region, Some(folder("glue"))).await, client(&region).await, TestServices::seeded(4));
    let ops = create(&catalog, "t", &creation(&[])).await;
    let made = entry(&client, "t").await;
    assert_eq!(made.table_type(), Some("EXTERNAL_TABLE"));
    let columns: Vec<_> =
        made.storage_descriptor().unwrap().columns().iter().map(|column| (column.name(), column.r#type().unwrap())).collect();
    assert_eq!(columns, [("id", "bigint"), ("region", "string"), ("total", "decimal(12,2)")]);
    let mut storage = made.storage_descriptor().unwrap().clone();
    let commented = |column: &Column| {
        let parameters = column.parameters().cloned();
        Column::builder().name(column.name()).set_type(column.r#type.clone()).comment("by hand").set_parameters(parameters).build().unwrap()
    };
    storage.columns = storage.columns.map(|columns| columns.iter().map(commented).collect());
    let mut parameters = made.parameters().cloned().unwrap();
    parameters.insert("owner_team".to_owned(), "sales".to_owned());
    let input = TableInput::builder().name("t").description("the orders").owner("ann").set_table_type(made.table_type.clone());
    let input = input.set_parameters(Some(parameters)).storage_descriptor(storage).build().unwrap();
    client.update_table().database_name("shop").table_input(input).send().await.unwrap();
    let base = ops.refresh().await.unwrap();
    let committed = apply(&*ops, delta(&base, rows(&[(1, None, 1)]), (0, 0..1)), &services).await;
    let now = entry(&client, "t").await;
    assert_eq!((now.description(), now.owner()), (Some("the orders"), Some("ann")));
    let parameters = now.parameters().unwrap();
    assert_eq!(parameters["owner_team"], "sales");
    assert_eq!(parameters["metadata_location"], committed.metadata_location);
    assert_eq!(parameters["previous_metadata_location"], base.metadata_location);
    assert!(now.storage_descriptor().unwrap().columns().iter().all(|column| column.comment() == Some("by hand")));
    let versions = client.get_table_versions().database_name("shop").table_name("t").send().await.unwrap();
    assert!(versions.table_versions().len() <= 2, "the commit's base is not archived");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_iceberg_table_is_told() {
    let region = empty_region();
    let (catalog, client) = (catalog(&region, Some(folder("glue"))).await, client(&region).await);
    client.create_database().database_input(DatabaseInput::builder().name("shop").build().unwrap()).send().await.unwrap();
    let hive = TableInput::builder().name("hive").table_type("EXTERNAL_TABLE").storage_descriptor(StorageDescriptor::builder().build());
    let view = TableInput::builder().name("view").table_type("VIRTUAL_VIEW");
    for input in [hive, view] {
        client.create_table().database_name("shop").table_input(input.build().unwrap()).send().await.unwrap();
    }
    for (table, word) in [("hive", "EXTERNAL_TABLE"), ("view", "VIRTUAL_VIEW")] {
        for error in [catalog.load(&name(table)).await.map(|_| ()), catalog.create(&name(table), &creation(&[])).await.map(|_| ())] {
            let error = error.unwrap_err();
            assert_eq!(error.class(), Class::Fatal);
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(catalog.drop_table(&name(table)).await.is_err(), "what is not ours is not dropped");
    }
    assert!(catalog.tables().await.unwrap().is_empty());
    let upper = catalog.load(&TableName::parse("Shop.Orders").unwrap()).await.map(|_| ()).unwrap_err();
    assert!(upper.to_string().contains("lower-case"), "{upper}");
}

/// The database's location comes before the warehouse; with neither, there is no place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_may_have_a_place_of_its_own() {
    let region = empty_region();
    let client = client(&region).await;
    let place = folder("glue-database");
    let database = DatabaseInput::builder().name("shop").location_uri(&place).build().unwrap();
    client.create_database().database_input(database).send().await.unwrap();
    let catalog = catalog(&region, None).await;
    let location = create(&catalog, "t", &creation(&[])).await.refresh().await.unwrap().metadata.location().to_owned();
    assert!(location.starts_with(&format!("{place}/t-")), "{location}");
    let elsewhere = TableName::parse("elsewhere.t").unwrap();
    let error = catalog.create(&elsewhere, &creation(&[])).await.unwrap_err();
    assert!(matches!(&error, TableError::Unsupported(what) if what.contains("catalog.warehouse")), "{error}");
}

/// A Glue that knows one call: the answer to GetTableOptimizer, as AWS writes it.
fn glue_that_answers(status: u16, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head).unwrap() > 2 {
                let line = head.lines().last().unwrap().to_ascii_lowercase();
                length = line.strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap());
            }
            let mut asked = vec![0; length];
            reader.read_exact(&mut asked).unwrap();
            let asked: serde_json::Value = serde_json::from_slice(&asked).unwrap();
            let expected = serde_json::json!({"CatalogId": "111122223333", "DatabaseName": "shop", "TableName": "t", "Type": "compaction"});
            assert!(head.to_ascii_lowercase().contains("x-amz-target: awsglue.gettableoptimizer\r\n"), "{head}");
            assert_eq!(asked, expected);
            let kind = "content-type: application/x-amz-json-1.1\r\nconnection: close";
            write!(&stream, "HTTP/1.1 {status} x\r\n{kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    address
}

/// Who else compacts a table, on the wire: moto has no table optimizers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_optimizer_is_found_where_it_is_enabled() {
    let enabled = r#"{"CatalogId":"111122223333","DatabaseName":"shop","TableName":"t","TableOptimizer":{"type":"compaction","configuration":{"roleArn":"arn:aws:iam::111122223333:role/glue","enabled":true,"compactionConfiguration":{"icebergConfiguration":{"strategy":"binpack"}}},"lastRun":{"eventType":"completed","startTimestamp":1.7726E9}}}"#;
    let disabled =
        r#"{"TableOptimizer":{"type":"compaction","configuration":{"roleArn":"arn:aws:iam::111122223333:role/glue","enabled":false}}}"#;
    let none = r#"{"__type":"EntityNotFoundException","Message":"Table optimizer not found."}"#;
    let denied = r#"{"__type":"AccessDeniedException","Message":"not authorized to perform: glue:GetTableOptimizer"}"#;
    let ask = |status, body| async move {
        let aws = AwsConfig { region: Some("eu-central-1".to_owned()), endpoint: Some(glue_that_answers(status, body)) };
        let config = GlueConfig { warehouse: None, catalog_id: Some("111122223333".to_owned()), aws, storage: storage() };
        GlueCatalog::open(config, services()).await.unwrap().compacted_by(&name("t")).await
    };
    assert!(ask(200, enabled).await.unwrap().is_some());
    assert_eq!(ask(200, disabled).await.unwrap(), None);
    assert_eq!(ask(400, none).await.unwrap(), None);
    let error = ask(400, denied).await.unwrap_err();
    assert_eq!(error.class(), Class::Fatal);
    assert!(error.to_string().contains("glue:GetTableOptimizer"), "{error}");
}
