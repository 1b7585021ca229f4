//! Every kind of security on the real broker, from the configuration to the bytes that a consumer sees.

use serde_json::{Value, json};
use sluice_deadletter::{DeadLetter, ErrorTopic as _};
use sluice_kafka_tests::letter;
use sluice_model::{Class, Deadline};

use crate::broker::{file, fresh, listener, topic};
use crate::read_back::{Found, create, read_all};

/// A letter that shows whether everything is kept: header names twice, headers without a value and with an empty one, bytes that are no text.
fn odd_letter() -> DeadLetter {
    let headers =
        [("trace", Some(&b"1"[..])), ("trace", Some(b"2")), ("none", None), ("empty", Some(b"")), ("bytes", Some(b"\xff\x00\xfe"))];
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.map(<[u8]>::to_vec))).collect();
    DeadLetter { headers, ..letter(7, Some(b"\x00key\xff"), Some(b"a value of more than sixteen bytes \xff\x00")) }
}

/// What a consumer has to see of it.
fn assert_is_odd(found: &Found) {
    assert_eq!(found.key.as_deref(), Some(&b"\x00key\xff"[..]));
    assert_eq!(found.value.as_deref(), Some(&b"a value of more than sixteen bytes \xff\x00"[..]));
    let (own, ours) = found.headers.split_at(5);
    assert_eq!(own, odd_letter().headers);
    let ours: Vec<(&str, &str)> =
        ours.iter().map(|(name, value)| (name.as_str(), std::str::from_utf8(value.as_deref().unwrap()).unwrap())).collect();
    let expected = [
        ("sluice.error.code", "TYPE_MISMATCH"),
        ("sluice.error.stage", "convert"),
        ("sluice.error.detail", "expected a number, found \"x\""),
        ("sluice.error.source", "erp-prod"),
        ("sluice.error.epoch", "2"),
        ("sluice.error.topic", "cdc.erp"),
        ("sluice.error.partition", "3"),
        ("sluice.error.offset", "7"),
        ("sluice.error.row", "0"),
        ("sluice.error.field", "total"),
        ("sluice.error.table", "erp.orders"),
        ("sluice.error.timestamp", "1772360130000"),
    ];
    assert_eq!(ours, expected);
}

async fn check(listener_of: &str, security: Value) {
    let name = fresh("dead");
    create(&listener(""), &name, (1, &[])).await;
    let (dead, _clock) = topic(&listener(listener_of), &name, json!({"security": security}));
    let said = dead.check().await.unwrap_or_else(|error| panic!("{security}: {error}")).unwrap();
    assert!(said.contains("1 partition(s)"), "{said}");
    let nothing = letter(8, None, None);
    let empty = letter(9, Some(b""), Some(b""));
    let published = dead.publish(&[&odd_letter(), &nothing, &empty], Deadline::NONE).await;
    assert_eq!(published.unwrap_or_else(|error| panic!("{security}: {error}")).letters, 3);
    let found = read_all(&listener(""), &name);
    assert_eq!(found.len(), 3, "{security}");
    assert_is_odd(&found[0]);
    assert_eq!((&found[1].key, &found[1].value), (&None, &None));
    assert_eq!((found[2].key.as_deref(), found[2].value.as_deref()), (Some(&b""[..]), Some(&b""[..])));
}

fn tls(over: Value) -> Value {
    let mut security = json!({"type": "tls", "ca": {"file": file("ca.pem")}});
    security.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
    security
}

fn password(kind: &str, transport: Value) -> Value {
    let mut security = json!({"type": kind, "username": {"env": "TEST_USER"}, "password": {"env": "TEST_PASSWORD"}});
    security.as_object_mut().unwrap().extend(transport.as_object().unwrap().clone());
    security
}

#[tokio::test]
async fn plaintext() {
    check("", json!({"type": "plaintext"})).await;
}

#[tokio::test]
async fn tls_with_the_broker_known() {
    check("_TLS", tls(json!({}))).await;
}

#[tokio::test]
async fn mutual_tls() {
    let certificate = json!({"file": file("client.pem")});
    check("_MTLS", tls(json!({"certificate": certificate, "key": {"file": file("client.key")}}))).await;
    let encrypted = json!({"file": file("client-encrypted.key")});
    check("_MTLS", tls(json!({"certificate": certificate, "key": encrypted, "key_password": {"env": "TEST_KEY_PASSWORD"}}))).await;
}

#[tokio::test]
async fn name_and_password_in_every_way() {
    for kind in ["sasl-plain", "scram-sha-256", "scram-sha-512"] {
        check("_SASL", password(kind, json!({"transport": "plaintext"}))).await;
        check("_SASL_TLS", password(kind, json!({"ca": {"file": file("ca.pem")}}))).await;
    }
}

/// Trouble with security stays, so it is told as such where the broker says what it is, and without a secret.
#[tokio::test]
async fn what_does_not_fit_is_told_without_a_secret() {
    let name = fresh("dead");
    create(&listener(""), &name, (1, &[])).await;
    let wrong =
        json!({"type": "scram-sha-512", "username": "sluice", "password": {"env": "TEST_WRONG_PASSWORD"}, "transport": "plaintext"});
    let certificate = json!({"file": file("client.pem")});
    let passphrase =
        json!({"certificate": certificate, "key": {"file": file("client-encrypted.key")}, "key_password": {"env": "TEST_WRONG_PASSWORD"}});
    let cases = [
        ("_SASL", wrong, Class::Fatal),
        ("_TLS", json!({"type": "tls"}), Class::Fatal),
        // A broker that misses the client's certificate says so only by closing the connection (TLS 1.3).
        ("_MTLS", tls(json!({})), Class::Unknown),
        ("_TLS", tls(passphrase), Class::Fatal),
        ("_TLS", tls(json!({"certificate": certificate, "key": {"file": file("ca.pem")}})), Class::Fatal),
        ("_TLS", tls(json!({"certificate": {"file": file("missing.pem")}, "key": {"file": file("client.key")}})), Class::Fatal),
    ];
    for (which, security, class) in cases {
        let (dead, clock) = topic(&listener(which), &name, json!({"security": security}));
        let error = dead.publish(&[&letter(0, None, Some(b"v"))], clock.deadline_in(6_000)).await.unwrap_err();
        assert_eq!(error.class, class, "{security}: {error}");
        for secret in ["hunter2", "BEGIN", "MII"] {
            assert!(!format!("{error} {error:?}").contains(secret), "{security}: {error}");
        }
    }
    assert!(read_all(&listener(""), &name).is_empty());
}
