//! A configuration in S3 (moto), found by the environment alone, as a function finds it.

use std::path::Path;
use std::process::Command;

use sluice_start::{ConfigFile, ReadError};
use sluice_storage::{Condition, open};
use sluice_testkit::TestServices;

use crate::address;
use crate::aws::{folder, storage};

/// Where the process that is started below looks.
const LOCATION: &str = "SLUICE_TEST_CONFIG_LOCATION";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sluice_toml_is_read_from_a_bucket() {
    let location = format!("{}/sluice.toml", folder("config"));
    let objects = open(&storage(), TestServices::seeded(1).clock).await.unwrap().objects(&location).unwrap();
    objects.put(&location, "[source]\nid = \"erp\"\n".into(), Condition::Always).await.unwrap();
    // The variable that names an S3 of one's own to AWS's libraries is one of the whole process: hence another.
    let mut reader = Command::new(std::env::current_exe().unwrap());
    reader.args(["--exact", "config_in_s3::the_other_process", "--ignored", "--nocapture"]);
    let output = reader.env(LOCATION, &location).env("AWS_ENDPOINT_URL", address("SLUICE_TEST_AWS_ENDPOINT")).output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the test above"]
async fn the_other_process() {
    let location = std::env::var(LOCATION).unwrap();
    let file = ConfigFile::read(Path::new(&location)).await.unwrap();
    assert_eq!((file.parsed().unwrap()["source"]["id"].as_str(), file.folder.as_path()), (Some("erp"), Path::new(".")));
    let missing = ConfigFile::read(Path::new(&format!("{location}.not"))).await.unwrap_err();
    assert!(matches!(missing, ReadError::Missing { .. }), "{missing}");
    let elsewhere = ConfigFile::read(Path::new("s3://no-such-bucket/sluice.toml")).await.unwrap_err();
    assert!(matches!(elsewhere, ReadError::Object { .. }), "{elsewhere}");
}
