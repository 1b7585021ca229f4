//! The real broker's own rules, its death, and a client that was frozen.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use sluice_deadletter::{DeadLetter, ErrorTopic as _, Published};
use sluice_kafka_tests::letter;
use sluice_model::{Class, Deadline};

use crate::broker::{broker, fresh, listener, topic};
use crate::read_back::{create, read_all};

#[tokio::test]
async fn a_topic_that_is_missing_is_said_to_be_and_not_made() {
    let name = fresh("missing");
    let (dead, _clock) = topic(&listener(""), &name, json!({}));
    let error = dead.check().await.unwrap_err();
    assert!(error.class == Class::Fatal && error.what.contains("create the topic"), "{error}");
    let error = dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap_err();
    assert!(error.class == Class::Fatal && error.what.contains("create the topic"), "{error}");
    create(&listener(""), &name, (1, &[])).await;
    dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap();
}

/// `max.message.bytes` holds for a batch of records: letters that fit alone arrive whole, one that does not without its value.
#[tokio::test]
async fn a_topic_with_small_messages_takes_every_letter() {
    let name = fresh("small");
    create(&listener(""), &name, (1, &[("max.message.bytes", "20000")])).await;
    let (dead, _clock) = topic(&listener(""), &name, json!({}));
    let (fitting, large) = (vec![b'x'; 5_000], vec![b'y'; 50_000]);
    let mut letters: Vec<DeadLetter> = (0..20).map(|offset| letter(offset, Some(b"k"), Some(&fitting))).collect();
    letters.push(letter(20, Some(b"k"), Some(&large)));
    letters.push(letter(21, Some(&large), Some(b"v")));
    letters.push(letter(22, Some(b"k"), Some(b"v")));
    let published = dead.publish(&letters.iter().collect::<Vec<_>>(), Deadline::NONE).await.unwrap();
    assert_eq!(published, Published { letters: 23, without_value: 2 });
    let mut found = read_all(&listener(""), &name);
    found.sort_by_key(|found| found.header("sluice.error.offset").unwrap().parse::<i64>().unwrap());
    assert_eq!(found.len(), 23);
    assert!(found[..20].iter().all(|found| found.value.as_ref() == Some(&fitting) && found.header("sluice.error.omitted").is_none()));
    let omitted: Vec<_> = found[20..].iter().map(|found| (found.key.is_some(), found.header("sluice.error.omitted"))).collect();
    assert_eq!(omitted, [(true, Some("value".to_owned())), (false, Some("key,value,headers".to_owned())), (true, None)]);
}

#[tokio::test]
async fn more_than_a_window_is_produced() {
    let name = fresh("window");
    create(&listener(""), &name, (1, &[])).await;
    let (dead, _clock) = topic(&listener(""), &name, json!({}));
    let value = vec![b'x'; 400_000];
    let letters: Vec<_> = (0..100).map(|offset| letter(offset, None, Some(&value))).collect();
    let published = dead.publish(&letters.iter().collect::<Vec<_>>(), Deadline::NONE).await.unwrap();
    assert_eq!(published.letters, 100);
    let offsets: Vec<_> = read_all(&listener(""), &name).iter().map(|found| found.header("sluice.error.offset").unwrap()).collect();
    assert_eq!(offsets, (0..100).map(|offset| offset.to_string()).collect::<Vec<_>>(), "in their order");
}

/// The partition is that of Java's clients: `Utils.murmur2` of the key, as Kafka's own tests know it.
#[tokio::test]
async fn a_key_has_the_partition_that_java_gives_it() {
    let known: [(&[u8], i32); 4] = [
        (b"21", -973_932_308),
        (b"foobar", -790_332_482),
        (b"a-little-bit-long-string", -985_981_536),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
    ];
    let name = fresh("keys");
    create(&listener(""), &name, (7, &[])).await;
    let (dead, _clock) = topic(&listener(""), &name, json!({}));
    let letters: Vec<DeadLetter> = known.iter().map(|(key, _)| letter(0, Some(key), None)).collect();
    dead.publish(&letters.iter().collect::<Vec<_>>(), Deadline::NONE).await.unwrap();
    let found = read_all(&listener(""), &name);
    for (key, hash) in known {
        let found = found.iter().find(|found| found.key.as_deref() == Some(key)).unwrap();
        assert_eq!(found.partition, (hash & 0x7fff_ffff) % 7, "{}", String::from_utf8_lossy(key));
    }
}

#[tokio::test]
async fn a_broker_that_was_killed_is_found_again() {
    let name = fresh("killed");
    create(&listener(""), &name, (1, &[])).await;
    let (dead, clock) = topic(&listener(""), &name, json!({}));
    dead.publish(&[&letter(0, None, Some(b"0"))], Deadline::NONE).await.unwrap();
    broker("kill");
    let error = dead.publish(&[&letter(1, None, Some(b"1"))], clock.deadline_in(4_000)).await.unwrap_err();
    broker("start");
    assert_eq!(error.class, Class::Unknown, "{error}");
    dead.publish(&[&letter(1, None, Some(b"1"))], clock.deadline_in(40_000)).await.unwrap();
    let offsets: Vec<_> = read_all(&listener(""), &name).iter().map(|found| found.header("sluice.error.offset").unwrap()).collect();
    assert!(offsets.contains(&"0".to_owned()) && offsets.contains(&"1".to_owned()), "{offsets:?}");
}

/// A broker that answers nothing and closes nothing: its host is gone, or a network in between has forgotten the connection.
#[tokio::test]
async fn a_broker_that_falls_silent_costs_its_time_and_no_letter() {
    let name = fresh("silent");
    create(&listener(""), &name, (1, &[])).await;
    let (dead, clock) = topic(&listener(""), &name, json!({}));
    dead.publish(&[&letter(0, None, Some(b"0"))], Deadline::NONE).await.unwrap();
    broker("pause");
    let started = Instant::now();
    let error = dead.publish(&[&letter(1, None, Some(b"1"))], clock.deadline_in(4_000)).await;
    let took = started.elapsed();
    broker("resume");
    assert_eq!(error.unwrap_err().class, Class::Unknown);
    assert!(took < Duration::from_secs(4), "{took:?}");
    dead.publish(&[&letter(2, None, Some(b"2"))], clock.deadline_in(40_000)).await.unwrap();
}

/// A process that can be frozen, as Lambda does between invocations.
struct Publisher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Publisher {
    fn start(name: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_publisher"));
        let mut child = command.arg(listener("")).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Its answer to a word: the milliseconds that it took.
    fn ask(&mut self, word: &str) -> u64 {
        writeln!(self.input, "{word}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim().strip_prefix("ok ").unwrap_or_else(|| panic!("{word}: {answer}")).parse().unwrap()
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Frozen, its connections closed by a broker that died meanwhile, thawed: whether its clock says that much time went by or not.
#[tokio::test]
async fn a_thawed_process_publishes_within_its_deadline() {
    let name = fresh("thawed");
    create(&listener(""), &name, (1, &[])).await;
    let mut publisher = Publisher::start(&name);
    publisher.ask("letter");
    for words in [&["letter"][..], &["hour", "letter"]] {
        publisher.signal("-STOP");
        broker("kill");
        broker("start");
        publisher.signal("-CONT");
        for word in words {
            let took = publisher.ask(word);
            assert!(took < 10_000, "{words:?}: {took} ms");
        }
    }
    assert!(read_all(&listener(""), &name).len() >= 3);
}
