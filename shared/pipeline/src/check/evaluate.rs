//! Rules on the columns of a batch.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use sluice_model::{Column, ColumnType};

use super::cell::{Operand, compare, like};
use super::{Check, Comparison, Literal, Predicate};

/// A rule bound to the columns of a batch.
#[derive(Debug)]
pub(crate) struct Verdict<'a> {
    text: &'a str,
    bound: Result<Bound<'a>, String>,
}

#[derive(Debug)]
enum Bound<'a> {
    And(Box<Bound<'a>>, Box<Bound<'a>>),
    Or(Box<Bound<'a>>, Box<Bound<'a>>),
    Not(Box<Bound<'a>>),
    IsNull(&'a ArrayRef),
    Compare(&'a ArrayRef, &'a ColumnType, (Comparison, Operand)),
    In(&'a ArrayRef, &'a ColumnType, Vec<Operand>),
    Like(&'a ArrayRef, &'a str),
    Truth(Option<bool>),
}

/// What a rule makes of a column that the table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingColumn {
    /// The table grows by itself: no record has had a value there yet, so it is null.
    IsNull,
    /// It will not come by itself: the rule cannot be checked, and that is a fault.
    IsFault,
}

impl Check {
    /// The rule over these columns, whose arrays stand in the same order.
    pub(crate) fn evaluate<'a>(&'a self, (columns, arrays): (&'a [Column], &'a [ArrayRef]), missing: MissingColumn) -> Verdict<'a> {
        Verdict { text: self.text(), bound: bind(&self.predicate, (columns, arrays, missing)) }
    }
}

impl Verdict<'_> {
    /// What is wrong with a row; `None` when it keeps the rule.
    pub(crate) fn failure(&self, row: usize) -> Option<String> {
        match &self.bound {
            Ok(bound) if bound.holds(row) == Some(false) => Some(format!("the row breaks the rule `{}`", self.text)),
            Ok(_) => None,
            Err(problem) => Some(format!("the rule `{}` cannot be checked: {problem}", self.text)),
        }
    }
}

type Table<'a> = (&'a [Column], &'a [ArrayRef], MissingColumn);

fn bind<'a>(predicate: &'a Predicate, table: Table<'a>) -> Result<Bound<'a>, String> {
    Ok(match predicate {
        Predicate::And(left, right) => Bound::And(Box::new(bind(left, table)?), Box::new(bind(right, table)?)),
        Predicate::Or(left, right) => Bound::Or(Box::new(bind(left, table)?), Box::new(bind(right, table)?)),
        Predicate::Not(inner) => Bound::Not(Box::new(bind(inner, table)?)),
        Predicate::Truth(value) => Bound::Truth(*value),
        Predicate::IsNull(name) => find(name, table)?.map_or(Bound::Truth(Some(true)), |(_, array)| Bound::IsNull(array)),
        Predicate::Compare(name, ..) | Predicate::In(name, _) | Predicate::Like(name, _) | Predicate::Holds(name) => {
            match find(name, table)? {
                Some(column) => bind_column(predicate, column)?,
                None => Bound::Truth(None),
            }
        }
    })
}

/// A predicate that compares the values of one column.
fn bind_column<'a>(predicate: &'a Predicate, (column, array): (&'a Column, &'a ArrayRef)) -> Result<Bound<'a>, String> {
    let kind = &column.kind;
    Ok(match predicate {
        Predicate::Compare(_, comparison, literal) => Bound::Compare(array, kind, (*comparison, Operand::new(literal, kind)?)),
        Predicate::In(_, literals) => {
            let operands = literals.iter().map(|literal| Operand::new(literal, kind)).collect::<Result<_, _>>()?;
            Bound::In(array, kind, operands)
        }
        Predicate::Like(name, pattern) => {
            if *kind != ColumnType::String {
                return Err(format!("LIKE needs text and column `{name}` is {kind}"));
            }
            Bound::Like(array, pattern)
        }
        Predicate::Holds(_) => Bound::Compare(array, kind, (Comparison::Equal, Operand::new(&Literal::Boolean(true), kind)?)),
        Predicate::And(..) | Predicate::Or(..) | Predicate::Not(_) | Predicate::Truth(_) | Predicate::IsNull(_) => Bound::Truth(None),
    })
}

/// The column of that name; `None` when there is none and its values are null.
fn find<'a>(name: &str, (columns, arrays, missing): Table<'a>) -> Result<Option<(&'a Column, &'a ArrayRef)>, String> {
    let exact = columns.iter().position(|column| column.name == name);
    let lower = name.to_lowercase();
    let index = exact.or_else(|| columns.iter().position(|column| column.name.to_lowercase() == lower));
    match (index.and_then(|index| Some((columns.get(index)?, arrays.get(index)?))), missing) {
        (Some(found), _) => Ok(Some(found)),
        (None, MissingColumn::IsNull) => Ok(None),
        (None, MissingColumn::IsFault) => Err(format!("the table has no column `{name}`")),
    }
}

impl Bound<'_> {
    /// SQL's three-valued logic: `None` is neither true nor false.
    fn holds(&self, row: usize) -> Option<bool> {
        match self {
            Self::And(left, right) => match (left.holds(row), right.holds(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                (None, _) | (_, None) => None,
            },
            Self::Or(left, right) => match (left.holds(row), right.holds(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                (None, _) | (_, None) => None,
            },
            Self::Not(inner) => inner.holds(row).map(|holds| !holds),
            Self::IsNull(array) => Some(row >= array.len() || array.is_null(row)),
            Self::Compare(array, kind, (comparison, operand)) => compare(array, row, (kind, operand)).map(|order| comparison.holds(order)),
            Self::In(array, kind, operands) => is_in((array, kind), row, operands),
            Self::Like(array, pattern) => {
                let text = array.as_string_opt::<i32>().filter(|text| row < text.len() && !text.is_null(row))?;
                Some(like(text.value(row), pattern))
            }
            Self::Truth(value) => *value,
        }
    }
}

fn is_in((array, kind): (&ArrayRef, &ColumnType), row: usize, operands: &[Operand]) -> Option<bool> {
    let mut found = Some(false);
    for operand in operands {
        match compare(array, row, (kind, operand)) {
            Some(order) if order.is_eq() => return Some(true),
            Some(_) => {}
            None => found = None,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{schema, stored};

    #[test]
    fn rules_hold_exactly() {
        let table = schema("n:int d:decimal(10,2) s:string t:timestamptz day:date f:double ok:boolean b:binary l:long", &[]);
        let row = r#"{"n": 5, "d": "0.10", "s": "NEW", "t": "2026-03-01T10:00:00+02:00", "day": "2026-03-01", "f": 0.5, "ok": true,
            "b": null, "l": 9007199254740993}"#;
        let batch = stored(&table, &[row, r#"{"n": null}"#]);
        for (rule, first, second) in [
            ("n >= 5 and n <= 5", true, true),
            ("n > 5", false, true),
            ("n < 5.5 and n > 4.5 and n <> 4.5", true, true),
            ("n = 5.5", false, true),
            ("5 = n", true, true),
            ("d = 0.1", true, true),
            ("d < 0.105", true, true),
            ("d >= 0.105", false, true),
            ("l = 9007199254740993", true, true),
            ("l <> 9007199254740993", false, true),
            ("s in ('NEW', 'PAID')", true, true),
            ("s in ('new')", false, true),
            ("s in ('x', null)", true, true),
            ("s not in ('NEW', null)", false, true),
            ("t = '2026-03-01T08:00:00Z'", true, true),
            ("t > timestamp '2026-03-01'", true, true),
            ("day between '2026-02-01' and '2026-03-01'", true, true),
            ("f >= 0.5 and f <= '0.5'", true, true),
            ("ok", true, true),
            ("not ok", false, true),
            ("ok is true", true, false),
            ("n is not null", true, false),
            ("s like 'N%' or n is null", true, true),
            ("missing = 1", false, false),
            ("b = 'x'", false, false),
            ("n = 'five'", false, false),
            ("n > 1e400", false, true),
            ("n < 1e400", true, true),
        ] {
            let check = Check::parse(rule).unwrap();
            let verdict = check.evaluate((&table.columns, batch.columns()), MissingColumn::IsFault);
            // `stored` keeps the order in which rows were given.
            let holds = [0, 1].map(|row| verdict.failure(row).is_none());
            assert_eq!(holds, [first, second], "{rule}: {:?}", verdict.failure(0));
        }
    }
}
