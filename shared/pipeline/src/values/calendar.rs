//! Dates and times of day as ISO text, read strictly: what is written, whether it is on the calendar and the clock.

/// Seconds of a day.
pub(crate) const DAY_SECONDS: i64 = 86_400;
/// 0001-01-01 in days since 1970-01-01.
pub(crate) const FIRST_DAY: i64 = -719_162;
/// 9999-12-31 in days since 1970-01-01.
pub(crate) const LAST_DAY: i64 = 2_932_896;

/// Why text is no date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadTime {
    /// It does not have the form.
    Form,
    /// It has the form, but no such day or time exists.
    NotOnCalendar,
}

/// A day on the calendar of the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) year: i16,
    pub(crate) month: i8,
    pub(crate) day: i8,
}

impl Day {
    /// Days since 1970-01-01 (Howard Hinnant's `days_from_civil`).
    pub(crate) fn epoch_day(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }
}

/// A time of day. The fraction's digits behind the ninth are only known to be zero or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) seconds: i64,
    pub(crate) nanos: i64,
    pub(crate) finer: bool,
}

/// A day with a time of day and, where it is written, the zone's distance from UTC in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) day: Day,
    pub(crate) clock: Clock,
    pub(crate) offset: Option<i64>,
}

/// Reads `2026-03-01`.
pub(crate) fn parse_day(text: &str) -> Result<Day, BadTime> {
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = unsigned.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(BadTime::Form);
    };
    if !(4..=9).contains(&year.len()) {
        return Err(BadTime::Form);
    }
    let year = sign * number(year)?;
    let (month, day) = (two_digits(month)?, two_digits(day)?);
    let sound = (1..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    if !sound {
        return Err(BadTime::NotOnCalendar);
    }
    Ok(Day { year: year as i16, month: month as i8, day: day as i8 })
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads `10:15:30`, with any number of digits behind a point.
pub(crate) fn parse_clock(text: &str) -> Result<Clock, BadTime> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return Err(BadTime::Form),
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let mut parts = whole.split(':');
    let (Some(hour), Some(minute), Some(second), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(BadTime::Form);
    };
    let (hour, minute, second) = (two_digits(hour)?, two_digits(minute)?, two_digits(second)?);
    let (nanos, finer) = parse_fraction(fraction)?;
    if hour > 23 || minute > 59 || second > 59 {
        return Err(BadTime::NotOnCalendar);
    }
    Ok(Clock { seconds: hour * 3600 + minute * 60 + second, nanos, finer })
}

fn parse_fraction(text: &str) -> Result<(i64, bool), BadTime> {
    const NANO_DIGITS: usize = 9;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadTime::Form);
    }
    let digit = |at: usize| text.as_bytes().get(at).map_or(0, |byte| i64::from(byte - b'0'));
    let nanos = (0..NANO_DIGITS).fold(0, |nanos, at| nanos * 10 + digit(at));
    Ok((nanos, text.bytes().skip(NANO_DIGITS).any(|byte| byte != b'0')))
}

/// Reads a date and a time of day joined by `T` or a blank, with or without a zone.
pub(crate) fn parse_moment(text: &str) -> Result<Moment, BadTime> {
    let (day, rest) = text.split_once(['T', ' ']).ok_or(BadTime::Form)?;
    let (clock, offset) = split_zone(rest);
    let (day, clock, offset) = (parse_day(day), parse_clock(clock), offset.map(parse_offset).transpose());
    let malformed = [day.err(), clock.err(), offset.err()].contains(&Some(BadTime::Form));
    if malformed {
        return Err(BadTime::Form);
    }
    Ok(Moment { day: day?, clock: clock?, offset: offset? })
}

/// Whether text that is a time of day carries a zone.
pub(crate) fn has_zone(text: &str) -> bool {
    let (clock, zone) = split_zone(text);
    zone.is_some() && parse_clock(clock).is_ok()
}

fn split_zone(text: &str) -> (&str, Option<&str>) {
    match text.find(['Z', 'z', '+', '-']) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    }
}

/// Seconds east of UTC: `Z`, `+hh`, `+hhmm` or `+hh:mm`.
fn parse_offset(text: &str) -> Result<i64, BadTime> {
    if text == "Z" || text == "z" {
        return Ok(0);
    }
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => return Err(BadTime::Form),
    };
    let (hours, minutes) = match (digits.len(), digits.split_once(':')) {
        (5, Some((hours, minutes))) => (hours, minutes),
        (4, None) => digits.split_at_checked(2).ok_or(BadTime::Form)?,
        (2, None) => (digits, "00"),
        _ => return Err(BadTime::Form),
    };
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    if hours > 23 || minutes > 59 { Err(BadTime::NotOnCalendar) } else { Ok(sign * (hours * 3600 + minutes * 60)) }
}

fn two_digits(text: &str) -> Result<i64, BadTime> {
    if text.len() == 2 { number(text) } else { Err(BadTime::Form) }
}

fn number(text: &str) -> Result<i64, BadTime> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadTime::Form);
    }
    text.parse().map_err(|_| BadTime::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        let epoch_day = |text| parse_day(text).map(Day::epoch_day);
        assert_eq!(epoch_day("1970-01-01"), Ok(0));
        assert_eq!(epoch_day("2026-02-28"), Ok(20512));
        assert_eq!(epoch_day("0001-01-01"), Ok(FIRST_DAY));
        assert_eq!(epoch_day("9999-12-31"), Ok(LAST_DAY));
        assert_eq!(epoch_day("2000-02-29"), Ok(11016));
        for text in ["0000-00-00", "1900-02-29", "10000-01-01", "-0001-01-01", "2026-13-01", "2026-04-31", "2026-01-00"] {
            assert_eq!(epoch_day(text), Err(BadTime::NotOnCalendar), "{text}");
        }
        for text in ["", "2026-1-01", "20260301", "26-01-01", "2026-01-01-", "2026-01-01T", "２０２６-01-01", "-", "2026--1-01"] {
            assert_eq!(epoch_day(text), Err(BadTime::Form), "{text}");
        }
    }

    #[test]
    fn moments() {
        let moment = parse_moment("2026-04-02 02:45:10.5+0530").unwrap();
        assert_eq!((moment.clock.seconds, moment.clock.nanos, moment.offset), (9910, 500_000_000, Some(19800)));
        assert_eq!(parse_moment("2026-04-02T02:45:10-02").unwrap().offset, Some(-7200));
        assert!(parse_moment("2026-04-02T02:45:10.0000000001Z").unwrap().clock.finer);
        for text in ["2026-06-30T23:59:60Z", "2026-06-30T24:00:00", "2026-06-30T10:00:00+24:00", "0000-11-30T00:00:00"] {
            assert_eq!(parse_moment(text), Err(BadTime::NotOnCalendar), "{text}");
        }
        for text in
            ["2026-04-02", "2026-04-02T10:00", "2026-04-02T10:00:00.", "2026-04-02T10:00:00 Z", "2026-04-02T10:00:00+1", "T", "é Té"]
        {
            assert_eq!(parse_moment(text), Err(BadTime::Form), "{text}");
        }
    }
}
