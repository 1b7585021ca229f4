//! Where files are. [`open`] gives, for one configuration, iceberg's [`FileIO`](iceberg::io::FileIO) for the files of tables and an
//! [`ObjectStore`] for maintenance, which lists and writes conditionally. Both are on the local disk, in memory, or in S3 and what speaks its protocol.

mod by_scheme;
pub mod config;
mod error;
pub mod local;
pub mod memory;
pub mod object_store;
pub mod open;
#[cfg(feature = "s3")]
pub mod s3;

pub use config::{Credentials, Encryption, S3Config, StorageConfig};
pub use error::StorageError;
pub use local::LocalObjects;
pub use memory::MemoryObjects;
pub use object_store::{Condition, ListPage, MAX_DELETES, NotDeleted, Object, ObjectEntry, ObjectStore, PutOutcome, Token};
pub use open::{Storage, open, open_with};
