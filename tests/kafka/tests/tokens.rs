//! OAUTHBEARER: tokens that librdkafka asks for, on the real broker (which takes unsigned ones), and where MSK's come from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rdkafka::config::ClientConfig;
use serde_json::json;
use sluice_deadletter::ErrorTopic as _;
use sluice_kafka::client::{TokenSource, Tokens, client_config};
use sluice_kafka::tokens::Token;
use sluice_kafka::topic::KafkaErrorTopic;
use sluice_kafka::{Connection, KafkaError, SecretText, Secrets, Security};
use sluice_kafka_tests::{TestClock, environment, letter};
use sluice_model::{Clock as _, Deadline};

use crate::broker::{fresh, listener};
use crate::read_back::{create, read_all};

/// Unsigned tokens (RFC 7515, appendix A.5) for a few seconds; what is asked for first may fail.
struct Unsigned {
    asked: AtomicU32,
    failing: u32,
    life_ms: i64,
}

#[async_trait::async_trait]
impl TokenSource for Unsigned {
    async fn token(&self) -> Result<Token, KafkaError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        // The caller's thread must not matter: this would panic inside another runtime, or without a timer.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        if number < self.failing {
            return Err(KafkaError::transient("no token yet"));
        }
        let now_ms = TestClock::default().now_ms();
        let ends_ms = now_ms + self.life_ms;
        let claims = json!({"sub": "sluice", "iat": now_ms / 1_000 - 1, "exp": ends_ms / 1_000 + 1}).to_string();
        let text = format!("{}.{}.", base64(br#"{"alg":"none"}"#), base64(claims.as_bytes()));
        Ok(Token { text: SecretText::new(text), principal: "sluice".to_owned(), ends_ms })
    }
}

/// Base64 for URLs without padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let groups = bytes.chunks(3).map(|group| {
        let number = group.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        (0..=group.len()).map(|index| ALPHABET[(number >> (18 - 6 * index) & 63) as usize] as char).collect::<String>()
    });
    groups.collect()
}

fn unsigned(failing: u32, life_ms: i64) -> Arc<Unsigned> {
    Arc::new(Unsigned { asked: AtomicU32::new(0), failing, life_ms })
}

/// A connection as that to MSK, on the broker of the tests, whose certificate the system does not know.
fn connection() -> Connection {
    let security = Security::MskIam(sluice_kafka::security::MskIam { region: Some("eu-central-1".to_owned()) });
    let properties = [("enable.ssl.certificate.verification".to_owned(), "false".to_owned())].into();
    Connection { brokers: listener("_SASL_TLS"), security, properties }
}

fn topic(name: &str, source: &Arc<Unsigned>) -> KafkaErrorTopic {
    let config = sluice_kafka::ErrorTopicConfig { connection: connection(), topic: name.to_owned() };
    KafkaErrorTopic::new(config, Arc::new(TestClock::default()), environment()).with_tokens(Tokens::from_source(source.clone()))
}

#[tokio::test]
async fn a_producer_gets_its_token_and_a_new_one_before_that_ends() {
    let name = fresh("tokens");
    create(&listener(""), &name, (1, &[])).await;
    let source = unsigned(0, 4_000);
    let dead = topic(&name, &source);
    dead.publish(&[&letter(0, None, Some(b"0"))], Deadline::NONE).await.unwrap();
    let waited = std::time::Instant::now();
    while source.asked.load(Ordering::SeqCst) < 3 {
        assert!(waited.elapsed().as_secs() < 20, "asked {} times", source.asked.load(Ordering::SeqCst));
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    dead.publish(&[&letter(1, None, Some(b"1"))], Deadline::NONE).await.unwrap();
    assert_eq!(read_all(&listener(""), &name).len(), 2);
}

#[tokio::test]
async fn no_token_is_said_within_the_deadline() {
    let name = fresh("tokens");
    create(&listener(""), &name, (1, &[])).await;
    let dead = topic(&name, &unsigned(u32::MAX, 60_000));
    let clock = TestClock::default();
    let error = dead.publish(&[&letter(0, None, Some(b"0"))], clock.deadline_in(4_000)).await.unwrap_err();
    assert!(error.what.contains("no token yet"), "{error}");
}

/// librdkafka asks from the thread that polls: with a consumer that is one of the async runtime.
#[tokio::test]
async fn a_token_may_be_asked_for_inside_an_async_runtime() {
    let tokens = Tokens::from_source(unsigned(0, 60_000));
    assert_eq!(tokens.generate().unwrap().principal_name, "sluice");
    let error = Tokens::default().generate().err().unwrap();
    assert!(error.to_string().contains("none is configured"), "{error}");
}

#[cfg(not(feature = "aws"))]
#[test]
fn without_the_signer_built_in_msk_is_refused() {
    let error = Tokens::of(&connection(), &|_: &str| None).unwrap_err();
    assert_eq!(error.class, sluice_model::Class::Fatal);
    assert!(error.what.contains("--features kafka,kafka-aws"), "{error}");
}

/// A token of MSK is a presigned URL, base64 without padding: it says for whom and for how long. Signing needs no network; whether MSK takes it only MSK can say.
#[cfg(feature = "aws")]
#[test]
fn a_token_of_msk_is_signed_by_the_credentials_of_the_environment() {
    let token = Tokens::of(&connection(), &|_: &str| None).unwrap().generate().unwrap();
    let left_ms = token.lifetime_ms - TestClock::default().now_ms();
    assert!((880_000..=900_000).contains(&left_ms), "{left_ms} ms");
    let url = String::from_utf8(unbase64(&token.token)).unwrap();
    let key = std::env::var("AWS_ACCESS_KEY_ID").expect("tests/kafka/run.sh sets it");
    for part in
        ["https://kafka.eu-central-1.amazonaws.com/?", "Action=kafka-cluster%3AConnect", "X-Amz-Expires=900", "X-Amz-Signature=", &key]
    {
        assert!(url.contains(part), "{part}: {url}");
    }
}

#[cfg(feature = "aws")]
fn unbase64(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.bytes().map(|byte| (0..64).find(|n| base64(&[0, 0, *n as u8]).as_bytes()[3] == byte).unwrap()).collect();
    let groups = digits.chunks(4).flat_map(|group| {
        let number = group.iter().fold(0_u32, |number, digit| number << 6 | digit) << (6 * (4 - group.len()));
        number.to_be_bytes()[1..group.len()].to_vec()
    });
    groups.collect()
}

/// The properties of a client hold what librdkafka needs, and what is configured cannot undo them.
#[test]
fn a_client_is_secured_as_configured() {
    let config: ClientConfig = client_config(&connection(), &Secrets::default()).unwrap();
    let set =
        ["security.protocol", "sasl.mechanisms", "bootstrap.servers", "ssl.ca.location"].map(|name| config.get(name).map(str::to_owned));
    let expected = ["sasl_ssl", "OAUTHBEARER", &listener("_SASL_TLS"), "probe"].map(|value| Some(value.to_owned()));
    assert_eq!(set, expected);
}
