//! The local disk and memory against the suites that S3 is run on in tests/contract.
#![allow(clippy::unwrap_used, clippy::panic)]

use sluice_storage::{StorageConfig, open};
use sluice_testkit::{TestServices, file_io_contract, object_store_contract};

async fn both(root: &str) {
    let storage = open(&StorageConfig::default(), TestServices::seeded(3).clock).await.unwrap();
    object_store_contract(&*storage.objects(root).unwrap(), root).await;
    file_io_contract(&storage.file_io, root, 1 << 20).await;
    // What is written as a file is listed as an object.
    storage.file_io.new_output(format!("{root}/both")).unwrap().write("x".into()).await.unwrap();
    assert_eq!(storage.objects(root).unwrap().get(&format!("{root}/both")).await.unwrap().unwrap().bytes, "x");
}

#[tokio::test]
async fn memory() {
    both("memory://lake").await;
}

#[tokio::test]
async fn local_disk() {
    let folder = tempfile::tempdir().unwrap();
    both(&format!("file://{}", folder.path().display())).await;
    // A location without a scheme is a path too.
    let root = format!("{}/plain", folder.path().display());
    let storage = open(&StorageConfig::default(), TestServices::seeded(3).clock).await.unwrap();
    file_io_contract(&storage.file_io, &root, 1 << 20).await;
    assert!(storage.objects(&root).unwrap().get(&format!("{root}/files/{}", (1 << 20) + 1)).await.unwrap().is_some());
}

/// Two processes are two open files: the lock is the operating system's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn local_writers_in_threads_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("{}/counter", folder.path().display());
    let store = sluice_storage::LocalObjects;
    use sluice_storage::{Condition, ObjectStore as _, PutOutcome};
    store.put(&location, "0".into(), Condition::IfAbsent).await.unwrap();
    let counters = (0..4).map(|_| {
        let location = location.clone();
        tokio::spawn(async move {
            let mut done = 0;
            while done < 50 {
                let object = store.get(&location).await.unwrap().unwrap();
                let next = std::str::from_utf8(&object.bytes).unwrap().parse::<u64>().unwrap() + 1;
                let put = store.put(&location, next.to_string().into(), Condition::IfMatch(object.etag)).await.unwrap();
                done += u32::from(put != PutOutcome::Refused);
            }
        })
    });
    for counter in counters.collect::<Vec<_>>() {
        counter.await.unwrap();
    }
    assert_eq!(store.get(&location).await.unwrap().unwrap().bytes, "200");
}

#[tokio::test]
async fn a_storage_that_is_not_there_says_what_to_do() {
    let storage = open(&StorageConfig::default(), TestServices::seeded(3).clock).await.unwrap();
    let error = storage.objects("gopher://x/y").unwrap_err().to_string();
    assert!(error.contains("known are file://"), "{error}");
    let error = storage.check("gopher://x/y").unwrap_err().to_string();
    assert!(error.contains("gopher://x/y"), "{error}");
}
