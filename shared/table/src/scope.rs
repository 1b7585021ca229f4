//! How far equality deletes reach.
//!
//! They reach the files of one partition of one spec, or, under an unpartitioned spec, all files (rule W2). The partition of the old row is known
//! only if it follows from the key, and it is the same in all files only if they were all written under one spec.

use iceberg::spec::{ManifestContentType, PartitionSpecRef, TableMetadata, UnboundPartitionSpec};

use crate::manifests::Base;
use crate::{StaleReason, TableError};

/// The scope of a delta's delete files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteScope {
    /// Each delete file reaches one partition of this spec.
    Partition {
        /// The default spec.
        spec_id: i32,
    },
    /// The delete file reaches everything.
    Global {
        /// An unpartitioned spec, which the commit must add when the table lacks it.
        spec_id: i32,
    },
}

impl DeleteScope {
    pub(crate) const fn spec_id(self) -> i32 {
        match self {
            Self::Partition { spec_id } | Self::Global { spec_id } => spec_id,
        }
    }

    /// The scope for deletes by these key columns on that base.
    pub(crate) async fn choose(base: &mut Base, key_ids: &[i32]) -> Result<Self, TableError> {
        let spec = base.version.metadata.default_partition_spec().clone();
        if spec.is_unpartitioned() {
            return Ok(Self::Global { spec_id: spec.spec_id() });
        }
        let follows_from_key = spec.fields().iter().all(|field| key_ids.contains(&field.source_id));
        if follows_from_key && one_spec_only(base, spec.spec_id()).await? {
            return Ok(Self::Partition { spec_id: spec.spec_id() });
        }
        Ok(Self::Global { spec_id: unpartitioned(&with_unpartitioned(&base.version.metadata)?)? })
    }

    /// Why files of this scope would not delete what they must on that base, if so.
    pub(crate) async fn objection(self, base: &mut Base) -> Result<Option<StaleReason>, TableError> {
        let holds = match self {
            Self::Partition { spec_id } => one_spec_only(base, spec_id).await?,
            Self::Global { spec_id } => spec_or_next(&base.version.metadata, spec_id)?,
        };
        Ok(if holds { None } else { Some(StaleReason::PartitionSpecChanged) })
    }
}

/// Whether `spec_id` is an unpartitioned spec of the table, or will be when one is added.
fn spec_or_next(metadata: &TableMetadata, spec_id: i32) -> Result<bool, TableError> {
    match metadata.partition_spec_by_id(spec_id) {
        Some(spec) => Ok(spec.is_unpartitioned()),
        None => Ok(unpartitioned(&with_unpartitioned(metadata)?)? == spec_id),
    }
}

async fn one_spec_only(base: &mut Base, spec_id: i32) -> Result<bool, TableError> {
    let manifests = base.manifests().await?;
    let live_data = manifests
        .iter()
        .filter(|manifest| manifest.content == ManifestContentType::Data && (manifest.has_added_files() || manifest.has_existing_files()));
    Ok(live_data.into_iter().all(|manifest| manifest.partition_spec_id == spec_id))
}

/// The table with a spec that has no fields. Specs of nothing but void fields are left alone: their files carry a value a field.
fn with_unpartitioned(metadata: &TableMetadata) -> Result<TableMetadata, TableError> {
    let wrong = || TableError::iceberg("adding an unpartitioned spec");
    let builder = metadata.clone().into_builder(None).add_partition_spec(UnboundPartitionSpec::builder().build()).map_err(wrong())?;
    Ok(builder.build().map_err(wrong())?.metadata)
}

fn unpartitioned(metadata: &TableMetadata) -> Result<i32, TableError> {
    let found: Option<&PartitionSpecRef> = metadata.partition_specs_iter().find(|spec| spec.fields().is_empty());
    found.map(|spec| spec.spec_id()).ok_or_else(|| TableError::Invalid("the unpartitioned spec was not added".to_owned()))
}
