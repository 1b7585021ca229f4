//! librdkafka's error codes as classes.

use rdkafka::error::{KafkaError as Foreign, RDKafkaErrorCode as Code};
use sluice_model::Class;

use crate::error::KafkaError;

/// What to do about an error of librdkafka (negative codes) or of a broker (positive ones).
///
/// *Unknown*: a request was sent and nobody answered; it may have been done. *Fatal*: somebody has to change something. *Conflict*: another client has taken the
/// place. Everything else, codes that are not known yet included, passes by itself.
#[must_use]
pub const fn class(code: Code) -> Class {
    match code {
        Code::MessageTimedOut
        | Code::RequestTimedOut
        | Code::OperationTimedOut
        | Code::TimedOutQueue
        | Code::PurgeInflight
        | Code::NotEnoughReplicasAfterAppend
        | Code::NetworkException => Class::Unknown,
        Code::IllegalGeneration
        | Code::RebalanceInProgress
        | Code::UnknownMemberId
        | Code::FencedInstanceId
        | Code::FencedMemberEpoch
        | Code::StaleMemberEpoch
        | Code::Fenced
        | Code::ProducerFenced
        | Code::InvalidProducerEpoch
        | Code::AssignmentLost
        | Code::PollExceeded
        | Code::Conflict => Class::Conflict,
        Code::Authentication
        | Code::SaslAuthenticationFailed
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SSL
        | Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed
        | Code::SecurityDisabled
        | Code::UnknownTopic
        | Code::UnknownPartition
        | Code::UnknownTopicOrPartition
        | Code::InvalidTopic
        | Code::InvalidGroupId
        | Code::InvalidConfig
        | Code::InvalidArgument
        | Code::InvalidRequest
        | Code::InvalidRequiredAcks
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::PolicyViolation
        | Code::MessageSizeTooLarge
        | Code::MessageBatchTooLarge
        | Code::UnsupportedVersion
        | Code::UnsupportedFeature
        | Code::UnsupportedCompressionType
        | Code::UnsupportedForMessageFormat
        | Code::NotImplemented
        | Code::OffsetOutOfRange
        | Code::AutoOffsetReset
        | Code::Fatal => Class::Fatal,
        _ => Class::Transient,
    }
}

/// An error of librdkafka, with what was tried. A wrong property is named without its value, which may be a key.
#[must_use]
pub fn told(doing: &str, error: &Foreign) -> KafkaError {
    match error {
        Foreign::ClientConfig(_, what, property, _) => KafkaError::fatal(format!("{doing}: the property `{property}`: {what}")),
        // librdkafka says so when the properties contradict each other, or certificates and keys cannot be read.
        Foreign::ClientCreation(what) => KafkaError::fatal(format!("{doing}: {what}")),
        other => {
            let class = other.rdkafka_error_code().map_or(Class::Transient, class);
            KafkaError { class, what: format!("{doing}: {other}") }
        }
    }
}
