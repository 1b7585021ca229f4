//! A table's columns in Iceberg's terms, without depending on Iceberg.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A table's full name: namespace levels and the table, joined by dots, e.g. `erp.orders`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableName(Arc<str>);

impl TableName {
    /// Parses `namespace.table` (one or more namespace levels). `None` when a level is empty or there is no namespace.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let levels = text.split('.').count();
        let sound = levels >= 2 && text.split('.').all(|level| !level.is_empty());
        sound.then(|| Self(text.into()))
    }

    /// The table `table` in the namespace `namespace`, both not empty.
    #[must_use]
    pub fn of(namespace: &str, table: &str) -> Self {
        Self(format!("{namespace}.{table}").into())
    }

    /// The full name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The namespace levels, joined by dots.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(namespace, _)| namespace)
    }

    /// The last level.
    #[must_use]
    pub fn table(&self) -> &str {
        self.0.rsplit_once('.').map_or(self.as_str(), |(_, table)| table)
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The type of a column (Iceberg table spec, "Schemas and Data Types").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// true or false.
    Boolean,
    /// 32-bit signed integer.
    Int,
    /// 64-bit signed integer.
    Long,
    /// 32-bit IEEE 754.
    Float,
    /// 64-bit IEEE 754.
    Double,
    /// Fixed point; 1 ≤ precision ≤ 38, scale ≤ precision.
    Decimal {
        /// All digits.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Calendar date.
    Date,
    /// Time of day, microseconds, no zone.
    Time,
    /// Microseconds, no zone.
    Timestamp,
    /// Microseconds, stored in UTC.
    TimestampTz,
    /// Nanoseconds, no zone (v3).
    TimestampNs,
    /// Nanoseconds, stored in UTC (v3).
    TimestampTzNs,
    /// UTF-8 text.
    String,
    /// 16 bytes.
    Uuid,
    /// A fixed number of bytes.
    Fixed(u32),
    /// Any number of bytes.
    Binary,
    /// Named fields.
    Struct(Vec<Column>),
    /// Elements of one type.
    List(Box<Column>),
    /// Keys (required) and values of one type each.
    Map(Box<Column>, Box<Column>),
}

impl fmt::Display for ColumnType {
    /// The spelling of the Iceberg spec, as used in the corpus: `decimal(10,2)`, `list<int>`, `struct<a: int>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::Int => f.write_str("int"),
            Self::Long => f.write_str("long"),
            Self::Float => f.write_str("float"),
            Self::Double => f.write_str("double"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Self::Date => f.write_str("date"),
            Self::Time => f.write_str("time"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::TimestampTz => f.write_str("timestamptz"),
            Self::TimestampNs => f.write_str("timestamp_ns"),
            Self::TimestampTzNs => f.write_str("timestamptz_ns"),
            Self::String => f.write_str("string"),
            Self::Uuid => f.write_str("uuid"),
            Self::Fixed(length) => write!(f, "fixed[{length}]"),
            Self::Binary => f.write_str("binary"),
            Self::Struct(columns) => {
                f.write_str("struct<")?;
                for (index, column) in columns.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{}: {}", column.name, column.kind)?;
                }
                f.write_str(">")
            }
            Self::List(element) => write!(f, "list<{}>", element.kind),
            Self::Map(key, value) => write!(f, "map<{}, {}>", key.kind, value.kind),
        }
    }
}

/// A column or a nested field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Iceberg's field id; columns are found by it, never by name.
    pub id: i32,
    /// The name as the table has it.
    pub name: String,
    /// Whether null is forbidden.
    pub required: bool,
    /// The type.
    pub kind: ColumnType,
    /// The column's comment.
    pub doc: Option<String>,
}

impl Column {
    /// An optional column without a comment.
    pub fn optional(id: i32, name: impl Into<String>, kind: ColumnType) -> Self {
        Self { id, name: name.into(), required: false, kind, doc: None }
    }

    /// A required column without a comment.
    pub fn required(id: i32, name: impl Into<String>, kind: ColumnType) -> Self {
        Self { id, name: name.into(), required: true, kind, doc: None }
    }
}

/// A table's current schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// Iceberg's schema id, or −1 for one that the table does not have yet.
    pub schema_id: i32,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// Field ids of the identifier fields (the table's key); may be empty.
    pub identifier_ids: Vec<i32>,
    /// The highest field id ever given out in the table: new fields count on from it.
    pub last_column_id: i32,
}

impl TableSchema {
    /// The top-level column of that name, compared exactly.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The names of the identifier fields that are top-level columns, in schema order.
    #[must_use]
    pub fn identifier_names(&self) -> Vec<&str> {
        let keys = self.columns.iter().filter(|column| self.identifier_ids.contains(&column.id));
        keys.map(|column| column.name.as_str()).collect()
    }
}
