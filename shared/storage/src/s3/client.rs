//! A client of S3 from a configuration.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::Client;

use crate::{Credentials, S3Config};

/// AWS's usual chain of regions and credentials, with the retries and timeouts of `config`; also for other services than S3.
pub async fn aws_config(config: &S3Config) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
        .read_timeout(Duration::from_millis(config.attempt_timeout_ms))
        .operation_attempt_timeout(Duration::from_millis(config.attempt_timeout_ms))
        .operation_timeout(Duration::from_millis(config.timeout_ms))
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::standard().with_max_attempts(config.max_attempts))
        .timeout_config(timeouts);
    if let Some(region) = &config.region {
        loader = loader.region(Region::new(region.clone()));
    }
    loader.load().await
}

/// The client; `credentials` stand in for those of the chain.
pub(crate) fn client(shared: &SdkConfig, config: &S3Config, credentials: Option<&Credentials>) -> Client {
    let mut builder = aws_sdk_s3::config::Builder::from(shared).force_path_style(config.path_style);
    if let Some(endpoint) = &config.endpoint {
        // Other servers may not know the checksums that are S3's own default since 2025.
        builder = builder.endpoint_url(endpoint);
        builder = builder.request_checksum_calculation(aws_sdk_s3::config::RequestChecksumCalculation::WhenRequired);
        builder = builder.response_checksum_validation(aws_sdk_s3::config::ResponseChecksumValidation::WhenRequired);
    }
    if shared.region().is_none() {
        // Signing needs one; S3-compatible servers take any, and AWS answers with the right one.
        builder = builder.region(Region::from_static("us-east-1"));
    }
    if let Some(given) = credentials {
        let session = given.session_token.clone();
        let fixed = aws_sdk_s3::config::Credentials::new(&given.access_key_id, &given.secret_access_key, session, None, "catalog");
        builder = builder.credentials_provider(fixed);
    }
    Client::from_conf(builder.build())
}
