//! Deliberate faults, one at a time, for showing that the tests find them. Only the simulation turns the feature `mutants` on; without it
//! there are none, and every question for one is a constant `false`.

/// A deliberate fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The commit does not ask the ledger.
    SkipLedgerCheck,
    /// The commit asks the ledger of the version that the batch was resolved against, not of the one that it replaces.
    CheckBeforeRefresh,
    /// A second attempt claims the offsets without the files.
    ClaimWithoutApplying,
    /// Only the first partition of a batch is claimed.
    ForgetPartition,
    /// Everything below the highest end counts as decided.
    Watermark,
    /// Data tables are committed before the dead letters.
    DataBeforeLetters,
    /// A commit of unknown outcome is repeated under new ids as if it had failed.
    UnknownIsFailure,
    /// A commit of unknown outcome counts as made.
    UnknownIsSuccess,
    /// The ledger is read from the properties only.
    LedgerInPropertiesOnly,
    /// The ledger is read from the summaries only.
    LedgerInSummaryOnly,
    /// After a conflict the manifests of the old base are listed again.
    StaleManifestList,
    /// The error table claims nothing.
    LettersWithoutLedger,
    /// A delta made from stored rows is committed on any snapshot.
    IgnorePin,
    /// The files of a commit of unknown outcome are deleted.
    DeleteAfterUnknown,
    /// An offset that was decided in one partition counts as decided in all.
    OffsetAlone,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::SkipLedgerCheck,
        Self::CheckBeforeRefresh,
        Self::ClaimWithoutApplying,
        Self::ForgetPartition,
        Self::Watermark,
        Self::DataBeforeLetters,
        Self::UnknownIsFailure,
        Self::UnknownIsSuccess,
        Self::LedgerInPropertiesOnly,
        Self::LedgerInSummaryOnly,
        Self::StaleManifestList,
        Self::LettersWithoutLedger,
        Self::IgnorePin,
        Self::DeleteAfterUnknown,
        Self::OffsetAlone,
    ];
}

/// Whether the program is to make that fault now.
#[cfg(not(feature = "mutants"))]
#[must_use]
pub const fn is(_: Mutant) -> bool {
    false
}

#[cfg(feature = "mutants")]
pub use switch::{is, with};

#[cfg(feature = "mutants")]
mod switch {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Whether the program is to make that fault now.
    #[must_use]
    pub fn is(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }

    /// Makes the fault as long as `run` runs on this thread.
    pub fn with<T>(mutant: Option<Mutant>, run: impl FnOnce() -> T) -> T {
        struct Restore(Option<Mutant>);
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(self.0);
            }
        }
        let _restore = Restore(ACTIVE.replace(mutant));
        run()
    }
}
