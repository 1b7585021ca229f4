//! The error topic on librdkafka's mock cluster (faults that a real broker does not make on demand) and on a real Kafka (everything else).
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, unreachable_pub)]

mod broker;
mod mock;
mod read_back;
mod real;
#[cfg(feature = "aws")]
mod secrets;
mod security;
mod tokens;
