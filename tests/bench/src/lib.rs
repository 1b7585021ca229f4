//! The speed of the main path, as a ratio to a floor: `cargo bench -p sluice-bench`. The figures and how to read them: docs/performance.md.

pub mod clock;
pub mod event;
mod fixed;
pub mod floor;
mod order;
pub mod path;
mod random;

pub use clock::Stages;
pub use event::{EVENT_BYTES, Kind, lambda_event};
pub use path::{Made, Path};
