//! A function behind an address, invoked as Lambda's `Invoke` is: what `cargo lambda watch` offers.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, Uri, body::Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::function::{Account, Function, FunctionError};

/// A function at `http://host:port/…`, invoked by POST.
pub struct HttpFunction {
    address: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The address is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is no address of a function: expected http://host:port/2015-03-31/functions/NAME/invocations ({why})")]
pub struct AddressError {
    address: String,
    why: String,
}

impl HttpFunction {
    /// The function at that address. An address without a path gets the one of Lambda's API for the function `ingest`.
    ///
    /// # Errors
    /// [`AddressError`] when it is no `http` address.
    pub fn at(address: &str) -> Result<Self, AddressError> {
        let wrong = |why: String| AddressError { address: address.to_owned(), why };
        let parsed: Uri = address.parse().map_err(|error: hyper::http::uri::InvalidUri| wrong(error.to_string()))?;
        if parsed.scheme_str() != Some("http") || parsed.authority().is_none() {
            return Err(wrong("it has to begin with http://".to_owned()));
        }
        let full = if parsed.path() == "/" {
            let whole = format!("{}/2015-03-31/functions/ingest/invocations", address.trim_end_matches('/'));
            whole.parse().map_err(|error: hyper::http::uri::InvalidUri| wrong(error.to_string()))?
        } else {
            parsed
        };
        Ok(Self { address: full, client: Client::builder(TokioExecutor::new()).build_http() })
    }

    async fn post(&self, event: Bytes) -> Result<(Response<()>, Bytes), FunctionError> {
        let unreachable = |error: &dyn std::error::Error| FunctionError::Unreachable(format!("{}: {}", self.address, chain(error)));
        let request = Request::post(self.address.clone()).header("content-type", "application/json").body(Full::new(event));
        let request = request.map_err(|error| unreachable(&error))?;
        let response: Response<Incoming> = self.client.request(request).await.map_err(|error| unreachable(&error))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| unreachable(&error))?.to_bytes();
        Ok((Response::from_parts(parts, ()), body))
    }
}

/// An error with its causes: the outermost alone says little here.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[async_trait]
impl Function for HttpFunction {
    async fn invoke(&self, event: Bytes, timeout_ms: u64) -> Result<Account, FunctionError> {
        let answer = tokio::time::timeout(Duration::from_millis(timeout_ms), self.post(event)).await;
        let (head, body) = answer.map_err(|_| FunctionError::Unreachable(format!("{}: no answer in {timeout_ms} ms", self.address)))??;
        // Lambda answers 200 with this header when the function failed.
        if head.headers().contains_key("x-amz-function-error") || !head.status().is_success() {
            return Err(FunctionError::Failed(format!("{}: {}", head.status(), String::from_utf8_lossy(&body))));
        }
        Account::read(&body)
    }
}
