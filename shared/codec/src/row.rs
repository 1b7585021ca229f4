//! Plain rows: the value is the row, an update; a null value deletes the row of the record key. The table comes from a header or the topic.

use sluice_model::{DecodedEvent, Operation, Rejection};

use crate::document::{RecordDocument, required_image};

/// Decodes a plain row.
///
/// # Errors
/// `TYPE_MISMATCH` when the value is no object.
pub fn decode<'d>(document: &'d RecordDocument<'_>) -> Result<DecodedEvent<'d>, Rejection> {
    let Some(value) = document.value() else {
        return Ok(DecodedEvent::Change(Box::new(document.change(Operation::Delete))));
    };
    let mut event = document.change(Operation::Update);
    event.after = Some(required_image(Some(value), document.value_type(), "")?);
    Ok(DecodedEvent::Change(Box::new(event)))
}
