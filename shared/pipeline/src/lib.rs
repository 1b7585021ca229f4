//! The pure heart of Sluice: route, validate, convert to Arrow columns, fold by key. Knows Arrow, not Iceberg.
//!
//! [`convert()`] turns the events of one table into typed columns and says how the table's schema grows; [`fold()`] says which rows are
//! to be written and which keys deleted. Nothing here reads a clock, a file or a network.

mod arrow_types;
pub mod check;
mod columns;
mod convert;
mod converted;
mod evolve;
mod fold;
mod infer;
mod keys;
mod names;
mod plan;
mod record;
mod reshape;
pub mod route;
pub mod settings;
pub mod type_text;
mod unchanged;
mod unit;
mod values;
mod version;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use arrow_types::{FIELD_ID_KEY, arrow_schema};
pub use convert::{ColumnError, TableContext, convert};
pub use converted::{Converted, SchemaChange};
pub use fold::{Folded, Outcome, Standing, Touch, Touches, Truncate, fold};
pub use names::{NameCase, safe_name};
