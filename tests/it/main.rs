//! Whole functions: an event goes in, tables and the error table are compared with what must be there.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, unreachable_pub)]

mod binaries;
mod cli;
mod crash;
mod crashing;
mod error_topic;
mod events;
mod faults;
mod fuzz;
mod golden;
mod isolation;
mod lake;
mod lambda;
mod maintenance;
mod races;
mod redrive;
mod redrive_model;
mod rewind;
mod schemas;
