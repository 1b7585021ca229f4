//! Where refused records go.
//!
//! A dead letter goes to the error topic first (at least once), then to the error table (exactly once, by the table's own ledger). Only
//! when both have it may a data table claim the batch: the other order loses a refused record when the function dies in between.

pub mod columns;
pub mod entry;
pub mod letter;
mod open;
pub mod queue;
mod rewrite;
pub mod table;
pub mod topic;

pub use entry::{Content, DOOR, Entry, EntryId, Settled, Size};
pub use letter::{DeadLetter, RawBytes, Repetition};
pub use open::ErrorTableCommit;
pub use queue::{ErrorQueue, Numbers, QueueRows};
pub use rewrite::{BELOW_LEDGER, Change, Resolution, State};
pub use table::{ErrorTable, LetterFate};
pub use topic::{ErrorTopic, NoTopic, Published, TopicError};
