//! What every storage must do: as a store of objects, and as files of tables.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::StreamExt as _;
use iceberg::io::FileIO;
use sluice_storage::{Condition, MAX_DELETES, ObjectEntry, ObjectStore, PutOutcome, Token};

/// More than one page of any store.
const MANY: usize = 1_005;
/// Bounds every loop over pages.
const MOST_PAGES: usize = 50;

/// Runs the suite on an empty place, `root` (without a slash at its end).
pub async fn object_store_contract(store: &dyn ObjectStore, root: &str) {
    objects_come_and_go(store, root).await;
    conditions_hold(store, root).await;
    of_racing_creators_one_wins(store, root).await;
    racing_counters_lose_nothing(store, root).await;
    a_prefix_is_text(store, root).await;
    keys_are_raw(store, root).await;
    listings_come_in_pages(store, root).await;
}

fn text(content: &str) -> Bytes {
    Bytes::from(content.to_owned())
}

async fn write(store: &dyn ObjectStore, location: &str, content: &str, condition: Condition) -> Option<String> {
    match store.put(location, text(content), condition).await.unwrap() {
        PutOutcome::Written(etag) => Some(etag),
        PutOutcome::Refused => None,
    }
}

async fn content(store: &dyn ObjectStore, location: &str) -> Option<(Bytes, String)> {
    store.get(location).await.unwrap().map(|object| (object.bytes, object.etag))
}

/// All pages. The token goes through text, as it does from one process to another.
async fn listed(store: &dyn ObjectStore, prefix: &str) -> (Vec<ObjectEntry>, usize) {
    let (mut all, mut from, mut pages) = (Vec::new(), None::<Token>, 0);
    while pages < MOST_PAGES {
        let page = store.list(prefix, from.as_ref()).await.unwrap();
        pages += 1;
        all.extend(page.objects);
        match page.next {
            Some(token) => from = Some(Token(token.0.clone())),
            None => return (all, pages),
        }
    }
    panic!("{prefix} has no end");
}

async fn names(store: &dyn ObjectStore, prefix: &str) -> BTreeSet<String> {
    listed(store, prefix).await.0.into_iter().map(|entry| entry.location).collect()
}

async fn objects_come_and_go(store: &dyn ObjectStore, root: &str) {
    let location = format!("{root}/comes/object");
    assert_eq!(content(store, &location).await, None);
    assert!(names(store, &format!("{root}/nothing/")).await.is_empty());
    let etag = write(store, &location, "one", Condition::Always).await.unwrap();
    assert_eq!(content(store, &location).await, Some((text("one"), etag)));
    write(store, &location, "three", Condition::Always).await.unwrap();
    let entry = listed(store, &format!("{root}/comes/")).await.0.remove(0);
    assert_eq!((entry.location.as_str(), entry.size), (location.as_str(), 5));
    assert!(entry.last_modified_ms.is_some_and(|ms| ms > 1_700_000_000_000), "{entry:?}");
    let gone = [location.clone(), format!("{root}/comes/never")];
    assert!(store.delete(&gone).await.unwrap().is_empty());
    assert_eq!(content(store, &location).await, None);
    assert!(store.delete(&[]).await.unwrap().is_empty());
    let many = vec![location; MAX_DELETES + 1];
    assert!(store.delete(&many).await.is_err());
}

async fn conditions_hold(store: &dyn ObjectStore, root: &str) {
    let location = format!("{root}/conditions/object");
    assert_eq!(write(store, &location, "x", Condition::IfMatch("\"0123\"".to_owned())).await, None, "nothing is there to match");
    let first = write(store, &location, "one", Condition::IfAbsent).await.unwrap();
    assert_eq!(write(store, &location, "two", Condition::IfAbsent).await, None);
    assert_eq!(content(store, &location).await.unwrap().0, text("one"));
    let second = write(store, &location, "two", Condition::IfMatch(first.clone())).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(write(store, &location, "three", Condition::IfMatch(first)).await, None);
    let (bytes, etag) = content(store, &location).await.unwrap();
    assert_eq!((bytes, &etag), (text("two"), &second));
    store.delete(std::slice::from_ref(&location)).await.unwrap();
    assert!(write(store, &location, "again", Condition::IfAbsent).await.is_some());
}

async fn of_racing_creators_one_wins(store: &dyn ObjectStore, root: &str) {
    for round in 0..10 {
        let location = format!("{root}/race/{round}");
        let racers = (0..8).map(|racer| {
            let location = &location;
            async move { write(store, location, &racer.to_string(), Condition::IfAbsent).await.map(|_| racer) }
        });
        let won: Vec<i32> = futures::future::join_all(racers).await.into_iter().flatten().collect();
        assert_eq!(won.len(), 1, "round {round}: {won:?}");
        assert_eq!(content(store, &location).await.unwrap().0, text(&won[0].to_string()));
    }
}

async fn racing_counters_lose_nothing(store: &dyn ObjectStore, root: &str) {
    let location = format!("{root}/counter");
    write(store, &location, "0", Condition::IfAbsent).await.unwrap();
    let counters = (0..4).map(|_| {
        let location = &location;
        async move {
            let mut done = 0;
            while done < 10 {
                let (bytes, etag) = content(store, location).await.unwrap();
                let next: u64 = std::str::from_utf8(&bytes).unwrap().parse::<u64>().unwrap() + 1;
                done += u32::from(write(store, location, &next.to_string(), Condition::IfMatch(etag)).await.is_some());
            }
        }
    });
    futures::future::join_all(counters).await;
    assert_eq!(content(store, &location).await.unwrap().0, text("40"));
}

async fn a_prefix_is_text(store: &dyn ObjectStore, root: &str) {
    for name in ["p/a", "p/ab/c", "p/abc", "p/b"] {
        write(store, &format!("{root}/prefix/{name}"), "", Condition::Always).await.unwrap();
    }
    let seen = |prefix: &'static str| async move {
        let stem = format!("{root}/prefix/");
        let found = names(store, &format!("{stem}{prefix}")).await;
        found.into_iter().map(|location| location[stem.len()..].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen("p/a").await, ["p/a", "p/ab/c", "p/abc"]);
    assert_eq!(seen("p/ab/").await, ["p/ab/c"]);
    assert_eq!(seen("p/").await.len(), 4);
    assert_eq!(seen("p/z").await, Vec::<String>::new());
}

/// Nothing is decoded, folded or trimmed on the way.
async fn keys_are_raw(store: &dyn ObjectStore, root: &str) {
    let keys = ["a b", "a+b", "a%2Fb", "a%20b", "ü", "ü", "A", "a", "c=1/x&y?z#w", "quote'\"<>", "🦀"];
    for key in keys {
        write(store, &format!("{root}/raw/{key}"), key, Condition::Always).await.unwrap();
    }
    let expected: BTreeSet<String> = keys.iter().map(|key| format!("{root}/raw/{key}")).collect();
    assert_eq!(names(store, &format!("{root}/raw/")).await, expected);
    for key in keys {
        assert_eq!(content(store, &format!("{root}/raw/{key}")).await.unwrap().0, text(key));
    }
    let all: Vec<String> = expected.into_iter().collect();
    assert!(store.delete(&all).await.unwrap().is_empty());
    assert!(names(store, &format!("{root}/raw/")).await.is_empty());
}

async fn listings_come_in_pages(store: &dyn ObjectStore, root: &str) {
    let location = |number: usize| format!("{root}/many/{number:05}");
    let writes = (0..MANY).map(|number| async move { write(store, &location(number), "x", Condition::Always).await.unwrap() });
    futures::stream::iter(writes).buffer_unordered(16).collect::<Vec<_>>().await;
    let (found, pages) = listed(store, &format!("{root}/many/")).await;
    assert!(pages > 1);
    let found: Vec<String> = found.into_iter().map(|entry| entry.location).collect();
    let expected: BTreeSet<String> = (0..MANY).map(location).collect();
    assert_eq!(found.len(), MANY, "none twice");
    assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), expected);
    for batch in found.chunks(MAX_DELETES) {
        assert!(store.delete(batch).await.unwrap().is_empty());
    }
    assert!(names(store, &format!("{root}/many/")).await.is_empty());
}

/// Files below `root`, of which some are larger than one part of an upload.
pub async fn file_io_contract(file_io: &FileIO, root: &str, part_bytes: usize) {
    let small = format!("{root}/files/small");
    assert!(!file_io.exists(&small).await.unwrap());
    file_io.new_output(&small).unwrap().write(text("0123456789")).await.unwrap();
    let input = file_io.new_input(&small).unwrap();
    assert!(input.exists().await.unwrap());
    assert_eq!(input.metadata().await.unwrap().size, 10);
    assert_eq!(input.read().await.unwrap(), text("0123456789"));
    let reader = input.reader().await.unwrap();
    assert_eq!(reader.read(2..5).await.unwrap(), text("234"));
    assert!(reader.read(8..12).await.is_err(), "beyond the end");
    let missing = file_io.new_input(format!("{root}/files/missing")).unwrap();
    assert!(missing.read().await.is_err() && missing.metadata().await.is_err());
    for bytes in [0, part_bytes, part_bytes + 1, 2 * part_bytes + part_bytes / 2] {
        a_file_of(file_io, &format!("{root}/files/{bytes}"), bytes).await;
    }
    file_io.delete(&small).await.unwrap();
    file_io.delete(&small).await.unwrap();
    assert!(!file_io.exists(&small).await.unwrap());
    let written: Vec<String> = [0, part_bytes].iter().map(|bytes| format!("{root}/files/{bytes}")).collect();
    file_io.delete_stream(futures::stream::iter(written.clone())).await.unwrap();
    for location in written {
        assert!(!file_io.exists(location).await.unwrap());
    }
}

async fn a_file_of(file_io: &FileIO, location: &str, bytes: usize) {
    let content: Bytes = (0..bytes).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
    let mut writer = file_io.new_output(location).unwrap().writer().await.unwrap();
    for at in (0..bytes).step_by(1_000_003) {
        writer.write(content.slice(at..bytes.min(at + 1_000_003))).await.unwrap();
    }
    writer.close().await.unwrap();
    let input = file_io.new_input(location).unwrap();
    assert_eq!(input.metadata().await.unwrap().size, bytes as u64);
    assert!(input.read().await.unwrap() == content, "{bytes} bytes came back differently");
    if bytes > 100 {
        let at = bytes as u64 - 50;
        assert_eq!(input.reader().await.unwrap().read(at..at + 50).await.unwrap(), content.slice(bytes - 50..));
    }
}
