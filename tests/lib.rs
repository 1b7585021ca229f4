//! The tests that need more than one crate; see `it/` and `tidy.rs`.
