//! A file's column metrics, taken from the rows themselves.
//!
//! Parquet's statistics cannot be used: parquet-rs cuts them at 64 bytes, and a bound that is made only of those that were not cut is wrong.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::{DataFileBuilder, Datum, NestedFieldRef, PrimitiveType, Schema, Type};

use crate::TableError;
use crate::arrow::with_more_nulls;

/// Iceberg's default: text and bytes are cut to 16.
const BOUND_LENGTH: usize = 16;
const MAX_COLUMNS: &str = "write.metadata.metrics.max-inferred-column-defaults";
const DEFAULT_MAX_COLUMNS: usize = 100;

/// Counts and bounds by field id.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    values: HashMap<i32, u64>,
    nulls: HashMap<i32, u64>,
    nans: HashMap<i32, u64>,
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
    /// Columns with a value that no bound is above: they must not get one from other rows.
    unbounded: HashSet<i32>,
}

/// Which columns are measured: the first ones of the schema, and always those of the key. Metadata must stay small (rule W9).
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricsLimit(pub(crate) usize);

impl MetricsLimit {
    pub(crate) fn of(properties: &HashMap<String, String>) -> Self {
        let limit = properties.get(MAX_COLUMNS).and_then(|value| value.parse().ok());
        Self(limit.unwrap_or(DEFAULT_MAX_COLUMNS))
    }
}

/// A column, or a field inside structs, that is there once in every row.
struct Leaf {
    id: i32,
    kind: PrimitiveType,
    array: ArrayRef,
}

impl Metrics {
    /// Measures rows whose columns stand in the order of `schema`.
    pub(crate) fn measure(rows: &RecordBatch, schema: &Schema, limit: MetricsLimit) -> Result<Self, TableError> {
        let mut leaves = Vec::new();
        collect(rows.columns(), (schema.as_struct().fields(), None), &mut leaves)?;
        let keys: Vec<i32> = schema.identifier_field_ids().collect();
        let mut metrics = Self::default();
        for (number, leaf) in leaves.iter().enumerate() {
            if number < limit.0 || keys.contains(&leaf.id) {
                metrics.add(leaf)?;
            }
        }
        Ok(metrics)
    }

    fn add(&mut self, leaf: &Leaf) -> Result<(), TableError> {
        self.values.insert(leaf.id, leaf.array.len() as u64);
        self.nulls.insert(leaf.id, leaf.array.null_count() as u64);
        if let Some(nans) = count_nans(&leaf.array) {
            self.nans.insert(leaf.id, nans);
        }
        let Some((low, high)) = extremes(&leaf.array) else { return Ok(()) };
        self.lower.insert(leaf.id, datum(lower_bound(&low, &leaf.kind), &leaf.kind)?);
        match upper_bound(&high, &leaf.kind) {
            Some(high) => {
                self.upper.insert(leaf.id, datum(&high, &leaf.kind)?);
            }
            None => {
                self.unbounded.insert(leaf.id);
            }
        }
        Ok(())
    }

    /// Adds what was measured of other rows of the same file.
    pub(crate) fn add_all(&mut self, other: Self) {
        for (own, others) in [(&mut self.values, other.values), (&mut self.nulls, other.nulls), (&mut self.nans, other.nans)] {
            others.into_iter().for_each(|(id, count)| *own.entry(id).or_default() += count);
        }
        widen(&mut self.lower, other.lower, Ordering::Less);
        widen(&mut self.upper, other.upper, Ordering::Greater);
        self.unbounded.extend(other.unbounded);
        self.upper.retain(|id, _| !self.unbounded.contains(id));
    }

    /// How many rows have no value in that column, if it was measured.
    pub(crate) fn nulls_of(&self, id: i32) -> Option<u64> {
        self.nulls.get(&id).copied()
    }

    pub(crate) fn fill(self, file: &mut DataFileBuilder) {
        file.value_counts(self.values).null_value_counts(self.nulls).nan_value_counts(self.nans);
        file.lower_bounds(self.lower).upper_bounds(self.upper);
    }
}

/// Takes over the bounds that are further out.
fn widen(own: &mut HashMap<i32, Datum>, others: HashMap<i32, Datum>, outwards: Ordering) {
    for (id, other) in others {
        match own.entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(other);
            }
            Entry::Occupied(mut held) => {
                if other.partial_cmp(held.get()) == Some(outwards) {
                    held.insert(other);
                }
            }
        }
    }
}

fn datum(bytes: &[u8], kind: &PrimitiveType) -> Result<Datum, TableError> {
    Datum::try_from_bytes(bytes, kind.clone()).map_err(TableError::iceberg("a column's bound"))
}

fn collect(arrays: &[ArrayRef], (fields, around): (&[NestedFieldRef], Option<&NullBuffer>), out: &mut Vec<Leaf>) -> Result<(), TableError> {
    for (array, field) in arrays.iter().zip(fields) {
        match field.field_type.as_ref() {
            Type::Primitive(kind) => out.push(Leaf { id: field.id, kind: kind.clone(), array: with_more_nulls(array, around)? }),
            Type::Struct(inner) => {
                let nulls = NullBuffer::union(around, array.nulls());
                collect(array.as_struct().columns(), (inner.fields(), nulls.as_ref()), out)?;
            }
            // The values of lists and maps are not there once a row: Iceberg keeps no bounds for them.
            Type::List(_) | Type::Map(_) => {}
        }
    }
    Ok(())
}

fn count_nans(array: &ArrayRef) -> Option<u64> {
    match array.data_type() {
        DataType::Float32 => Some(unordered::<Float32Type>(array)),
        DataType::Float64 => Some(unordered::<Float64Type>(array)),
        _ => None,
    }
}

fn unordered<T: ArrowPrimitiveType>(array: &ArrayRef) -> u64 {
    let array = array.as_primitive::<T>();
    let count = match array.nulls() {
        None => array.values().iter().filter(|value| !is_ordered(*value)).count(),
        Some(_) => array.iter().flatten().filter(|value| !is_ordered(value)).count(),
    };
    count as u64
}

/// The smallest and the largest value in Iceberg's binary form; `None` when there is none but null and NaN.
fn extremes(array: &ArrayRef) -> Option<(Vec<u8>, Vec<u8>)> {
    match array.data_type() {
        DataType::Boolean => {
            let values = || array.as_boolean().iter().flatten().map(u8::from);
            Some((vec![values().min()?], vec![values().max()?]))
        }
        DataType::Int32 => numbers::<Int32Type>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Date32 => numbers::<Date32Type>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Int64 => numbers::<Int64Type>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Time64(TimeUnit::Microsecond) => numbers::<Time64MicrosecondType>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers::<TimestampNanosecondType>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Float32 => numbers::<Float32Type>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Float64 => numbers::<Float64Type>(array, |v| v.to_le_bytes().to_vec()),
        DataType::Decimal128(_, _) => numbers::<Decimal128Type>(array, |v| v.to_be_bytes().to_vec()),
        DataType::Utf8 => bytes(array.as_string::<i32>().iter().map(|value| value.map(str::as_bytes))),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>().iter().map(|value| value.map(str::as_bytes))),
        DataType::Binary => bytes(array.as_binary::<i32>().iter()),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().iter()),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().iter()),
        _ => None,
    }
}

fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef, encode: impl Fn(T::Native) -> Vec<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let array = array.as_primitive::<T>();
    let found = match array.nulls() {
        None => outermost(array.values().iter().copied()),
        Some(_) => outermost(array.iter().flatten()),
    };
    found.map(|(low, high)| (encode(low), encode(high)))
}

fn outermost<N: ArrowNativeTypeOp>(values: impl Iterator<Item = N>) -> Option<(N, N)> {
    let mut values = values.filter(is_ordered);
    let first = values.next()?;
    Some(values.fold((first, first), |(low, high), value| {
        (if value.is_lt(low) { value } else { low }, if value.is_gt(high) { value } else { high })
    }))
}

/// Only NaN has no place in the order; it is no bound.
fn is_ordered<N: PartialOrd>(value: &N) -> bool {
    value.partial_cmp(value).is_some()
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut values = values.flatten();
    let first = values.next()?;
    let (mut low, mut high) = ((head(first), first), (head(first), first));
    for value in values {
        // Most values are told apart by their heads alone.
        let head = head(value);
        if head <= low.0 && value < low.1 {
            low = (head, value);
        }
        if head >= high.0 && value > high.1 {
            high = (head, value);
        }
    }
    Some((low.1.to_vec(), high.1.to_vec()))
}

/// The first eight bytes as a number that is never larger than that of a larger value.
fn head(value: &[u8]) -> u64 {
    let mut head = [0; 8];
    match value.first_chunk() {
        Some(first) => head = *first,
        None => head[..value.len()].copy_from_slice(value),
    }
    u64::from_be_bytes(head)
}

fn lower_bound<'a>(value: &'a [u8], kind: &PrimitiveType) -> &'a [u8] {
    match kind {
        PrimitiveType::String => &value[..text_cut(value)],
        PrimitiveType::Binary | PrimitiveType::Fixed(_) => &value[..value.len().min(BOUND_LENGTH)],
        _ => value,
    }
}

/// A cut value is smaller than the value; so its last character that has a successor is replaced by that. `None` when none has one.
fn upper_bound(value: &[u8], kind: &PrimitiveType) -> Option<Vec<u8>> {
    match kind {
        PrimitiveType::String => {
            let end = text_cut(value);
            if end == value.len() { Some(value.to_vec()) } else { next_text(&value[..end]) }
        }
        PrimitiveType::Binary | PrimitiveType::Fixed(_) if value.len() > BOUND_LENGTH => next_bytes(&value[..BOUND_LENGTH]),
        _ => Some(value.to_vec()),
    }
}

/// The byte length of the first 16 code points.
fn text_cut(value: &[u8]) -> usize {
    let starts = value.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
    starts.map(|(at, _)| at).nth(BOUND_LENGTH).unwrap_or(value.len())
}

fn next_text(value: &[u8]) -> Option<Vec<u8>> {
    let mut characters: Vec<char> = std::str::from_utf8(value).ok()?.chars().collect();
    while let Some(last) = characters.pop() {
        if let Some(next) = next_char(last) {
            characters.push(next);
            return Some(characters.into_iter().collect::<String>().into_bytes());
        }
    }
    None
}

fn next_char(character: char) -> Option<char> {
    match character {
        // The surrogates in between are no characters.
        '\u{d7ff}' => Some('\u{e000}'),
        _ => char::from_u32(u32::from(character) + 1),
    }
}

fn next_bytes(value: &[u8]) -> Option<Vec<u8>> {
    let kept = value.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = value[..=kept].to_vec();
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    Some(next)
}

/// The smallest and largest value of a key column, not cut, for comparison with a file's bounds.
pub(crate) fn exact_bounds(array: &ArrayRef, kind: &PrimitiveType) -> Result<Option<(Datum, Datum)>, TableError> {
    let Some((low, high)) = extremes(array) else { return Ok(None) };
    Ok(Some((datum(&low, kind)?, datum(&high, kind)?)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, StringArray, StructArray};
    use arrow_schema::Field;
    use proptest::prelude::*;

    use super::*;
    use iceberg::spec::NestedField;

    fn text_bounds(values: &[&str]) -> (String, Option<String>) {
        let array: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let (low, high) = extremes(&array).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let kind = PrimitiveType::String;
        (text(lower_bound(&low, &kind)), upper_bound(&high, &kind).map(|high| text(&high)))
    }

    #[test]
    fn long_texts_are_cut_to_sixteen_characters() {
        let long = "ä".repeat(20);
        let (low, high) = text_bounds(&[&long]);
        assert_eq!(low, "ä".repeat(16));
        assert_eq!(high.unwrap(), format!("{}å", "ä".repeat(15)));
        assert_eq!(text_bounds(&["a", "b"]), ("a".to_owned(), Some("b".to_owned())));
    }

    #[test]
    fn an_upper_bound_that_has_no_successor_is_left_out() {
        assert_eq!(text_bounds(&[&"\u{10ffff}".repeat(20)]).1, None);
        assert_eq!(text_bounds(&[&format!("{}a", "\u{d7ff}".repeat(16))]).1, Some(format!("{}\u{e000}", "\u{d7ff}".repeat(15))));
        assert_eq!(upper_bound(&[255; 17], &PrimitiveType::Binary), None);
        assert_eq!(upper_bound(&[255; 16], &PrimitiveType::Binary), Some(vec![255; 16]));
    }

    #[test]
    fn nan_is_counted_and_is_no_bound() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(1.5), None, Some(-0.0)]));
        assert_eq!(count_nans(&values), Some(1));
        let (low, high) = extremes(&values).unwrap();
        assert_eq!((low, high), ((-0.0_f64).to_le_bytes().to_vec(), 1.5_f64.to_le_bytes().to_vec()));
        let only_nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        assert_eq!(extremes(&only_nan), None);
    }

    #[test]
    fn a_field_of_a_null_struct_is_null() {
        let inner = NestedField::optional(2, "a", Type::Primitive(PrimitiveType::Double)).into();
        let outer = NestedField::optional(1, "s", Type::Struct(iceberg::spec::StructType::new(vec![inner])));
        let schema = Schema::builder().with_fields(vec![outer.into()]).build().unwrap();
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
        let fields = vec![Arc::new(Field::new("a", DataType::Float64, true))].into();
        let structs: ArrayRef = Arc::new(StructArray::new(fields, vec![values], Some(NullBuffer::from(vec![true, false]))));
        let batch = RecordBatch::try_from_iter([("s", structs)]).unwrap();
        let metrics = Metrics::measure(&batch, &schema, MetricsLimit(1)).unwrap();
        assert_eq!((metrics.values[&2], metrics.nulls[&2]), (2, 1));
        assert_eq!(metrics.upper[&2], Datum::double(1.0));
        assert!(Metrics::measure(&batch, &schema, MetricsLimit(0)).unwrap().values.is_empty());
    }

    proptest! {
        #[test]
        fn every_value_lies_within_the_bounds(values in prop::collection::vec("[\u{d7f0}-\u{e010}a-c]{0,24}", 1..6)) {
            let refs: Vec<&str> = values.iter().map(String::as_str).collect();
            let (low, high) = text_bounds(&refs);
            for value in refs {
                prop_assert!(low.as_str() <= value);
                prop_assert!(high.as_deref().is_none_or(|high| value <= high));
            }
            prop_assert!(low.chars().count() <= BOUND_LENGTH);
        }

        #[test]
        fn the_extremes_are_those_of_an_ordered_list(values in prop::collection::vec(prop::option::of("[\u{0}ab]{0,12}"), 0..8)) {
            let array: ArrayRef = Arc::new(StringArray::from(values.clone()));
            let mut sorted: Vec<Vec<u8>> = values.into_iter().flatten().map(String::into_bytes).collect();
            sorted.sort_unstable();
            prop_assert_eq!(extremes(&array), sorted.first().cloned().zip(sorted.last().cloned()));
        }

        #[test]
        fn every_bytes_value_lies_within_the_bounds(value in prop::collection::vec(prop_oneof![Just(255_u8), any::<u8>()], 0..24)) {
            let kind = PrimitiveType::Binary;
            prop_assert!(lower_bound(&value, &kind) <= value.as_slice());
            prop_assert!(upper_bound(&value, &kind).is_none_or(|high| value <= high));
        }
    }
}
