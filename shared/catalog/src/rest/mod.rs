//! Catalogs that speak Iceberg's REST protocol (Polaris, Nessie, Gravitino, Lakekeeper, Unity, the REST endpoints of Glue and of S3 Tables).
//!
//! A commit is one request with what must be true of the table and what is changed; the server writes the metadata. A commit is sent once: only a refused
//! token makes it go again, for then nothing was looked at. So 409 means that another commit came first, and any 5xx or broken connection is unknown.

mod auth;
mod catalog;
mod errors;
mod http;
mod storage;
mod table;

pub use catalog::RestCatalog;
