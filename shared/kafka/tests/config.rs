//! What the configuration of Kafka means, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sluice_kafka::secrets::Field;
use sluice_kafka::security::{ClientCertificate, Mechanism, MskIam, Password, Tls, Transport, Username};
use sluice_kafka::{Connection, KafkaConfig, SecretRef, Secrets, Security};
use sluice_model::config::{ConfigCode, ConfigProblem};

const ARN: &str = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:AmazonMSK_sluice-AbCdEf";

fn read(root: &Value) -> Result<KafkaConfig, Vec<ConfigProblem>> {
    KafkaConfig::read(root, Path::new("/etc/sluice")).map_err(|error| error.problems)
}

/// The paths of what is wrong, without what merely is not built in.
fn wrong(root: &Value) -> Vec<String> {
    let problems = read(root).err().unwrap_or_default();
    problems.into_iter().filter(|problem| problem.code == ConfigCode::ConfigInvalid).map(|problem| problem.path).collect()
}

fn source_with(security: &Value) -> Value {
    json!({"source": {"id": "erp", "kafka": {"brokers": "b:9093", "security": security}}})
}

fn security(security: &Value) -> Security {
    read(&source_with(security)).unwrap().source.unwrap().connection.security
}

fn env(name: &str) -> SecretRef {
    SecretRef::Env(name.to_owned())
}

#[test]
fn nothing_is_configured_without_sections() {
    assert_eq!(read(&json!({"source": {"id": "erp"}, "errors": {"table": "ops.errors"}})), Ok(KafkaConfig::default()));
    assert_eq!(read(&json!({"errors": {"topic": "", "brokers": ""}})), Ok(KafkaConfig::default()));
}

#[test]
fn a_source_has_topics_and_a_group() {
    let root = json!({"source": {"id": "erp", "kafka": {"brokers": "b1:9092, b2:9092", "topics": ["cdc.*", "orders"], "properties": {"fetch.min.bytes": 7, "check.crcs": true}}}});
    let source = read(&root).unwrap().source.unwrap();
    assert_eq!(source.connection.brokers, "b1:9092,b2:9092");
    assert_eq!(source.group, "sluice-erp");
    assert_eq!(source.connection.security, Security::Plaintext);
    let properties: Vec<(&str, &str)> = source.connection.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(properties, [("check.crcs", "true"), ("fetch.min.bytes", "7")]);
    let matching = ["cdc.erp", "cdc.", "orders", "orders2", "xcdc.erp", "__consumer_offsets"].map(|topic| source.has_topic(topic));
    assert_eq!(matching, [true, true, true, false, false, false]);
    let every = json!({"source": {"id": "erp", "kafka": {"brokers": "b:1", "topics": ["*"], "group": "mine"}}});
    let every = read(&every).unwrap().source.unwrap();
    assert_eq!((every.group.as_str(), every.has_topic("a"), every.has_topic("__transaction_state")), ("mine", true, false));
}

#[test]
fn every_kind_of_security_is_read() {
    assert_eq!(security(&json!({"type": "plaintext"})), Security::Plaintext);
    assert_eq!(security(&json!({"type": "tls"})), Security::Tls(Tls::default()));
    let ca = Some(SecretRef::File(PathBuf::from("/etc/sluice/ca.pem")));
    let client = Some(ClientCertificate {
        certificate: SecretRef::Secret(ARN.to_owned()),
        key: SecretRef::Secret(ARN.to_owned()),
        key_password: Some(env("KEY_PASSWORD")),
    });
    let mutual = json!({"type": "tls", "ca": {"file": "ca.pem"}, "certificate": {"secret": ARN}, "key": {"secret": ARN}, "key_password": {"env": "KEY_PASSWORD"}});
    assert_eq!(security(&mutual), Security::Tls(Tls { ca: ca.clone(), client }));
    for (name, mechanism) in
        [("sasl-plain", Mechanism::Plain), ("scram-sha-256", Mechanism::ScramSha256), ("scram-sha-512", Mechanism::ScramSha512)]
    {
        let open = json!({"type": name, "username": "sluice", "password": {"env": "KAFKA_PASSWORD"}, "transport": "plaintext"});
        let expected = Password {
            mechanism,
            username: Username::Text("sluice".to_owned()),
            password: env("KAFKA_PASSWORD"),
            transport: Transport::Plaintext,
        };
        assert_eq!(security(&open), Security::Password(expected));
    }
    let sealed = json!({"type": "scram-sha-512", "username": {"secret": ARN}, "password": {"secret": ARN}, "ca": {"file": "ca.pem"}});
    let expected = Password {
        mechanism: Mechanism::ScramSha512,
        username: Username::Kept(SecretRef::Secret(ARN.to_owned())),
        password: SecretRef::Secret(ARN.to_owned()),
        transport: Transport::Tls(Tls { ca, client: None }),
    };
    assert_eq!(security(&sealed), Security::Password(expected));
    assert_eq!(
        security(&json!({"type": "msk-iam", "region": "eu-central-1"})),
        Security::MskIam(MskIam { region: Some("eu-central-1".to_owned()) })
    );
}

#[test]
fn what_is_wrong_is_told_with_its_path() {
    let cases = [
        (json!({"type": "kerberos"}), vec!["type"]),
        (json!({"username": "x"}), vec!["type"]),
        (json!({"type": "plaintext", "ca": {"file": "x"}}), vec!["ca"]),
        (json!({"type": "tls", "certificate": {"file": "x"}}), vec!["key"]),
        (json!({"type": "tls", "key": {"file": "x"}, "key_password": {"env": "x"}}), vec!["certificate"]),
        (json!({"type": "tls", "key_password": {"env": "x"}}), vec!["certificate"]),
        (json!({"type": "tls", "ca": {"vault": "x"}, "username": "x"}), vec!["ca", "username"]),
        (json!({"type": "sasl-plain"}), vec!["username", "password"]),
        (json!({"type": "sasl-plain", "username": "", "password": {"env": ""}}), vec!["username", "password"]),
        (json!({"type": "scram-sha-256", "username": "x", "password": {"env": "X", "file": "y"}}), vec!["password"]),
        (json!({"type": "scram-sha-256", "username": "x", "password": {"secret": "arn:aws:s3:::bucket"}}), vec!["password"]),
        (json!({"type": "scram-sha-256", "username": "x", "password": {"env": "X"}, "transport": "quic"}), vec!["transport"]),
        (
            json!({"type": "scram-sha-256", "username": "x", "password": {"env": "X"}, "transport": "plaintext", "ca": {"file": "x"}}),
            vec!["ca"],
        ),
        (json!({"type": "msk-iam", "region": 1, "role": "x"}), vec!["region", "role"]),
    ];
    for (security, keys) in cases {
        let expected: Vec<String> = keys.into_iter().map(|key| format!("source.kafka.security.{key}")).collect();
        assert_eq!(wrong(&source_with(&security)), expected, "{security}");
    }
}

#[test]
fn all_problems_of_the_sections_are_told_together() {
    let root = json!({
        "source": {"id": "erp", "kafka": {"brokers": "b", "topics": ["a b", "ok*", ""], "typo": 1, "properties": {"group.id": "x", "ssl.key.pem": "x", "linger.ms": [1]}}},
        "errors": {"topic": "a/b", "brokers": "http://b:1"},
    });
    let expected = [
        "source.kafka.brokers",
        "source.kafka.topics[0]",
        "source.kafka.topics[2]",
        "source.kafka.properties.\"group.id\"",
        "source.kafka.properties.\"linger.ms\"",
        "source.kafka.properties.\"ssl.key.pem\"",
        "source.kafka.typo",
        "errors.topic",
        "errors.brokers",
    ];
    assert_eq!(wrong(&root), expected);
}

/// A password that somebody wrote into the file is not repeated by the message about it.
#[test]
fn a_secret_in_the_file_is_refused_and_not_repeated() {
    for password in [json!("hunter2"), json!({"text": "hunter2"}), json!({"secret": "hunter2"}), json!(["hunter2"])] {
        let root = source_with(&json!({"type": "sasl-plain", "username": "x", "password": password}));
        let error = KafkaConfig::read(&root, Path::new("/")).unwrap_err();
        assert!(error.problems.iter().any(|problem| problem.path.ends_with("password")), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
    for name in
        ["sasl.password", "ssl.key.pem", "ssl.key.password", "sasl.oauthbearer.client.secret", "ssl.keystore.password", "sasl.jaas.config"]
    {
        let root = json!({"source": {"id": "erp", "kafka": {"brokers": "b:1", "properties": {name: "hunter2"}}}});
        let error = KafkaConfig::read(&root, Path::new("/")).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

/// A build without a client says which one is needed; a build with it takes what the source says where the error topic says nothing.
#[test]
fn an_error_topic_is_found_where_the_source_is_unless_it_says_where() {
    let security = json!({"type": "sasl-plain", "username": "x", "password": {"env": "X"}, "transport": "plaintext"});
    let source =
        json!({"id": "erp", "kafka": {"brokers": "b:1", "security": security, "topics": ["cdc"], "properties": {"fetch.min.bytes": 7}}});
    let topic = |errors: Value| match read(&json!({"source": source, "errors": errors})) {
        Ok(config) => Some(config.error_topic.unwrap()),
        Err(problems) => {
            let with_client = cfg!(feature = "client");
            assert_eq!((problems.len(), with_client), (1, false), "{problems:?}");
            assert_eq!((problems[0].code, problems[0].path.as_str()), (ConfigCode::ConfigUnsupported, "errors.topic"));
            assert!(problems[0].message.ends_with("build it with --features kafka"), "{}", problems[0].message);
            None
        }
    };
    let inherited = topic(json!({"topic": "dead"}));
    let same = topic(json!({"topic": "dead", "brokers": "b:1", "properties": {"linger.ms": 1}}));
    let elsewhere = topic(json!({"topic": "dead", "brokers": "c:1"}));
    let described = topic(json!({"topic": "dead", "security": {"type": "plaintext"}}));
    if let (Some(inherited), Some(same), Some(elsewhere), Some(described)) = (inherited, same, elsewhere, described) {
        let secured = Security::Password(Password {
            mechanism: Mechanism::Plain,
            username: Username::Text("x".to_owned()),
            password: env("X"),
            transport: Transport::Plaintext,
        });
        assert_eq!(
            (inherited.connection.brokers.as_str(), &inherited.connection.security, inherited.topic.as_str()),
            ("b:1", &secured, "dead")
        );
        assert!(inherited.connection.properties.is_empty());
        assert_eq!(same.connection.security, secured);
        assert_eq!(same.connection.properties["linger.ms"], "1");
        assert_eq!((elsewhere.connection.brokers.as_str(), &elsewhere.connection.security), ("c:1", &Security::Plaintext));
        assert_eq!((described.connection.brokers.as_str(), &described.connection.security), ("b:1", &Security::Plaintext));
    }
    assert_eq!(wrong(&json!({"errors": {"topic": "dead"}})), ["errors.brokers"]);
}

#[test]
fn a_source_does_not_read_its_own_dead_letters() {
    let root = |topics: Value, brokers: &str| json!({"source": {"id": "erp", "kafka": {"brokers": "b:1", "topics": topics}}, "errors": {"topic": "cdc.dead", "brokers": brokers}});
    assert_eq!(wrong(&root(json!(["orders", "cdc.dead"]), "")), ["source.kafka.topics[1]"]);
    assert_eq!(wrong(&root(json!(["cdc.*"]), "b:1")), ["source.kafka.topics[0]"]);
    assert!(wrong(&root(json!(["orders"]), "")).is_empty());
    assert!(wrong(&root(json!(["cdc.*"]), "c:1")).is_empty());
}

fn connection(security: &Value) -> Connection {
    read(&source_with(security)).unwrap().source.unwrap().connection
}

#[tokio::test(flavor = "current_thread")]
async fn secrets_are_read_from_where_they_are_kept() {
    let folder = std::env::temp_dir().join(format!("sluice-kafka-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ca.pem"), "authority\n").unwrap();
    let file = SecretRef::File(folder.join("ca.pem"));
    let connection =
        connection(&json!({"type": "sasl-plain", "username": "x", "password": {"env": "P"}, "ca": {"file": folder.join("ca.pem")}}));
    let environment = |name: &str| (name == "P").then(|| "hunter2".to_owned());
    let secrets = Secrets::read(&connection, &environment).await.unwrap();
    assert_eq!(secrets.get(Field::Password, &env("P")).unwrap().expose(), "hunter2");
    assert_eq!(secrets.get(Field::Authority, &file).unwrap().expose(), "authority");
    assert!(secrets.get(Field::Password, &env("Q")).is_err());
    let printed = format!("{secrets:?} {connection:?}");
    assert!(!printed.contains("hunter2") && !printed.contains("authority"), "{printed}");
    std::fs::remove_dir_all(&folder).unwrap();
    let error = Secrets::read(&connection, &environment).await.unwrap_err();
    assert!(error.what.contains("ca.pem"), "{error}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_variable_that_is_not_set_is_named() {
    let connection = connection(&json!({"type": "sasl-plain", "username": {"env": "KAFKA_USER"}, "password": {"env": "P"}}));
    let error = Secrets::read(&connection, &|_: &str| None).await.unwrap_err();
    assert!(error.to_string().contains("`KAFKA_USER` is not set"), "{error}");
}
