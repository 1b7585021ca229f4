//! The error table as a queue of records that are tried again.
//!
//! A row is *queued* under a number, its record is delivered under that number as its ledger identity, and then it is *settled*: resolved, or refused anew. A number
//! is given once and settled once: both are claims of the error table's own ledger, checked inside the commit loop on the very version that the commit replaces. A row
//! that is queued changes only when it is settled, so a commit made from rows that were read stays right whatever other invocations add meanwhile.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow_schema::{Schema, SchemaRef};
use sluice_model::{Claims, Coordinate, Interval, PartitionKey, TableName, TableSchema};
use sluice_table::arrow::{arrow_schema, field_id};
use sluice_table::{BaseUse, Catalog, CommitContext, RowDelta, TableError, WriteOptions, lookup, scan_each, schema};

use crate::columns::redrive_columns;
use crate::entry::{ENTRY_COLUMNS, contents, entries};
use crate::open::{ErrorTableCommit, Open};
use crate::rewrite::rewritten;
use crate::{Change, Content, Entry, EntryId, State};

/// What tells one row of the error table from the others. The offset comes first: files are passed over by the bounds of the first. The time is among them because
/// the table is partitioned by it, so that deletes reach one partition only.
const KEY: [&str; 7] = ["offset", "partition", "row", "source_epoch", "topic", "source_id", "arrived_at"];

/// The error table of a catalog, as the queue of one source's refused records.
pub struct ErrorQueue {
    open: Open,
    source: Arc<str>,
}

/// Numbers that a commit takes, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Up to here numbers were taken before.
    pub taken: i64,
    /// The first of these.
    pub first: i64,
}

impl ErrorQueue {
    /// Opens the error table; `None` when there is none.
    ///
    /// # Errors
    /// What the catalog, the storage or the stored ledger said.
    pub async fn open(catalog: &dyn Catalog, name: &TableName, source: &Arc<str>) -> Result<Option<Self>, TableError> {
        Ok(Open::load(catalog, name).await?.map(|open| Self { open, source: Arc::clone(source) }))
    }

    /// The ledger identity of the records that are tried again: a partition of its own for each life of the error table, so that the numbers of one that was
    /// dropped are never taken for those of the next.
    #[must_use]
    pub fn lane(&self) -> PartitionKey {
        self.own(&self.open.version.metadata.uuid().to_string())
    }

    fn own(&self, topic: &str) -> PartitionKey {
        PartitionKey { source: format!("redrive:{}", self.source).into(), epoch: 0, topic: topic.into(), partition: 0 }
    }

    /// Numbers that nobody has. They follow the highest that was ever given and are never below the time in milliseconds: when the table is rolled back, it
    /// forgets what was given, but the clock does not.
    #[must_use]
    pub fn numbers(&self, now_ms: i64) -> Numbers {
        let queued = self.own("queued");
        let entry = self.open.ledger.entries().find(|(key, _)| **key == queued).and_then(|(_, entry)| entry.end());
        let taken = entry.map_or(0, |end| end.offset);
        Numbers { taken, first: taken.max(now_ms) }
    }

    /// Reads the table anew.
    ///
    /// # Errors
    /// What the catalog, the storage or the stored ledger said.
    pub async fn refresh(&mut self) -> Result<(), TableError> {
        self.open.refresh().await
    }

    /// The table's schema with the columns that redrive needs, and whether they are new to it.
    fn schema(&self) -> Result<(TableSchema, bool), TableError> {
        let mut schema = schema::to_model(&self.open.version.metadata)?;
        let before = schema.columns.len();
        for mut column in redrive_columns(schema.last_column_id) {
            if !schema.columns.iter().any(|held| held.name == column.name) {
                schema.last_column_id += 1;
                column.id = schema.last_column_id;
                schema.columns.push(column);
            }
        }
        let grows = schema.columns.len() > before;
        Ok((schema, grows))
    }

    /// The source's rows, in the order of their records.
    ///
    /// # Errors
    /// What the storage said, or that the table is not one that Sluice made.
    pub async fn entries(&self) -> Result<Vec<Entry>, TableError> {
        let whole = arrow_schema(&self.schema()?.0)?;
        let wanted: Vec<_> = whole
            .fields()
            .iter()
            .filter(|field| ENTRY_COLUMNS.contains(&field.name().as_str()) || field.name() == "resolution")
            .cloned()
            .collect();
        let target: SchemaRef = Arc::new(Schema::new(wanted));
        let mut found: Vec<Entry> = Vec::new();
        let source = Arc::clone(&self.source);
        scan_each(&self.open.version, (None, &target), &mut |batch| {
            found.extend(entries(&batch)?.into_iter().filter(|entry| entry.id.key.source == source));
            Ok(())
        })
        .await?;
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The rows with these ids, whole, in the order of their records; those that are gone are left out.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub async fn rows(&self, ids: &[EntryId]) -> Result<QueueRows, TableError> {
        let target = arrow_schema(&self.schema()?.0)?;
        let keys = keys(ids, &target)?;
        let key_ids = keys.schema_ref().fields().iter().filter_map(|field| field_id(field)).collect::<Vec<_>>();
        let rows = lookup(&self.open.version, &target, &key_ids, &keys).await?;
        let found = entries(&rows)?;
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|a, b| found[*a].id.cmp(&found[*b].id));
        let picked = UInt64Array::from_iter_values(order.iter().map(|row| *row as u64));
        let rows = arrow_select::take::take_record_batch(&rows, &picked).map_err(TableError::arrow("sorting rows of the error table"))?;
        Ok(QueueRows { entries: entries(&rows)?, contents: contents(&rows)?, rows })
    }

    /// Queues rows, and whatever else is found out about them. Rows that are refused without being queued are safe too: what takes numbers is done one after
    /// the other, so each such commit takes at least one.
    ///
    /// # Errors
    /// [`TableError`] when the commit failed or its outcome is unknown: the next run sees which.
    pub async fn queue(
        &mut self,
        rows: &QueueRows,
        (numbers, changes): (Numbers, &[Change]),
        tools: (&WriteOptions<'_>, &CommitContext<'_>),
    ) -> Result<ErrorTableCommit, TableError> {
        let given = changes.iter().filter_map(|change| match change.state {
            State::Queued(number) => Some(number + 1),
            State::Refused { .. } | State::Resolved { .. } | State::Reopened => None,
        });
        let last = given.max();
        let end = last.unwrap_or(numbers.first + 1);
        let (mut claims, queued) = (Claims::default(), self.own("queued"));
        let from_to = |from: i64, to: i64| Interval::new(Coordinate::record(from), Coordinate::record(to));
        from_to(numbers.taken, end).into_iter().for_each(|interval| claims.add(&queued, interval));
        // Numbers that nobody gets are settled from the start.
        let unused = from_to(numbers.taken, if last.is_some() { numbers.first } else { end });
        unused.into_iter().for_each(|interval| claims.add(&self.own("settled"), interval));
        let applies = (numbers.first..end).map(|number| (queued.clone(), Coordinate::record(number))).collect();
        let delta = RowDelta { claims, applies, ..self.delta(rows, changes)? };
        self.open.commit(delta, tools).await
    }

    /// Settles queued rows.
    ///
    /// # Errors
    /// As [`Self::queue`].
    pub async fn settle(
        &mut self,
        rows: &QueueRows,
        changes: &[Change],
        tools: (&WriteOptions<'_>, &CommitContext<'_>),
    ) -> Result<ErrorTableCommit, TableError> {
        let settled = self.own("settled");
        let mut numbers: Vec<i64> =
            changes.iter().filter_map(|change| rows.entries.get(change.row)).filter_map(|entry| entry.redrive_offset).collect();
        numbers.sort_unstable();
        let mut claims = Claims::default();
        numbers.iter().for_each(|number| claims.add(&settled, Interval::of_record(*number)));
        let applies = numbers.into_iter().map(|number| (settled.clone(), Coordinate::record(number))).collect();
        let delta = RowDelta { claims, applies, ..self.delta(rows, changes)? };
        self.open.commit(delta, tools).await
    }

    /// Opens resolved rows again, whose effect was taken back.
    ///
    /// # Errors
    /// As [`Self::queue`].
    pub async fn reopen(
        &mut self,
        (rows, opened): (&QueueRows, &[usize]),
        tools: (&WriteOptions<'_>, &CommitContext<'_>),
    ) -> Result<ErrorTableCommit, TableError> {
        let changes: Vec<Change> = opened.iter().map(|row| Change { row: *row, state: State::Reopened }).collect();
        let delta = RowDelta { base_use: BaseUse::PinnedToSnapshot, ..self.delta(rows, &changes)? };
        self.open.commit(delta, tools).await
    }

    fn delta(&self, rows: &QueueRows, changes: &[Change]) -> Result<RowDelta, TableError> {
        let (schema, grows) = self.schema()?;
        let ids: HashSet<&EntryId> = changes.iter().filter_map(|change| rows.entries.get(change.row)).map(|entry| &entry.id).collect();
        // Rows that only the time would tell apart are deleted together, so they are written together.
        let kept: Vec<usize> = (0..rows.entries.len()).filter(|row| ids.contains(&rows.entries[*row].id)).collect();
        let ids: Vec<EntryId> = ids.into_iter().cloned().collect();
        Ok(RowDelta {
            rows: Some(rewritten(&rows.rows, (&kept, changes))?),
            delete_keys: Some(keys(&ids, &rows.rows.schema())?),
            evolved: grows.then_some(schema),
            ..RowDelta::on(&self.open.version)
        })
    }
}

/// Whole rows of the error table.
#[derive(Debug, Clone)]
pub struct QueueRows {
    /// What selecting looks at.
    pub entries: Vec<Entry>,
    /// Their records.
    pub contents: Vec<Content>,
    rows: RecordBatch,
}

impl QueueRows {
    /// The rows after a commit of these changes, in their order.
    ///
    /// # Errors
    /// [`TableError::Arrow`], which no row should bring about.
    pub fn after(&self, changes: &[Change]) -> Result<Self, TableError> {
        let all: Vec<usize> = (0..self.entries.len()).collect();
        let rows = rewritten(&self.rows, (&all, changes))?;
        Ok(Self { entries: entries(&rows)?, contents: self.contents.clone(), rows })
    }
}

/// The ids as rows of the key columns, as `target` has them.
fn keys(ids: &[EntryId], target: &SchemaRef) -> Result<RecordBatch, TableError> {
    let mut distinct: Vec<&EntryId> = ids.iter().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let text = |of: fn(&EntryId) -> &str| Arc::new(distinct.iter().map(|id| Some(of(id))).collect::<StringArray>()) as ArrayRef;
    let int = |of: fn(&EntryId) -> i32| Arc::new(distinct.iter().map(|id| Some(of(id))).collect::<Int32Array>()) as ArrayRef;
    let mut fields = Vec::with_capacity(KEY.len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(KEY.len());
    for name in KEY {
        let field = target.fields().iter().find(|field| field.name() == name);
        fields.push(Arc::clone(field.ok_or_else(|| TableError::Invalid(format!("the error table has no column `{name}`")))?));
        columns.push(match name {
            "source_id" => text(|id| &id.key.source),
            "topic" => text(|id| &id.key.topic),
            "source_epoch" => int(|id| i32::try_from(id.key.epoch).unwrap_or(i32::MAX)),
            "partition" => int(|id| id.key.partition),
            "row" => int(|id| i32::try_from(id.coordinate.row).unwrap_or(i32::MAX)),
            "offset" => Arc::new(distinct.iter().map(|id| Some(id.coordinate.offset)).collect::<Int64Array>()),
            _ => {
                let instants = distinct.iter().map(|id| Some(id.arrived_at_us)).collect::<TimestampMicrosecondArray>();
                Arc::new(instants.with_timezone("+00:00"))
            }
        });
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(TableError::arrow("keys of the error table"))
}
