//! REST catalogs: Iceberg's own REST fixture over its in-memory catalog.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sluice_catalog::{RestAuth, RestCatalog, RestConfig, RestSecrets};
use sluice_model::{Class, config::Problems, config::Section};
use sluice_storage::StorageConfig;
use sluice_table::Catalog;
use sluice_testkit::{Namespaces, catalog_contract};

use crate::{address, services};

pub(crate) fn config(context: &str, auth: RestAuth) -> RestConfig {
    let mut problems = Problems::default();
    let section = Section::new("catalog.rest", serde_json::Value::Null, &mut problems);
    let uri = format!("{}/{context}", address("SLUICE_TEST_REST_URI"));
    let config = RestConfig::read(section, (uri, None, StorageConfig::default()), &mut problems);
    assert!(problems.is_empty());
    let location = Some(format!("file://{}/{context}", address("SLUICE_TEST_REST_WAREHOUSE")));
    RestConfig { auth, location, ..config }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest() {
    let number = AtomicU32::new(0);
    catalog_contract(Namespaces::Nested, || async {
        let config = config(&format!("open{}", number.fetch_add(1, Ordering::SeqCst)), RestAuth::None);
        Arc::new(RestCatalog::open(config, RestSecrets::default(), services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
}

/// The same with a token for client credentials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_with_oauth2() {
    let number = AtomicU32::new(0);
    let secrets = RestSecrets { token: None, credential: Some("sluice:secret".to_owned()) };
    catalog_contract(Namespaces::Nested, || async {
        let config = config(&format!("closed{}", number.fetch_add(1, Ordering::SeqCst)), RestAuth::OAuth2);
        Arc::new(RestCatalog::open(config, secrets.clone(), services()).await.unwrap()) as Arc<dyn Catalog>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_are_wrong_or_missing_are_told() {
    let open =
        |auth, secrets| async move { RestCatalog::open(config("closed20", auth), secrets, services()).await.map(|_| ()).unwrap_err() };
    let missing = open(RestAuth::OAuth2, RestSecrets::default()).await;
    assert!(missing.to_string().contains("SLUICE_CATALOG_CREDENTIAL"), "{missing}");
    for (auth, secrets) in [
        (RestAuth::None, RestSecrets::default()),
        (RestAuth::Bearer, RestSecrets { token: Some("wrong".to_owned()), credential: None }),
        (RestAuth::OAuth2, RestSecrets { token: None, credential: Some("somebody:secret".to_owned()) }),
    ] {
        let refused = open(auth, secrets).await;
        assert_eq!(refused.class(), Class::Fatal, "{refused}");
        assert!(refused.to_string().contains("catalog.rest.auth"), "{refused}");
    }
}

/// The server tells where a table's storage is and hands out credentials for it: ours are not needed, and without asking there is no way in.
#[cfg(feature = "aws")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_hands_out_opens_the_storage() {
    use sluice_testkit::TestServices;
    use sluice_testkit::tables::{apply, create, creation, delta, read, rows};

    let config = RestConfig { location: Some(crate::aws::folder("vended")), ..config("vending", RestAuth::None) };
    assert_eq!(config.storage.s3.endpoint, None);
    let catalog = RestCatalog::open(config.clone(), RestSecrets::default(), services()).await.unwrap();
    let ops = create(&catalog, "t", &creation(&[])).await;
    let base = ops.refresh().await.unwrap();
    assert!(base.metadata.location().starts_with("s3://lake/vended"));
    let now = apply(&*ops, delta(&base, rows(&[(1, Some("eu"), 1)]), (0, 0..1)), &TestServices::seeded(5)).await;
    assert_eq!(read(&now).await.len(), 1);
    let mut alone = RestConfig { vended_credentials: false, ..config };
    (alone.storage.s3.endpoint, alone.storage.s3.max_attempts) = (Some("http://127.0.0.1:1".to_owned()), 1);
    let catalog = RestCatalog::open(alone, RestSecrets::default(), services()).await.unwrap();
    let version = catalog.load(&sluice_testkit::tables::name("t")).await.unwrap().unwrap().refresh().await.unwrap();
    let manifests = version.metadata.current_snapshot().unwrap().manifest_list().to_owned();
    assert!(version.file_io.new_input(manifests).unwrap().read().await.is_err());
}
