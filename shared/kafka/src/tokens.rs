//! Tokens that librdkafka asks for when a connection is made and before the last one ends (OAUTHBEARER, KIP-255).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::client::OAuthToken;

use crate::config::Connection;
use crate::error::KafkaError;
use crate::secrets::{Environment, SecretText};
use crate::security::Security;

/// The longest that a token may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The token itself.
    pub text: SecretText,
    /// Whose it is, for logs of librdkafka.
    pub principal: String,
    /// When it ends, in milliseconds since 1970.
    pub ends_ms: i64,
}

/// Where tokens come from.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// A fresh token.
    ///
    /// # Errors
    /// [`KafkaError`] when there is none; librdkafka asks again after ten seconds.
    async fn token(&self) -> Result<Token, KafkaError>;
}

/// The tokens of a connection, for [`rdkafka::ClientContext::generate_oauth_token`] of a context with `ENABLE_REFRESH_OAUTH_TOKEN`.
#[derive(Clone, Default)]
pub struct Tokens {
    source: Option<Arc<dyn TokenSource>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// The tokens that this connection takes: none, unless it is secured by MSK's IAM.
    ///
    /// # Errors
    /// [`KafkaError`] when the region is not known, or this program was built without.
    pub fn of(connection: &Connection, environment: Environment<'_>) -> Result<Self, KafkaError> {
        match &connection.security {
            Security::Plaintext | Security::Tls(_) | Security::Password(_) => Ok(Self::default()),
            Security::MskIam(iam) => {
                let region = iam.region.clone().or_else(|| environment("AWS_REGION")).or_else(|| environment("AWS_DEFAULT_REGION"));
                let region = region.ok_or_else(|| KafkaError::fatal("msk-iam needs a region: set security.region or AWS_REGION"))?;
                msk_iam(region)
            }
        }
    }

    /// Tokens from somewhere else.
    #[must_use]
    pub fn from_source(source: Arc<dyn TokenSource>) -> Self {
        Self { source: Some(source) }
    }

    /// A fresh token. librdkafka asks from whichever thread polls it, which may belong to an async runtime that must not be blocked on itself: so the question is
    /// put on a thread of its own, with a runtime of its own. It is asked every ten minutes or so.
    ///
    /// # Errors
    /// What the source said, or that it took too long.
    pub fn generate(&self) -> Result<OAuthToken, Box<dyn std::error::Error>> {
        let source = self.source.clone().ok_or_else(|| KafkaError::fatal("the broker wants a token, and none is configured"))?;
        let asked = std::thread::spawn(move || -> Result<Token, KafkaError> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| KafkaError::transient(format!("no runtime to ask for a token: {error}")))?;
            let token = runtime.block_on(async { tokio::time::timeout(TIMEOUT, source.token()).await });
            token.map_err(|_| KafkaError::transient(format!("no token within {} s", TIMEOUT.as_secs())))?
        });
        let token = asked.join().map_err(|_| KafkaError::transient("the source of tokens ended"))??;
        Ok(OAuthToken { token: token.text.expose().to_owned(), principal_name: token.principal, lifetime_ms: token.ends_ms })
    }
}

#[cfg(feature = "msk-iam")]
#[expect(clippy::unnecessary_wraps, reason = "the other build cannot")]
fn msk_iam(region: String) -> Result<Tokens, KafkaError> {
    Ok(Tokens::from_source(Arc::new(crate::msk::MskIamTokens { region })))
}

/// Reading the configuration says so before: this is for one that was made otherwise.
#[cfg(not(feature = "msk-iam"))]
fn msk_iam(_region: String) -> Result<Tokens, KafkaError> {
    Err(KafkaError::fatal("this program was built without MSK's IAM: build it with --features kafka,kafka-aws"))
}
