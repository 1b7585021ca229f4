//! The event's records, and the routing of one record's text.

use super::cursor::{Bad, Cursor};
use crate::event::Kind;

/// The base64 text of the value; the coordinate is read and thrown away.
pub(crate) fn values(event: &str) -> Result<Vec<&str>, Bad> {
    let mut found = Vec::with_capacity(8192);
    members(&mut Cursor::new(event), |cursor, key| {
        if key != "records" {
            return cursor.skip();
        }
        members(cursor, |cursor, _| {
            cursor.expect(b'[')?;
            let mut more = !cursor.literal(b"]");
            while more {
                found.push(record(cursor)?);
                more = cursor.next_member(b']')?;
            }
            Ok(())
        })
    })?;
    Ok(found)
}

fn members<'a>(cursor: &mut Cursor<'a>, mut member: impl FnMut(&mut Cursor<'a>, &'a str) -> Result<(), Bad>) -> Result<(), Bad> {
    cursor.expect(b'{')?;
    let mut more = !cursor.literal(b"}");
    while more {
        let key = cursor.key()?;
        member(cursor, key)?;
        more = cursor.next_member(b'}')?;
    }
    Ok(())
}

fn record<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Bad> {
    let (mut value, mut coordinate) = ("", 0_i64);
    members(cursor, |cursor, key| {
        match key {
            "value" => {
                cursor.expect(b'"')?;
                value = cursor.long_string()?;
            }
            "partition" | "offset" | "timestamp" => coordinate ^= cursor.integer()?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    std::hint::black_box(coordinate);
    Ok(value)
}

/// What routes a record, and its row.
#[derive(Default)]
pub(crate) struct Routed<'a> {
    pub(crate) table: &'a str,
    pub(crate) op: &'a str,
    pub(crate) row: &'a str,
}

/// Routes a record. `schema` is the text of the last record's Connect schema: the same text is skipped by one comparison.
pub(crate) fn route<'a>(record: &'a str, kind: Kind, schema: &mut &'a str) -> Result<Routed<'a>, Bad> {
    match kind {
        Kind::Envelope | Kind::Debezium => image(record),
        Kind::DebeziumWithSchema => image(payload(record, schema)?),
    }
}

fn payload<'a>(record: &'a str, schema: &mut &'a str) -> Result<&'a str, Bad> {
    let mut cursor = Cursor::new(record);
    if !schema.is_empty() && record.starts_with(*schema) {
        cursor.at = schema.len();
    } else {
        if !cursor.literal(b"{\"schema\":") {
            return cursor.bad();
        }
        cursor.skip()?;
        *schema = &record[..cursor.at];
    }
    if !cursor.literal(b",\"payload\":") {
        return cursor.bad();
    }
    record[cursor.at..].strip_suffix('}').ok_or(Bad(record.len()))
}

/// The operation and table may stand behind the rows: so the rows are found first and parsed later.
fn image(record: &str) -> Result<Routed<'_>, Bad> {
    let (mut routed, mut before, mut after) = (Routed::default(), "", "");
    members(&mut Cursor::new(record), |cursor, key| {
        match key {
            "table" => routed.table = short(cursor)?,
            "op" => routed.op = short(cursor)?,
            "before" => before = cursor.raw_value()?,
            "after" => after = cursor.raw_value()?,
            "source" => members(cursor, |cursor, key| {
                if key == "table" {
                    routed.table = short(cursor)?;
                    return Ok(());
                }
                cursor.skip()
            })?,
            "ts_ms" => drop(cursor.integer()?),
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    routed.row = if routed.op == "d" { before } else { after };
    Ok(routed)
}

fn short<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, Bad> {
    cursor.expect(b'"')?;
    Ok(cursor.string()?.text)
}
