//! Spans for a collector of OpenTelemetry: what an invocation spent its time on, table by table.
//!
//! They are sent by OTLP over HTTP (protobuf) where `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set and this program was built with the feature
//! `otlp`; OpenTelemetry's other variables (`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS`, …) hold as its specification says. A collector that does not
//! answer costs time and spans, never a batch.

use crate::environment::variable;

#[cfg(feature = "otlp")]
pub use otlp::flush;
#[cfg(feature = "otlp")]
pub(crate) use otlp::layer;
#[cfg(not(feature = "otlp"))]
pub use without::flush;
#[cfg(not(feature = "otlp"))]
pub(crate) use without::layer;

/// Whether the environment names a collector.
fn is_asked_for() -> bool {
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].into_iter().any(|name| variable(name).is_some())
}

#[cfg(feature = "otlp")]
mod otlp {
    use std::sync::OnceLock;
    use std::time::Duration;

    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::{Level, Subscriber};
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::registry::LookupSpan;

    use super::{is_asked_for, variable};

    /// How long a collector may take, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says otherwise: an invocation waits for it.
    const PATIENCE: Duration = Duration::from_secs(1);
    const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"];

    /// Of the process, as the logs are.
    static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

    /// What notes the spans of our own crates, where there is a collector; and why it does not, if something is wrong with the variables.
    pub(crate) fn layer<S>() -> (Option<impl Layer<S>>, Option<String>)
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        if !is_asked_for() {
            return (None, None);
        }
        let mut builder = SpanExporter::builder().with_http();
        if TIMEOUTS.into_iter().find_map(variable).is_none() {
            builder = builder.with_timeout(PATIENCE);
        }
        let exporter = match builder.build() {
            Ok(exporter) => exporter,
            Err(error) => return (None, Some(format!("spans cannot be sent: {error}"))),
        };
        let provider = PROVIDER.get_or_init(|| SdkTracerProvider::builder().with_batch_exporter(exporter).build());
        let ours = Targets::new().with_target("sluice", Level::INFO);
        (Some(tracing_opentelemetry::layer().with_tracer(provider.tracer("sluice")).with_filter(ours)), None)
    }

    /// Sends what was noted: at the end of an invocation, because afterwards the process may be frozen.
    pub fn flush() {
        if let Some(Err(error)) = PROVIDER.get().map(SdkTracerProvider::force_flush) {
            tracing::warn!(%error, "the collector did not take the spans");
        }
    }
}

#[cfg(not(feature = "otlp"))]
mod without {
    use tracing_subscriber::layer::Identity;

    use super::is_asked_for;

    pub(crate) fn layer() -> (Option<Identity>, Option<String>) {
        (None, is_asked_for().then(|| "spans are not sent: build this program with --features otlp".to_owned()))
    }

    /// Sends what was noted: nothing, in a program without the feature `otlp`.
    pub const fn flush() {}
}
