//! Iceberg tables as Sluice needs them: what a batch does to a table ([`RowDelta`]), its files ([`prepare`]), the one commit
//! loop ([`commit_delta`]), the offset ledger inside the table ([`ledger`]), and a reader of our own ([`scan`], [`lookup`]).
//!
//! The order of a commit: a caller resolves a batch against a [`TableVersion`] into a [`RowDelta`]; [`prepare`] writes its data and
//! delete files, which no snapshot names yet; [`commit_delta`] checks the ledger against the refreshed table, adds manifests, a snapshot,
//! schema, properties and ledger in ONE catalog commit, and tries again when somebody else was faster. A catalog is anything that
//! implements [`Catalog`] and [`TableOperations`]; nothing here knows a particular one.
//!
//! iceberg-rust gives the metadata types and the Avro files. Snapshots, Parquet files, their metrics, and reading are done here,
//! because its writer's bounds and its scan give wrong results in cases that change streams meet every day.

mod alter;
pub mod arrow;
pub mod commit;
mod commit_loop;
pub mod creation;
pub mod delta;
pub mod error;
pub mod expire;
mod file_style;
pub mod history;
pub mod ledger;
mod manifest_copy;
mod manifest_merge;
pub mod manifest_rewrite;
pub mod manifests;
pub mod markers;
pub mod metadata_file;
mod metrics;
pub mod ops;
mod parquet_file;
mod partition;
mod partition_path;
mod prepare;
pub mod reader;
pub mod rewind;
pub mod rewrite;
mod row_ids;
pub mod schema;
mod scope;
pub mod snapshot_producer;
mod sorting;
mod stage;
pub mod transform;

pub use alter::set_partitioning;
pub use commit::{CommitContext, DeltaOutcome, RetryPolicy, Sleep, StaleReason, commit_delta};
pub use creation::TableCreation;
pub use delta::{BaseUse, DeltaBase, PreparedDelta, RowDelta, Truncate};
pub use error::{BoxError, CommitError, TableError};
pub use manifests::{FileContent, LiveFile, live_files};
pub use ops::{Catalog, CreateOutcome, StagedChange, TableOperations, TableVersion};
pub use prepare::{WriteOptions, prepare};
pub use reader::{lookup, scan, scan_each};
