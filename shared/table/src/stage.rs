//! From a prepared delta and a base to a change that a catalog can commit.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::TableRequirement;
use iceberg::spec::{
    MAIN_BRANCH, ManifestFile, Snapshot, TableMetadata, TableMetadataBuildResult, TableMetadataBuilder, UnboundPartitionSpec,
};
use sluice_model::OffsetLedger;
use sluice_model::mutants::{self, Mutant};

use crate::commit_loop::Attempt;
use crate::ledger::{PropertyChange, property_change};
use crate::manifest_merge::Merger;
use crate::manifests::Base;
use crate::scope::DeleteScope;
use crate::snapshot_producer::{SnapshotContent, SnapshotIdentity, next_timestamp, produce, write_manifests};
use crate::{PreparedDelta, StagedChange, TableError, TableVersion, Truncate, metadata_file};

/// A delta on its way into the table: what stays the same over all attempts.
pub(crate) struct Staging {
    pub(crate) prepared: PreparedDelta,
    pub(crate) identity: SnapshotIdentity,
    /// Written in the first attempt that gets so far.
    manifests: Option<Vec<ManifestFile>>,
    merger: Merger,
    gaps_closed: usize,
}

impl Staging {
    pub(crate) fn new(prepared: PreparedDelta, identity: SnapshotIdentity) -> Self {
        Self { prepared, identity, manifests: None, merger: Merger::default(), gaps_closed: 0 }
    }

    /// How many gaps of the ledger the last attempt closed.
    pub(crate) const fn gaps_closed(&self) -> usize {
        self.gaps_closed
    }

    /// Builds the change on that base. `ledger` is the base's.
    pub(crate) async fn stage_delta(
        &mut self,
        base: &mut Base,
        mut ledger: OffsetLedger,
        attempt: Attempt,
    ) -> Result<StagedChange, TableError> {
        self.gaps_closed = ledger.claim(&self.prepared.delta.claims);
        let listed = if mutants::is(Mutant::StaleManifestList) { &mut self.prepared.base } else { &mut *base };
        let before = listed.manifests().await?.to_vec();
        let base = &base.version;
        let mut properties = property_change(&base.metadata, &ledger);
        properties.set.extend(self.prepared.delta.properties.clone());
        let altered = self.altered(base)?;
        let snapshot = self.snapshot((base, &altered), (&ledger, &before), attempt).await?;
        let builder = base.metadata.as_ref().clone().into_builder(Some(base.metadata_location.clone()));
        let result = self.alter(builder).and_then(|builder| finish(builder, properties, snapshot))?.build().map_err(wrong())?;
        Ok(staged(base, result, (self.requirements(&base.metadata), attempt.file_id)))
    }

    /// The base with the delta's schema and specs: what the snapshot is made on.
    fn altered(&self, base: &TableVersion) -> Result<TableVersion, TableError> {
        if self.prepared.schema.is_none() && !self.adds_spec(&base.metadata) {
            return Ok(base.clone());
        }
        let builder = self.alter(base.metadata.as_ref().clone().into_builder(None))?;
        let metadata = builder.build().map_err(wrong())?.metadata;
        // `build` has stamped this with the machine's clock: its times are not to be used.
        Ok(TableVersion { metadata: Arc::new(metadata), ..base.clone() })
    }

    fn alter(&self, mut builder: TableMetadataBuilder) -> Result<TableMetadataBuilder, TableError> {
        if let Some(schema) = &self.prepared.schema {
            builder = builder.add_current_schema(schema.clone()).map_err(wrong())?;
        }
        if self.adds_spec(&self.prepared.base.version.metadata) {
            builder = builder.add_partition_spec(UnboundPartitionSpec::builder().build()).map_err(wrong())?;
        }
        Ok(builder)
    }

    fn adds_spec(&self, metadata: &TableMetadata) -> bool {
        match self.prepared.scope {
            Some(DeleteScope::Global { spec_id }) => metadata.partition_spec_by_id(spec_id).is_none(),
            Some(DeleteScope::Partition { .. }) | None => false,
        }
    }

    async fn snapshot(
        &mut self,
        (base, altered): (&TableVersion, &TableVersion),
        (ledger, before): (&OffsetLedger, &[ManifestFile]),
        attempt: Attempt,
    ) -> Result<Snapshot, TableError> {
        let manifests = match self.manifests.take() {
            Some(manifests) => manifests,
            None => write_manifests((&altered.file_io, &altered.metadata), (self.identity, None), &self.prepared.files).await?,
        };
        let before = match self.prepared.delta.truncate {
            Truncate::Keep => self.merger.merge(altered, self.identity, (before, &manifests)).await?,
            Truncate::All => before.to_vec(),
        };
        let mut summary: HashMap<String, String> = self.prepared.delta.summary.clone().into_iter().collect();
        if !ledger.is_empty() {
            summary.insert(OffsetLedger::SUMMARY_KEY.to_owned(), ledger.to_text());
        }
        let content = SnapshotContent {
            identity: self.identity,
            attempt: attempt.number,
            timestamp_ms: next_timestamp(&base.metadata, attempt.now_ms),
            files: &self.prepared.files,
            manifests: if mutants::is(Mutant::ClaimWithoutApplying) && attempt.number > 1 { &[] } else { &manifests },
            before: &before,
            truncate: self.prepared.delta.truncate,
            summary,
        };
        let snapshot = produce(altered, content).await?;
        self.manifests = Some(manifests);
        Ok(snapshot)
    }

    fn requirements(&self, base: &TableMetadata) -> Vec<TableRequirement> {
        let mut requirements = vec![
            TableRequirement::UuidMatch { uuid: base.uuid() },
            TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id: base.current_snapshot_id() },
            TableRequirement::CurrentSchemaIdMatch { current_schema_id: base.current_schema_id() },
            TableRequirement::DefaultSpecIdMatch { default_spec_id: base.default_partition_spec_id() },
        ];
        if self.prepared.schema.is_some() {
            requirements.push(TableRequirement::LastAssignedFieldIdMatch { last_assigned_field_id: base.last_column_id() });
        }
        if self.adds_spec(base) {
            let last_assigned_partition_id = base.last_partition_id();
            requirements.push(TableRequirement::LastAssignedPartitionIdMatch { last_assigned_partition_id });
        }
        requirements
    }
}

/// What a catalog is given of built metadata.
pub(crate) fn staged(
    base: &TableVersion,
    result: TableMetadataBuildResult,
    (requirements, file_id): (Vec<TableRequirement>, u128),
) -> StagedChange {
    StagedChange {
        updates: result.changes,
        requirements,
        metadata_location: metadata_file::next_location(Some(&base.metadata_location), &result.metadata, file_id),
        metadata: result.metadata,
        expired_logs: result.expired_metadata_logs,
    }
}

/// The base with one more snapshot on `main`, committed only if that has not moved (rule R11).
pub(crate) fn on_main(base: &TableVersion, snapshot: Snapshot, file_id: u128) -> Result<StagedChange, TableError> {
    let builder = base.metadata.as_ref().clone().into_builder(Some(base.metadata_location.clone()));
    let result = builder.set_branch_snapshot(snapshot, MAIN_BRANCH).and_then(TableMetadataBuilder::build).map_err(wrong())?;
    let snapshot_id = base.metadata.current_snapshot_id();
    let requirements = vec![
        TableRequirement::UuidMatch { uuid: base.metadata.uuid() },
        TableRequirement::RefSnapshotIdMatch { r#ref: MAIN_BRANCH.to_owned(), snapshot_id },
    ];
    Ok(staged(base, result, (requirements, file_id)))
}

/// What a maintenance snapshot's summary takes over: the ledger, and the newest marks of other writers, which look for theirs in the newest snapshots (rule R16).
pub(crate) fn kept_summary(metadata: &TableMetadata) -> Result<HashMap<String, String>, TableError> {
    let mut summary = crate::markers::newest(metadata);
    let ledger = crate::ledger::read(metadata)?;
    if !ledger.is_empty() {
        summary.insert(OffsetLedger::SUMMARY_KEY.to_owned(), ledger.to_text());
    }
    Ok(summary)
}

fn wrong() -> impl FnOnce(iceberg::Error) -> TableError {
    TableError::iceberg("building the table's next metadata")
}

/// `set_branch_snapshot` keeps the retention that the branch has.
fn finish(builder: TableMetadataBuilder, change: PropertyChange, snapshot: Snapshot) -> Result<TableMetadataBuilder, TableError> {
    let mut builder = builder.set_properties(change.set).map_err(wrong())?;
    if !change.removed.is_empty() {
        builder = builder.remove_properties(&change.removed).map_err(wrong())?;
    }
    builder.set_branch_snapshot(snapshot, MAIN_BRANCH).map_err(wrong())
}
