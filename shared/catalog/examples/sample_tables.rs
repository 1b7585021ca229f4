//! Writes sample tables into a folder, for other programs to read: `sample_tables FOLDER`. Each table's expected rows are printed. In tables of format version 3 another program has deleted rows
//! by deletion vectors.
#![allow(clippy::unwrap_used)]

use sluice_catalog::{Services, SqlCatalog, SqlOptions};
use sluice_table::{Catalog, FileContent, RowDelta, TableCreation, Truncate, live_files};
use sluice_testkit::{TestServices, tables, vectors};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = std::env::args().nth(1).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    let services = TestServices::seeded(11);
    let options = SqlOptions {
        uri: format!("sqlite://{folder}/catalog.db"),
        catalog_name: "sluice".to_owned(),
        warehouse: format!("file://{folder}/warehouse"),
        file_io: None,
    };
    let given = Services { clock: services.clock.clone(), ids: services.ids.clone() };
    let catalog = SqlCatalog::open(options, given).await.unwrap();
    for version in [2, 3] {
        for (name, by) in [("plain", &[][..]), ("bucketed", &["bucket(4, id)"]), ("regional", &["region"]), ("decimal", &["total"])] {
            let creation = TableCreation { format_version: version, ..tables::creation(by) };
            fill(&catalog, &format!("{name}_v{version}"), &creation, &services).await;
            if version == 3 {
                with_vectors(&catalog, &format!("{name}_vectors"), &creation, &services).await;
            }
        }
    }
}

/// Two commits of upserts, and two of another program's vectors: the second replaces one of the first, and both are shared Puffin files.
async fn with_vectors(catalog: &dyn Catalog, name: &str, creation: &TableCreation, services: &TestServices) {
    let ops = tables::create(catalog, name, creation).await;
    let regions = [Some("eu"), Some("us"), None];
    for at in 0..2 {
        let version = ops.refresh().await.unwrap();
        let batch: Vec<(i64, Option<&str>, i128)> =
            (at * 60..at * 60 + 100).map(|id| (id, regions[id as usize % 3], i128::from(id % 4))).collect();
        tables::apply(&*ops, tables::upsert(&version, &batch, (0, at..at + 1)), services).await;
    }
    for number in 0..2_u64 {
        let version = ops.refresh().await.unwrap();
        let puffin = format!("{}/data/vectors-{number}.puffin", version.metadata.location());
        let data = live_files(&version).await.unwrap().into_iter().filter(|file| file.content == FileContent::Data);
        let deleted: Vec<(String, Vec<u64>)> =
            data.skip(number as usize).map(|file| (file.path, (number..file.records).step_by(3).collect())).collect();
        vectors::delete(&*ops, &puffin, &deleted).await;
    }
    let version = ops.refresh().await.unwrap();
    println!("{name} {} {:?}", version.metadata_location, tables::read(&version).await);
}

async fn fill(catalog: &dyn Catalog, name: &str, creation: &TableCreation, services: &TestServices) {
    let ops = tables::create(catalog, name, creation).await;
    let long = "ü".repeat(40);
    let first: Vec<(i64, Option<&str>, i128)> = vec![(1, Some("eu/west ä"), 100), (2, None, -5), (3, Some(""), 300), (4, Some(&long), 400)];
    let second = [(2, Some("us"), 222), (5, None, 500)];
    for (offset, batch) in [first.as_slice(), &second].into_iter().enumerate() {
        let version = ops.refresh().await.unwrap();
        let at = i64::try_from(offset).unwrap();
        tables::apply(&*ops, tables::upsert(&version, batch, (0, at..at + 1)), services).await;
    }
    let version = ops.refresh().await.unwrap();
    let deletes = RowDelta { delete_keys: Some(tables::keys(&[3])), ..RowDelta::on(&version) };
    let version = tables::apply(&*ops, deletes, services).await;
    println!("{name} {} {:?}", version.metadata_location, tables::read(&version).await);
    let emptied = tables::apply(&*ops, RowDelta { truncate: Truncate::All, ..RowDelta::on(&version) }, services).await;
    let refilled = RowDelta { rows: Some(tables::rows(&first)), ..RowDelta::on(&emptied) };
    let version = tables::apply(&*ops, refilled, services).await;
    println!("{name}_refilled {} {:?}", version.metadata_location, tables::read(&version).await);
}
