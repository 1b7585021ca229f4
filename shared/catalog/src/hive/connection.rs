//! The connection to a metastore: opened when it is needed, given up after a failure, every call with a time limit.

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hive_metastore::{ThriftHiveMetastoreClient, ThriftHiveMetastoreClientBuilder};
use sluice_model::Class;
use sluice_table::{CommitError, TableError};
use volo_thrift::codec::default::DefaultMakeCodec;
use volo_thrift::{ApplicationExceptionKind, ClientError, MaybeException};

use crate::HiveTransport;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The request was not sent.
    NotSent(String),
    /// The server said that it cannot serve such a request.
    Refused(String),
    /// The request may have been carried out.
    Lost(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "the server cannot be reached: {why}"),
            Self::Refused(why) => write!(f, "the server refused the request: {why}"),
            Self::Lost(why) => {
                write!(f, "no answer came: {why} (a server that wants another `transport`, or SASL, closes the connection like this)")
            }
        }
    }
}

impl CallError {
    /// What it means for a request that changes nothing.
    pub(super) fn reading(self, what: &str) -> TableError {
        let class = match self {
            Self::NotSent(_) | Self::Lost(_) => Class::Transient,
            Self::Refused(_) => Class::Fatal,
        };
        metastore_error(class, what, &self)
    }

    /// What it means for a request that changes something.
    pub(super) fn writing(self, what: &str) -> TableError {
        let class = match self {
            Self::NotSent(_) => Class::Transient,
            Self::Lost(_) => Class::Unknown,
            Self::Refused(_) => Class::Fatal,
        };
        metastore_error(class, what, &self)
    }

    /// What it means for the request that commits.
    pub(super) fn committing(self, what: &str) -> CommitError {
        let told = told(what, &self);
        match self {
            Self::NotSent(_) => CommitError::Transient { what: told, source: None },
            Self::Lost(_) => CommitError::Unknown { what: told, source: None },
            Self::Refused(_) => CommitError::Fatal { what: told, source: None },
        }
    }
}

pub(super) fn told(what: &str, why: &dyn fmt::Display) -> String {
    format!("the Hive Metastore, {what}: {why}")
}

pub(super) fn metastore_error(class: Class, what: &str, why: &dyn fmt::Display) -> TableError {
    TableError::Catalog { class, what: told(what, why), source: None }
}

/// A call's answer: the server's exceptions are answers too.
pub(super) type Answer<T, E> = Result<Result<T, E>, CallError>;

/// A metastore.
pub(super) struct Connection {
    host: String,
    port: u16,
    transport: HiveTransport,
    timeout: Duration,
    client: Mutex<Option<ThriftHiveMetastoreClient>>,
}

impl Connection {
    pub(super) fn new((host, port): (String, u16), transport: HiveTransport, timeout: Duration) -> Self {
        Self { host, port, transport, timeout, client: Mutex::new(None) }
    }

    /// One call whose exceptions are declared.
    pub(super) async fn call<T, E, Made, F>(&self, make: F) -> Answer<T, E>
    where
        F: FnOnce(ThriftHiveMetastoreClient) -> Made,
        Made: Future<Output = Result<MaybeException<T, E>, ClientError>>,
    {
        match self.plain(make).await? {
            MaybeException::Ok(answer) => Ok(Ok(answer)),
            MaybeException::Exception(exception) => Ok(Err(exception)),
        }
    }

    /// One call without declared exceptions.
    pub(super) async fn plain<T, Made, F>(&self, make: F) -> Result<T, CallError>
    where
        F: FnOnce(ThriftHiveMetastoreClient) -> Made,
        Made: Future<Output = Result<T, ClientError>>,
    {
        let client = self.client().await?;
        match tokio::time::timeout(self.timeout, make(client)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => {
                self.give_up();
                Err(CallError::Lost(format!("nothing within {} ms", self.timeout.as_millis())))
            }
        }
    }

    /// The client that is there, or a new one at the address that the name has now.
    async fn client(&self) -> Result<ThriftHiveMetastoreClient, CallError> {
        if let Some(client) = &*self.client.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(client.clone());
        }
        let unknown = |why: &dyn fmt::Display| CallError::NotSent(format!("{}:{}: {why}", self.host, self.port));
        let mut addresses = tokio::net::lookup_host((self.host.as_str(), self.port)).await.map_err(|error| unknown(&error))?;
        let address = addresses.next().ok_or_else(|| unknown(&"the name has no address"))?;
        // The builder's own limit on a call would come as the same exception that a server sends: ours is outside.
        let builder = ThriftHiveMetastoreClientBuilder::new("hms")
            .address(address)
            .rpc_timeout(None)
            .connect_timeout(Some(CONNECT_TIMEOUT))
            .read_write_timeout(Some(self.timeout));
        let client = match self.transport {
            HiveTransport::Buffered => builder.make_codec(DefaultMakeCodec::buffered()).build(),
            HiveTransport::Framed => builder.make_codec(DefaultMakeCodec::framed()).build(),
        };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }

    /// The next call connects anew.
    fn give_up(&self) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn failed(&self, error: &ClientError) -> CallError {
        match error {
            ClientError::Application(exception) if refused(exception.kind()) => CallError::Refused(exception.message().to_string()),
            ClientError::Transport(exception) if unreachable(exception.kind()) => {
                self.give_up();
                CallError::NotSent(exception.message().to_string())
            }
            ClientError::Application(_) | ClientError::Transport(_) | ClientError::Protocol(_) | ClientError::Biz(_) => {
                self.give_up();
                CallError::Lost(error.to_string())
            }
        }
    }
}

/// The server has read the request and did not know what to do with it.
fn refused(kind: ApplicationExceptionKind) -> bool {
    kind == ApplicationExceptionKind::UNKNOWN_METHOD || kind == ApplicationExceptionKind::INVALID_MESSAGE_TYPE
}

/// Only connecting fails like this.
fn unreachable(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind;
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection::new(("localhost".to_owned(), 1), HiveTransport::Buffered, Duration::from_secs(1))
    }

    #[test]
    fn only_what_was_never_sent_is_sure_to_have_done_nothing() {
        let io = |kind| ClientError::from(std::io::Error::from(kind));
        assert!(matches!(connection().failed(&io(std::io::ErrorKind::ConnectionRefused)), CallError::NotSent(_)));
        assert!(matches!(connection().failed(&io(std::io::ErrorKind::ConnectionReset)), CallError::Lost(_)));
        assert!(matches!(connection().failed(&io(std::io::ErrorKind::UnexpectedEof)), CallError::Lost(_)));
        let told = |kind| ClientError::from(volo_thrift::ApplicationException::new(kind, "x"));
        assert!(matches!(connection().failed(&told(ApplicationExceptionKind::UNKNOWN_METHOD)), CallError::Refused(_)));
        assert!(matches!(connection().failed(&told(ApplicationExceptionKind::INTERNAL_ERROR)), CallError::Lost(_)));
    }

    #[test]
    fn a_lost_call_is_unknown_for_a_write_and_transient_for_a_read() {
        let lost = || CallError::Lost("x".to_owned());
        assert_eq!(lost().reading("x").class(), Class::Transient);
        assert_eq!(lost().writing("x").class(), Class::Unknown);
        assert_eq!(lost().committing("x").class(), Class::Unknown);
    }
}
