//! Records that are tried again come late: changes that followed them may have been applied. A change is let through only when the table's history proves that it
//! overwrites nothing newer (promise R3; docs/adr/0014-redrive.md).

use std::collections::{BTreeMap, HashMap};

use arrow_array::RecordBatch;
use sluice_model::{ChangeEvent, Coordinate, DeclaredType, ReasonCode, Rejection, Stage};
use sluice_pipeline::{Converted, Standing, Touch};
use sluice_table::history::{History, KeyChanges, Since, key_changes, redriven};
use sluice_table::{BaseUse, TableError, lookup};

use super::apply::column;
use super::{Resolved, Resolver};
use crate::batch::{Applied, Decision, Order, Origin, Past};

/// Changes and the units that they are.
type Changes<'c, 'd> = Vec<(usize, &'c ChangeEvent<'d>)>;

/// What the order of changes says of one.
enum Verdict {
    Apply,
    Stale,
    Refused(Rejection),
}

impl<'d> Resolver<'_, 'd> {
    /// The changes that may be applied; the others are refused, or stale. What is let through by what the table holds holds on this snapshot only.
    pub(super) async fn in_order<'c>(
        &self,
        open: Changes<'c, 'd>,
        ddl_columns: &[(String, DeclaredType)],
        resolved: &mut Resolved,
    ) -> Result<(Changes<'c, 'd>, BaseUse), TableError> {
        let Some(past) = self.batch.past.as_ref() else { return Ok((open, BaseUse::Rebasable)) };
        match past.order {
            Order::Overwrite => return Ok((open, BaseUse::Rebasable)),
            Order::Proven => {}
        }
        let converted = self.target(ddl_columns).convert(&open, &[])?;
        let evidence = self.evidence((past, &open), &converted).await?;
        let mut kept = Vec::with_capacity(open.len());
        for (event, (unit, change)) in open.into_iter().enumerate() {
            match evidence.verdict(event, past.origins.get(unit)) {
                Verdict::Apply => kept.push((unit, change)),
                Verdict::Stale => resolved.decided.push((unit, Decision::Stale)),
                Verdict::Refused(rejection) => resolved.refused.push((unit, rejection)),
            }
        }
        Ok((kept, if evidence.asks_history() { BaseUse::PinnedToSnapshot } else { BaseUse::Rebasable }))
    }

    async fn evidence(&self, (past, open): (&Past, &Changes<'_, 'd>), converted: &Converted) -> Result<Evidence, TableError> {
        let touches = converted.touches().map_err(|error| column(&error))?;
        let history = History::of(&self.version.metadata, &past.partition)?;
        let origins = open.iter().filter_map(|(unit, _)| past.origins.get(*unit));
        let earliest = origins.filter_map(|origin| match history.since(origin.coordinate, origin.refused_at_ms) {
            Since::Sequence(number) => Some(number),
            Since::Never | Since::Untold => None,
        });
        let asks = touches.of.iter().any(|(_, touch)| matches!(touch, Touch::Keys { .. } | Touch::Everything));
        let changes = match earliest.min().filter(|_| asks) {
            None => KeyChanges::default(),
            Some(since) => {
                let none = RecordBatch::new_empty(std::sync::Arc::new(arrow_schema::Schema::empty()));
                let keys = touches.keys.as_ref().unwrap_or(&none);
                let ids = if touches.keys.is_some() { converted.key_ids() } else { Vec::new() };
                key_changes(&self.version, (&history, since), (&ids, keys)).await?
            }
        };
        let standings = self.standings(converted).await?;
        Ok(Evidence { touches: touches.of.into_iter().collect(), standings, history, changes })
    }

    /// How the changes' versions stand to those of the stored rows, where a column is the version.
    async fn standings(&self, converted: &Converted) -> Result<HashMap<usize, Standing>, TableError> {
        if !converted.has_version_column() {
            return Ok(HashMap::new());
        }
        let Some(keys) = converted.lookup_keys().map_err(|error| column(&error))? else { return Ok(HashMap::new()) };
        let target = sluice_pipeline::arrow_schema(&converted.schema);
        let stored = lookup(&self.version, &target, &converted.key_ids(), &keys).await?;
        Ok(converted.standings(&stored).map_err(|error| column(&error))?.into_iter().collect())
    }

    /// What the snapshot says of the refused records that it brings, so that those that followed them are not held to be older.
    pub(super) fn redriven(&self, outcomes: &[(usize, Decision)]) -> Option<(String, String)> {
        let past = self.batch.past.as_ref()?;
        let brought: Vec<Coordinate> =
            outcomes.iter().filter_map(|(unit, _)| past.origins.get(*unit)).map(|origin| origin.coordinate).collect();
        redriven(&past.partition, *brought.iter().min()?, *brought.iter().max()?)
    }
}

/// What is known of the order of a table's changes.
struct Evidence {
    touches: BTreeMap<usize, Touch>,
    standings: HashMap<usize, Standing>,
    history: History,
    changes: KeyChanges,
}

impl Evidence {
    /// Whether any verdict rests on what the table holds.
    fn asks_history(&self) -> bool {
        self.touches.values().any(|touch| match touch {
            Touch::Keys { .. } | Touch::Everything => true,
            Touch::Adds | Touch::Nothing => false,
        })
    }

    fn verdict(&self, event: usize, origin: Option<&Origin>) -> Verdict {
        // An event that was not accepted is refused when it is converted for good.
        let (Some(touch), Some(origin)) = (self.touches.get(&event), origin) else { return Verdict::Apply };
        match touch {
            Touch::Nothing => Verdict::Apply,
            Touch::Adds => match origin.applied {
                Applied::No => Verdict::Apply,
                Applied::Perhaps => Verdict::Refused(perhaps_there()),
            },
            Touch::Keys { key, old } => match self.standings.get(&event) {
                Some(Standing::NotNewer) => Verdict::Stale,
                Some(Standing::Newer) => old.map_or(Verdict::Apply, |old| self.of_history(origin, &[old])),
                Some(Standing::Untold) | None => {
                    let keys: Vec<usize> = std::iter::once(*key).chain(*old).collect();
                    self.of_history(origin, &keys)
                }
            },
            Touch::Everything => self.of_rows(origin),
        }
    }

    /// Whether none of the keys was changed with the record or after it.
    fn of_history(&self, origin: &Origin, keys: &[usize]) -> Verdict {
        self.since(origin, |since| {
            let changed = keys.iter().filter_map(|key| self.changes.by_key.get(*key)).flatten();
            changed.copied().filter(|number| *number >= since).collect()
        })
    }

    /// Whether no row was added with the record or after it.
    fn of_rows(&self, origin: &Origin) -> Verdict {
        self.since(origin, |since| self.changes.rows.range(since..).copied().collect())
    }

    fn since(&self, origin: &Origin, changed: impl Fn(i64) -> Vec<i64>) -> Verdict {
        let since = match self.history.since(origin.coordinate, origin.refused_at_ms) {
            Since::Never => return Verdict::Apply,
            Since::Untold => return Verdict::Refused(expired()),
            Since::Sequence(since) => since,
        };
        let counts = |number: i64| {
            let step = self.history.steps.iter().find(|step| step.sequence_number == number);
            // Records that were refused before this one and have been tried again are older, whenever they came.
            step.filter(|step| step.redriven.is_none_or(|last| last >= origin.coordinate))
        };
        if let Some(step) = changed(since).into_iter().filter_map(counts).max_by_key(|step| step.sequence_number) {
            return Verdict::Refused(superseded(step.snapshot_id));
        }
        match self.changes.untold.range(since..).next() {
            Some((_, why)) => Verdict::Refused(untold(why)),
            None => Verdict::Apply,
        }
    }
}

const OTHERWISE: &str = "look at the row; `--overwrite` applies the record all the same";

fn superseded(snapshot_id: i64) -> Rejection {
    let detail = format!("snapshot {snapshot_id}, committed with this record's batch or after it, changed the same key: {OTHERWISE}");
    Rejection::new(Stage::Fold, ReasonCode::Superseded, detail)
}

fn expired() -> Rejection {
    let detail = format!(
        "the snapshots from when the record was refused are expired, so whether its key was changed since cannot be told: {OTHERWISE}"
    );
    Rejection::new(Stage::Ledger, ReasonCode::OrderUnknown, detail)
}

fn untold(why: &str) -> Rejection {
    let detail = format!("whether the key was changed since the record was refused cannot be told: {why}; {OTHERWISE}");
    Rejection::new(Stage::Ledger, ReasonCode::OrderUnknown, detail)
}

fn perhaps_there() -> Rejection {
    let detail =
        format!("the record lay below the table's ledger and may be in the table already, a second row would be added: {OTHERWISE}");
    Rejection::new(Stage::Ledger, ReasonCode::OffsetBelowLedger, detail)
}
