//! What to do about an error, decided where the foreign error is first seen.

use serde::Serialize;

/// The four answers to "what now?"; every crate's error enum has a `class()` that gives one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Somebody else committed first: refresh and try again.
    Conflict,
    /// Throttling, a broken connection before the call took effect: the same call may be repeated.
    Transient,
    /// The call may or may not have taken effect: look it up, delete nothing.
    Unknown,
    /// Repeating cannot help: denied, replaced, unsupported, wrong configuration.
    Fatal,
}

impl Class {
    /// Whether a later delivery of the same batch can succeed without anybody changing anything.
    #[must_use]
    pub const fn may_pass_later(self) -> bool {
        match self {
            Self::Conflict | Self::Transient | Self::Unknown => true,
            Self::Fatal => false,
        }
    }
}
