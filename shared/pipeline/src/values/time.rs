//! Values of date, time and timestamp columns: ISO text, and integers whose unit is declared.

use jiff::civil::DateTime;
use sluice_model::{DeclaredType, IntegerDates, ReasonCode, Rejection, TimeUnit};

use super::calendar::{BadTime, DAY_SECONDS, FIRST_DAY, LAST_DAY, Moment, has_zone, parse_clock, parse_day, parse_moment};
use super::digits::{Digits, Misfit};
use super::words::Word;
use super::{Carrier, Fault, Read, Reading};
use crate::settings::OnInexactTime;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Debezium's infinity in microseconds, and the largest long.
const INFINITIES: [i64; 2] = [9_223_372_036_825_200_000, i64::MAX];
/// Debezium's minus infinity in microseconds, and the smallest long.
const NEGATIVE_INFINITIES: [i64; 2] = [-9_223_372_036_832_400_000, i64::MIN];

/// The four timestamp types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimestampType {
    pub(crate) zone: ColumnZone,
    pub(crate) precision: ColumnPrecision,
}

/// Whether the column holds instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnZone {
    None,
    Utc,
}

/// The column's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnPrecision {
    Micros,
    Nanos,
}

/// A point on a time line that starts at 1970-01-01T00:00:00, the fraction counted towards the future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    seconds: i64,
    nanos: i64,
    finer: bool,
}

impl Point {
    fn of_epoch(value: i64, unit: TimeUnit) -> Option<Self> {
        let per_second = match unit {
            TimeUnit::Days => return Some(Self { seconds: value.checked_mul(DAY_SECONDS)?, nanos: 0, finer: false }),
            TimeUnit::Seconds => 1,
            TimeUnit::Millis => 1_000,
            TimeUnit::Micros => 1_000_000,
            TimeUnit::Nanos => NANOS_PER_SECOND,
        };
        let nanos = value.rem_euclid(per_second) * (NANOS_PER_SECOND / per_second);
        Some(Self { seconds: value.div_euclid(per_second), nanos, finer: false })
    }

    fn of_moment(moment: &Moment) -> Self {
        let seconds = moment.day.epoch_day() * DAY_SECONDS + moment.clock.seconds - moment.offset.unwrap_or(0);
        Self { seconds, nanos: moment.clock.nanos, finer: moment.clock.finer }
    }

    const fn in_years_1_to_9999(self) -> bool {
        self.seconds >= FIRST_DAY * DAY_SECONDS && self.seconds < (LAST_DAY + 1) * DAY_SECONDS
    }

    /// Whole microseconds; what is finer is refused or cut off.
    fn micros(self, reading: &Reading<'_>, source: &Carrier<'_>) -> Result<i64, Fault> {
        if self.nanos % 1_000 != 0 || self.finer {
            inexact(reading, source, "microseconds")?;
        }
        Ok(self.seconds * 1_000_000 + self.nanos / 1_000)
    }

    fn nanos(self, reading: &Reading<'_>, source: &Carrier<'_>) -> Result<i64, Fault> {
        if self.finer {
            inexact(reading, source, "nanoseconds")?;
        }
        let nanos = i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos);
        i64::try_from(nanos).map_err(|_| no_such_time(source, "is outside the years 1677 to 2262 that nanoseconds reach"))
    }
}

fn inexact(reading: &Reading<'_>, source: &Carrier<'_>, unit: &str) -> Result<(), Fault> {
    match reading.table.settings.on_inexact_time {
        OnInexactTime::Truncate => Ok(()),
        OnInexactTime::DeadLetter => {
            let detail = format!("{} is finer than {unit}; on_inexact_time = \"truncate\" cuts it off", source.describe());
            Err(Fault::new(ReasonCode::PrecisionLoss, detail))
        }
    }
}

fn no_such_time(source: &Carrier<'_>, why: &str) -> Fault {
    Fault::new(ReasonCode::ValueOutOfRange, format!("{} {why}", source.describe()))
}

fn bad_text(bad: BadTime, source: &Carrier<'_>, expected: &str) -> Fault {
    match bad {
        BadTime::Form => Fault::mismatch(source, &format!("is no {expected}")),
        BadTime::NotOnCalendar => no_such_time(source, "does not exist on the calendar and clock of the years 1 to 9999"),
    }
}

/// Reads days since 1970-01-01.
pub(crate) fn read_date(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<i32> {
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Text(text) => {
            if let Some(word) = Word::parse(text).filter(|word| *word != Word::NotANumber) {
                return word.in_exact_column(reading, Some(clamped_day(word)));
            }
            let day = parse_day(text).map_err(|bad| bad_text(bad, carrier, "date such as 2026-03-01"))?;
            Ok(Some(day.epoch_day() as i32))
        }
        Carrier::Number(text) => {
            let unit = date_unit(carrier, reading)?;
            let point = epoch_point(whole(text)?, unit, carrier)?;
            if point.seconds.rem_euclid(DAY_SECONDS) != 0 || point.nanos != 0 {
                inexact(reading, carrier, "days")?;
            }
            Ok(Some(point.seconds.div_euclid(DAY_SECONDS) as i32))
        }
        Carrier::Bool(_) | Carrier::Nested(_) => Err(Fault::mismatch(carrier, "is no date")),
    }
}

fn clamped_day(word: Word) -> i32 {
    match word {
        Word::NegativeInfinity => FIRST_DAY as i32,
        Word::Infinity | Word::NotANumber => LAST_DAY as i32,
    }
}

fn epoch_point(value: i64, unit: TimeUnit, source: &Carrier<'_>) -> Result<Point, Fault> {
    let point = Point::of_epoch(value, unit).filter(|point| point.in_years_1_to_9999());
    point.ok_or_else(|| no_such_time(source, "is outside the years 1 to 9999"))
}

fn whole(text: &str) -> Result<i64, Fault> {
    if let Some(value) = super::number::plain_integer(text) {
        return Ok(value);
    }
    let digits = Digits::parse(text).ok_or_else(|| super::words::no_number(text))?;
    digits.to_i64().map_err(|misfit| match misfit {
        Misfit::TooFine => Fault::new(ReasonCode::PrecisionLoss, format!("{} has a fraction", Rejection::quote(text))),
        Misfit::TooLarge => super::number::out_of_range(text, "64 bits"),
    })
}

/// What a source declares about a number that is a time.
enum DeclaredTime {
    Date,
    OfDay(TimeUnit),
    Timestamp(TimeUnit),
}

fn declared_time(reading: &Reading<'_>) -> Option<DeclaredTime> {
    match reading.declared? {
        DeclaredType::Date => Some(DeclaredTime::Date),
        DeclaredType::Time(unit) => Some(DeclaredTime::OfDay(*unit)),
        DeclaredType::Timestamp(unit) | DeclaredType::Instant(unit) => Some(DeclaredTime::Timestamp(*unit)),
        DeclaredType::Boolean
        | DeclaredType::Int
        | DeclaredType::Long
        | DeclaredType::UnsignedLong
        | DeclaredType::Float
        | DeclaredType::Double
        | DeclaredType::Text
        | DeclaredType::JsonText
        | DeclaredType::Bytes
        | DeclaredType::Decimal { .. }
        | DeclaredType::VariableScaleDecimal
        | DeclaredType::ZonedText
        | DeclaredType::ZonedTimeText
        | DeclaredType::Uuid
        | DeclaredType::Struct(_)
        | DeclaredType::List(_)
        | DeclaredType::Map(..) => None,
    }
}

fn date_unit(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<TimeUnit, Fault> {
    match declared_time(reading) {
        Some(DeclaredTime::Date) => Ok(TimeUnit::Days),
        Some(DeclaredTime::Timestamp(unit)) => Ok(unit),
        Some(DeclaredTime::OfDay(_)) => Err(Fault::mismatch(carrier, "is declared as a time of day, not a date")),
        None => {
            let hinted = (reading.hints.integer_dates == IntegerDates::Days).then_some(TimeUnit::Days);
            reading.column.time_unit.or(hinted).or(reading.table.settings.time_unit).ok_or_else(|| ambiguous(carrier))
        }
    }
}

fn ambiguous(carrier: &Carrier<'_>) -> Fault {
    let detail = format!("the unit of {} is not declared; time_unit (s, ms, us or ns) says it", carrier.describe());
    Fault::new(ReasonCode::TimeUnitAmbiguous, detail)
}

fn bare_unit(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<TimeUnit, Fault> {
    reading.column.time_unit.or(reading.table.settings.time_unit).ok_or_else(|| ambiguous(carrier))
}

/// Reads microseconds since midnight.
pub(crate) fn read_time(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Read<i64> {
    match carrier {
        Carrier::Null => Ok(None),
        Carrier::Text(text) => {
            if has_zone(text) {
                return Err(Fault::mismatch(carrier, "has a zone, which a time column cannot hold"));
            }
            let clock = parse_clock(text).map_err(|bad| bad_text(bad, carrier, "time such as 10:15:30.5"))?;
            Point { seconds: clock.seconds, nanos: clock.nanos, finer: clock.finer }.micros(reading, carrier).map(Some)
        }
        Carrier::Number(text) => {
            let unit = time_unit(carrier, reading)?;
            let point = Point::of_epoch(whole(text)?, unit).filter(|point| (0..DAY_SECONDS).contains(&point.seconds));
            let point = point.ok_or_else(|| no_such_time(carrier, "is no time of day; a long column keeps it as it is"))?;
            point.micros(reading, carrier).map(Some)
        }
        Carrier::Bool(_) | Carrier::Nested(_) => Err(Fault::mismatch(carrier, "is no time of day")),
    }
}

fn time_unit(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<TimeUnit, Fault> {
    match declared_time(reading) {
        Some(DeclaredTime::OfDay(unit)) => Ok(unit),
        Some(DeclaredTime::Date | DeclaredTime::Timestamp(_)) => Err(Fault::mismatch(carrier, "is declared as a date, not a time of day")),
        None => bare_unit(carrier, reading),
    }
}

/// Reads micro- or nanoseconds since 1970-01-01.
pub(crate) fn read_timestamp(carrier: &Carrier<'_>, reading: &Reading<'_>, kind: TimestampType) -> Read<i64> {
    let point = match carrier {
        Carrier::Null => return Ok(None),
        Carrier::Text(text) => {
            if let Some(word) = Word::parse(text).filter(|word| *word != Word::NotANumber) {
                return word.in_exact_column(reading, Some(clamped(word, kind)));
            }
            text_point(text, carrier, reading, kind)?
        }
        Carrier::Number(text) => {
            let unit = timestamp_unit(carrier, reading)?;
            let value = whole(text)?;
            if let Some(word) = sentinel(value) {
                return word.in_exact_column(reading, Some(clamped(word, kind)));
            }
            epoch_point(value, unit, carrier)?
        }
        Carrier::Bool(_) | Carrier::Nested(_) => return Err(Fault::mismatch(carrier, "is no timestamp")),
    };
    match kind.precision {
        ColumnPrecision::Micros => point.micros(reading, carrier).map(Some),
        ColumnPrecision::Nanos => point.nanos(reading, carrier).map(Some),
    }
}

fn sentinel(value: i64) -> Option<Word> {
    if INFINITIES.contains(&value) {
        return Some(Word::Infinity);
    }
    NEGATIVE_INFINITIES.contains(&value).then_some(Word::NegativeInfinity)
}

/// The last or first instant: of the years 1 to 9999, or of what nanoseconds reach.
fn clamped(word: Word, kind: TimestampType) -> i64 {
    match (kind.precision, word) {
        (ColumnPrecision::Micros, Word::NegativeInfinity) => FIRST_DAY * DAY_SECONDS * 1_000_000,
        (ColumnPrecision::Micros, Word::Infinity | Word::NotANumber) => (LAST_DAY + 1) * DAY_SECONDS * 1_000_000 - 1,
        (ColumnPrecision::Nanos, Word::NegativeInfinity) => i64::MIN,
        (ColumnPrecision::Nanos, Word::Infinity | Word::NotANumber) => i64::MAX,
    }
}

fn timestamp_unit(carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<TimeUnit, Fault> {
    match declared_time(reading) {
        Some(DeclaredTime::Timestamp(unit)) => Ok(unit),
        Some(DeclaredTime::Date | DeclaredTime::OfDay(_)) => {
            Err(Fault::mismatch(carrier, "is declared as a date or a time of day, not a timestamp"))
        }
        None => bare_unit(carrier, reading),
    }
}

fn text_point(text: &str, carrier: &Carrier<'_>, reading: &Reading<'_>, kind: TimestampType) -> Result<Point, Fault> {
    let moment = parse_moment(text).map_err(|bad| bad_text(bad, carrier, "timestamp such as 2026-03-01T10:15:30.5"))?;
    let point = match (kind.zone, moment.offset) {
        (ColumnZone::None, None) | (ColumnZone::Utc, Some(_)) => Point::of_moment(&moment),
        (ColumnZone::None, Some(_)) => {
            return Err(Fault::mismatch(carrier, "has a zone, which a timestamp column cannot hold; a timestamptz column can"));
        }
        (ColumnZone::Utc, None) => in_zone(&moment, carrier, reading)?,
    };
    if point.in_years_1_to_9999() { Ok(point) } else { Err(no_such_time(carrier, "is outside the years 1 to 9999 in UTC")) }
}

/// The instant of a wall-clock time in the declared zone. In the hour that a clock change repeats it is the first one; a time that a
/// change leaves out counts on from before the change, as other calendars do ("compatible").
fn in_zone(moment: &Moment, carrier: &Carrier<'_>, reading: &Reading<'_>) -> Result<Point, Fault> {
    let Some(zone) = &reading.table.zone else {
        let detail = format!("{} has no zone; on_naive_timestamp declares one", carrier.describe());
        return Err(Fault::new(ReasonCode::TimeZoneMissing, detail));
    };
    let seconds = moment.clock.seconds;
    let (hour, minute, second) = ((seconds / 3600) as i8, (seconds / 60 % 60) as i8, (seconds % 60) as i8);
    let civil = DateTime::new(moment.day.year, moment.day.month, moment.day.day, hour, minute, second, moment.clock.nanos as i32);
    let instant = civil.and_then(|civil| zone.to_ambiguous_timestamp(civil).compatible());
    let nanos = instant.map_err(|_| no_such_time(carrier, "does not exist in the declared zone"))?.as_nanosecond();
    let per_second = i128::from(NANOS_PER_SECOND);
    Ok(Point { seconds: nanos.div_euclid(per_second) as i64, nanos: nanos.rem_euclid(per_second) as i64, finer: moment.clock.finer })
}

/// The instant that an event's own time text means, in nanoseconds; a time without a zone counts as UTC.
pub(crate) fn instant_of_text(text: &str) -> Option<i128> {
    let point = Point::of_moment(&parse_moment(text).ok()?);
    Some(i128::from(point.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(point.nanos))
}

/// An epoch value in nanoseconds.
pub(crate) fn instant_of_epoch(value: i64, unit: TimeUnit) -> i128 {
    let nanos = match unit {
        TimeUnit::Days => i128::from(DAY_SECONDS) * i128::from(NANOS_PER_SECOND),
        TimeUnit::Seconds => i128::from(NANOS_PER_SECOND),
        TimeUnit::Millis => 1_000_000,
        TimeUnit::Micros => 1_000,
        TimeUnit::Nanos => 1,
    };
    i128::from(value) * nanos
}
