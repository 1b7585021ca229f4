//! Tokens of MSK's IAM: a presigned request for `kafka-cluster:Connect`, good for 15 minutes.

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region};
use aws_msk_iam_sasl_signer::generate_auth_token_from_credentials_provider;

use crate::error::KafkaError;
use crate::secrets::SecretText;
use crate::tokens::{Token, TokenSource};

/// Signs with the credentials of AWS's usual chain, looked up afresh each time: a function's change while it lives.
pub(crate) struct MskIamTokens {
    pub(crate) region: String,
}

#[async_trait]
impl TokenSource for MskIamTokens {
    async fn token(&self) -> Result<Token, KafkaError> {
        let region = Region::new(self.region.clone());
        let aws = aws_config::defaults(BehaviorVersion::latest()).region(region.clone()).load().await;
        let provider = aws.credentials_provider().ok_or_else(|| KafkaError::fatal("there are no credentials of AWS"))?;
        let signed = generate_auth_token_from_credentials_provider(region, provider).await;
        let (text, ends_ms) = signed.map_err(|error| KafkaError::transient(format!("no token for MSK's IAM: {error}")))?;
        Ok(Token { text: SecretText::new(text), principal: "sluice".to_owned(), ends_ms })
    }
}
