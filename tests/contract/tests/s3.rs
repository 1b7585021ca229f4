//! S3 (moto) as a storage.

use sluice_storage::{StorageConfig, open};
use sluice_testkit::{TestServices, file_io_contract, object_store_contract};

use crate::aws::{folder, storage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_and_files() {
    let config: StorageConfig = storage();
    let root = folder("storage");
    let opened = open(&config, TestServices::seeded(1).clock).await.unwrap();
    object_store_contract(&*opened.objects(&root).unwrap(), &root).await;
    file_io_contract(&opened.file_io, &root, config.s3.part_bytes).await;
    let missing = opened.objects("s3://no-such-bucket/x").unwrap().get("s3://no-such-bucket/x").await;
    assert!(missing.is_err(), "a bucket that is not there is no absent object");
}
