//! Changes of a table that add no snapshot.

use iceberg::TableRequirement;
use iceberg::spec::UnboundPartitionSpec;
use sluice_model::{Class, TransformedColumn};

use crate::creation::{at_time, partition_spec};
use crate::{CommitContext, StagedChange, TableError, TableOperations, TableVersion, metadata_file};

/// Makes `fields` the table's partitioning for files written from now on. Nothing is done when it is that already.
///
/// # Errors
/// [`TableError::Invalid`] when a field does not fit the table, else what the catalog or the storage said.
pub async fn set_partitioning(
    operations: &dyn TableOperations,
    fields: &[TransformedColumn],
    context: &CommitContext<'_>,
) -> Result<(), TableError> {
    let mut last = String::new();
    for attempts in 1..=context.policy.max_attempts.max(1) {
        let version = operations.refresh().await?;
        let spec = partition_spec(fields, version.metadata.current_schema())?;
        let Some(change) = change(&version, spec, (context.ids.next_u128(), context.clock.now_ms()))? else { return Ok(()) };
        match operations.commit(&version, &change).await {
            Ok(_) => return Ok(()),
            Err(error) => match error.class() {
                // After an unknown outcome the next look tells whether the spec is there.
                Class::Conflict | Class::Transient | Class::Unknown => last = error.to_string(),
                Class::Fatal => {
                    return Err(TableError::Catalog { class: Class::Fatal, what: error.to_string(), source: Some(Box::new(error)) });
                }
            },
        }
        context.sleep.sleep(context.policy.min_wait_ms.saturating_mul(u64::from(attempts)).min(context.policy.max_wait_ms)).await;
    }
    Err(TableError::OutOfAttempts { name: operations.name().clone(), attempts: context.policy.max_attempts, last })
}

fn change(version: &TableVersion, spec: UnboundPartitionSpec, (file_id, now_ms): (u128, i64)) -> Result<Option<StagedChange>, TableError> {
    let metadata = &version.metadata;
    let builder = metadata.as_ref().clone().into_builder(Some(version.metadata_location.clone()));
    let built = builder.add_default_partition_spec(spec).and_then(iceberg::spec::TableMetadataBuilder::build);
    let built = built.map_err(|error| TableError::Invalid(format!("the partitioning does not fit the table: {error}")))?;
    if built.metadata.default_partition_spec_id() == metadata.default_partition_spec_id() {
        return Ok(None);
    }
    Ok(Some(StagedChange {
        updates: built.changes,
        requirements: vec![
            TableRequirement::UuidMatch { uuid: metadata.uuid() },
            TableRequirement::DefaultSpecIdMatch { default_spec_id: metadata.default_partition_spec_id() },
        ],
        metadata_location: metadata_file::next_location(Some(&version.metadata_location), &built.metadata, file_id),
        metadata: at_time(&built.metadata, now_ms.max(metadata.last_updated_ms()))?,
        expired_logs: built.expired_metadata_logs,
    }))
}
