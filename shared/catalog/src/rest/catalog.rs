//! The catalog.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use iceberg_catalog_rest::CreateTableRequest;
use reqwest::Method;
use serde::Deserialize;
use sluice_model::TableName;
use sluice_table::{Catalog, CreateOutcome, TableCreation, TableError, TableOperations};

use super::errors::{of_failed_write, of_read, of_write};
use super::http::{Failure, Http, encoded, namespace_path, table_path};
use super::storage::Storages;
use super::table::{Connection, RestTable};
use crate::configs::{RestConfig, RestSecrets};
use crate::pointer::Services;
use crate::warehouse;

/// The most namespaces that are listed, and the most pages of tables in one.
const MOST: usize = 10_000;

/// A catalog that speaks Iceberg's REST protocol.
pub struct RestCatalog {
    connection: Arc<Connection>,
    location: Option<String>,
    services: Services,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Namespaces {
    namespaces: Vec<Vec<String>>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Identifier {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Tables {
    identifiers: Vec<Identifier>,
    next_page_token: Option<String>,
}

enum Creation {
    Outcome(CreateOutcome),
    NoNamespace,
}

impl RestCatalog {
    /// Asks the server how it wants to be used.
    ///
    /// # Errors
    /// [`TableError`] when it cannot be reached or refuses the credentials.
    pub async fn open(config: RestConfig, secrets: RestSecrets, services: Services) -> Result<Self, TableError> {
        let (http, server) = Http::open(&config, secrets, &services.clock).await?;
        let storages = Storages::new(config.storage, server, Arc::clone(&services.clock));
        Ok(Self { connection: Arc::new(Connection { http, storages }), location: config.location, services })
    }

    /// A folder of its own for the table, if we choose it.
    fn location(&self, name: &TableName) -> Option<String> {
        let unique = self.services.ids.next_u128() as u32;
        let root = self.location.as_deref()?.trim_end_matches('/');
        Some(format!("{root}/{}/{}-{unique:08x}", name.namespace().replace('.', "/"), name.table()))
    }

    async fn create_once(&self, name: &TableName, body: &[u8]) -> Result<Creation, TableError> {
        let path = format!("{}/tables", namespace_path(name));
        let answer = self.connection.http.send(Method::POST, &path, Some(body)).await.map_err(of_failed_write)?;
        match answer.status {
            200 => Ok(Creation::Outcome(CreateOutcome::Created)),
            409 => Ok(Creation::Outcome(CreateOutcome::AlreadyExists)),
            404 => Ok(Creation::NoNamespace),
            _ => Err(of_write(&format!("creating {name}"), &answer)),
        }
    }

    /// Creates the namespace and those around it, as far as they are missing.
    async fn create_namespaces(&self, name: &TableName) -> Result<(), TableError> {
        let levels: Vec<&str> = name.namespace().split('.').collect();
        for depth in 1..=levels.len() {
            let body = serde_json::json!({"namespace": levels[..depth], "properties": {}}).to_string();
            let answer = self.connection.http.send(Method::POST, "namespaces", Some(body.as_bytes())).await.map_err(of_failed_write)?;
            if !matches!(answer.status, 200 | 409) {
                return Err(of_write(&format!("creating the namespace {}", levels[..depth].join(".")), &answer));
            }
        }
        Ok(())
    }

    async fn namespaces_in(&self, parent: Option<&[String]>) -> Result<Vec<Vec<String>>, TableError> {
        let mut query = parent.map_or_else(|| "?".to_owned(), |levels| format!("?parent={}&", encoded(&levels.join("\u{1f}"))));
        let stem = query.clone();
        let mut found = Vec::new();
        for _ in 0..MOST {
            let answer = self.connection.http.send(Method::GET, &format!("namespaces{query}"), None).await.map_err(Failure::into_error)?;
            match answer.status {
                200 => {}
                404 => return Ok(found),
                _ => return Err(of_read("listing namespaces", &answer)),
            }
            let page: Namespaces = answer.json("listing namespaces")?;
            found.extend(page.namespaces);
            match page.next_page_token.filter(|token| !token.is_empty()) {
                Some(token) => query = format!("{stem}pageToken={}", encoded(&token)),
                None => return Ok(found),
            }
        }
        Err(too_many())
    }

    async fn namespaces(&self) -> Result<Vec<Vec<String>>, TableError> {
        let mut open = self.namespaces_in(None).await?;
        let mut all = Vec::new();
        while let Some(namespace) = open.pop() {
            if all.len() >= MOST {
                return Err(too_many());
            }
            // A server without nested namespaces may give all of them again.
            let inner = self.namespaces_in(Some(&namespace)).await?;
            open.extend(inner.into_iter().filter(|inner| inner.len() > namespace.len() && inner.starts_with(&namespace)));
            all.push(namespace);
        }
        Ok(all)
    }

    async fn tables_in(&self, namespace: &[String]) -> Result<Vec<TableName>, TableError> {
        let path = format!("namespaces/{}/tables", encoded(&namespace.join("\u{1f}")));
        let mut query = String::new();
        let mut names = Vec::new();
        for _ in 0..MOST {
            let answer = self.connection.http.send(Method::GET, &format!("{path}{query}"), None).await.map_err(Failure::into_error)?;
            match answer.status {
                200 => {}
                404 => return Ok(names),
                _ => return Err(of_read("listing tables", &answer)),
            }
            let page: Tables = answer.json("listing tables")?;
            // A name that we could not address is none of ours.
            names.extend(page.identifiers.iter().filter_map(|table| TableName::parse(&format!("{}.{}", namespace.join("."), table.name))));
            match page.next_page_token.filter(|token| !token.is_empty()) {
                Some(token) => query = format!("?pageToken={}", encoded(&token)),
                None => return Ok(names),
            }
        }
        Err(too_many())
    }
}

fn too_many() -> TableError {
    TableError::Unsupported(format!("a REST catalog with more than {MOST} namespaces, or pages of tables in one"))
}

fn request(name: &TableName, location: Option<String>, metadata: &TableMetadata) -> Result<Vec<u8>, TableError> {
    let mut properties: HashMap<String, String> = metadata.properties().clone();
    properties.insert("format-version".to_owned(), (metadata.format_version() as u8).to_string());
    let request = CreateTableRequest {
        name: name.table().to_owned(),
        location,
        schema: metadata.current_schema().as_ref().clone(),
        partition_spec: Some(metadata.default_partition_spec().as_ref().clone().into_unbound()),
        write_order: Some(metadata.default_sort_order().as_ref().clone()),
        stage_create: Some(false),
        properties,
    };
    serde_json::to_vec(&request).map_err(|error| TableError::Invalid(format!("the table cannot be created: {error}")))
}

#[async_trait]
impl Catalog for RestCatalog {
    async fn load(&self, name: &TableName) -> Result<Option<Arc<dyn TableOperations>>, TableError> {
        let found = self.connection.load(name).await?;
        let table = |version| RestTable::new(name.clone(), Arc::clone(&self.connection), version);
        Ok(found.map(|version| Arc::new(table(version)) as Arc<dyn TableOperations>))
    }

    async fn create(&self, name: &TableName, creation: &TableCreation) -> Result<CreateOutcome, TableError> {
        let location = self.location(name);
        let Services { clock, ids } = &self.services;
        // Made here only to be checked and turned into a request: the server makes its own.
        let metadata = creation.metadata(location.as_deref().unwrap_or("pending"), ids.next_u128(), clock.now_ms())?;
        let body = request(name, location, &metadata)?;
        match self.create_once(name, &body).await? {
            Creation::Outcome(outcome) => return Ok(outcome),
            Creation::NoNamespace => self.create_namespaces(name).await?,
        }
        match self.create_once(name, &body).await? {
            Creation::Outcome(outcome) => Ok(outcome),
            Creation::NoNamespace => Err(TableError::Catalog {
                class: sluice_model::Class::Transient,
                what: format!("the REST catalog, creating {name}: its namespace is gone again"),
                source: None,
            }),
        }
    }

    async fn tables(&self) -> Result<Vec<TableName>, TableError> {
        let mut names = Vec::new();
        for namespace in self.namespaces().await? {
            names.extend(self.tables_in(&namespace).await?);
        }
        names.sort_unstable();
        Ok(names)
    }

    async fn drop_table(&self, name: &TableName) -> Result<bool, TableError> {
        let path = format!("{}?purgeRequested=false", table_path(name));
        let answer = self.connection.http.send(Method::DELETE, &path, None).await.map_err(of_failed_write)?;
        match answer.status {
            200 | 204 => Ok(true),
            404 => Ok(false),
            _ => Err(of_write(&format!("dropping {name}"), &answer)),
        }
    }

    async fn check_warehouse(&self) -> Result<String, TableError> {
        let place = self.location.as_deref();
        let file_io = self.connection.storages.of(place.unwrap_or_default(), &HashMap::new(), None).await?;
        warehouse::check(&file_io, place, self.services.ids.next_u128()).await
    }
}
