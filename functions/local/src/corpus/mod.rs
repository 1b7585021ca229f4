//! Conformance cases: a configuration, the tables before, invocations, and the exact result (the format of `tests/corpus/README.md`).

pub(crate) mod case;
mod compare;
mod event;
mod run;
mod setup;

pub(crate) use run::{Outcome, Verdict, run_case};
