//! Who asks: tokens and signatures.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use sluice_model::{Class, Clock};
use sluice_table::TableError;
use tokio::sync::Mutex;

use crate::configs::{RestAuth, RestConfig, RestSecrets};

/// A token is had anew so long before it ends.
const BEFORE_END_MS: i64 = 60_000;
/// How long a token is taken to be good when the server does not say.
const UNTOLD_MS: i64 = 300_000;

/// What proves who asks.
pub(super) enum Auth {
    None,
    Bearer(String),
    OAuth2(OAuth2),
    SigV4(SigV4),
}

/// A request as it is to be signed.
pub(super) struct Unsigned<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a str,
    pub(super) body: &'a [u8],
}

pub(super) fn refused(what: impl Into<String>) -> TableError {
    TableError::Catalog { class: Class::Fatal, what: what.into(), source: None }
}

impl Auth {
    pub(super) async fn new(config: &RestConfig, secrets: RestSecrets, clock: &Arc<dyn Clock>) -> Result<Self, TableError> {
        match config.auth {
            RestAuth::None => Ok(Self::None),
            RestAuth::Bearer => {
                let token =
                    secrets.token.ok_or_else(|| refused("catalog.rest.auth = \"bearer\" needs the token in SLUICE_CATALOG_TOKEN"))?;
                Ok(Self::Bearer(token))
            }
            RestAuth::OAuth2 => {
                let help = "catalog.rest.auth = \"oauth2\" needs client credentials, `id:secret`, in SLUICE_CATALOG_CREDENTIAL";
                let credential = secrets.credential.ok_or_else(|| refused(help))?;
                let (id, secret) = credential
                    .split_once(':')
                    .map_or((String::new(), credential.clone()), |(id, secret)| (id.to_owned(), secret.to_owned()));
                let uri = config.token_uri.clone().unwrap_or_else(|| format!("{}/v1/oauth/tokens", config.uri));
                Ok(Self::OAuth2(OAuth2 { uri, id, secret, scope: config.scope.clone(), clock: Arc::clone(clock), token: Mutex::new(None) }))
            }
            RestAuth::SigV4 => Ok(Self::SigV4(SigV4::new(config, clock).await?)),
        }
    }

    /// The headers of a request.
    pub(super) async fn headers(&self, client: &reqwest::Client, request: &Unsigned<'_>) -> Result<HeaderMap, TableError> {
        match self {
            Self::None => Ok(HeaderMap::new()),
            Self::Bearer(token) => bearer(token),
            Self::OAuth2(oauth) => bearer(&oauth.token(client).await?),
            Self::SigV4(sigv4) => sigv4.headers(request).await,
        }
    }

    /// After the server has refused a token: whether another one can be had.
    pub(super) async fn forget(&self) -> Again {
        match self {
            Self::None | Self::Bearer(_) | Self::SigV4(_) => Again::No,
            Self::OAuth2(oauth) => {
                *oauth.token.lock().await = None;
                Again::Yes
            }
        }
    }
}

/// Whether a request that was refused may go again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Yes,
    No,
}

fn bearer(token: &str) -> Result<HeaderMap, TableError> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| refused("the token of the REST catalog is no text for a header"))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// OAuth2 client credentials.
pub(super) struct OAuth2 {
    uri: String,
    id: String,
    secret: String,
    scope: String,
    clock: Arc<dyn Clock>,
    token: Mutex<Option<Token>>,
}

struct Token {
    text: String,
    until_ms: i64,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<i64>,
}

impl OAuth2 {
    async fn token(&self, client: &reqwest::Client) -> Result<String, TableError> {
        let mut kept = self.token.lock().await;
        let now = self.clock.now_ms();
        if let Some(token) = kept.as_ref().filter(|token| now < token.until_ms) {
            return Ok(token.text.clone());
        }
        let answer = self.ask(client).await?;
        let seconds = answer.expires_in.map_or(UNTOLD_MS, |seconds| seconds.saturating_mul(1_000));
        let until_ms = now.saturating_add(seconds).saturating_sub(BEFORE_END_MS.min(seconds / 2));
        *kept = Some(Token { text: answer.access_token.clone(), until_ms });
        Ok(answer.access_token)
    }

    async fn ask(&self, client: &reqwest::Client) -> Result<TokenAnswer, TableError> {
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", self.id.as_str()),
            ("client_secret", self.secret.as_str()),
            ("scope", self.scope.as_str()),
        ];
        let body = fields.map(|(key, value)| format!("{key}={}", super::http::encoded(value))).join("&");
        let request = client.post(&self.uri).header("content-type", "application/x-www-form-urlencoded").body(body);
        let trouble =
            |class, why: String| TableError::Catalog { class, what: format!("asking {} for a token: {why}", self.uri), source: None };
        let answer = request.send().await.map_err(|error| trouble(Class::Transient, error.to_string()))?;
        let status = answer.status().as_u16();
        if !answer.status().is_success() {
            let class = if status >= 500 || status == 429 { Class::Transient } else { Class::Fatal };
            return Err(trouble(class, format!("HTTP {status}; are the client's id, secret and scope right?")));
        }
        answer.json().await.map_err(|error| trouble(Class::Transient, error.to_string()))
    }
}

/// Signatures of AWS.
pub(super) struct SigV4 {
    credentials: SharedCredentialsProvider,
    region: String,
    service: String,
    clock: Arc<dyn Clock>,
}

impl SigV4 {
    async fn new(config: &RestConfig, clock: &Arc<dyn Clock>) -> Result<Self, TableError> {
        let mut s3 = config.storage.s3.clone();
        s3.region = config.aws.region.clone().or(s3.region);
        let shared = sluice_storage::s3::aws_config(&s3).await;
        let region =
            shared.region().map(ToString::to_string).ok_or_else(|| refused("AWS signatures need a region: set catalog.rest.region"))?;
        let credentials = shared.credentials_provider().ok_or_else(|| refused("AWS signatures need credentials in AWS's usual chain"))?;
        Ok(Self { credentials, region, service: config.signing_name.clone(), clock: Arc::clone(clock) })
    }

    async fn headers(&self, request: &Unsigned<'_>) -> Result<HeaderMap, TableError> {
        let given = self.credentials.provide_credentials().await.map_err(|error| TableError::Catalog {
            class: Class::Transient,
            what: format!("the REST catalog wants AWS signatures, and there are no credentials: {error}"),
            source: Some(Box::new(error)),
        })?;
        let wrong = |error: &dyn std::fmt::Display| refused(format!("signing a request of the REST catalog: {error}"));
        let identity = given.into();
        let now = UNIX_EPOCH + Duration::from_millis(self.clock.now_ms().max(0).cast_unsigned());
        let params = v4::SigningParams::builder().identity(&identity).region(&self.region).name(&self.service).time(now);
        let params = params.settings(SigningSettings::default()).build().map_err(|error| wrong(&error))?.into();
        let signable = SignableRequest::new(request.method, request.url, std::iter::empty(), SignableBody::Bytes(request.body));
        let signed = sign(signable.map_err(|error| wrong(&error))?, &params).map_err(|error| wrong(&error))?;
        let (instructions, _) = signed.into_parts();
        let headers = instructions.headers().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(&error))?;
            Ok((name, HeaderValue::from_str(value).map_err(|error| wrong(&error))?))
        });
        headers.collect()
    }
}

#[cfg(test)]
mod tests {
    use aws_credential_types::Credentials;

    use super::*;

    struct Fixed;

    impl Clock for Fixed {
        fn now_ms(&self) -> i64 {
            1_440_938_160_000
        }
    }

    /// The example of AWS's own documentation of signatures ("get-vanilla" of the test suite of version 4).
    #[tokio::test]
    async fn a_signature_is_that_of_the_test_suite() {
        let given = Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None, None, "test");
        let sigv4 = SigV4 {
            credentials: SharedCredentialsProvider::new(given),
            region: "us-east-1".to_owned(),
            service: "service".to_owned(),
            clock: Arc::new(Fixed),
        };
        let request = Unsigned { method: "GET", url: "https://example.amazonaws.com/", body: b"" };
        let headers = sigv4.headers(&request).await.unwrap();
        assert_eq!(headers["x-amz-date"], "20150830T123600Z");
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, \
                        Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(headers["authorization"], expected);
    }
}
