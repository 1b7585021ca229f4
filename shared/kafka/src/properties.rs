//! librdkafka properties that are passed through, and those that Sluice sets itself.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_model::config::{ConfigCode, Problems, Section};

/// Properties that are refused, each with what to do instead.
const OWNED: [(&str, &str); 20] = [
    ("bootstrap.servers", "set brokers"),
    ("metadata.broker.list", "set brokers"),
    ("group.id", "set source.kafka.group"),
    ("security.protocol", SECURITY),
    ("enable.auto.commit", COMMITS),
    ("auto.commit.enable", COMMITS),
    ("auto.commit.interval.ms", COMMITS),
    ("enable.auto.offset.store", COMMITS),
    ("offset.store.method", COMMITS),
    ("auto.offset.reset", "the starting position is given to `sluice run`"),
    ("acks", ACKS),
    ("request.required.acks", ACKS),
    ("message.timeout.ms", "it comes from the time that the invocation has left"),
    ("delivery.timeout.ms", "it comes from the time that the invocation has left"),
    ("partitioner", "dead letters are partitioned by their key as Java clients do, so that a key keeps its partition"),
    ("transactional.id", "the error topic is written without transactions; the error table is the exact record"),
    ("enable.gapless.guarantee", "librdkafka calls it experimental"),
    ("plugin.library.paths", "code from outside is not loaded"),
    ("enable.sasl.oauthbearer.unsecure.jwt", SECURITY),
    ("log_level", "set SLUICE_LOG"),
];
const SECURITY: &str = "describe it in the section `security`, where passwords and keys are named and not written down";
const COMMITS: &str = "offsets are committed after their batch was applied, never by themselves";
const ACKS: &str = "every dead letter is acknowledged by all replicas in sync";
/// Whole families that are refused: `sasl.kerberos.…` is not built in, the others are described by `security`.
const OWNED_FAMILIES: [&str; 7] = ["sasl.", "ssl.ca", "ssl.key", "ssl.certificate", "ssl.truststore", "ssl_", "https."];

/// Reads `properties`: values may be texts, numbers and booleans.
pub(crate) fn read(section: &mut Section, problems: &mut Problems) -> BTreeMap<String, String> {
    let path = section.path_of("properties");
    let given: BTreeMap<String, Value> = section.read("properties", problems).unwrap_or_default();
    let mut read = BTreeMap::new();
    for (name, value) in given {
        let key = format!("{path}.\"{name}\"");
        match (owned(&name), text(&value)) {
            (Some(instead), _) => problems.add(ConfigCode::ConfigInvalid, &key, format!("Sluice sets this property itself: {instead}")),
            (None, None) => problems.add(ConfigCode::ConfigInvalid, &key, "expected a text, a number or a boolean"),
            (None, Some(text)) => {
                read.insert(name, text);
            }
        }
    }
    read
}

fn owned(name: &str) -> Option<&'static str> {
    let exact = OWNED.iter().find(|(owned, _)| *owned == name).map(|(_, instead)| *instead);
    let family = OWNED_FAMILIES.iter().any(|family| name.starts_with(family));
    let callback = name.ends_with("_cb") || name == "opaque";
    exact.or(family.then_some(SECURITY)).or(callback.then_some("callbacks are code"))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
