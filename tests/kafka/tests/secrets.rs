//! Secrets that are kept in AWS Secrets Manager (moto), from their ARN to a record on the broker.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use sluice_deadletter::ErrorTopic as _;
use sluice_kafka_tests::letter;
use sluice_model::{Class, Deadline};

use crate::broker::{file, fresh, listener, topic};
use crate::read_back::{create, read_all};

/// Makes a secret; tells its ARN. moto looks at no signature, only at whose service it names.
fn secret(content: &Value) -> String {
    let endpoint = std::env::var("SLUICE_TEST_AWS_ENDPOINT").expect("run tests/kafka/run.sh");
    let address = endpoint.trim_start_matches("http://");
    let body = json!({"Name": fresh("AmazonMSK_sluice"), "SecretString": content.to_string(), "ClientRequestToken": "0123456789012345678901234567890123456789"}).to_string();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.1\r\nX-Amz-Target: secretsmanager.CreateSecret\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=testing/20261129/eu-central-1/secretsmanager/aws4_request, SignedHeaders=host, Signature=0\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let made: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    made["ARN"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A name and a password as MSK keeps them: one secret, two fields.
#[tokio::test]
async fn a_name_and_a_password_come_from_one_secret() {
    let name = fresh("dead");
    create(&listener(""), &name, (1, &[])).await;
    let kept = json!({"secret": secret(&json!({"username": "sluice", "password": "sluice-secret"}))});
    let security = json!({"type": "scram-sha-512", "username": kept, "password": kept, "ca": {"file": file("ca.pem")}});
    let (dead, _clock) = topic(&listener("_SASL_TLS"), &name, json!({"security": security}));
    assert_eq!(dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap().letters, 1);
    assert_eq!(read_all(&listener(""), &name).len(), 1);
}

/// A client's certificate as Lambda's mappings want it.
#[tokio::test]
async fn a_certificate_and_its_key_come_from_one_secret() {
    let name = fresh("dead");
    create(&listener(""), &name, (1, &[])).await;
    let text = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let content =
        json!({"certificate": text("client.pem"), "privateKey": text("client-encrypted.key"), "privateKeyPassword": "key-secret"});
    let (kept, authority) = (json!({"secret": secret(&content)}), json!({"secret": secret(&json!({"certificate": text("ca.pem")}))}));
    let security = json!({"type": "tls", "ca": authority, "certificate": kept, "key": kept, "key_password": kept});
    let (dead, _clock) = topic(&listener("_MTLS"), &name, json!({"security": security}));
    assert_eq!(dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap().letters, 1);
}

#[tokio::test]
async fn a_secret_that_is_missing_or_lacks_a_field_is_named_and_not_shown() {
    let half = secret(&json!({"username": "sluice", "pass": "hunter2"}));
    let missing = half.replace("AmazonMSK", "nothing");
    for (arn, said) in [(&half, "has no field `password`"), (&missing, "cannot be read")] {
        let security = json!({"type": "sasl-plain", "username": "sluice", "password": {"secret": arn}, "transport": "plaintext"});
        let (dead, _clock) = topic(&listener("_SASL"), "dead", json!({"security": security}));
        let error = dead.publish(&[&letter(0, None, Some(b"v"))], Deadline::NONE).await.unwrap_err();
        assert_eq!(error.class, Class::Fatal, "{error}");
        assert!(error.what.contains(said) && error.what.contains(arn.as_str()), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
