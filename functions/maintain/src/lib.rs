//! What the four maintenance functions and the command line share. A [`Maintain`] is made once from the configuration; [`Maintain::serve`] runs one job for one [`Request`].

#[cfg(feature = "lambda")]
pub mod account;
#[cfg(feature = "lambda")]
pub mod answer;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod maintain;
pub mod request;
pub mod start;

pub use maintain::{Maintain, MaintainError, Reply};
pub use request::{JobName, Request, RequestMode};
pub use start::{Configuration, StartError, start};
