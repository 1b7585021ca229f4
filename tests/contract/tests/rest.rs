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
