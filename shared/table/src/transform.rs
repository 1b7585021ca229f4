//! Partition and sort transforms over Arrow arrays (Iceberg table spec, "Partition Transforms").
//!
//! iceberg's own functions hash; all others are here: its `day` of a negative timestamp with a fraction is one day late, its `hour` knows no
//! nanoseconds, its `truncate` no large binaries, and its `bucket` of negative nanoseconds rounds towards zero.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, BinaryArray, Date32Array, Int32Array, LargeBinaryArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, TimeUnit};
use iceberg::spec::Transform;
use iceberg::transform::create_transform_function;

use crate::TableError;

const MICROS_PER_DAY: i64 = 86_400_000_000;
const MICROS_PER_HOUR: i64 = 3_600_000_000;

/// The transformed values; null stays null.
///
/// # Errors
/// [`TableError::Unsupported`] when the transform does not fit the array's type.
pub fn apply(transform: &Transform, input: &ArrayRef) -> Result<ArrayRef, TableError> {
    match transform {
        Transform::Identity => Ok(Arc::clone(input)),
        Transform::Void => Ok(arrow_array::new_null_array(input.data_type(), input.len())),
        Transform::Bucket(_) => bucket(transform, input),
        Transform::Truncate(width) => truncate(*width, input),
        Transform::Year => from_days(input, |days| year_and_month(days).0 - 1970),
        Transform::Month => from_days(input, months_since_epoch),
        Transform::Day => Ok(Arc::new(days_of(input)?)),
        Transform::Hour => hours(input),
        Transform::Unknown => Err(TableError::Unsupported("a partition field with an unknown transform".to_owned())),
    }
}

fn unfit(transform: &str, input: &ArrayRef) -> TableError {
    TableError::Unsupported(format!("the transform {transform} of a column of type {}", input.data_type()))
}

fn bucket(transform: &Transform, input: &ArrayRef) -> Result<ArrayRef, TableError> {
    let hashed: ArrayRef = match input.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Arc::new(micros_of(input)?),
        _ => Arc::clone(input),
    };
    let wrong = || format!("the transform {transform}");
    let function = create_transform_function(transform).map_err(TableError::iceberg(wrong()))?;
    function.transform(hashed).map_err(TableError::iceberg(wrong()))
}

fn truncate(width: u32, input: &ArrayRef) -> Result<ArrayRef, TableError> {
    let (int, long, wide) = (i32::try_from(width).unwrap_or(i32::MAX).max(1), i64::from(width).max(1), i128::from(width).max(1));
    let length = width as usize;
    Ok(match input.data_type() {
        DataType::Int32 => Arc::new(input.as_primitive::<Int32Type>().unary::<_, Int32Type>(|v| v.wrapping_sub(v.rem_euclid(int)))),
        DataType::Int64 => Arc::new(input.as_primitive::<Int64Type>().unary::<_, Int64Type>(|v| v.wrapping_sub(v.rem_euclid(long)))),
        DataType::Decimal128(_, _) => {
            let array = input.as_primitive::<Decimal128Type>();
            let cut = array.unary::<_, Decimal128Type>(|v| v.wrapping_sub(v.rem_euclid(wide)));
            Arc::new(cut.with_data_type(input.data_type().clone()))
        }
        DataType::Binary => {
            Arc::new(input.as_binary::<i32>().iter().map(|v| v.map(|v| &v[..v.len().min(length)])).collect::<BinaryArray>())
        }
        DataType::LargeBinary => {
            Arc::new(input.as_binary::<i64>().iter().map(|v| v.map(|v| &v[..v.len().min(length)])).collect::<LargeBinaryArray>())
        }
        _ => {
            let transform = Transform::Truncate(width);
            let function = create_transform_function(&transform).map_err(TableError::iceberg("the transform truncate"))?;
            function.transform(Arc::clone(input)).map_err(|_| unfit("truncate", input))?
        }
    })
}

/// Microseconds since the epoch of a timestamp, rounded down.
fn micros_of(input: &ArrayRef) -> Result<TimestampMicrosecondArray, TableError> {
    match input.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(input.as_primitive::<TimestampMicrosecondType>().clone()),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Ok(input.as_primitive::<TimestampNanosecondType>().unary(|nanos| nanos.div_euclid(1000)))
        }
        _ => Err(unfit("of a time", input)),
    }
}

/// Days since the epoch, rounded down: −1 µs is the day before.
fn days_of(input: &ArrayRef) -> Result<Date32Array, TableError> {
    match input.data_type() {
        DataType::Date32 => Ok(input.as_primitive::<Date32Type>().clone()),
        _ => Ok(micros_of(input)?.unary(|micros| clamp(micros.div_euclid(MICROS_PER_DAY)))),
    }
}

fn hours(input: &ArrayRef) -> Result<ArrayRef, TableError> {
    let hours: Int32Array = micros_of(input)?.unary(|micros| clamp(micros.div_euclid(MICROS_PER_HOUR)));
    Ok(Arc::new(hours))
}

fn from_days(input: &ArrayRef, part: impl Fn(i64) -> i64) -> Result<ArrayRef, TableError> {
    let parts: Int32Array = days_of(input)?.unary(|days| clamp(part(i64::from(days))));
    Ok(Arc::new(parts))
}

/// Never cuts: the whole range of 64-bit microseconds is 2.6 thousand million hours, which the type of the spec cannot hold at its
/// ends (year 245,000); the ends stay in order.
fn clamp(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

fn months_since_epoch(days: i64) -> i64 {
    let (year, month) = year_and_month(days);
    (year - 1970) * 12 + month - 1
}

/// Year and month (1 to 12) of a day since 1970-01-01 in the proleptic Gregorian calendar; the years of a cycle of 400 begin in March.
pub(crate) const fn year_and_month(days: i64) -> (i64, i64) {
    let (year, month, _) = civil(days);
    (year, month)
}

/// Year, month and day of a day since 1970-01-01.
pub(crate) const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Int64Array, StringArray, TimestampNanosecondArray};

    use super::*;

    fn ints(array: &ArrayRef) -> Vec<Option<i32>> {
        match array.data_type() {
            DataType::Date32 => array.as_primitive::<Date32Type>().iter().collect(),
            _ => array.as_primitive::<Int32Type>().iter().collect(),
        }
    }

    fn micros(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from(values))
    }

    #[test]
    fn times_before_1970_round_down() {
        let input = micros(vec![Some(-1), Some(0), Some(-86_400_500_000), None, Some(-86_400_000_000)]);
        assert_eq!(ints(&apply(&Transform::Day, &input).unwrap()), [Some(-1), Some(0), Some(-2), None, Some(-1)]);
        assert_eq!(ints(&apply(&Transform::Hour, &input).unwrap()), [Some(-1), Some(0), Some(-25), None, Some(-24)]);
        assert_eq!(ints(&apply(&Transform::Month, &input).unwrap()), [Some(-1), Some(0), Some(-1), None, Some(-1)]);
        assert_eq!(ints(&apply(&Transform::Year, &input).unwrap()), [Some(-1), Some(0), Some(-1), None, Some(-1)]);
        let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1, 3_600_000_000_000]));
        assert_eq!(ints(&apply(&Transform::Hour, &nanos).unwrap()), [Some(-1), Some(1)]);
        assert_eq!(ints(&apply(&Transform::Day, &nanos).unwrap()), [Some(-1), Some(0)]);
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        let input = micros(vec![Some(i64::MIN), Some(i64::MAX)]);
        for transform in [Transform::Year, Transform::Month, Transform::Day, Transform::Hour, Transform::Bucket(4)] {
            assert_eq!(apply(&transform, &input).unwrap().len(), 2);
        }
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![i32::MIN, i32::MAX]));
        assert!(apply(&Transform::Year, &dates).is_ok());
    }

    #[test]
    fn the_calendar_is_right() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_515), (2026, 3, 3));
        let mut expected = (0, 3, 1);
        for days in -719_468..60_000 {
            assert_eq!(civil(days), expected);
            expected = next_day(expected);
        }
    }

    fn next_day((year, month, day): (i64, i64, i64)) -> (i64, i64, i64) {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][usize::try_from(month).unwrap() - 1];
        match (month, day == last) {
            (_, false) => (year, month, day + 1),
            (12, true) => (year + 1, 1, 1),
            (_, true) => (year, month + 1, 1),
        }
    }

    #[test]
    fn truncation_rounds_down_and_keeps_characters() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(-1), Some(17), None, Some(i32::MIN)]));
        assert_eq!(ints(&apply(&Transform::Truncate(10), &numbers).unwrap())[..3], [Some(-10), Some(10), None]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["äöü", "", "x"]));
        let cut = apply(&Transform::Truncate(2), &texts).unwrap();
        assert_eq!(cut.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["äö", "", "x"]);
        let decimal: ArrayRef = Arc::new(Decimal128Array::from(vec![1065]).with_precision_and_scale(6, 2).unwrap());
        assert_eq!(apply(&Transform::Truncate(50), &decimal).unwrap().as_primitive::<Decimal128Type>().value(0), 1050);
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_vec(vec![b"abc"]));
        assert_eq!(apply(&Transform::Truncate(2), &bytes).unwrap().as_binary::<i64>().value(0), b"ab");
    }

    #[test]
    fn the_hash_of_the_spec() {
        let bucket = |array: ArrayRef| ints(&apply(&Transform::Bucket(i32::MAX as u32), &array).unwrap())[0].unwrap();
        assert_eq!(bucket(Arc::new(Int64Array::from(vec![34]))), 2_017_239_379);
        assert_eq!(bucket(Arc::new(Int32Array::from(vec![34]))), 2_017_239_379);
        assert_eq!(bucket(Arc::new(StringArray::from(vec!["iceberg"]))), 1_210_000_089);
        let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1]));
        assert_eq!(bucket(nanos), bucket(micros(vec![Some(-1)])));
    }
}
