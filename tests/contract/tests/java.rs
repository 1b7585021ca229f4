//! Iceberg's own Java `HiveCatalog`, which Spark and Flink use, and Sluice on the same tables of real metastores.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde::Deserialize;
use sluice_catalog::{HiveCatalog, HiveConfig};
use sluice_model::TableName;
use sluice_table::{Catalog, FileContent, TableOperations, TableVersion, live_files};
use sluice_testkit::TestServices;
use sluice_testkit::tables::{apply, creation, delta, read, rows, upsert};

use crate::{Warehouses, address, services};

/// What Java sees of a table.
#[derive(Debug, Deserialize)]
struct Seen {
    columns: Vec<String>,
    snapshots: usize,
    /// Properties that Java has set.
    javas: usize,
    /// Data files by path: rows, and files of deletes that apply.
    files: BTreeMap<String, (u64, usize)>,
}

struct Java {
    class_path: String,
    uri: String,
    warehouse: String,
}

impl Java {
    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new("java");
        command.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", &self.class_path, "HiveCatalogReader"]);
        command.args([&self.uri, &self.warehouse]).args(arguments).stdout(Stdio::piped());
        command.spawn().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Seen {
        seen(self.start(arguments))
    }
}

fn seen(child: Child) -> Seen {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "Java failed");
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// Java and Sluice plan the same files with the same number of delete files.
async fn assert_same_files(seen: &Seen, version: &TableVersion) {
    let live = live_files(version).await.unwrap();
    let deletes: Vec<i64> = live.iter().filter(|file| file.content != FileContent::Data).map(|file| file.sequence_number).collect();
    let expected: BTreeMap<String, (u64, usize)> = live
        .iter()
        .filter(|file| file.content == FileContent::Data)
        .map(|file| (file.path.clone(), (file.records, deletes.iter().filter(|number| **number > file.sequence_number).count())))
        .collect();
    assert_eq!(seen.files, expected);
}

async fn together(variable: &str, reader: &str) {
    let (warehouses, uri) = (Warehouses::default(), address(variable));
    let warehouse = format!("file://{}", warehouses.next());
    let catalog = HiveCatalog::open(HiveConfig::at(uri.clone(), warehouse.clone()), services()).await.unwrap();
    let java = Java { class_path: address(reader), uri, warehouse };
    let services = TestServices::seeded(90);
    let table = async |name: &str| -> Arc<dyn TableOperations> { catalog.load(&TableName::parse(name).unwrap()).await.unwrap().unwrap() };

    // Ours, read by Java.
    catalog.create(&TableName::parse("java.ours").unwrap(), &creation(&[])).await.unwrap();
    let ours = table("java.ours").await;
    for (offset, batch) in
        [[(1, Some("eu"), 1), (2, None, 2)], [(2, Some("us"), 3), (3, None, 4)], [(1, None, 5), (4, None, 6)]].iter().enumerate()
    {
        let version = ours.refresh().await.unwrap();
        let at = i64::try_from(offset).unwrap();
        apply(&*ours, upsert(&version, batch, (0, at..at + 1)), &services).await;
    }
    let seen_ours = java.run(&["java.ours", "read"]);
    assert_eq!(seen_ours.columns, ["id long", "region string", "total decimal(12, 2)"]);
    assert_eq!(seen_ours.snapshots, 3);
    assert_same_files(&seen_ours, &ours.refresh().await.unwrap()).await;

    // Java's, written by us.
    java.run(&["java.theirs", "create"]);
    let theirs = table("java.theirs").await;
    let version = theirs.refresh().await.unwrap();
    let version = apply(&*theirs, upsert(&version, &[(1, Some("eu"), 1)], (0, 0..1)), &services).await;
    assert_eq!(version.metadata.properties().get("made_by").map(String::as_str), Some("java"));
    assert_same_files(&java.run(&["java.theirs", "read"]), &version).await;

    // Both at once: nobody's commit is lost.
    let running = java.start(&["java.ours", "set", "25"]);
    for offset in 100..125 {
        let version = ours.refresh().await.unwrap();
        apply(&*ours, delta(&version, rows(&[(offset, None, 1)]), (1, offset..offset + 1)), &services).await;
    }
    let seen_both = tokio::task::spawn_blocking(move || seen(running)).await.unwrap();
    assert_eq!(seen_both.javas, 25);
    let now = ours.refresh().await.unwrap();
    assert_eq!(now.metadata.snapshots().len(), 28);
    assert_eq!(now.metadata.properties().keys().filter(|key| key.starts_with("java.")).count(), 25);
    assert_eq!(read(&now).await.len(), 4 + 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_server_that_compares() {
    together("HMS_2_URI", "HMS_2_READER").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_server_that_does_not() {
    together("HMS_3_URI", "HMS_3_READER").await;
}
