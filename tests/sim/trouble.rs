//! The kinds of trouble that a run may meet. Each can be turned off by itself, which is what shrinking does.

/// Declares the kinds with their names.
macro_rules! troubles {
    ($($(#[$doc:meta])* $kind:ident = $name:literal),+ $(,)?) => {
        /// A kind of trouble.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Trouble { $($(#[$doc])* $kind),+ }

        impl Trouble {
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }
        }
    };
}

troubles! {
    /// A catalog call is refused before it takes effect; the same call may be repeated.
    Throttled = "throttled",
    /// The catalog says that somebody else was faster, though nobody was.
    Conflict = "conflict",
    /// A change is made, but the answer is lost.
    LostReply = "lost-reply",
    /// A change is not made, and the answer is that nobody knows.
    LostRequest = "lost-request",
    /// A change is made some time after the answer that nobody knows.
    LateRequest = "late-request",
    /// A storage call fails, writes before or after they took effect.
    Storage = "storage",
    /// The catalog denies access for good.
    Denied = "denied",
    /// The process dies at an await.
    Crash = "crash",
    /// Time passes, up to and beyond the deadline.
    Slow = "slow",
    /// Records are delivered again from an earlier offset.
    Rebalance = "rebalance",
    /// Another program appends a row.
    Append = "append",
    /// Another program replaces a snapshot by one without summary properties.
    Compact = "compact",
    /// Old snapshots and the files that only they reach are removed.
    Expire = "expire",
    /// A table goes back to an older snapshot, and its records are delivered again.
    Rollback = "rollback",
    /// Another program adds a column.
    AddColumn = "add-column",
    /// A table is dropped and made anew.
    Replace = "replace",
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Troubles(u32);

impl Troubles {
    pub const NONE: Self = Self(0);

    pub const fn has(self, kind: Trouble) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    pub const fn with(self, kind: Trouble) -> Self {
        Self(self.0 | 1 << kind as u32)
    }

    pub const fn without(self, kind: Trouble) -> Self {
        Self(self.0 & !(1 << kind as u32))
    }

    pub fn iter(self) -> impl Iterator<Item = Trouble> {
        Trouble::ALL.iter().copied().filter(move |kind| self.has(*kind))
    }

    /// The kinds in a list of names.
    pub fn parse(text: &str) -> Self {
        let kinds = Trouble::ALL.iter().copied().filter(|kind| text.split(',').any(|name| name.trim() == kind.name()));
        kinds.fold(Self::NONE, Self::with)
    }
}

impl std::fmt::Display for Troubles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.iter().map(Trouble::name).collect();
        if names.is_empty() { f.write_str("none") } else { f.write_str(&names.join(",")) }
    }
}
