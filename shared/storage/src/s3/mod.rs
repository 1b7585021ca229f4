//! S3 and what speaks its protocol, through AWS's own SDK.

mod client;
mod errors;
mod files;
mod location;
mod objects;
mod upload;

pub use client::aws_config;
pub use errors::{class_of_read, class_of_write, told};
pub use objects::S3Objects;
