//! Compactions of whole tables.

use std::collections::BTreeMap;

use sluice_table::rewrite::{
    FileFacts, KeyProof, RewriteOptions, RewriteOutcome, RewrittenGroup, TableFiles, commit_rewrite, rewrite_group,
};
use sluice_table::{FileContent, TableVersion};

use super::Fixture;

pub fn options(table: &Fixture) -> RewriteOptions<'_> {
    RewriteOptions {
        ids: table.services.ids.as_ref(),
        target_file_bytes: 1 << 20,
        delete_memory_bytes: 1 << 20,
        sort_memory_bytes: 1 << 20,
        keys: KeyProof::Off,
    }
}

/// The data files of a snapshot, by scope.
pub fn groups(facts: &[FileFacts]) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for file in facts.iter().filter(|file| file.content == FileContent::Data) {
        groups.entry(file.scope).or_default().push(file.path.clone());
    }
    groups.into_values().collect()
}

pub async fn rewrite_all(table: &Fixture) -> (TableFiles, Vec<RewrittenGroup>) {
    let files = TableFiles::load(&table.now().await, None).await.unwrap().unwrap();
    let mut rewritten = Vec::new();
    for paths in groups(&files.facts()) {
        rewritten.push(rewrite_group(&files, &paths, &options(table)).await.unwrap());
    }
    (files, rewritten)
}

pub async fn compact(table: &Fixture) -> TableVersion {
    let (files, groups) = rewrite_all(table).await;
    match commit_rewrite(&*table.ops, (&files, &groups), &table.services.commit_context()).await.unwrap() {
        RewriteOutcome::Committed { version, .. } => version,
        RewriteOutcome::Stale { reason, .. } => panic!("stale: {reason}"),
    }
}
