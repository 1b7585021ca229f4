//! Keeping tables healthy while they are written: compaction, snapshot expiry, orphan removal, manifest rewriting.
//!
//! Each job is a [`Job`]: a plan, which is plain data that can be printed, stored and looked at, and its execution, which takes that very plan. Start reading at
//! [`run()`](run::run). The commits themselves are in `sluice_table`; what is here decides what is worth doing, and is careful about deleting.

pub mod compact;
pub mod context;
pub mod error;
pub mod expire;
pub mod health;
pub mod job;
pub mod lease;
pub mod manifests;
pub mod orphans;
pub mod report;
pub mod run;
pub mod selector;
pub mod settings;

pub use compact::Compact;
pub use context::{Context, Stores, Table};
pub use error::MaintenanceError;
pub use expire::Expire;
pub use job::{Job, Plan};
pub use manifests::Manifests;
pub use orphans::Orphans;
pub use report::{Measures, Outcome, Report};
pub use run::{Mode, run};
pub use selector::Selector;
pub use settings::MaintenanceSettings;
