//! What an invocation tells its operator: one JSON line, an account for people and metrics for CloudWatch.
//!
//! A [`BatchEvent`] says what happened; [`BatchEvent::line`] is the line in CloudWatch's embedded metric format ([`emf`]). All names are
//! in [`metric`]; docs/metrics.md, the dashboard and the alarms may use no others. Pure: nothing is read or written here.

pub mod batch;
pub mod emf;
pub mod metric;

pub use batch::{BatchEvent, Ending, TableWork, TopicWork};
pub use emf::Place;
pub use metric::{Metric, Unit};
