//! Random histories: writers, other programs and the four jobs on one table, with deaths, lost replies and writers in between. The oracle is a model that knows nothing of files: each snapshot's rows as
//! they were when it was made. A second one, by brute force, tells which delete applies to which row.
//!
//! Tables begin in format version 2 or 3, and some are upgraded on the way. In version 3 other programs delete by vectors, and each snapshot's rows keep their ids (R15, C5).
//!
//! After every step: the rows of every snapshot that is there are those of the model (I1, I2, R7, M1), everything that the table needs exists (F1), the ledger is what it was (R16). At the end, when everybody
//! has stopped: all that nothing needs is removed, and nothing else (F2, I4).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, NestedField, NestedFieldRef, Operation, PrimitiveType, Schema,
    SnapshotReference, SnapshotRetention, Type,
};
use proptest::prelude::*;
use sluice_maintenance::compact::CompactSettings;
use sluice_maintenance::expire::ExpireSettings;
use sluice_maintenance::manifests::ManifestSettings;
use sluice_maintenance::orphans::OrphanSettings;
use sluice_maintenance::{Compact, Expire, Manifests, Mode, Orphans, Outcome, Selector};
use sluice_model::TransformedColumn;
use sluice_storage::ObjectStore as _;
use sluice_table::expire::{normalised, referenced};
use sluice_table::{TableCreation, ledger};
use sluice_testkit::{foreign, oracle, tables, vectors};
use support::{HOUR, Lake, Trouble};

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Upsert(Vec<(u8, Option<bool>)>),
    Delete(Vec<u8>),
    Repartition(u8),
    /// Another program changes the schema: a column more, another name for `region`, more digits for `total`.
    Evolve(Evolution),
    /// Another program deletes the row with that number by its place, and names the data file in the manifest or not.
    DeleteByPlace(u8, Naming),
    /// Another program deletes rows by deletion vectors, all in one Puffin file. In format version 2 nothing happens.
    DeleteByVectors(Vec<u8>),
    /// To format version 3.
    Upgrade,
    /// Of the snapshot so many back.
    Tag(u8),
    /// To the snapshot so many back.
    RollBack(u8),
    Job(What, Fault),
    Wait(u8),
    /// A file that no commit will ever name.
    Litter,
}

#[derive(Debug, Clone, Copy)]
enum Evolution {
    Add,
    Rename,
    Promote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Named,
    Unnamed,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Compact,
    Expire,
    Manifests,
    Orphans,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    Writer(u8),
    LostReply,
    LostRequest,
    /// The process dies after so many calls.
    Death(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let row = (0_u8..12, prop::option::of(any::<bool>()));
    let what = prop_oneof![4 => Just(What::Compact), 3 => Just(What::Expire), 1 => Just(What::Manifests), 2 => Just(What::Orphans)];
    let fault = prop_oneof![
        3 => Just(Fault::None),
        2 => (0_u8..12).prop_map(Fault::Writer),
        1 => Just(Fault::LostReply),
        1 => Just(Fault::LostRequest),
        3 => (0_u8..16).prop_map(Fault::Death),
    ];
    prop_oneof![
        8 => prop::collection::vec(row, 1..6).prop_map(Step::Upsert),
        2 => prop::collection::vec(0_u8..12, 1..4).prop_map(Step::Delete),
        1 => (0_u8..4).prop_map(Step::Repartition),
        1 => prop_oneof![Just(Evolution::Add), Just(Evolution::Rename), Just(Evolution::Promote)].prop_map(Step::Evolve),
        2 => (0_u8..12, prop_oneof![Just(Naming::Named), Just(Naming::Unnamed)]).prop_map(|(row, naming)| Step::DeleteByPlace(row, naming)),
        3 => prop::collection::vec(0_u8..12, 1..4).prop_map(Step::DeleteByVectors),
        1 => Just(Step::Upgrade),
        1 => (0_u8..4).prop_map(Step::Tag),
        1 => (1_u8..3).prop_map(Step::RollBack),
        8 => (what, fault).prop_map(|(what, fault)| Step::Job(what, fault)),
        3 => (1_u8..100).prop_map(Step::Wait),
        1 => Just(Step::Litter),
    ]
}

struct World {
    lake: Lake,
    /// Of every snapshot that ever was: its rows, and the ledger's text.
    model: BTreeMap<i64, (tables::Rows, String)>,
    number: i128,
    /// Whether another program has left deletes by place that name no data file.
    unnamed: Option<Naming>,
    /// The snapshot that was last read by brute force.
    read: std::cell::Cell<Option<i64>>,
    /// What was deleted by place, by path of the data file.
    positions: BTreeMap<String, Vec<u64>>,
    /// The largest of all next row ids, and the lineage of the snapshots of format version 3: by key, the row's id and the number of its last update.
    lineage: BTreeMap<i64, Lineage>,
    next_row_id: u64,
}

type Lineage = BTreeMap<i64, (i64, i64)>;

impl World {
    async fn new(partition_by: &[&str], format_version: u8) -> Self {
        let lake = Lake::new(17);
        let creation = TableCreation { format_version, ..tables::creation(partition_by) };
        tables::create(&*lake.catalog.inner, "t", &creation).await;
        let (model, lineage, read) = (BTreeMap::new(), BTreeMap::new(), std::cell::Cell::default());
        Self { lake, model, number: 0, unnamed: None, read, positions: BTreeMap::new(), lineage, next_row_id: 0 }
    }

    async fn rows(&self) -> tables::Rows {
        let current = self.lake.now("t").await.metadata.current_snapshot_id();
        current.map(|id| self.model[&id].0.clone()).unwrap_or_default()
    }

    async fn take(&mut self, step: &Step) {
        let lake = &self.lake;
        lake.wait(60_000);
        match step {
            Step::Upsert(values) => self.upsert(values).await,
            Step::Delete(ids) => {
                let mut rows = self.rows().await;
                let ids: BTreeSet<i64> = ids.iter().map(|id| i64::from(*id)).collect();
                rows.retain(|id, _| !ids.contains(id));
                let version = self.lake.delete("t", &ids.into_iter().collect::<Vec<_>>()).await;
                self.learn(&version, rows);
            }
            Step::Repartition(which) => {
                let region = region_name(&lake.now("t").await);
                let bucketed = [region.as_str(), "bucket(3, id)"];
                let fields = [&[][..], &bucketed[..1], &["bucket(2, id)"], &bucketed][usize::from(*which)];
                let fields: Vec<TransformedColumn> = fields.iter().map(|field| TransformedColumn::parse(field).unwrap()).collect();
                sluice_table::set_partitioning(&*lake.ops("t").await, &fields, &lake.services.commit_context()).await.unwrap();
            }
            Step::Evolve(how) => self.evolve(*how).await,
            Step::DeleteByPlace(row, naming) => self.delete_by_place(*row, *naming).await,
            Step::DeleteByVectors(rows) => self.delete_by_vectors(rows).await,
            Step::Upgrade => {
                foreign::alter(&*lake.ops("t").await, |builder| builder.upgrade_format_version(FormatVersion::V3).unwrap()).await;
            }
            Step::Tag(back) => {
                if let Some(id) = self.ancestor(*back).await {
                    let tag = SnapshotReference::new(id, SnapshotRetention::Tag { max_ref_age_ms: None });
                    foreign::alter(&*self.lake.ops("t").await, |builder| builder.set_ref(&format!("tag-{id}"), tag).unwrap()).await;
                }
            }
            Step::RollBack(back) => {
                if let Some(id) = self.ancestor(*back).await {
                    foreign::roll_back(&*self.lake.ops("t").await, id).await;
                }
            }
            Step::Job(what, fault) => self.job(*what, *fault).await,
            Step::Wait(hours) => lake.wait(i64::from(*hours) * HOUR),
            Step::Litter => {
                self.number += 1;
                let location = lake.now("t").await.metadata.location().to_owned();
                lake.litter(&format!("{location}/data/litter-{}.parquet", self.number)).await;
            }
        }
    }

    async fn upsert(&mut self, values: &[(u8, Option<bool>)]) {
        let mut rows = self.rows().await;
        let mut batch: BTreeMap<i64, (Option<&str>, i128)> = BTreeMap::new();
        for (id, region) in values {
            self.number += 1;
            batch.insert(i64::from(*id), (region.map(|eu| if eu { "eu" } else { "" }), self.number));
        }
        rows.extend(batch.iter().map(|(id, (region, total))| (*id, (region.map(str::to_owned), *total))));
        let batch: Vec<(i64, Option<&str>, i128)> = batch.into_iter().map(|(id, (region, total))| (id, region, total)).collect();
        let version = self.lake.upsert("t", &batch).await;
        self.learn(&version, rows);
    }

    async fn evolve(&mut self, how: Evolution) {
        self.number += 1;
        let version = self.lake.now("t").await;
        let (schema, more) = (version.metadata.current_schema(), format!("extra_{}", self.number));
        let renamed = if region_name(&version) == "region" { "territory" } else { "region" };
        let change = |field: &NestedFieldRef| {
            let mut field = field.as_ref().clone();
            match (how, field.id) {
                (Evolution::Rename, 2) => field.name = renamed.to_owned(),
                (Evolution::Promote, 3) => *field.field_type = Type::Primitive(PrimitiveType::Decimal { precision: 20, scale: 2 }),
                (Evolution::Add | Evolution::Rename | Evolution::Promote, _) => {}
            }
            NestedFieldRef::new(field)
        };
        let mut fields: Vec<NestedFieldRef> = schema.as_struct().fields().iter().map(change).collect();
        match how {
            Evolution::Add => {
                let id = version.metadata.last_column_id() + 1;
                fields.push(NestedField::optional(id, more, Type::Primitive(PrimitiveType::Long)).into());
            }
            Evolution::Rename | Evolution::Promote => {}
        }
        let schema = Schema::builder().with_fields(fields).with_identifier_field_ids(schema.identifier_field_ids()).build().unwrap();
        foreign::alter(&*self.lake.ops("t").await, |builder| builder.add_current_schema(schema).unwrap()).await;
    }

    async fn delete_by_place(&mut self, row: u8, naming: Naming) {
        let version = self.lake.now("t").await;
        let Some(current) = version.metadata.current_snapshot_id() else { return };
        // In format version 3 nobody writes new files of positions.
        if version.metadata.format_version() == FormatVersion::V3 {
            return;
        }
        // The foreign writer writes under the spec of now.
        let spec_id = version.metadata.default_partition_spec_id();
        let live: Vec<_> = oracle::live(&version, current).await.into_iter().filter(|live| live.spec_id == spec_id).collect();
        let Some(gone) = live.get(usize::from(row) % live.len().max(1)) else { return };
        self.number += 1;
        let path = format!("{}/data/positions-{}.parquet", version.metadata.location(), self.number);
        oracle::store_positions(&version, &path, (&gone.path, &[gone.position])).await;
        let mut delete = DataFileBuilder::default();
        delete.file_path(path).content(DataContentType::PositionDeletes).file_format(DataFileFormat::Parquet);
        delete.record_count(1).file_size_in_bytes(1).partition(gone.partition.clone());
        match naming {
            Naming::Named => {
                delete.referenced_data_file(Some(gone.path.clone()));
            }
            Naming::Unnamed => self.unnamed = Some(naming),
        }
        self.positions.entry(gone.path.clone()).or_default().push(gone.position.cast_unsigned());
        let mut rows = self.rows().await;
        rows.remove(&gone.id);
        let version = foreign::snapshot(&*self.lake.ops("t").await, Some(delete.build().unwrap())).await;
        self.learn(&version, rows);
    }

    async fn delete_by_vectors(&mut self, rows: &[u8]) {
        let version = self.lake.now("t").await;
        let Some(current) = version.metadata.current_snapshot_id() else { return };
        let live = oracle::live(&version, current).await;
        let gone: BTreeSet<usize> = rows.iter().map(|row| usize::from(*row) % live.len().max(1)).collect();
        let gone: Vec<_> = gone.into_iter().filter_map(|at| live.get(at)).collect();
        if gone.is_empty() || version.metadata.format_version() != FormatVersion::V3 {
            return;
        }
        self.number += 1;
        let path = format!("{}/data/vectors-{}.puffin", version.metadata.location(), self.number);
        let mut deleted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let is_live = |path: &str, place: u64| live.iter().any(|row| row.path == path && row.position.cast_unsigned() == place);
        for row in &gone {
            // Positions of before the upgrade have to be in the new vector.
            let held = || self.positions.get(&row.path).into_iter().flatten().copied();
            let dead = || held().filter(|place| !is_live(&row.path, *place)).collect();
            deleted.entry(row.path.clone()).or_insert_with(dead).push(row.position.cast_unsigned());
        }
        let mut rows = self.rows().await;
        gone.iter().for_each(|row| drop(rows.remove(&row.id)));
        let deleted: Vec<(String, Vec<u64>)> = deleted.into_iter().collect();
        let version = vectors::delete(&*self.lake.ops("t").await, &path, &deleted).await;
        self.learn(&version, rows);
    }

    fn learn(&mut self, version: &sluice_table::TableVersion, rows: tables::Rows) {
        let text = ledger::read(&version.metadata).unwrap().to_text();
        self.model.insert(version.metadata.current_snapshot_id().unwrap(), (rows, text));
    }

    async fn ancestor(&self, back: u8) -> Option<i64> {
        let metadata = self.lake.now("t").await.metadata;
        let mut id = metadata.current_snapshot_id()?;
        for _ in 0..back {
            id = metadata.snapshot_by_id(id)?.parent_snapshot_id().filter(|id| metadata.snapshot_by_id(*id).is_some())?;
        }
        Some(id)
    }

    async fn job(&mut self, what: What, fault: Fault) {
        let lake = &self.lake;
        match fault {
            Fault::None => {}
            Fault::Writer(id) => lake.trouble(Trouble::Writer(i64::from(id))),
            Fault::LostReply => lake.trouble(Trouble::LostReply),
            Fault::LostRequest => lake.trouble(Trouble::LostRequest),
            Fault::Death(calls) => lake.fuse.set(i64::from(calls)),
        }
        run(lake, what).await;
        lake.fuse.set(i64::MAX);
        lake.trouble(Trouble::None);
        // The lease of the dead ends.
        lake.wait(2 * HOUR);
        self.learn_others().await;
    }

    /// Snapshots that the model has not seen: a job's have their parent's rows, a racing writer's one row more.
    async fn learn_others(&mut self) {
        let version = self.lake.now("t").await;
        let mut new: Vec<_> = version.metadata.snapshots().filter(|snapshot| !self.model.contains_key(&snapshot.snapshot_id())).collect();
        new.sort_by_key(|snapshot| snapshot.sequence_number());
        for snapshot in new {
            let (mut rows, mut text) = snapshot.parent_snapshot_id().map(|parent| self.model[&parent].clone()).unwrap_or_default();
            if snapshot.summary().operation != Operation::Replace {
                text = snapshot.summary().additional_properties["sluice.ledger"].clone();
                let read = tables::read_at(&version, Some(snapshot.snapshot_id())).await;
                let raced: Vec<_> = read.iter().filter(|(id, row)| rows.get(id) != Some(row)).map(|(id, row)| (*id, row.clone())).collect();
                assert_eq!(raced.len(), 1, "a racing writer writes one row: {raced:?}");
                assert_eq!(raced[0].1.0.as_deref(), Some("raced"));
                rows.extend(raced);
            }
            self.model.insert(snapshot.snapshot_id(), (rows, text));
        }
    }

    /// R15, C5: no two rows have one id, and a row that a snapshot has not written keeps its lineage.
    async fn check_lineage(&mut self) {
        let version = self.lake.now("t").await;
        let metadata = &version.metadata;
        assert!(metadata.next_row_id() >= self.next_row_id, "the next row id went back");
        self.next_row_id = metadata.next_row_id();
        let mut new: Vec<_> = metadata.snapshots().filter(|snapshot| !self.lineage.contains_key(&snapshot.snapshot_id())).collect();
        new.sort_by_key(|snapshot| snapshot.sequence_number());
        for snapshot in new.into_iter().filter(|snapshot| snapshot.row_range().is_some()) {
            let id = snapshot.snapshot_id();
            let live = oracle::live(&version, id).await;
            let lineage: Lineage = live.iter().map(|row| (row.id, (row.row_id.unwrap(), row.updated))).collect();
            let ids: BTreeSet<i64> = lineage.values().map(|(row_id, _)| *row_id).collect();
            assert!(ids.len() == live.len() && ids.iter().all(|id| *id < self.next_row_id.cast_signed()), "{lineage:?}");
            let parent = snapshot.parent_snapshot_id();
            if let Some((parent, before)) = parent.and_then(|parent| Some((parent, self.lineage.get(&parent)?))) {
                let untouched = |id: &i64| self.model[&parent].0.get(id) == self.model[&snapshot.snapshot_id()].0.get(id);
                let kept: Vec<_> = before.iter().filter(|(id, _)| untouched(id)).collect();
                assert!(kept.iter().all(|(id, row)| lineage[id] == **row), "snapshot {id}: {before:?} became {lineage:?}");
            }
            self.lineage.insert(id, lineage);
        }
    }

    async fn check(&mut self) {
        self.check_lineage().await;
        let version = self.lake.now("t").await;
        for snapshot in version.metadata.snapshots() {
            let id = snapshot.snapshot_id();
            assert_eq!(tables::read_at(&version, Some(id)).await, self.model[&id].0, "the rows of snapshot {id}");
        }
        if let Some(id) = version.metadata.current_snapshot_id() {
            assert_eq!(ledger::read(&version.metadata).unwrap().to_text(), self.model[&id].1, "the ledger");
            if self.read.replace(Some(id)) != Some(id) {
                assert_eq!(oracle::rows(&version, id).await, self.model[&id].0, "by brute force, the rows of snapshot {id}");
            }
        }
        let everything: BTreeSet<String> = self.lake.everything().await.iter().map(|path| normalised(path)).collect();
        // Metadata files that fell out of the log, and those in it that a catalog has deleted, are the catalog's business.
        let needed = referenced(&version).await.unwrap();
        let missing: Vec<&String> = needed.iter().filter(|path| !everything.contains(*path) && !path.ends_with(".metadata.json")).collect();
        assert!(live_missing(&version, &missing).await.is_empty(), "needed and gone: {missing:?}");
    }
}

fn region_name(version: &sluice_table::TableVersion) -> String {
    version.metadata.current_schema().field_by_id(2).unwrap().name.clone()
}

/// Of the missing files those that a snapshot can still read: an entry that tells of a deletion may name a file that is gone.
async fn live_missing(version: &sluice_table::TableVersion, missing: &[&String]) -> Vec<String> {
    let mut live = BTreeSet::new();
    for snapshot in version.metadata.snapshots() {
        live.insert(normalised(snapshot.manifest_list()));
        for path in foreign::manifest_paths(version, snapshot.manifest_list()).await {
            live.insert(normalised(&path));
        }
        let files = sluice_table::rewrite::TableFiles::load(version, Some(snapshot.snapshot_id())).await.unwrap().unwrap();
        live.extend(files.facts().into_iter().map(|file| normalised(&file.path)));
    }
    missing.iter().filter(|path| live.contains(**path)).map(|path| (*path).clone()).collect()
}

async fn run(lake: &Lake, what: What) -> Option<Outcome> {
    let mode = Mode::Execute { lease_ms: HOUR };
    let (selector, context) = (Selector::default(), lake.context());
    let compact = Compact {
        settings: CompactSettings { min_input_files: 2, min_delete_files: 1, groups_per_commit: 1, ..CompactSettings::default() },
    };
    let expire = Expire { settings: ExpireSettings { min_snapshots_to_keep: 2, ..ExpireSettings::default() } };
    let manifests = Manifests { settings: ManifestSettings { min_manifests: 2, ..ManifestSettings::default() } };
    let orphans = Orphans { settings: OrphanSettings { max_percent: 100, ..OrphanSettings::default() } };
    let reports = match what {
        What::Compact => sluice_maintenance::run(&compact, (&selector, mode), &context, &mut |_, _| {}).await,
        What::Expire => sluice_maintenance::run(&expire, (&selector, mode), &context, &mut |_, _| {}).await,
        What::Manifests => sluice_maintenance::run(&manifests, (&selector, mode), &context, &mut |_, _| {}).await,
        What::Orphans => sluice_maintenance::run(&orphans, (&selector, mode), &context, &mut |_, _| {}).await,
    };
    reports.ok().and_then(|mut reports| reports.pop()).map(|report| report.outcome)
}

async fn history((partition_by, format_version): (&[&str], u8), steps: &[Step]) {
    let mut world = World::new(partition_by, format_version).await;
    for step in steps {
        world.take(step).await;
        world.check().await;
    }
    // Everybody stops: the jobs come to rest, and only what is needed is left.
    for what in [What::Compact, What::Expire, What::Orphans] {
        world.lake.wait(200 * HOUR);
        world.job(what, Fault::None).await;
        world.check().await;
    }
    if world.unnamed.is_some() {
        // Deletes by place of the last commit that name no data file may be about the new file, as far as their numbers tell; the next compaction takes them out.
        for what in [What::Compact, What::Expire, What::Orphans] {
            world.lake.wait(200 * HOUR);
            world.job(what, Fault::None).await;
            world.check().await;
        }
    }
    let again = run(&world.lake, What::Compact).await;
    assert!(matches!(again, Some(Outcome::NothingDue)), "a second compaction found work: {again:?}");
    let version = world.lake.now("t").await;
    let needed = referenced(&version).await.unwrap();
    let left = world.lake.everything().await;
    let useless: Vec<&String> = left.iter().filter(|path| !needed.contains(&normalised(path)) && !path.contains("/_sluice/")).collect();
    assert!(useless.is_empty(), "left behind: {useless:#?}");
    assert!(!left.iter().any(|path| path.contains("/_sluice/expire/")), "an expiry was never finished");
    assert!(world.lake.objects.get(&version.metadata_location).await.unwrap().is_some());
}

fn cases() -> u32 {
    std::env::var("MAINTENANCE_CASES").map_or(24, |text| text.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_loses_a_row_or_a_file(
        partitioning in 0_usize..4,
        format_version in 2_u8..4,
        steps in prop::collection::vec(step(), 4..28),
    ) {
        let partition_by = [&[][..], &["region"], &["bucket(2, id)"], &["region", "bucket(2, id)"]][partitioning];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(history((partition_by, format_version), &steps));
    }
}
