//! What a command says when it cannot do its work: an exit code, what happened, and what to do next.

use sluice_ingest::IngestError;
use sluice_ingest::start::StartError;
use sluice_maintain::MaintainError;
use sluice_maintenance::MaintenanceError;
use sluice_redrive::RedriveError;
use sluice_table::TableError;

/// The documented exit codes (README, "Exit codes"). 2 is also clap's for a wrong command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The work failed; trying again may help.
    Failed = 1,
    /// The configuration or the command line is wrong.
    Config = 2,
    /// What was named is not there.
    NotFound = 3,
    /// A check found faults: failing corpus cases, an invalid table.
    CheckFailed = 4,
}

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The process's exit code.
    pub exit: Exit,
    /// What happened.
    pub message: String,
    /// What to do next; may be empty.
    pub hint: String,
}

impl Failure {
    /// The work failed.
    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into(), hint: hint.into() }
    }

    /// The configuration or the command line is wrong.
    #[cfg(feature = "run")]
    pub(crate) fn config(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::Config, message: message.into(), hint: hint.into() }
    }

    /// What was named is not there.
    pub(crate) fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::NotFound, message: message.into(), hint: hint.into() }
    }

    /// A check found faults.
    pub(crate) fn check(message: impl Into<String>) -> Self {
        Self { exit: Exit::CheckFailed, message: message.into(), hint: String::new() }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let (exit, hint) = match &error {
            StartError::Unreadable(_) => (Exit::Config, "run `sluice init` to make one, or name it with --config"),
            StartError::Config(_) => (Exit::Config, "see docs/configuration.md for every key"),
            StartError::Topic(_) => (Exit::Config, "`[errors]` in docs/configuration.md says how the error topic is reached"),
            StartError::Unavailable(_) => {
                (Exit::Failed, "check [catalog] in the configuration, and that the catalog can be reached from here")
            }
        };
        Self { exit, message: error.to_string(), hint: hint.to_owned() }
    }
}

impl From<sluice_maintain::StartError> for Failure {
    fn from(error: sluice_maintain::StartError) -> Self {
        use sluice_maintain::StartError as Error;
        let (exit, hint) = match &error {
            Error::Unreadable(_) => (Exit::Config, "run `sluice init` to make one, or name it with --config"),
            Error::Config(_) => (Exit::Config, "see docs/configuration.md for every key"),
            Error::Catalog(_) => (Exit::Failed, "check catalog.uri and that the database can be reached"),
            Error::Storage(_) => (Exit::Failed, "check catalog.storage"),
        };
        Self { exit, message: error.to_string(), hint: hint.to_owned() }
    }
}

impl From<MaintainError> for Failure {
    fn from(error: MaintainError) -> Self {
        let (exit, hint) = match &error {
            MaintainError::Request(_) => (Exit::Config, ""),
            MaintainError::Maintenance(_) | MaintainError::Tables(_) => {
                (Exit::Failed, "nothing that is needed was deleted; the next run goes on where this one stopped")
            }
        };
        Self { exit, message: error.to_string(), hint: hint.to_owned() }
    }
}

impl From<MaintenanceError> for Failure {
    fn from(error: MaintenanceError) -> Self {
        Self::failed(error.to_string(), "")
    }
}

impl From<RedriveError> for Failure {
    fn from(error: RedriveError) -> Self {
        let (exit, hint) = match &error {
            RedriveError::Request(_) => (Exit::Config, ""),
            RedriveError::NoTable(_) => (Exit::NotFound, "`sluice table list` shows the tables of the catalog"),
            RedriveError::Refused { .. } => (Exit::CheckFailed, "`sluice table history` shows how far each snapshot had come"),
            RedriveError::ErrorTable { .. } | RedriveError::Unfinished(_) | RedriveError::Table(_) => {
                (Exit::Failed, "nothing is lost: run the same again, what was done is recognised")
            }
        };
        Self { exit, message: error.to_string(), hint: hint.to_owned() }
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        Self::failed(error.to_string(), "")
    }
}

impl From<IngestError> for Failure {
    fn from(error: IngestError) -> Self {
        let hint = match &error {
            IngestError::Event(_) => "the event must be that of a Kafka event-source mapping; see events/README.md",
            IngestError::Topic(_) | IngestError::ErrorTable { .. } | IngestError::Tables { .. } | IngestError::Deadline { .. } => {
                "nothing is lost: invoke the same event again, what was committed is recognised by its offsets"
            }
        };
        Self::failed(error.to_string(), hint)
    }
}
