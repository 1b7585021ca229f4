//! Arguments of `sluice run`.

use clap::{Args, ValueEnum};
use sluice_mapping::{OnExpired, Start};
use sluice_model::TopicPartition;

/// When `run` is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UntilArg {
    /// When everything is applied that was in the topics at the start.
    End,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A topic, or a glob over topics; several may be given. Without any those of source.kafka.topics.
    #[arg(long = "topic")]
    pub topics: Vec<String>,
    /// The consumer group; without it source.kafka.group.
    #[arg(long)]
    pub group: Option<String>,
    /// The name of this process in its group, when it always has the same (static membership, KIP-345): started anew within the session timeout it goes on
    /// with its partitions, without a rebalance.
    #[arg(long)]
    pub instance_id: Option<String>,
    /// Where partitions begin for which the group has committed nothing: earliest, latest, committed (that is an error then), or a time such as
    /// 2026-11-29T08:00:00Z.
    #[arg(long, default_value = "earliest", value_parser = start)]
    pub start: Start,
    /// Pass over what the group has committed: all partitions begin at --start.
    #[arg(long)]
    pub reset: bool,
    /// Begin a partition at this offset, whatever else is said: topic:partition:offset. Several may be given.
    #[arg(long = "seek", value_parser = seek)]
    pub seeks: Vec<(TopicPartition, i64)>,
    /// What to do when records that should be consumed are gone from the broker: fail, or skip them and count.
    #[arg(long, default_value = "fail", value_parser = on_expired)]
    pub on_expired: OnExpired,
    /// Stop by itself: `end`, when everything is applied that was there at the start.
    #[arg(long)]
    pub until: Option<UntilArg>,
    /// The most records of one event.
    #[arg(long, default_value_t = 10_000)]
    pub batch_size: usize,
    /// The most bytes of one event.
    #[arg(long, default_value_t = 6_291_456)]
    pub batch_bytes: usize,
    /// How long a batch waits for more records after its first, in milliseconds.
    #[arg(long, default_value_t = 500)]
    pub batch_window_ms: u64,
    /// How many events may be in the function at once. A partition is always in one of them.
    #[arg(long, default_value_t = 1)]
    pub concurrency: usize,
    /// Invoke the function at this address (as `cargo lambda watch` serves it) instead of here: http://127.0.0.1:9000
    #[arg(long)]
    pub function: Option<String>,
    /// The time that an invocation has, in seconds.
    #[arg(long, default_value_t = 300)]
    pub timeout_s: u64,
    /// Give up when an event failed so often; without it the event is repeated until `run` is stopped.
    #[arg(long)]
    pub max_attempts: Option<u32>,
    /// How long a stop waits for what is in the function, in seconds.
    #[arg(long, default_value_t = 30)]
    pub grace_s: u64,
    /// Serve metrics for Prometheus at this address: 127.0.0.1:9464
    #[arg(long)]
    pub metrics: Option<std::net::SocketAddr>,
    /// How often a line of JSON is written when nobody looks at a terminal, in seconds.
    #[arg(long, default_value_t = 10)]
    pub report_every_s: u64,
}

fn start(text: &str) -> Result<Start, String> {
    match text {
        "earliest" => Ok(Start::Earliest),
        "latest" => Ok(Start::Latest),
        "committed" => Ok(Start::Committed),
        time => match time.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Start::Timestamp(time.as_millisecond())),
            Err(error) => Err(format!("expected earliest, latest, committed or a time such as 2026-11-29T08:00:00Z ({error})")),
        },
    }
}

fn seek(text: &str) -> Result<(TopicPartition, i64), String> {
    let wrong = || format!("`{text}` is no position: expected topic:partition:offset");
    let (rest, offset) = text.rsplit_once(':').ok_or_else(wrong)?;
    let (topic, partition) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let partition: i32 = partition.parse().map_err(|_| wrong())?;
    let offset: i64 = offset.parse().map_err(|_| wrong())?;
    if topic.is_empty() || partition < 0 || offset < 0 {
        return Err(wrong());
    }
    Ok((TopicPartition { topic: topic.into(), partition }, offset))
}

fn on_expired(text: &str) -> Result<OnExpired, String> {
    match text {
        "fail" => Ok(OnExpired::Fail),
        "skip" => Ok(OnExpired::Skip),
        other => Err(format!("`{other}`: expected fail or skip")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_and_positions_are_read() {
        assert_eq!(start("latest"), Ok(Start::Latest));
        assert_eq!(start("1970-01-01T00:00:01Z"), Ok(Start::Timestamp(1_000)));
        assert!(start("yesterday").is_err());
        assert_eq!(seek("erp.orders:3:17"), Ok((TopicPartition { topic: "erp.orders".into(), partition: 3 }, 17)));
        assert!(["t:1", "t:x:1", "t:1:-1", ":1:1"].iter().all(|text| seek(text).is_err()));
    }
}
