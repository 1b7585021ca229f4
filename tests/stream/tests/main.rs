//! The whole path: producers, a real broker, `sluice run`, the tables.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, unreachable_pub)]

mod broker;
mod chaos;
mod collector;
mod model;
mod program;
mod records;
mod rng;
mod verbs;
