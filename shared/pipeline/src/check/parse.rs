//! Rules from SQL text.

use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::{Comparison, Literal, Predicate};

pub(super) fn parse(text: &str) -> Result<Predicate, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("`{text}` is no SQL condition: {error}");
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).map_err(|error| wrong(&error))?;
    let expression = parser.parse_expr().map_err(|error| wrong(&error))?;
    if parser.peek_token().token != Token::EOF {
        return Err(format!("`{text}` is no SQL condition: `{}` follows it", parser.peek_token()));
    }
    predicate(&expression)
}

fn predicate(expression: &Expr) -> Result<Predicate, String> {
    match expression {
        Expr::Nested(inner) => predicate(inner),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Ok(not(predicate(expr)?)),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            Ok(Predicate::And(Box::new(predicate(left)?), Box::new(predicate(right)?)))
        }
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
            Ok(Predicate::Or(Box::new(predicate(left)?), Box::new(predicate(right)?)))
        }
        Expr::BinaryOp { left, op, right } => compare(left, comparison(op)?, right),
        Expr::IsNull(inner) => Ok(Predicate::IsNull(column(inner)?)),
        Expr::IsNotNull(inner) => Ok(not(Predicate::IsNull(column(inner)?))),
        Expr::IsTrue(_) | Expr::IsNotTrue(_) | Expr::IsFalse(_) | Expr::IsNotFalse(_) => truth(expression),
        Expr::In { expr, target: InTarget::List(list), negated, global: false } => {
            let literals = list.iter().map(literal).collect::<Result<_, _>>()?;
            Ok(Negation::of(negated).apply(Predicate::In(column(expr)?, literals)))
        }
        Expr::Between { expr, negated, low, high } => {
            let low = Predicate::Compare(column(expr)?, Comparison::GreaterOrEqual, literal(low)?);
            let high = Predicate::Compare(column(expr)?, Comparison::LessOrEqual, literal(high)?);
            Ok(Negation::of(negated).apply(Predicate::And(Box::new(low), Box::new(high))))
        }
        Expr::Like { negated, expr, pattern, escape_char: None, .. } => match literal(pattern)? {
            Literal::Text(pattern) => Ok(Negation::of(negated).apply(Predicate::Like(column(expr)?, pattern))),
            Literal::Null | Literal::Boolean(_) | Literal::Number(_) => Err(format!("`{expression}`: LIKE takes a text in quotes")),
        },
        Expr::Value(_) => match literal(expression)? {
            Literal::Boolean(value) => Ok(Predicate::Truth(Some(value))),
            Literal::Null => Ok(Predicate::Truth(None)),
            Literal::Number(_) | Literal::Text(_) => Err(format!("`{expression}` is neither true nor false")),
        },
        Expr::Identifier(_) => Ok(Predicate::Holds(column(expression)?)),
        _ => Err(unsupported(expression)),
    }
}

/// `IS [NOT] TRUE` and `IS [NOT] FALSE` are never null.
fn truth(expression: &Expr) -> Result<Predicate, String> {
    let (inner, wanted, negation) = match expression {
        Expr::IsTrue(inner) => (inner, true, Negation::Plain),
        Expr::IsNotTrue(inner) => (inner, true, Negation::Negated),
        Expr::IsFalse(inner) => (inner, false, Negation::Plain),
        Expr::IsNotFalse(inner) => (inner, false, Negation::Negated),
        _ => return Err(unsupported(expression)),
    };
    let name = column(inner)?;
    let is_known = not(Predicate::IsNull(name.clone()));
    let equal = Predicate::Compare(name, Comparison::Equal, Literal::Boolean(wanted));
    Ok(negation.apply(Predicate::And(Box::new(is_known), Box::new(equal))))
}

fn not(predicate: Predicate) -> Predicate {
    Predicate::Not(Box::new(predicate))
}

/// SQL's optional NOT inside a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Negation {
    Plain,
    Negated,
}

impl Negation {
    fn of(negated: &bool) -> Self {
        if *negated { Self::Negated } else { Self::Plain }
    }

    fn apply(self, predicate: Predicate) -> Predicate {
        match self {
            Self::Plain => predicate,
            Self::Negated => not(predicate),
        }
    }
}

fn compare(left: &Expr, comparison: Comparison, right: &Expr) -> Result<Predicate, String> {
    match (column(left), literal(right)) {
        (Ok(column), Ok(literal)) => Ok(Predicate::Compare(column, comparison, literal)),
        (Ok(_), Err(problem)) => Err(problem),
        (Err(problem), _) => match (literal(left), column(right)) {
            (Ok(literal), Ok(column)) => Ok(Predicate::Compare(column, comparison.mirrored(), literal)),
            _ => Err(problem),
        },
    }
}

fn comparison(operator: &BinaryOperator) -> Result<Comparison, String> {
    Ok(match operator {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        other => return Err(format!("the operator `{other}` is not supported in a check")),
    })
}

fn column(expression: &Expr) -> Result<String, String> {
    match expression {
        Expr::Identifier(name) => Ok(name.value.clone()),
        Expr::Nested(inner) => column(inner),
        _ => Err(unsupported(expression)),
    }
}

fn literal(expression: &Expr) -> Result<Literal, String> {
    match expression {
        Expr::Nested(inner) => literal(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match literal(expr)? {
            Literal::Number(digits) if !digits.starts_with('-') => Ok(Literal::Number(format!("-{digits}"))),
            Literal::Number(_) | Literal::Null | Literal::Boolean(_) | Literal::Text(_) => Err(unsupported(expression)),
        },
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => literal(expr),
        Expr::TypedString(typed) => value(&typed.value.value).ok_or_else(|| unsupported(expression)),
        Expr::Value(inner) => value(&inner.value).ok_or_else(|| unsupported(expression)),
        _ => Err(unsupported(expression)),
    }
}

fn value(value: &Value) -> Option<Literal> {
    match value {
        Value::Null => Some(Literal::Null),
        Value::Boolean(value) => Some(Literal::Boolean(*value)),
        Value::Number(digits, _) => Some(Literal::Number(digits.clone())),
        Value::SingleQuotedString(text) => Some(Literal::Text(text.clone())),
        _ => None,
    }
}

fn unsupported(expression: &Expr) -> String {
    format!(
        "`{expression}` is not supported in a check: it compares a column with literals (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL), joined by AND, OR and NOT"
    )
}

#[cfg(test)]
mod tests {
    use super::super::Check;

    #[test]
    fn rules_parse_or_say_why_not() {
        for text in [
            "total >= 0",
            "status in ('NEW','PAID')",
            "status not in ('X') and (n between -1 and 2.5 or n is null)",
            "0 < n",
            "not (name like 'A%_')",
            "\"Odd Name\" is not null",
            "d >= date '2026-01-01'",
            "ok",
            "ok is true",
            "n <> - 1",
        ] {
            assert!(Check::parse(text).is_ok(), "{text}: {:?}", Check::parse(text));
        }
        for text in
            ["", "total >=", "a > b", "length(a) > 1", "a + 1 > 2", "a = 1; drop table x", "1", "a.b = 1", "a in (select 1)", "a like b"]
        {
            assert!(Check::parse(text).is_err(), "{text}");
        }
    }
}
