//! The numbers for Prometheus, and the small server that it asks.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::function::Counts;
use crate::progress::{Progress, Snapshot};

/// Connections that are served at once: a scraper needs one.
const MAX_CONNECTIONS: usize = 16;

#[derive(Debug)]
struct Numbers(Arc<Progress>);

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let numbers = self.0.snapshot();
        totals(&numbers, &mut encoder)?;
        by_code(&numbers, &mut encoder)?;
        by_table(&numbers, &mut encoder)?;
        by_partition(&numbers, &mut encoder)
    }
}

fn totals(numbers: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let counters = [
        ("sluice_records", "Records whose offsets are committed", numbers.records),
        ("sluice_events", "Events that the function applied", numbers.events),
        ("sluice_event_bytes", "Bytes of the events that the function applied", numbers.event_bytes),
        ("sluice_function_milliseconds", "Time in the function, all lanes together", numbers.function_ms),
        ("sluice_invocation_failures", "Invocations that failed and were repeated", numbers.failures),
        ("sluice_offset_commits_refused", "Offset commits that the broker refused", numbers.commits_refused),
        ("sluice_rebalances", "Times that partitions were given or taken", numbers.rebalances),
        ("sluice_records_expired", "Records that were gone from the broker before they were applied", numbers.records_expired),
    ];
    for (name, help, value) in counters {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)?;
    }
    let gauges = [
        ("sluice_lag", "Offsets between what is applied and the ends of the partitions", numbers.lag()),
        (
            "sluice_last_applied_timestamp_milliseconds",
            "When an event was last applied, since 1970; 0 before the first",
            numbers.last_applied_ms.unwrap_or(0),
        ),
        ("sluice_in_trouble", "1 while the last invocation or the broker failed", i64::from(numbers.trouble.is_some())),
    ];
    for (name, help, value) in gauges {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)?;
    }
    Ok(())
}

/// The kinds of units, by the names that the account has for them.
fn kinds(counts: &Counts) -> [(&'static str, u64); 6] {
    [
        ("rows", counts.rows),
        ("deletes", counts.deletes),
        ("control", counts.control),
        ("stale", counts.stale),
        ("replayed", counts.replayed),
        ("dead_letters", counts.dead_letters),
    ]
}

fn by_code(numbers: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor("sluice_units", "Units by what became of them", None, MetricType::Counter)?;
    for (kind, count) in kinds(&numbers.counts) {
        ConstCounter::new(count).encode(metric.encode_family(&[("outcome", kind)])?)?;
    }
    let mut metric = encoder.encode_descriptor("sluice_dead_letters", "Dead letters by reason code", None, MetricType::Counter)?;
    for (code, count) in &numbers.counts.dead_letters_by_code {
        ConstCounter::new(*count).encode(metric.encode_family(&[("code", code.as_str())])?)?;
    }
    Ok(())
}

fn by_table(numbers: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let mut metric =
        encoder.encode_descriptor("sluice_table_units", "Units of each table by what became of them", None, MetricType::Counter)?;
    for (table, counts) in &numbers.tables {
        for (kind, count) in kinds(counts).into_iter().filter(|(_, count)| *count > 0) {
            ConstCounter::new(count).encode(metric.encode_family(&[("table", table.as_str()), ("outcome", kind)])?)?;
        }
    }
    Ok(())
}

fn by_partition(numbers: &Snapshot, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor("sluice_partition_lag", "Offsets not yet applied", None, MetricType::Gauge)?;
    for (partition, progress) in &numbers.partitions {
        let Some(lag) = progress.lag() else { continue };
        let labels = [("topic", partition.topic.to_string()), ("partition", partition.partition.to_string())];
        ConstGauge::new(lag).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// The numbers in the OpenMetrics text format.
///
/// # Errors
/// A formatting error, which text in memory does not have.
pub fn render(progress: &Arc<Progress>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Numbers(Arc::clone(progress))));
    let mut rendered = String::new();
    text::encode(&mut rendered, &registry)?;
    Ok(rendered)
}

/// Serves the numbers at `/metrics` (and any other path) until it is dropped.
///
/// # Errors
/// When the address cannot be listened at.
pub async fn serve(listener: TcpListener, progress: Arc<Progress>) -> std::io::Result<Infallible> {
    let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let (stream, _) = listener.accept().await?;
        // A scraper too many is turned away.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let progress = Arc::clone(&progress);
        tokio::spawn(async move {
            let service = service_fn(|_: Request<Incoming>| answer(&progress));
            let connection = hyper::server::conn::http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
            // A scraper that goes away in the middle is its own business.
            let _ = tokio::time::timeout(std::time::Duration::from_secs(10), connection).await;
            drop(place);
        });
    }
}

fn answer(progress: &Arc<Progress>) -> impl Future<Output = Result<Response<Full<Bytes>>, hyper::http::Error>> + use<> {
    let rendered = render(progress);
    async move {
        match rendered {
            Ok(text) => Response::builder()
                .header("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
                .body(Full::new(Bytes::from(text))),
            Err(error) => Response::builder().status(500).body(Full::new(Bytes::from(error.to_string()))),
        }
    }
}

/// Listens for scrapers.
///
/// # Errors
/// When the address is taken or not of this host.
pub async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}
