//! The choices of table settings, spelled in kebab-case as in the file.

use serde::Deserialize;

/// Declares an enum of choices with its kebab-case spellings.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    };
}

choice! {
    /// How changes reach the table.
    WriteMode {
        /// Upsert where the table has a key, else append.
        Auto,
        /// Every insert, snapshot and update adds a row.
        Append,
        /// The newest change of a key replaces its row.
        Upsert,
        /// Every event adds a row, its meaning in `_op`.
        Changelog,
    }
}
choice! {
    /// The form of deletes.
    DeleteForm {
        /// Equality delete files.
        Equality,
        /// Position delete files; deletion vectors on v3.
        Position,
        /// Data files are rewritten.
        CopyOnWrite,
    }
}
choice! {
    /// What happens when the table does not exist.
    OnMissingTable {
        /// The record is refused.
        DeadLetter,
        /// The table is created.
        Create,
    }
}
choice! {
    /// What happens to the records of a table in fatal trouble.
    OnUnavailable {
        /// They are refused as `TABLE_UNAVAILABLE`.
        DeadLetter,
        /// The invocation fails, the partition waits.
        Block,
    }
}
choice! {
    /// An upsert on a table without a key.
    OnMissingKey {
        /// The record is refused.
        DeadLetter,
        /// The row is appended.
        Append,
    }
}
choice! {
    /// A field without a column.
    OnUnknownColumn {
        /// The record is refused.
        DeadLetter,
        /// The field is left out.
        Ignore,
        /// The column is added.
        Add,
    }
}
choice! {
    /// A value or declared type wider than the column.
    OnWiderType {
        /// The column is promoted where Iceberg allows it.
        Promote,
        /// The record is refused.
        DeadLetter,
    }
}
choice! {
    /// A null in a required column.
    OnMissingRequired {
        /// The record is refused.
        DeadLetter,
        /// The column becomes optional; never a key column.
        Relax,
    }
}
choice! {
    /// A truncate event.
    OnTruncate {
        /// It is refused.
        DeadLetter,
        /// The table is emptied.
        DeleteAll,
        /// It counts as control.
        Ignore,
    }
}
choice! {
    /// A DDL event.
    OnSchemaChange {
        /// It counts as control.
        Record,
        /// Columns that it lists and the table lacks are added.
        Apply,
    }
}
choice! {
    /// A change older than the stored version.
    OnStale {
        /// It is skipped and counted.
        Skip,
        /// It is refused.
        DeadLetter,
    }
}
choice! {
    /// A row with unchanged-value markers.
    OnPartialRow {
        /// The stored values are kept.
        Merge,
        /// It is refused.
        DeadLetter,
    }
}
choice! {
    /// A field that stands twice.
    OnDuplicateField {
        /// The record is refused.
        DeadLetter,
        /// The last one counts.
        Last,
    }
}
choice! {
    /// NaN in a column that cannot hold it.
    OnNan {
        /// The record is refused.
        DeadLetter,
        /// Null is stored.
        Null,
    }
}
choice! {
    /// Infinity in a column that cannot hold it.
    OnInfinity {
        /// The record is refused.
        DeadLetter,
        /// Null is stored.
        Null,
        /// The last or first instant is stored.
        Clamp,
    }
}
choice! {
    /// A time that is no time of day.
    OnTimeOutOfDay {
        /// The record is refused.
        DeadLetter,
    }
}
choice! {
    /// Digits beyond the scale.
    OnInexactDecimal {
        /// The record is refused.
        DeadLetter,
        /// Halves go to the even neighbour.
        HalfEven,
        /// Halves go away from zero.
        HalfUp,
    }
}
choice! {
    /// Digits finer than the column's time unit.
    OnInexactTime {
        /// The record is refused.
        DeadLetter,
        /// They are cut off.
        Truncate,
    }
}
choice! {
    /// Text where a number or boolean is expected.
    Coerce {
        /// It is refused.
        Strict,
        /// It is read.
        Lenient,
    }
}
choice! {
    /// The text form of bytes.
    BinaryText {
        /// Base64 with padding.
        Base64,
        /// Hexadecimal, with or without 0x.
        Hex,
    }
}
choice! {
    /// What objects and arrays become in a string column.
    JsonColumn {
        /// Their source text without blanks.
        Text,
    }
}
