//! What is invoked: the function here, or one behind an address.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

/// Why an invocation failed. Its offsets are not committed; the same event is sent again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The function says so.
    #[error("{0}")]
    Failed(String),
    /// The function cannot be reached, or its answer did not come in time: what it did is not known, and its ledgers tell it the next time.
    #[error("FUNCTION_UNREACHABLE: {0}")]
    Unreachable(String),
    /// Something answered that is not the ingest function.
    #[error("FUNCTION_ANSWER: the answer is not the account of the ingest function: {0}")]
    NotAnAccount(String),
}

/// A function that takes events of a Kafka event-source mapping.
#[async_trait]
pub trait Function: Send + Sync {
    /// Invokes it with one event; `timeout_ms` is the time that it has.
    ///
    /// # Errors
    /// [`FunctionError`]: the event has to be sent again.
    async fn invoke(&self, event: Bytes, timeout_ms: u64) -> Result<Account, FunctionError>;
}

/// Counts of units, as the ingest function's answer has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Units that came in.
    pub received: u64,
    /// Inserts and updates.
    pub rows: u64,
    /// Deletes.
    pub deletes: u64,
    /// Events that are no rows.
    pub control: u64,
    /// Changes older than what is stored.
    pub stale: u64,
    /// Units that an earlier invocation decided.
    pub replayed: u64,
    /// Units in the error table.
    pub dead_letters: u64,
    /// Those by reason code.
    #[serde(default)]
    pub dead_letters_by_code: BTreeMap<String, u64>,
}

impl Counts {
    /// Adds others to these.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.rows += other.rows;
        self.deletes += other.deletes;
        self.control += other.control;
        self.stale += other.stale;
        self.replayed += other.replayed;
        self.dead_letters += other.dead_letters;
        for (code, count) in &other.dead_letters_by_code {
            *self.dead_letters_by_code.entry(code.clone()).or_default() += count;
        }
    }
}

/// What became of one table in an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TableAccount {
    /// namespace.table
    pub table: String,
    /// Its units.
    pub tally: Counts,
    /// The snapshot that was committed, where one was.
    pub snapshot_id: Option<i64>,
}

/// The answer of the ingest function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// All units of the event.
    pub tally: Counts,
    /// Received less decided; 0 (promise R1).
    pub unbalanced: i64,
    /// The tables that had records in it.
    pub tables: Vec<TableAccount>,
}

impl Account {
    /// Reads the function's answer.
    ///
    /// # Errors
    /// [`FunctionError::NotAnAccount`] when it is something else: then nothing may be committed.
    pub fn read(answer: &[u8]) -> Result<Self, FunctionError> {
        let account: Self = serde_json::from_slice(answer).map_err(|error| FunctionError::NotAnAccount(error.to_string()))?;
        if account.unbalanced == 0 {
            Ok(account)
        } else {
            Err(FunctionError::NotAnAccount(format!("{} of {} units are not accounted for", account.unbalanced, account.tally.received)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_no_balanced_account_commits_nothing() {
        assert!(matches!(Account::read(b"null"), Err(FunctionError::NotAnAccount(_))));
        assert!(matches!(Account::read(br#"{"batchItemFailures":[]}"#), Err(FunctionError::NotAnAccount(_))));
        let tally = r#"{"received":2,"rows":1,"deletes":0,"control":0,"stale":0,"replayed":0,"dead_letters":1,"dead_letters_by_code":{"KEY_NULL":1}}"#;
        let account = Account::read(format!(r#"{{"tally":{tally},"unbalanced":0,"tables":[]}}"#).as_bytes()).unwrap();
        assert_eq!(account.tally.dead_letters_by_code["KEY_NULL"], 1);
        assert!(matches!(
            Account::read(format!(r#"{{"tally":{tally},"unbalanced":1,"tables":[]}}"#).as_bytes()),
            Err(FunctionError::NotAnAccount(_))
        ));
    }
}
