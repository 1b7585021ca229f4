//! The one place where a unit becomes a dead letter.

use sluice_deadletter::{DeadLetter, RawBytes, Repetition};
use sluice_model::{Interval, Rejection};

use crate::batch::Batch;
use crate::receive::{Raw, Unit, UnitKind};

/// The letter of a refused unit. The error table keeps `max_raw_bytes` of its key and value at most.
#[must_use]
pub fn letter(batch: &Batch<'_>, index: usize, rejection: Rejection, max_raw_bytes: usize) -> Option<DeadLetter> {
    let unit = batch.units.get(index)?;
    let (target, operation) = match &unit.kind {
        UnitKind::Change(table, event) => (Some(table.clone()), Some(event.operation)),
        UnitKind::SchemaChange(table, _) => (Some(table.clone()), None),
        UnitKind::Control | UnitKind::Repeated | UnitKind::Rejected(_) => (None, None),
    };
    let mut letter = DeadLetter {
        key: unit.key.clone(),
        coordinate: unit.coordinate,
        claim: claim(batch, index, unit),
        record_timestamp_ms: None,
        rejection,
        target,
        operation,
        raw_key: None,
        raw_value: None,
        headers: Vec::new(),
        schema_id: None,
        repetition: Repetition::First,
    };
    fill_raw(&mut letter, unit.raw, max_raw_bytes);
    Some(letter)
}

fn fill_raw(letter: &mut DeadLetter, raw: Raw<'_>, max_raw_bytes: usize) {
    match raw {
        Raw::Unreadable(json) => letter.raw_value = Some(RawBytes::cut(json.as_bytes(), max_raw_bytes)),
        Raw::Record(record) => {
            letter.record_timestamp_ms = record.timestamp.epoch_ms;
            letter.raw_key = record.key.map(|bytes| RawBytes::cut(bytes, max_raw_bytes));
            letter.raw_value = record.value.map(|bytes| RawBytes::cut(bytes, max_raw_bytes));
            letter.headers = record.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
            letter.schema_id = record.value_schema_id.as_deref().map(str::to_owned);
        }
    }
}

/// A record of one unit is claimed whole, so that the claims of neighbours join; a row of several only for itself.
fn claim(batch: &Batch<'_>, index: usize, unit: &Unit<'_>) -> Interval {
    let is_same_record = |other: &Unit<'_>| {
        other.key == unit.key && other.coordinate.offset == unit.coordinate.offset && other.coordinate != unit.coordinate
    };
    let next = batch.units.get(index + 1).is_some_and(is_same_record);
    let previous = index.checked_sub(1).and_then(|before| batch.units.get(before)).is_some_and(is_same_record);
    if next || previous || unit.coordinate.row > 0 {
        Interval::of_row(unit.coordinate)
    } else {
        Interval::of_record(unit.coordinate.offset)
    }
}
