//! How a table's schema grows: what records ask for, and how it is brought together.

use sluice_model::{Column, ColumnType, DeclaredType, TableSchema};

use crate::infer::{new_column, of_declared};
use crate::names::{NameCase, find_column, safe_name};
use crate::values::digits::MAX_PRECISION;

/// A change of the schema that a record needs. Paths are column names, with `element`, `key` and `value` for lists and maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// A new column or nested field.
    Add {
        /// The struct that gets it; empty for the table.
        parent: Vec<String>,
        /// The field's own name.
        name: String,
        /// Its type.
        kind: ColumnType,
    },
    /// A wider type.
    Widen {
        /// The column.
        path: Vec<String>,
        /// The type that it needs.
        kind: ColumnType,
    },
    /// A required column becomes optional.
    Relax {
        /// The column.
        path: Vec<String>,
    },
}

impl Proposal {
    /// The table's column that is touched, in lower case.
    pub(crate) fn column(&self, case: NameCase) -> String {
        match self {
            Self::Add { parent, name, .. } => parent.first().map_or_else(|| safe_name(name, case), String::clone).to_lowercase(),
            Self::Widen { path, .. } | Self::Relax { path } => path.first().map_or("", String::as_str).to_lowercase(),
        }
    }

    /// Changes the columns. New ones have the id 0 until [`number_new_columns`]. A path that is not there changes nothing: the
    /// record that needed it is converted again and says so.
    pub(crate) fn apply(&self, columns: &mut Vec<Column>, case: NameCase) {
        match self {
            Self::Add { parent, name, kind } => {
                if let Some(siblings) = struct_at(columns, parent) {
                    add(siblings, new_column(name, kind.clone(), case));
                }
            }
            Self::Widen { path, kind } => {
                if let Some(column) = column_at(columns, path)
                    && let Some(wider) = promoted(&column.kind, kind)
                {
                    column.kind = wider;
                }
            }
            Self::Relax { path } => {
                if let Some(column) = column_at(columns, path) {
                    column.required = false;
                }
            }
        }
    }
}

/// Adds a column, or joins it with one of that name that another record asked for.
fn add(siblings: &mut Vec<Column>, column: Column) {
    let folded = column.name.to_lowercase();
    match siblings.iter_mut().find(|sibling| sibling.name.to_lowercase() == folded) {
        Some(sibling) if sibling.id == 0 => sibling.kind = join(sibling.kind.clone(), column.kind),
        Some(_) => {}
        None => siblings.push(column),
    }
}

fn column_at<'c>(columns: &'c mut [Column], path: &[String]) -> Option<&'c mut Column> {
    let (name, rest) = path.split_first()?;
    let column = columns.iter_mut().find(|column| column.name == *name)?;
    descend(column, rest)
}

fn descend<'c>(column: &'c mut Column, path: &[String]) -> Option<&'c mut Column> {
    let Some((step, rest)) = path.split_first() else { return Some(column) };
    match &mut column.kind {
        ColumnType::Struct(fields) => descend(fields.iter_mut().find(|field| field.name == *step)?, rest),
        ColumnType::List(element) => descend(element, rest),
        ColumnType::Map(key, value) => descend(if step == "key" { key } else { value }, rest),
        ColumnType::Boolean
        | ColumnType::Int
        | ColumnType::Long
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Decimal { .. }
        | ColumnType::Date
        | ColumnType::Time
        | ColumnType::Timestamp
        | ColumnType::TimestampTz
        | ColumnType::TimestampNs
        | ColumnType::TimestampTzNs
        | ColumnType::String
        | ColumnType::Uuid
        | ColumnType::Fixed(_)
        | ColumnType::Binary => None,
    }
}

fn struct_at<'c>(columns: &'c mut Vec<Column>, path: &[String]) -> Option<&'c mut Vec<Column>> {
    if path.is_empty() {
        return Some(columns);
    }
    let ColumnType::Struct(fields) = &mut column_at(columns, path)?.kind else { return None };
    Some(fields)
}

/// The type that holds values of both; where there is none, the first decides.
pub(crate) fn join(first: ColumnType, second: ColumnType) -> ColumnType {
    use ColumnType as T;
    match (first, second) {
        (T::Int | T::Long, T::Float | T::Double) | (T::Float | T::Double, T::Int | T::Long) => T::Double,
        (T::Int, T::Long) => T::Long,
        (T::Float, T::Double) => T::Double,
        (T::Decimal { precision, scale }, T::Decimal { precision: other, scale: other_scale }) => {
            join_decimals((precision, scale), (other, other_scale))
        }
        (T::List(mut first), T::List(second)) => {
            first.kind = join(first.kind, second.kind);
            T::List(first)
        }
        (T::Map(key, mut first), T::Map(_, second)) => {
            first.kind = join(first.kind, second.kind);
            T::Map(key, first)
        }
        (T::Struct(mut fields), T::Struct(others)) => {
            others.into_iter().for_each(|other| add(&mut fields, other));
            T::Struct(fields)
        }
        (first, _) => first,
    }
}

fn join_decimals((precision, scale): (u8, u8), (other, other_scale): (u8, u8)) -> ColumnType {
    let joined_scale = scale.max(other_scale);
    let joined = joined_scale.saturating_add(precision.saturating_sub(scale).max(other.saturating_sub(other_scale)));
    if joined <= MAX_PRECISION {
        ColumnType::Decimal { precision: joined, scale: joined_scale }
    } else {
        ColumnType::Decimal { precision, scale }
    }
}

/// The type that a column of type `from` becomes when it has to hold `to`, where Iceberg allows the promotion.
fn promoted(from: &ColumnType, to: &ColumnType) -> Option<ColumnType> {
    use ColumnType as T;
    match (from, to) {
        (T::Int, T::Long) => Some(T::Long),
        (T::Float, T::Double) => Some(T::Double),
        (T::Decimal { precision, scale }, T::Decimal { precision: wider, scale: same }) if scale == same && wider > precision => {
            Some(to.clone())
        }
        _ => None,
    }
}

/// The type that a declared type widens the column to; `None` when it is no wider.
pub(crate) fn wider_declared(kind: &ColumnType, declared: &DeclaredType) -> Option<ColumnType> {
    match (kind, declared) {
        (ColumnType::Int, DeclaredType::Long)
        | (ColumnType::Float, DeclaredType::Double)
        | (ColumnType::Decimal { .. }, DeclaredType::Decimal { precision: Some(_), .. } | DeclaredType::UnsignedLong) => {
            promoted(kind, &of_declared(declared, NameCase::Preserve).ok()?)
        }
        _ => None,
    }
}

/// Gives new columns their ids: each column first, then what it holds, counting on from the highest id ever used.
pub(crate) fn number_new_columns(schema: &mut TableSchema) {
    let mut last = schema.last_column_id;
    for column in &mut schema.columns {
        number(column, &mut last);
    }
    schema.last_column_id = last;
}

fn number(column: &mut Column, last: &mut i32) {
    if column.id == 0 {
        *last = last.saturating_add(1);
        column.id = *last;
    }
    match &mut column.kind {
        ColumnType::Struct(fields) => fields.iter_mut().for_each(|field| number(field, last)),
        ColumnType::List(element) => number(element, last),
        ColumnType::Map(key, value) => {
            number(key, last);
            number(value, last);
        }
        ColumnType::Boolean
        | ColumnType::Int
        | ColumnType::Long
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Decimal { .. }
        | ColumnType::Date
        | ColumnType::Time
        | ColumnType::Timestamp
        | ColumnType::TimestampTz
        | ColumnType::TimestampNs
        | ColumnType::TimestampTzNs
        | ColumnType::String
        | ColumnType::Uuid
        | ColumnType::Fixed(_)
        | ColumnType::Binary => {}
    }
}

/// Adds the columns that a DDL event lists and the table lacks; a declared type that no column can have is left out.
pub(crate) fn apply_ddl(columns: &mut Vec<Column>, ddl: &[(String, DeclaredType)], case: NameCase) {
    for (name, declared) in ddl {
        if find_column(columns, name, case).is_none()
            && let Ok(kind) = of_declared(declared, case)
        {
            columns.push(new_column(name, kind, case));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_text::parse_column_type;

    fn joined(first: &str, second: &str) -> String {
        join(parse_column_type(first).unwrap(), parse_column_type(second).unwrap()).to_string()
    }

    #[test]
    fn types_join() {
        for (first, second, both) in [
            ("long", "double", "double"),
            ("double", "long", "double"),
            ("int", "long", "long"),
            ("string", "long", "string"),
            ("long", "string", "long"),
            ("list<long>", "list<double>", "list<double>"),
            ("struct<a: long>", "struct<b: string, a: double>", "struct<a: double, b: string>"),
            ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)"),
            ("decimal(38,0)", "decimal(38,10)", "decimal(38,0)"),
        ] {
            assert_eq!(joined(first, second), both, "{first} with {second}");
        }
    }

    #[test]
    fn only_legal_promotions_are_made() {
        let declared = |precision, scale| DeclaredType::Decimal { precision: Some(precision), scale };
        let decimal = ColumnType::Decimal { precision: 10, scale: 2 };
        assert_eq!(wider_declared(&decimal, &declared(12, 2)), Some(ColumnType::Decimal { precision: 12, scale: 2 }));
        assert_eq!(wider_declared(&decimal, &declared(8, 2)), None);
        assert_eq!(wider_declared(&decimal, &declared(12, 3)), None);
        assert_eq!(wider_declared(&decimal, &DeclaredType::Decimal { precision: None, scale: 2 }), None);
        assert_eq!(wider_declared(&ColumnType::Int, &DeclaredType::Long), Some(ColumnType::Long));
        assert_eq!(wider_declared(&ColumnType::Long, &DeclaredType::Double), None);
    }
}
