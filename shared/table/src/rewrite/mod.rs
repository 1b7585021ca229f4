//! Rewriting data files without changing rows: what compaction does to a table.
//!
//! [`TableFiles`] is what a snapshot consists of. [`rewrite_group`] reads some data files of one partition, applies the deletes that the snapshot has for
//! them, and writes the rows that are left; no snapshot names the new files yet. [`commit_rewrite`] swaps old for new in one commit of the one commit
//! loop, on whatever the table is by then, or says which groups no longer fit.

mod alive;
mod commit;
mod emptied;
mod file_set;
mod files;
mod group;
mod lineage;
mod output;
mod reaches;
mod sorted;
mod unique;

pub use commit::{RewriteOutcome, commit_rewrite};
pub use files::{FileFacts, Reaches, TableFiles};
pub use group::{GroupReport, RewriteOptions, RewrittenGroup, rewrite_group};
pub use unique::{KeyProof, Keys};
