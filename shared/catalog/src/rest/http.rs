//! Requests of the REST protocol.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use sluice_model::{Class, Clock, TableName};
use sluice_table::TableError;

use super::auth::{Again, Auth, Unsigned, refused};
use crate::configs::{RestConfig, RestSecrets};

/// The longest answer that is taken: metadata of a table with tens of thousands of snapshots.
const MOST_BYTES: usize = 256 << 20;

/// What the server answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    body: Bytes,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T, TableError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| TableError::Invalid(format!("the REST catalog, {what}: its answer cannot be read: {error}")))
    }

    /// What the server says of its error, for people: the first few hundred bytes.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(500)]).into_owned()
    }
}

/// There is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server has surely not seen the request.
    NotSent(TableError),
    /// It may have.
    Broken(TableError),
}

impl Failure {
    /// The error, when it does not matter whether the server has seen the request.
    pub(super) fn into_error(self) -> TableError {
        match self {
            Self::NotSent(error) | Self::Broken(error) => error,
        }
    }
}

/// A connection to a REST catalog.
pub(super) struct Http {
    client: reqwest::Client,
    auth: Auth,
    base: String,
    /// `v1` or `v1/PREFIX`.
    root: String,
    headers: HeaderMap,
}

/// What the server says of how to use it.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub(super) struct ServerConfig {
    /// Where the client says nothing.
    #[serde(default)]
    pub(super) defaults: HashMap<String, String>,
    /// Whatever the client says.
    #[serde(default)]
    pub(super) overrides: HashMap<String, String>,
}

impl Http {
    /// Asks the server how it wants to be used.
    pub(super) async fn open(
        config: &RestConfig,
        secrets: RestSecrets,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Self, ServerConfig), TableError> {
        let client = reqwest::Client::builder()
            .timeout(Duration::from_millis(config.timeout_ms))
            .connect_timeout(Duration::from_millis(config.timeout_ms.min(10_000)))
            .build()
            .map_err(|error| refused(format!("a client of HTTP: {error}")))?;
        let auth = Auth::new(config, secrets, clock).await?;
        let mut http = Self { client, auth, base: config.uri.clone(), root: "v1".to_owned(), headers: HeaderMap::new() };
        let query = config.warehouse.as_ref().map_or(String::new(), |warehouse| format!("?warehouse={}", encoded(warehouse)));
        let answer = http.send(Method::GET, &format!("config{query}"), None).await.map_err(Failure::into_error)?;
        if answer.status != 200 {
            return Err(super::errors::of_read("GET config", &answer));
        }
        let server: ServerConfig = answer.json("GET config")?;
        let told = |key: &str| server.overrides.get(key).or_else(|| server.defaults.get(key));
        if let Some(uri) = told("uri") {
            http.base = uri.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        }
        if let Some(prefix) = told("prefix").filter(|prefix| !prefix.is_empty()) {
            http.root = format!("v1/{}", prefix.split('/').map(encoded).collect::<Vec<_>>().join("/"));
        }
        if config.vended_credentials {
            http.headers.insert("x-iceberg-access-delegation", reqwest::header::HeaderValue::from_static("vended-credentials"));
        }
        Ok((http, server))
    }

    /// Sends a request: again, once, if the server refused the token.
    pub(super) async fn send(&self, method: Method, path: &str, body: Option<&[u8]>) -> Result<Answer, Failure> {
        let answer = self.send_once(&method, path, body).await?;
        if matches!(answer.status, 401 | 419) && self.auth.forget().await == Again::Yes {
            return self.send_once(&method, path, body).await;
        }
        Ok(answer)
    }

    async fn send_once(&self, method: &Method, path: &str, body: Option<&[u8]>) -> Result<Answer, Failure> {
        let root = if path.starts_with("config") { "v1" } else { self.root.as_str() };
        let url = format!("{}/{root}/{path}", self.base);
        let unsigned = Unsigned { method: method.as_str(), url: &url, body: body.unwrap_or_default() };
        let auth = self.auth.headers(&self.client, &unsigned).await.map_err(Failure::NotSent)?;
        let mut request = self.client.request(method.clone(), &url).headers(self.headers.clone()).headers(auth);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_vec());
        }
        let mut answer = request.send().await.map_err(|error| failure(&url, error))?;
        let status = answer.status().as_u16();
        let mut body = bytes::BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| failure(&url, error))? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(Failure::Broken(refused(format!("{url}: an answer of more than {MOST_BYTES} bytes"))));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body: body.freeze() })
    }
}

fn failure(url: &str, error: reqwest::Error) -> Failure {
    let connect = error.is_connect();
    let mut why = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(deeper) = source {
        why = format!("{why}: {deeper}");
        source = deeper.source();
    }
    let what = format!("the REST catalog at {url}: {why}");
    let error = TableError::Catalog { class: Class::Transient, what, source: Some(Box::new(error)) };
    if connect { Failure::NotSent(error) } else { Failure::Broken(error) }
}

/// A path segment or a query's value.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The path of a namespace: its levels are parted by the unit separator.
pub(super) fn namespace_path(name: &TableName) -> String {
    format!("namespaces/{}", encoded(&name.namespace().replace('.', "\u{1f}")))
}

/// The path of a table.
pub(super) fn table_path(name: &TableName) -> String {
    format!("{}/tables/{}", namespace_path(name), encoded(name.table()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_by_level() {
        let name = TableName::parse("a b.ü.t/1").unwrap();
        assert_eq!(table_path(&name), "namespaces/a%20b%1F%C3%BC/tables/t%2F1");
    }
}
