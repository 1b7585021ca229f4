//! Secrets of AWS Secrets Manager, by their ARN.

use aws_config::{BehaviorVersion, Region};
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::timeout::TimeoutConfig;
use aws_sdk_secretsmanager::error::{DisplayErrorContext, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use sluice_model::Class;

use crate::error::KafkaError;

/// The longest that a secret may take with all its tries, in seconds.
const TIMEOUT_S: u64 = 10;

/// The text of the secret. Its region is the ARN's.
pub(crate) async fn fetch(arn: &str) -> Result<String, KafkaError> {
    let region = arn.split(':').nth(3).filter(|region| !region.is_empty()).map(|region| Region::new(region.to_owned()));
    let timeouts = TimeoutConfig::builder().operation_timeout(std::time::Duration::from_secs(TIMEOUT_S)).build();
    let loader = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts);
    let loader = match region {
        Some(region) => loader.region(region),
        None => loader,
    };
    let client = Client::new(&loader.load().await);
    let answer = client.get_secret_value().secret_id(arn).send().await;
    let answer = answer.map_err(|error| KafkaError {
        class: class(&error),
        what: format!("the secret `{arn}` cannot be read (permission secretsmanager:GetSecretValue?): {}", DisplayErrorContext(&error)),
    })?;
    answer.secret_string.ok_or_else(|| KafkaError::fatal(format!("the secret `{arn}` is no text")))
}

/// Whether to ask again later.
fn class(error: &SdkError<GetSecretValueError>) -> Class {
    match error {
        SdkError::ServiceError(service) => match service.err() {
            GetSecretValueError::InternalServiceError(_) => Class::Transient,
            _ if service.raw().status().as_u16() >= 500 || service.raw().status().as_u16() == 429 => Class::Transient,
            _ => Class::Fatal,
        },
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => Class::Transient,
        _ => Class::Fatal,
    }
}
