//! One run at a time for each table. A convenience: no commit and no deletion is safe because of it, but two runs would do work twice.
//!
//! The lease is an object beside the table. Each holder raises its number, the fencing token; a run whose token is no longer the object's has been taken over and may neither commit nor
//! delete any more.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sluice_storage::{Condition, Object, PutOutcome};

use crate::{MaintenanceError, Table};

/// Our own objects stand in this folder of a table, whose name orphan removal passes by.
pub const FOLDER: &str = "_sluice";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    holder: String,
    token: u64,
    until_ms: i64,
}

/// A lease that was got.
#[derive(Debug, Clone)]
pub struct Lease {
    location: String,
    holder: String,
    token: u64,
}

/// What became of asking for a lease.
#[derive(Debug)]
pub enum Asked {
    /// We have it.
    Got(Lease),
    /// Somebody else has it.
    Busy {
        /// Who.
        holder: String,
        /// Until when at most, in milliseconds since 1970.
        until_ms: i64,
    },
}

fn location_of(table_location: &str) -> String {
    format!("{}/{FOLDER}/lease.json", table_location.trim_end_matches('/'))
}

fn read(object: &Object) -> Option<Held> {
    serde_json::from_slice(&object.bytes).ok()
}

impl Lease {
    /// Asks for the lease of a table for `ms` milliseconds.
    ///
    /// # Errors
    /// What the storage said.
    pub async fn ask(table: &Table<'_>, table_location: &str, ms: i64) -> Result<Asked, MaintenanceError> {
        let (location, now) = (location_of(table_location), table.context.now_ms());
        let found = table.objects.get(&location).await?;
        let held = found.as_ref().and_then(read);
        if let Some(held) = held.as_ref().filter(|held| held.until_ms > now) {
            return Ok(Asked::Busy { holder: held.holder.clone(), until_ms: held.until_ms });
        }
        let holder = uuid::Uuid::from_u128(table.context.ids.next_u128()).to_string();
        let token = held.map_or(1, |held| held.token + 1);
        let own = Held { holder: holder.clone(), token, until_ms: now.saturating_add(ms) };
        let condition = found.map_or(Condition::IfAbsent, |object| Condition::IfMatch(object.etag));
        match table.objects.put(&location, text(&own)?, condition).await? {
            PutOutcome::Written(_) => Ok(Asked::Got(Self { location, holder, token })),
            PutOutcome::Refused => Ok(Asked::Busy { holder: "a run that asked at the same time".to_owned(), until_ms: now }),
        }
    }

    /// Makes sure that nobody has taken the table over.
    ///
    /// # Errors
    /// [`MaintenanceError::LeaseLost`] when somebody has, else what the storage said.
    pub async fn check(&self, table: &Table<'_>) -> Result<(), MaintenanceError> {
        let held = table.objects.get(&self.location).await?.as_ref().and_then(read);
        match held {
            Some(held) if held.token == self.token && held.holder == self.holder => Ok(()),
            Some(held) => Err(MaintenanceError::LeaseLost { table: table.name.clone(), holder: held.holder }),
            None => Err(MaintenanceError::LeaseLost { table: table.name.clone(), holder: "its object is gone".to_owned() }),
        }
    }

    /// Gives the lease back. The object stays, so that the next token is higher.
    ///
    /// # Errors
    /// What the storage said; the lease then ends by itself.
    pub async fn give_back(self, table: &Table<'_>) -> Result<(), MaintenanceError> {
        let Some(object) = table.objects.get(&self.location).await? else { return Ok(()) };
        if read(&object).is_some_and(|held| held.token == self.token && held.holder == self.holder) {
            let over = Held { holder: self.holder, token: self.token, until_ms: 0 };
            table.objects.put(&self.location, text(&over)?, Condition::IfMatch(object.etag)).await?;
        }
        Ok(())
    }
}

fn text(held: &Held) -> Result<Bytes, MaintenanceError> {
    let text = serde_json::to_vec(held).map_err(|error| MaintenanceError::BadPlan(format!("the lease cannot be written: {error}")))?;
    Ok(text.into())
}
