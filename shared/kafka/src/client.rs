//! A connection as librdkafka's properties.

use rdkafka::config::ClientConfig;

use crate::config::Connection;
use crate::error::KafkaError;
use crate::secrets::{Field, Secrets};
use crate::security::{ClientCertificate, Password, Security, Tls, Transport, Username};

pub use crate::tokens::{TokenSource, Tokens};

/// The properties of a client of this connection: those of the configuration, then ours. Its `Debug` would print a private key: do not log it.
///
/// # Errors
/// [`KafkaError`] when a secret was not read.
pub fn client_config(connection: &Connection, secrets: &Secrets) -> Result<ClientConfig, KafkaError> {
    let mut config = ClientConfig::new();
    // A connection that a broker closed because it was idle, or that died while the process was frozen, is news to nobody.
    config.set("client.id", "sluice").set("socket.keepalive.enable", "true").set("log.connection.close", "false");
    for (name, value) in &connection.properties {
        config.set(name, value);
    }
    config.set("bootstrap.servers", &connection.brokers);
    match &connection.security {
        Security::Plaintext => {
            config.set("security.protocol", "plaintext");
        }
        Security::Tls(tls) => {
            config.set("security.protocol", "ssl");
            set_tls(&mut config, tls, secrets)?;
        }
        Security::Password(password) => set_password(&mut config, password, secrets)?,
        Security::MskIam(_) => {
            config.set("security.protocol", "sasl_ssl").set("sasl.mechanisms", "OAUTHBEARER");
            set_tls(&mut config, &Tls::default(), secrets)?;
        }
    }
    Ok(config)
}

fn set_password(config: &mut ClientConfig, password: &Password, secrets: &Secrets) -> Result<(), KafkaError> {
    let name = match &password.username {
        Username::Text(name) => name,
        Username::Kept(kept) => secrets.get(Field::Username, kept)?.expose(),
    };
    config.set("sasl.mechanisms", password.mechanism.as_str()).set("sasl.username", name);
    config.set("sasl.password", secrets.get(Field::Password, &password.password)?.expose());
    match &password.transport {
        Transport::Plaintext => {
            config.set("security.protocol", "sasl_plaintext");
            Ok(())
        }
        Transport::Tls(tls) => {
            config.set("security.protocol", "sasl_ssl");
            set_tls(config, tls, secrets)
        }
    }
}

fn set_tls(config: &mut ClientConfig, tls: &Tls, secrets: &Secrets) -> Result<(), KafkaError> {
    match &tls.ca {
        Some(ca) => config.set("ssl.ca.pem", secrets.get(Field::Authority, ca)?.expose()),
        // An OpenSSL of our own does not know where the system keeps its certificates: librdkafka looks in the usual places.
        None => config.set("ssl.ca.location", "probe"),
    };
    if let Some(ClientCertificate { certificate, key, key_password }) = &tls.client {
        config.set("ssl.certificate.pem", secrets.get(Field::Certificate, certificate)?.expose());
        config.set("ssl.key.pem", secrets.get(Field::Key, key)?.expose());
        if let Some(password) = key_password {
            config.set("ssl.key.password", secrets.get(Field::KeyPassword, password)?.expose());
        }
    }
    Ok(())
}
