//! The pure heart of Sluice: route, validate, convert to Arrow columns, fold by key. Knows Arrow, not Iceberg.

pub mod check;
pub mod route;
pub mod settings;
pub mod type_text;
