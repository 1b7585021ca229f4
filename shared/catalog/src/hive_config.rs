//! `[catalog.hive]`. These types are there in every build, so that a wrong configuration is found by any.

use serde::Deserialize;
use sluice_model::config::{ConfigCode, Problems, Section};
use sluice_storage::StorageConfig;

/// How requests are put on the wire; the server's `hive.metastore.thrift.framed.transport.enabled` decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HiveTransport {
    /// Unframed, what a metastore speaks unless told otherwise.
    #[default]
    Buffered,
    /// Each message with its length in front.
    Framed,
}

/// Whether a commit takes the metastore's table lock. Whatever is chosen, each commit also names the metadata location that it expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HiveLock {
    /// Yes, unless the table's property `engine.hive.lock-enabled` is `false` and the server is found to compare the expected location.
    #[default]
    Auto,
    /// Yes.
    Always,
    /// No; a server that does not compare the expected location is refused.
    Never,
}

/// How a client says who it is. The Thrift client can only do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HiveAuth {
    None,
    Sasl,
    Kerberos,
}

/// Where the metastore is, and how to speak to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiveConfig {
    /// `thrift://host:port`.
    pub uri: String,
    /// Where new databases and their tables are put.
    pub warehouse: String,
    /// The wire format.
    pub transport: HiveTransport,
    /// Whether commits lock.
    pub lock: HiveLock,
    /// How long a commit waits for the lock, in milliseconds.
    pub lock_wait_ms: u64,
    /// How long a request may take, in milliseconds.
    pub timeout_ms: u64,
    /// The owner of new tables, and whom the lock names.
    pub user: String,
    /// How the tables' files are reached.
    pub storage: StorageConfig,
}

/// The bounds of a time limit, in milliseconds: a second to ten minutes.
const LIMITS: std::ops::RangeInclusive<u64> = 1_000..=600_000;

impl HiveConfig {
    /// A metastore at `uri`, with everything else as it is unless told.
    #[must_use]
    pub fn at(uri: impl Into<String>, warehouse: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            warehouse: warehouse.into(),
            transport: HiveTransport::default(),
            lock: HiveLock::default(),
            lock_wait_ms: 20_000,
            timeout_ms: 30_000,
            user: "sluice".to_owned(),
            storage: StorageConfig::default(),
        }
    }

    /// Reads `[catalog.hive]` into what `uri`, `warehouse` and `[catalog.storage]` have begun.
    pub fn read(mut section: Section, begun: Self, problems: &mut Problems) -> Self {
        if !begun.uri.is_empty()
            && let Err(why) = address_of(&begun.uri)
        {
            problems.add(ConfigCode::ConfigInvalid, "catalog.uri", why);
        }
        let lock: Option<HiveLock> = section.read("lock", problems);
        let transport: Option<HiveTransport> = section.read("transport", problems);
        let auth: Option<HiveAuth> = section.read("auth", problems);
        if let Some(HiveAuth::Sasl | HiveAuth::Kerberos) = auth {
            let why = "the Thrift client has no SASL, so no Kerberos: use a metastore without (hive.metastore.sasl.enabled = false) in a private network";
            problems.add(ConfigCode::ConfigUnsupported, &section.path_of("auth"), why);
        }
        let config = Self {
            lock: lock.unwrap_or(begun.lock),
            transport: transport.unwrap_or(begun.transport),
            lock_wait_ms: limit(&mut section, "lock_wait_ms", problems).unwrap_or(begun.lock_wait_ms),
            timeout_ms: limit(&mut section, "timeout_ms", problems).unwrap_or(begun.timeout_ms),
            user: section.read("user", problems).unwrap_or(begun.user),
            ..begun
        };
        section.finish(problems);
        config
    }
}

fn limit(section: &mut Section, key: &str, problems: &mut Problems) -> Option<u64> {
    let limit: u64 = section.read(key, problems)?;
    if !LIMITS.contains(&limit) {
        let why = format!("{limit} is not between {} and {} ms", LIMITS.start(), LIMITS.end());
        problems.add(ConfigCode::ConfigInvalid, &section.path_of(key), why);
    }
    Some(limit)
}

/// The host and port of a metastore's address.
pub(crate) fn address_of(uri: &str) -> Result<(String, u16), String> {
    let wrong = || format!("`{uri}` is no address of a Hive Metastore; it looks like thrift://host:9083");
    let rest = uri.strip_prefix("thrift://").ok_or_else(wrong)?.trim_end_matches('/');
    if rest.contains(',') {
        return Err(format!("`{uri}`: give one address; put several metastores behind one name"));
    }
    let (host, port) = rest.rsplit_once(':').unwrap_or((rest, "9083"));
    match port.parse() {
        Ok(port) if !host.is_empty() && !host.contains(['/', '@']) => Ok((host.trim_matches(['[', ']']).to_owned(), port)),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::address_of;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert_eq!(address_of("thrift://hms.example:9083"), Ok(("hms.example".to_owned(), 9083)));
        assert_eq!(address_of("thrift://hms.example"), Ok(("hms.example".to_owned(), 9083)));
        assert_eq!(address_of("thrift://[::1]:10000/"), Ok(("::1".to_owned(), 10_000)));
        for wrong in ["hms:9083", "http://hms:9083", "thrift://", "thrift://a:x", "thrift://a:1,thrift://b:1"] {
            assert!(address_of(wrong).is_err(), "{wrong}");
        }
    }
}
