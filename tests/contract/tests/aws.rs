//! What the tests on AWS (moto) share.

use std::sync::atomic::{AtomicU32, Ordering};

use sluice_catalog::AwsConfig;
use sluice_storage::{S3Config, StorageConfig};

use crate::address;

static REGIONS: AtomicU32 = AtomicU32::new(0);

/// A region of its own, with nothing in it.
pub(crate) fn empty_region() -> String {
    format!("test-{}", REGIONS.fetch_add(1, Ordering::SeqCst))
}

pub(crate) fn storage() -> StorageConfig {
    let s3 = S3Config {
        endpoint: Some(address("SLUICE_TEST_AWS_ENDPOINT")),
        region: Some("eu-central-1".to_owned()),
        path_style: true,
        part_bytes: 5 << 20,
        ..S3Config::default()
    };
    StorageConfig { s3 }
}

pub(crate) fn service(region: &str) -> AwsConfig {
    AwsConfig { region: Some(region.to_owned()), endpoint: Some(address("SLUICE_TEST_AWS_ENDPOINT")) }
}

/// A folder of the bucket that nobody else has.
pub(crate) fn folder(test: &str) -> String {
    format!("s3://lake/{test}-{}", REGIONS.fetch_add(1, Ordering::SeqCst))
}

/// The lines of moto's log of requests since `from`, and where they end.
pub(crate) fn requests(from: usize) -> (Vec<String>, usize) {
    let log = std::fs::read_to_string(address("SLUICE_TEST_AWS_LOG")).unwrap();
    let lines = log[from..].lines().filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect();
    (lines, log.len())
}
