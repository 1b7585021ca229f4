//! The contract suite on every catalog. Those of a real service are behind a feature, so that a plain `cargo test` needs none and builds no heavy
//! client: `make contract` turns them all on and starts the services.
#![allow(clippy::unwrap_used, clippy::panic)]

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "aws")]
mod config_in_s3;
mod counting;
#[cfg(any(feature = "hive", feature = "postgres"))]
mod faults;
#[cfg(any(feature = "aws", feature = "rest"))]
mod faults_http;
#[cfg(feature = "aws")]
mod glue;
mod growth;
#[cfg(feature = "hive")]
mod hive;
#[cfg(feature = "hive")]
mod hive_rules;
#[cfg(feature = "hive")]
mod java;
#[cfg(any(feature = "hive", feature = "postgres"))]
mod latency;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "aws")]
mod requests;
#[cfg(feature = "rest")]
mod rest;
#[cfg(feature = "aws")]
mod s3;
#[cfg(feature = "aws")]
mod s3tables;
mod sqlite;

use std::sync::atomic::{AtomicU32, Ordering};

use sluice_catalog::Services;
use sluice_testkit::TestServices;

/// Time and ids of a test's catalog, other ones each time: two processes never draw the same ids.
fn services() -> Services {
    static SEED: AtomicU32 = AtomicU32::new(7_000_000);
    let TestServices { clock, ids } = TestServices::seeded(u64::from(SEED.fetch_add(1, Ordering::SeqCst)));
    Services { clock, ids }
}

/// The address of a service that this test needs. A test that is run without it fails: it was asked for by its feature.
#[cfg(feature = "services")]
fn address(variable: &str) -> String {
    match std::env::var(variable) {
        Ok(address) if !address.is_empty() => address,
        Ok(_) | Err(_) => panic!("{variable} is not set: run this test by `make contract`, which starts the service"),
    }
}

/// Warehouses, one for each catalog of a test, gone with it.
struct Warehouses {
    folder: tempfile::TempDir,
    number: AtomicU32,
}

impl Default for Warehouses {
    fn default() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), number: AtomicU32::new(0) }
    }
}

impl Warehouses {
    /// An empty folder.
    fn next(&self) -> String {
        let path = self.folder.path().join(self.number.fetch_add(1, Ordering::SeqCst).to_string());
        std::fs::create_dir(&path).unwrap();
        path.display().to_string()
    }
}
