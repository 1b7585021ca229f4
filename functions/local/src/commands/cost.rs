//! `sluice cost`: the formulas of docs/cost.md with one's own numbers.

use serde_json::json;

use crate::cli::CostArgs;
use crate::output::Output;

/// A month in seconds, as AWS counts it (730 hours).
const MONTH_S: f64 = 2_628_000.0;
/// Seconds of waiting for catalog and storage, for each wave of tables that are committed at once.
const WAVE_S: f64 = 0.4;
/// Tables that are committed at once.
const WAVE_TABLES: f64 = 16.0;
/// A full event's CPU: fixed, and for each further table (docs/performance.md), in seconds.
const CPU_S: (f64, f64) = (0.025, 0.000_4);
/// Memory that gives a whole CPU, in MB (Lambda developer guide, "Memory and computing power").
const CPU_MB: f64 = 1_769.0;
/// Commits of one table that can follow each other in a second; beyond half of it they collide.
const TABLE_COMMITS_PER_S: f64 = 2.5;

/// What is asked. Rates are in MB of record values per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipeline {
    pub mb_per_s: f64,
    pub tables: f64,
    /// Share of a batch's tables that get deletes or updates.
    pub upserted: f64,
    pub window_s: f64,
    pub pollers: f64,
    pub memory_mb: f64,
    /// MB of values in a full event.
    pub event_mb: f64,
}

/// Prices in dollars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    pub invocation: f64,
    pub gb_second: f64,
    pub put: f64,
    pub get: f64,
    pub catalog_request: f64,
    pub log_gb: f64,
}

/// List prices of us-east-1 as remembered in November 2026.
impl Default for Prices {
    fn default() -> Self {
        Self { invocation: 0.2e-6, gb_second: 0.000_016_666_7, put: 5.0e-6, get: 0.4e-6, catalog_request: 1.0e-6, log_gb: 0.5 }
    }
}

/// What it comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub invocations_per_s: f64,
    pub commits_per_s: f64,
    pub files_per_hour: f64,
    pub duration_s: f64,
    pub lambda: f64,
    pub storage: f64,
    pub catalog: f64,
    pub logs: f64,
}

impl Pipeline {
    /// The formulas of docs/cost.md.
    pub(crate) fn estimate(&self, prices: &Prices) -> Estimate {
        let invocations_per_s = (self.mb_per_s / self.event_mb).max(self.pollers / self.window_s);
        let fill = self.mb_per_s / invocations_per_s / self.event_mb;
        let cpu_s = (CPU_S.0 + CPU_S.1 * (self.tables - 1.0).max(0.0)) * fill / (self.memory_mb / CPU_MB).min(1.0);
        let duration_s = cpu_s + WAVE_S * (self.tables / WAVE_TABLES).ceil();
        let commits_per_s = invocations_per_s * self.tables;
        let per_month = MONTH_S * invocations_per_s;
        Estimate {
            invocations_per_s,
            commits_per_s,
            files_per_hour: commits_per_s * (1.0 + self.upserted) * 3_600.0,
            duration_s,
            lambda: per_month * (prices.invocation + prices.gb_second * self.memory_mb / 1_024.0 * duration_s),
            storage: per_month * self.tables * ((4.0 + self.upserted) * prices.put + 2.0 * prices.get),
            catalog: per_month * self.tables * 2.0 * prices.catalog_request,
            logs: per_month * 2_048.0 / 1e9 * prices.log_gb,
        }
    }

    /// What to change, where something is at its limit.
    fn advice(&self, estimate: &Estimate) -> Vec<String> {
        let mut advice = Vec::new();
        if estimate.invocations_per_s > TABLE_COMMITS_PER_S / 2.0 {
            advice.push(format!(
                "a table that every batch has gets {:.1} commits a second: beyond {} they collide. Lengthen the window, use fewer pollers, or split the pipeline by topic",
                estimate.invocations_per_s,
                TABLE_COMMITS_PER_S / 2.0
            ));
        }
        let full = self.mb_per_s / self.event_mb >= self.pollers / self.window_s;
        if !full && self.window_s < 300.0 {
            advice.push("batches are not full: a longer window costs less, up to 300 s".to_owned());
        }
        if estimate.files_per_hour > 10_000.0 {
            advice.push("many small files: run compaction at least every hour".to_owned());
        }
        advice
    }
}

impl Estimate {
    fn dollars(&self) -> f64 {
        self.lambda + self.storage + self.catalog + self.logs
    }
}

/// Prints what a pipeline comes to. Nothing is looked up: the prices are those of docs/cost.md unless others are given.
pub(crate) fn run(args: &CostArgs, output: &Output) {
    let pipeline = Pipeline {
        mb_per_s: args.mb_per_s,
        tables: f64::from(args.tables),
        upserted: args.upserted,
        window_s: f64::from(args.window_s),
        pollers: f64::from(args.pollers),
        memory_mb: f64::from(args.memory_mb),
        event_mb: args.event_mb,
    };
    let estimate = pipeline.estimate(&Prices::default());
    let advice = pipeline.advice(&estimate);
    let result = json!({
        "invocations_per_month": (estimate.invocations_per_s * MONTH_S).round(), "invocations_per_s": estimate.invocations_per_s,
        "commits_per_s": estimate.commits_per_s, "files_per_hour": estimate.files_per_hour, "duration_s": estimate.duration_s,
        "dollars_per_month": {"lambda": estimate.lambda, "storage_requests": estimate.storage, "catalog_requests": estimate.catalog, "logs": estimate.logs, "all": estimate.dollars()},
        "advice": advice,
    });
    output.result(&result, |output| {
        let rows = [
            ("invocations/month", format!("{:.0}", estimate.invocations_per_s * MONTH_S)),
            ("seconds each", format!("{:.2}", estimate.duration_s)),
            ("commits/s, all tables", format!("{:.2}", estimate.commits_per_s)),
            ("files/hour", format!("{:.0}", estimate.files_per_hour)),
            ("Lambda, $/month", format!("{:.2}", estimate.lambda)),
            ("storage requests, $/month", format!("{:.2}", estimate.storage)),
            ("catalog requests, $/month", format!("{:.2}", estimate.catalog)),
            ("logs, $/month", format!("{:.2}", estimate.logs)),
            ("together, $/month", format!("{:.2}", estimate.dollars())),
        ];
        rows.iter().for_each(|(name, value)| output.line(&format!("{name:<26} {value:>12}")));
        advice.iter().for_each(|text| output.line(&format!("- {text}")));
        output.faint("list prices of us-east-1 as remembered in November 2026; Kafka, storage and transfer are left out (docs/cost.md)");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of docs/cost.md is what this calculates, without logs.
    #[test]
    fn the_table_in_the_documentation_is_right() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cost.md")).unwrap();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("MB/s |") && line.starts_with("| 0") | line.starts_with("| 1") | line.starts_with("| 5"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert!(rows.len() >= 8, "{rows:?}");
        for row in rows {
            let first = |text: &str| text.split(' ').next().unwrap().replace(',', "").parse::<f64>().unwrap();
            let pipeline = Pipeline {
                mb_per_s: first(row[0]),
                window_s: first(row[1]),
                tables: first(row[2]),
                upserted: 1.0,
                pollers: 1.0,
                memory_mb: 512.0,
                event_mb: 3.7,
            };
            let estimate = pipeline.estimate(&Prices::default());
            assert_eq!((estimate.invocations_per_s * MONTH_S).round(), first(row[3]), "{row:?}");
            assert_eq!((estimate.dollars() - estimate.logs).round(), first(row[4]), "{row:?} {estimate:?}");
        }
    }

    #[test]
    fn a_longer_window_never_costs_more() {
        let pipeline =
            Pipeline { mb_per_s: 0.01, tables: 20.0, upserted: 1.0, window_s: 60.0, pollers: 1.0, memory_mb: 512.0, event_mb: 3.7 };
        let longer = Pipeline { window_s: 300.0, ..pipeline };
        let prices = Prices::default();
        assert!(longer.estimate(&prices).dollars() < pipeline.estimate(&prices).dollars());
        assert_eq!(pipeline.advice(&pipeline.estimate(&prices)).len(), 1);
    }
}
