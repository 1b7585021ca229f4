//! What is seen while `sluice run` works: a block of text that is written anew, or a line of JSON now and then.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_mapping::{Progress, Snapshot};
use sluice_model::Clock;

use crate::output::Output;

/// How often a terminal is written anew.
const REDRAW: Duration = Duration::from_millis(500);
/// The most tables and partitions that are shown; the rest is summed.
const MAX_LINES: usize = 12;

/// Numbers as they were when they were last shown.
struct Shown {
    at_ms: i64,
    records: u64,
    lines: usize,
}

pub(super) struct Display {
    output: Output,
    clock: Arc<dyn Clock>,
    progress: Arc<Progress>,
    started_ms: i64,
    shown: Mutex<Shown>,
}

impl Display {
    pub(super) fn new(output: Output, clock: Arc<dyn Clock>, progress: Arc<Progress>) -> Arc<Self> {
        let started_ms = clock.now_ms();
        let shown = Mutex::new(Shown { at_ms: started_ms, records: 0, lines: 0 });
        Arc::new(Self { output, clock, progress, started_ms, shown })
    }

    fn is_live(&self) -> bool {
        self.output.is_text() && std::io::stdout().is_terminal()
    }

    /// Shows the numbers until it is aborted.
    pub(super) async fn run(self: Arc<Self>, every: Duration) {
        let every = if self.is_live() { REDRAW } else { every };
        loop {
            tokio::time::sleep(every).await;
            self.show();
        }
    }

    /// The last numbers: their rate is that of the whole run.
    pub(super) fn last(&self) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        (shown.at_ms, shown.records) = (self.started_ms, 0);
        drop(shown);
        self.show();
    }

    fn show(&self) {
        let (now_ms, numbers) = (self.clock.now_ms(), self.progress.snapshot());
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = per_second(numbers.records - shown.records, now_ms - shown.at_ms);
        if self.is_live() {
            let lines = block(&numbers, rate, (now_ms - self.started_ms) / 1_000);
            self.output.redraw(shown.lines, &lines);
            shown.lines = lines.len();
        } else {
            self.output.json_line(&line(&numbers, rate, now_ms));
        }
        (shown.at_ms, shown.records) = (now_ms, numbers.records);
    }
}

fn per_second(records: u64, ms: i64) -> u64 {
    records.saturating_mul(1_000) / ms.max(1).cast_unsigned()
}

fn line(numbers: &Snapshot, records_per_s: u64, now_ms: i64) -> Value {
    let partitions: Vec<Value> = numbers
        .partitions
        .iter()
        .map(|(partition, progress)| json!({"partition": partition.to_string(), "applied": progress.applied, "end": progress.end, "lag": progress.lag()}))
        .collect();
    let counts = &numbers.counts;
    json!({
        "at_ms": now_ms, "records": numbers.records, "records_per_s": records_per_s, "events": numbers.events, "lag": numbers.lag(),
        "rows": counts.rows, "deletes": counts.deletes, "control": counts.control, "stale": counts.stale, "replayed": counts.replayed,
        "dead_letters": counts.dead_letters, "dead_letters_by_code": counts.dead_letters_by_code, "tables": numbers.tables.len(),
        "failures": numbers.failures, "trouble": numbers.trouble, "records_expired": numbers.records_expired, "rebalances": numbers.rebalances,
        "partitions": partitions,
    })
}

fn block(numbers: &Snapshot, records_per_s: u64, seconds: i64) -> Vec<String> {
    let counts = &numbers.counts;
    let mut lines = vec![
        format!("{} records, {records_per_s}/s, lag {}, {} events, {seconds} s", numbers.records, numbers.lag(), numbers.events),
        format!(
            "{} rows, {} deletes, {} control, {} stale, {} replayed, {} dead letters",
            counts.rows, counts.deletes, counts.control, counts.stale, counts.replayed, counts.dead_letters
        ),
    ];
    lines.extend(counts.dead_letters_by_code.iter().map(|(code, count)| format!("  {count} × {code}")));
    let mut tables: Vec<_> = numbers.tables.iter().collect();
    tables.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.received));
    lines.extend(tables.iter().take(MAX_LINES).map(|(table, counts)| {
        format!("  {table:<32} {:>10} rows {:>8} deletes {:>6} dead", counts.rows, counts.deletes, counts.dead_letters)
    }));
    lines.extend(more(tables.len(), "tables"));
    lines.extend(numbers.partitions.iter().take(MAX_LINES).map(|(partition, progress)| {
        format!(
            "  {:<32} at {:>10} lag {:>8}",
            partition.to_string(),
            number(progress.applied.or(progress.started)),
            number(progress.lag())
        )
    }));
    lines.extend(more(numbers.partitions.len(), "partitions"));
    lines.extend(numbers.trouble.as_ref().map(|trouble| format!("trouble: {trouble} ({} failures)", numbers.failures)));
    lines
}

fn more(count: usize, of: &str) -> Option<String> {
    count.checked_sub(MAX_LINES).filter(|more| *more > 0).map(|more| format!("  and {more} more {of}"))
}

fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}
