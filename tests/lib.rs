//! What the tests share beyond one target: the fuzz targets, which cargo-fuzz runs for long and `it::fuzz` runs for a moment.

pub mod fuzz;
