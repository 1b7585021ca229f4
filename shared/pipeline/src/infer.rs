//! The column type that a value or its declared type asks for.

use sluice_model::{Column, ColumnType, DeclaredField, DeclaredType, NodeKind, ReasonCode, Rejection};

use crate::columns::Cell;
use crate::evolve::join;
use crate::names::{NameCase, safe_name};
use crate::settings::JsonColumn;
use crate::values::digits::{Digits, MAX_PRECISION};
use crate::values::{ColumnRules, Fault};

/// The type of a new column; `None` when the value has none of its own: null, `[]`, `{}` and what holds only these.
pub(crate) fn infer(cell: &Cell<'_>, rules: &ColumnRules, case: NameCase) -> Result<Option<ColumnType>, Fault> {
    match cell.declared {
        Some(declared) => of_declared(declared, case).map(Some),
        None => of_value(cell, rules, case),
    }
}

fn of_value(cell: &Cell<'_>, rules: &ColumnRules, case: NameCase) -> Result<Option<ColumnType>, Fault> {
    let node = cell.node;
    match node.kind() {
        NodeKind::Null => Ok(None),
        NodeKind::Bool => Ok(Some(ColumnType::Boolean)),
        NodeKind::Number => of_number(node.number().unwrap_or_default()).map(Some),
        NodeKind::String => Ok(Some(ColumnType::String)),
        NodeKind::Array | NodeKind::Object if rules.json == Some(JsonColumn::Text) => Ok(Some(ColumnType::String)),
        NodeKind::Array => {
            let mut element = None;
            for node in node.elements() {
                element = joined(element, of_value(&Cell { node, declared: None }, rules, case)?);
            }
            Ok(element.map(|kind| ColumnType::List(Box::new(Column::optional(0, "element", kind)))))
        }
        NodeKind::Object => {
            let mut fields: Vec<Column> = Vec::new();
            for (name, node) in node.fields() {
                if let Some(kind) = of_value(&Cell { node, declared: None }, rules, case)? {
                    add_field(&mut fields, &name, (kind, case));
                }
            }
            Ok((!fields.is_empty()).then_some(ColumnType::Struct(fields)))
        }
    }
}

fn joined(first: Option<ColumnType>, second: Option<ColumnType>) -> Option<ColumnType> {
    match (first, second) {
        (Some(first), Some(second)) => Some(join(first, second)),
        (first, second) => first.or(second),
    }
}

/// Fields that meet in one column are told apart when the record is converted: here the first one stands for both.
fn add_field(fields: &mut Vec<Column>, name: &str, (kind, case): (ColumnType, NameCase)) {
    let column = new_column(name, kind, case);
    let folded = column.name.to_lowercase();
    if !fields.iter().any(|field| field.name.to_lowercase() == folded) {
        fields.push(column);
    }
}

/// An optional column for the field called `name`, which its comment keeps where the column cannot be called so.
pub(crate) fn new_column(name: &str, kind: ColumnType, case: NameCase) -> Column {
    let safe = safe_name(name, case);
    let doc = (safe != name).then(|| name.to_owned());
    Column { id: 0, name: safe, required: false, kind, doc }
}

fn of_number(text: &str) -> Result<ColumnType, Fault> {
    let Some(digits) = Digits::parse(text) else { return Ok(ColumnType::Double) };
    if !digits.is_whole() {
        return Ok(ColumnType::Double);
    }
    match digits.to_i64() {
        Ok(_) => Ok(ColumnType::Long),
        Err(_) => {
            let detail = format!("{} does not fit a long; columns.<name>.type declares a decimal", Rejection::quote(text));
            Err(Fault::new(ReasonCode::ValueOutOfRange, detail))
        }
    }
}

/// The column type of a declared type.
pub(crate) fn of_declared(declared: &DeclaredType, case: NameCase) -> Result<ColumnType, Fault> {
    Ok(match declared {
        DeclaredType::Boolean => ColumnType::Boolean,
        DeclaredType::Int => ColumnType::Int,
        DeclaredType::Long => ColumnType::Long,
        DeclaredType::UnsignedLong => ColumnType::Decimal { precision: 20, scale: 0 },
        DeclaredType::Float => ColumnType::Float,
        DeclaredType::Double => ColumnType::Double,
        DeclaredType::Text | DeclaredType::JsonText | DeclaredType::ZonedTimeText => ColumnType::String,
        DeclaredType::Bytes => ColumnType::Binary,
        DeclaredType::Decimal { precision, scale } => decimal(*precision, *scale)?,
        DeclaredType::VariableScaleDecimal => {
            return Err(no_type("a decimal whose scale varies by row has no column type; columns.<name>.type declares one"));
        }
        DeclaredType::Date => ColumnType::Date,
        DeclaredType::Time(_) => ColumnType::Time,
        DeclaredType::Timestamp(_) => ColumnType::Timestamp,
        DeclaredType::Instant(_) | DeclaredType::ZonedText => ColumnType::TimestampTz,
        DeclaredType::Uuid => ColumnType::Uuid,
        DeclaredType::Struct(fields) => ColumnType::Struct(of_fields(fields, case)?),
        DeclaredType::List(element) => ColumnType::List(Box::new(Column::optional(0, "element", of_declared(&element.kind, case)?))),
        DeclaredType::Map(key, value) => {
            let key = Column::required(0, "key", of_declared(&key.kind, case)?);
            ColumnType::Map(Box::new(key), Box::new(Column::optional(0, "value", of_declared(&value.kind, case)?)))
        }
    })
}

fn of_fields(fields: &[DeclaredField], case: NameCase) -> Result<Vec<Column>, Fault> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        add_field(&mut columns, &field.name, (of_declared(&field.kind, case)?, case));
    }
    if columns.is_empty() {
        return Err(no_type("a struct without fields has no column type"));
    }
    Ok(columns)
}

/// A scale below zero counts tens: the digits in front of the point are more than the precision says.
fn decimal(precision: Option<u32>, scale: i32) -> Result<ColumnType, Fault> {
    let max = i64::from(MAX_PRECISION);
    let (declared, scale) = (precision.map(i64::from), i64::from(scale));
    let precision = match declared {
        Some(precision) if scale < 0 => precision - scale,
        Some(precision) => precision.max(scale),
        None => max,
    };
    let scale = scale.max(0);
    if (1..=max).contains(&precision) && scale <= precision {
        return Ok(ColumnType::Decimal { precision: precision as u8, scale: scale as u8 });
    }
    let declared = declared.map_or_else(|| "any precision".to_owned(), |precision| format!("precision {precision}"));
    Err(no_type(&format!(
        "a decimal of {declared} and scale {scale} is wider than the {max} digits of Iceberg; columns.<name>.type declares one"
    )))
}

fn no_type(detail: &str) -> Fault {
    Fault::new(ReasonCode::TypeNotRepresentable, detail)
}
