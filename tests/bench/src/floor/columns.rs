//! Typed columns that a row's JSON is parsed straight into, its fields expected in the order of the last row's.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Decimal128Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::cursor::{Bad, Cursor, unescape};

/// The table's schema; field ids as Iceberg writes them.
pub(crate) fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType, id: u8| {
        Field::new(name, kind, id != 1).with_metadata([("PARQUET:field_id".to_owned(), id.to_string())].into())
    };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let shipping = [("street", 13), ("city", 14), ("zip", 15), ("country", 16)].map(|(name, id)| field(name, DataType::Utf8, id));
    Arc::new(Schema::new(vec![
        field("order_id", DataType::Int64, 1),
        field("customer_id", DataType::Int64, 2),
        field("order_no", DataType::Utf8, 3),
        field("status", DataType::Utf8, 4),
        field("currency", DataType::Utf8, 5),
        field("total_amount", DataType::Decimal128(18, 2), 6),
        field("tax_amount", DataType::Decimal128(18, 4), 7),
        field("created_at", micros.clone(), 8),
        field("updated_at", micros, 9),
        field("is_gift", DataType::Boolean, 10),
        field("shipping", DataType::Struct(shipping.to_vec().into()), 11),
        field("notes", DataType::Utf8, 12),
    ]))
}

enum Column {
    Long(Int64Builder),
    Text(StringBuilder),
    Decimal(Decimal128Builder, i8),
    Micros(TimestampMicrosecondBuilder),
    Bool(BooleanBuilder),
    Struct(Box<Columns>),
}

/// The columns of an object.
pub(crate) struct Columns {
    fields: Fields,
    /// `"name":`, as it stands in the text.
    keys: Vec<Vec<u8>>,
    columns: Vec<Column>,
    filled: Vec<usize>,
    present: Vec<bool>,
}

impl Columns {
    pub(crate) fn new(fields: &Fields) -> Self {
        Self {
            fields: fields.clone(),
            keys: fields.iter().map(|field| format!("\"{}\":", field.name()).into_bytes()).collect(),
            columns: fields.iter().map(|field| Column::new(field.data_type())).collect(),
            filled: vec![0; fields.len()],
            present: Vec::new(),
        }
    }

    /// Parses an object into a row.
    pub(crate) fn row(&mut self, cursor: &mut Cursor<'_>, scratch: &mut String) -> Result<(), Bad> {
        cursor.expect(b'{')?;
        self.present.push(true);
        let mut expected = 0;
        let mut more = !cursor.literal(b"}");
        let mut filled = 0;
        while more {
            match self.column_of(cursor, expected)? {
                Some(index) => {
                    self.columns[index].value(cursor, scratch)?;
                    self.filled[index] = self.present.len();
                    filled += 1;
                    expected = index + 1;
                }
                None => cursor.skip()?,
            }
            more = cursor.next_member(b'}')?;
        }
        if filled < self.columns.len() {
            self.pad();
        }
        Ok(())
    }

    /// The column of the next key; a repeated or unknown one has none.
    fn column_of(&self, cursor: &mut Cursor<'_>, expected: usize) -> Result<Option<usize>, Bad> {
        let index = if self.keys.get(expected).is_some_and(|key| cursor.literal(key)) {
            Some(expected)
        } else {
            let key = cursor.key()?;
            self.fields.iter().position(|field| field.name() == key)
        };
        Ok(index.filter(|index| self.filled[*index] < self.present.len()))
    }

    fn pad(&mut self) {
        for (column, filled) in self.columns.iter_mut().zip(&self.filled) {
            if *filled < self.present.len() {
                column.null();
            }
        }
    }

    fn null(&mut self) {
        self.present.push(false);
        self.columns.iter_mut().for_each(Column::null);
    }

    fn arrays(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.columns.iter_mut().map(Column::finish).collect()
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let present = std::mem::take(&mut self.present);
        let nulls = if present.iter().all(|present| *present) { None } else { Some(NullBuffer::from(present)) };
        Ok(Arc::new(StructArray::try_new(self.fields.clone(), self.arrays()?, nulls)?))
    }

    /// All rows. Deletes have rows too, so no column is required yet.
    pub(crate) fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let fields: Fields = self.fields.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), self.arrays()?)
    }
}

impl Column {
    fn new(kind: &DataType) -> Self {
        match kind {
            DataType::Int64 => Self::Long(Int64Builder::new()),
            DataType::Decimal128(_, scale) => Self::Decimal(Decimal128Builder::new().with_data_type(kind.clone()), *scale),
            DataType::Timestamp(..) => Self::Micros(TimestampMicrosecondBuilder::new()),
            DataType::Boolean => Self::Bool(BooleanBuilder::new()),
            DataType::Struct(fields) => Self::Struct(Box::new(Columns::new(fields))),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn null(&mut self) {
        match self {
            Self::Long(builder) => builder.append_null(),
            Self::Text(builder) => builder.append_null(),
            Self::Decimal(builder, _) => builder.append_null(),
            Self::Micros(builder) => builder.append_null(),
            Self::Bool(builder) => builder.append_null(),
            Self::Struct(columns) => columns.null(),
        }
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, scratch: &mut String) -> Result<(), Bad> {
        match (cursor.peek(), &mut *self) {
            (b'{', Self::Struct(columns)) => columns.row(cursor, scratch),
            (b'"', Self::Text(builder)) => {
                cursor.at += 1;
                let raw = cursor.string()?;
                if !raw.escaped {
                    builder.append_value(raw.text);
                    return Ok(());
                }
                unescape(raw.text, scratch).ok_or(Bad(cursor.at))?;
                builder.append_value(&*scratch);
                Ok(())
            }
            (b'"', Self::Decimal(builder, scale)) => {
                cursor.at += 1;
                let value = decimal(cursor.string()?.text.as_bytes(), *scale).ok_or(Bad(cursor.at))?;
                builder.append_value(value);
                Ok(())
            }
            (b'-' | b'0'..=b'9', Self::Long(builder)) => cursor.integer().map(|value| builder.append_value(value)),
            (b'-' | b'0'..=b'9', Self::Micros(builder)) => cursor.integer().map(|value| builder.append_value(value)),
            (b't', Self::Bool(builder)) if cursor.literal(b"true") => {
                builder.append_value(true);
                Ok(())
            }
            (b'f', Self::Bool(builder)) if cursor.literal(b"false") => {
                builder.append_value(false);
                Ok(())
            }
            (b'n', column) if cursor.literal(b"null") => {
                column.null();
                Ok(())
            }
            _ => cursor.bad(),
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Long(builder) => Arc::new(builder.finish()),
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Decimal(builder, _) => Arc::new(builder.finish()),
            Self::Micros(builder) => Arc::new(builder.finish()),
            Self::Bool(builder) => Arc::new(builder.finish()),
            Self::Struct(columns) => columns.finish()?,
        })
    }
}

/// At most 18 digits with at most `scale` behind the point.
fn decimal(text: &[u8], scale: i8) -> Option<i128> {
    let (negative, digits) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut value = 0_i64;
    let mut behind: Option<i8> = None;
    for byte in digits {
        match (byte, behind) {
            (b'0'..=b'9', _) => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                behind = behind.map(|count| count + 1);
            }
            (b'.', None) => behind = Some(0),
            _ => return None,
        }
    }
    let missing = u32::try_from(scale - behind.unwrap_or(0)).ok()?;
    let value = i128::from(value) * 10_i128.pow(missing);
    Some(if negative { -value } else { value })
}
