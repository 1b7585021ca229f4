//! Expiring snapshots: which may go ([`expirable`]), which files only they reach ([`only_reached_by`]), and taking them out of the metadata
//! ([`commit_expire`]). Nothing is deleted from storage here.

mod commit;
mod reach;
mod retention;

pub use commit::{ExpireOutcome, commit_expire};
pub use reach::{Reached, normalised, only_reached_by, reachable, referenced};
pub(crate) use retention::references;
pub use retention::{Expirable, Retention, expirable};
