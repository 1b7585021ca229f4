//! The storage of a table as the catalog tells it: credentials that it hands out, and settings that override ours.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use iceberg::io::FileIO;
use iceberg_catalog_rest::StorageCredential;
use sluice_model::Clock;
use sluice_storage::{Credentials, Encryption, StorageConfig};
use sluice_table::TableError;

use super::http::ServerConfig;
use crate::config::storage_error;

/// Storages that were opened, the newest last: tables mostly share one, and credentials change now and then.
const KEPT: usize = 16;

/// What decides how files are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Settings {
    config: StorageConfig,
    credentials: Option<Credentials>,
}

/// Opens storages, and keeps them.
pub(super) struct Storages {
    base: StorageConfig,
    told: ServerConfig,
    clock: Arc<dyn Clock>,
    open: Mutex<Vec<(Settings, FileIO)>>,
}

impl Storages {
    pub(super) fn new(base: StorageConfig, told: ServerConfig, clock: Arc<dyn Clock>) -> Self {
        Self { base, told, clock, open: Mutex::new(Vec::new()) }
    }

    /// The storage of a table at `location`, which the catalog handed out with these settings and credentials.
    pub(super) async fn of(
        &self,
        location: &str,
        config: &HashMap<String, String>,
        credentials: Option<&[StorageCredential]>,
    ) -> Result<FileIO, TableError> {
        let best = credentials.unwrap_or_default().iter().filter(|given| location.starts_with(&given.prefix));
        let best = best.max_by_key(|given| given.prefix.len()).map(|given| &given.config);
        let settings = settings(&self.base, &[&self.told.defaults], &[Some(&self.told.overrides), Some(config), best])?;
        if let Some(known) = self.known(&settings) {
            return Ok(known);
        }
        let opened = sluice_storage::open_with(&settings.config, settings.credentials.as_ref(), Arc::clone(&self.clock)).await;
        let file_io = opened.map_err(storage_error)?.file_io;
        // Nothing panics while it is held, so a poisoned lock guards a sound list.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= KEPT {
            open.remove(0);
        }
        open.push((settings, file_io.clone()));
        Ok(file_io)
    }

    fn known(&self, settings: &Settings) -> Option<FileIO> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|(known, _)| known == settings).map(|(_, file_io)| file_io.clone())
    }
}

/// Ours, with the catalog's defaults where we say nothing, and its overrides whatever we say.
fn settings(
    base: &StorageConfig,
    defaults: &[&HashMap<String, String>],
    overrides: &[Option<&HashMap<String, String>>],
) -> Result<Settings, TableError> {
    let default = |key: &str| defaults.iter().find_map(|all| all.get(key).cloned());
    let told = |key: &str| overrides.iter().rev().flatten().find_map(|all| all.get(key).cloned());
    let mut config = base.clone();
    let s3 = &mut config.s3;
    s3.endpoint = told("s3.endpoint").or_else(|| s3.endpoint.take()).or_else(|| default("s3.endpoint"));
    let region = |of: &dyn Fn(&str) -> Option<String>| of("s3.region").or_else(|| of("client.region"));
    s3.region = region(&told).or_else(|| s3.region.take()).or_else(|| region(&default));
    if let Some(style) = told("s3.path-style-access").or_else(|| default("s3.path-style-access")) {
        s3.path_style = style.eq_ignore_ascii_case("true");
    }
    if let Some(kind) = told("s3.sse.type") {
        (s3.encryption, s3.kms_key) = (encryption(&kind)?, told("s3.sse.key"));
    }
    let secret = |key: &str| told(key).or_else(|| default(key));
    let credentials = secret("s3.access-key-id").zip(secret("s3.secret-access-key")).map(|(access_key_id, secret_access_key)| {
        Credentials { access_key_id, secret_access_key, session_token: secret("s3.session-token") }
    });
    if credentials.is_none() && told("s3.remote-signing-enabled").is_some_and(|value| value == "true") {
        let help =
            "let it hand out credentials, or give Sluice's own access to the storage and set catalog.rest.vended_credentials = false";
        return Err(TableError::Unsupported(format!("the REST catalog wants to sign each request of storage itself: {help}")));
    }
    Ok(Settings { config, credentials })
}

fn encryption(kind: &str) -> Result<Encryption, TableError> {
    match kind {
        "none" => Ok(Encryption::Bucket),
        "s3" => Ok(Encryption::S3),
        "kms" => Ok(Encryption::Kms),
        "dsse_kms" => Ok(Encryption::KmsDsse),
        other => Err(TableError::Unsupported(format!("the REST catalog asks for s3.sse.type = {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_table_comes_before_the_catalog_and_we_before_its_defaults() {
        let mut base = StorageConfig::default();
        base.s3.region = Some("ours".to_owned());
        let defaults = map(&[("s3.region", "default"), ("s3.endpoint", "http://default")]);
        let overrides = map(&[("s3.path-style-access", "true"), ("s3.access-key-id", "catalog"), ("s3.secret-access-key", "c")]);
        let table = map(&[("s3.access-key-id", "table"), ("s3.secret-access-key", "t"), ("s3.session-token", "s")]);
        let made = settings(&base, &[&defaults], &[Some(&overrides), Some(&table)]).unwrap();
        assert_eq!(made.config.s3.region.as_deref(), Some("ours"));
        assert_eq!(made.config.s3.endpoint.as_deref(), Some("http://default"));
        assert!(made.config.s3.path_style);
        let expected =
            Credentials { access_key_id: "table".to_owned(), secret_access_key: "t".to_owned(), session_token: Some("s".to_owned()) };
        assert_eq!(made.credentials, Some(expected));
    }

    #[test]
    fn remote_signing_alone_is_refused() {
        let table = map(&[("s3.remote-signing-enabled", "true")]);
        assert!(settings(&StorageConfig::default(), &[], &[Some(&table)]).is_err());
    }
}
