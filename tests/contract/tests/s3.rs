//! S3 (moto) as a storage.

use sluice_model::Class;
use sluice_storage::{Condition, StorageConfig, open};
use sluice_testkit::{Fault, Proxy, ProxyPlan, TestServices, file_io_contract, object_store_contract};

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

/// The server has acted and then says 500: sent again, the write would be told as refused by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_write_is_sent_once() {
    let mut config = storage();
    let endpoint = config.s3.endpoint.take().unwrap();
    let proxy = Proxy::before(endpoint.trim_start_matches("http://"), ProxyPlan::Calm);
    config.s3.endpoint = Some(format!("http://{}", proxy.address()));
    let location = format!("{}/once", folder("conditional"));
    let objects = open(&config, TestServices::seeded(1).clock).await.unwrap().objects(&location).unwrap();
    proxy.follow(ProxyPlan::Random { seed: 0, percent: 100, faults: vec![Fault::StatusAfter(500)] });
    let error = objects.put(&location, "mine".into(), Condition::IfAbsent).await.unwrap_err();
    assert_eq!((error.class, proxy.exchanges()), (Class::Unknown, 1));
    proxy.follow(ProxyPlan::Calm);
    assert_eq!(objects.get(&location).await.unwrap().unwrap().bytes, "mine");
}
