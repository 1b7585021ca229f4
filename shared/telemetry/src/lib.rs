//! What an invocation tells its operator: one JSON line, an account for people and metrics for CloudWatch.
//!
//! A [`BatchEvent`] says what a batch became, a [`JobEvent`] what maintenance did; their `line` is the line in CloudWatch's embedded metric format ([`emf`]). All names are
//! in [`metric`]; docs/metrics.md, the dashboard and the alarms may use no others. Pure: nothing is read or written here.

pub mod batch;
pub mod emf;
pub mod job;
pub mod metric;
mod text;

pub use batch::{BatchEvent, Ending, TableWork, TopicWork};
pub use emf::Place;
pub use job::{Burden, Ended, JobEvent, TableCare};
pub use metric::{Metric, Unit};
pub use text::cut;
