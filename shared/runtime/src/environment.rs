//! The real clock and real ids.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_model::{Clock, IdSource};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use crate::traces;

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        // A clock before 1970 reads as 1970: every use compares or adds.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Random ids of UUID version 4 quality.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next_u128(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}

/// `SLUICE_CONFIG`: where the configuration is; `sluice.toml` in the working folder when it is not set.
#[must_use]
pub fn config_path() -> String {
    std::env::var("SLUICE_CONFIG").unwrap_or_else(|_| "sluice.toml".to_owned())
}

/// The memory of a Lambda function in megabytes; `None` elsewhere.
#[must_use]
pub fn memory_mb() -> Option<u64> {
    std::env::var("AWS_LAMBDA_FUNCTION_MEMORY_SIZE").ok()?.parse().ok()
}

/// A variable that an adapter may be given, such as a secret; an empty one counts as missing.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes an invocation's line to the standard output, at once. CloudWatch takes metrics only from a line of their own, and a log that cannot be written fails nothing.
pub fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!(%error, "the invocation's line cannot be written");
    }
}

/// Structured logs on the standard error stream, one JSON object a line with the spans it was written in; `SLUICE_LOG` filters them (default: `info`). Spans go to a collector
/// too, where there is one ([`crate::traces`]).
pub fn init_logs() {
    let filter = EnvFilter::try_from_env("SLUICE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt::layer().json().with_current_span(false).with_writer(std::io::stderr).without_time();
    let (spans, problem) = traces::layer();
    // A second call, as in tests, keeps the first subscriber.
    let _ = tracing_subscriber::registry().with(spans).with(lines.with_filter(filter)).try_init();
    if let Some(problem) = problem {
        tracing::warn!("{problem}");
    }
}
