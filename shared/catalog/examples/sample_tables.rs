//! Writes sample tables into a folder, for other programs to read: `sample_tables FOLDER`. Each table's expected rows are printed.
#![allow(clippy::unwrap_used)]

use sluice_catalog::{Services, SqlCatalog, SqlOptions};
use sluice_table::{Catalog, RowDelta, TableCreation, Truncate};
use sluice_testkit::{TestServices, tables};

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
        }
    }
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
