//! `sluice run`: an event-source mapping here.

mod display;
mod local;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sluice_ingest::Ingest;
use sluice_ingest::start::{Configuration, start};
use sluice_kafka::client::{Tokens, client_config};
use sluice_kafka::{KafkaConfig, KafkaError, Secrets, SourceKafka};
use sluice_mapping::{
    Batching, CommittedOffsets, ConsumerConfig, Ending, EventLimits, Function, HttpFunction, MappingError, MappingOptions, MappingServices,
    Progress, Rest, Retries, StartPlan, Topics, Until, metrics,
};
use sluice_runtime::environment::variable;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::output::Output;
use crate::run_args::{RunArgs, UntilArg};
use display::Display;
use local::LocalFunction;

/// Sleeps on tokio's timer.
struct TokioRest;

#[async_trait]
impl Rest for TokioRest {
    async fn rest(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// Consumes until it is stopped or has reached the end.
///
/// # Errors
/// Exit code 2 when the command line or the configuration is wrong, 1 when consumption cannot go on. Nothing is lost then: what was not
/// applied is not committed.
pub(crate) async fn run(config: &Path, args: RunArgs, output: &Output) -> Result<(), Failure> {
    let configuration = Configuration::read(config).await?;
    let source = source(configuration.kafka(), &args)?;
    let (connection, tokens) = connect(&source, &args).await.map_err(|error| Failure::config(error.to_string(), CONNECTION_HINT))?;
    let ingest = start(configuration).await?;
    let (clock, ids) = (Arc::clone(&ingest.clock), Arc::clone(&ingest.ids));
    let progress = Arc::new(Progress::default());
    let options = options(&args, &source);
    let services = MappingServices {
        function: function(ingest, &args)?,
        progress: Arc::clone(&progress),
        clock: Arc::clone(&clock),
        ids: Arc::clone(&ids),
        rest: Arc::new(TokioRest),
    };
    let _metrics = serve_metrics(&args, &progress).await?;
    let display = Display::new(*output, clock, progress);
    let shown = tokio::spawn(Arc::clone(&display).run(Duration::from_secs(args.report_every_s.max(1))));
    let ended = sluice_mapping::run((&connection, tokens), options, services, stop()?).await;
    shown.abort();
    display.last();
    report(ended, output)
}

async fn connect(source: &SourceKafka, args: &RunArgs) -> Result<(ConsumerConfig, Tokens), KafkaError> {
    let secrets = Secrets::read(&source.connection, &variable).await?;
    let mut config = client_config(&source.connection, &secrets)?;
    config.set("group.id", args.group.as_deref().unwrap_or(&source.group));
    if let Some(name) = &args.instance_id {
        config.set("group.instance.id", name);
    }
    Ok((config, Tokens::of(&source.connection, &variable)?))
}

const CONNECTION_HINT: &str = "check [source.kafka] and its secrets; docs/on-premises.md has an example for each kind of security";

fn report(ended: Result<Ending, MappingError>, output: &Output) -> Result<(), Failure> {
    match ended {
        Ok(Ending::Stopped) => output.line("stopped; the next run goes on where this one ended"),
        Ok(Ending::ReachedEnd) => output.line("everything that was in the topics at the start is applied"),
        Err(error) => {
            return Err(Failure::failed(
                error.to_string(),
                "nothing is lost: what was not applied is not committed, and the next run goes on there",
            ));
        }
    }
    Ok(())
}

/// The source, with what the command line says instead.
fn source(kafka: &KafkaConfig, args: &RunArgs) -> Result<SourceKafka, Failure> {
    let missing = "run needs [source.kafka] with brokers and topics in the configuration";
    let mut source = kafka.source.clone().ok_or_else(|| Failure::config(missing, "docs/on-premises.md shows one"))?;
    if !args.topics.is_empty() {
        source.topics.clone_from(&args.topics);
    }
    if source.topics.is_empty() {
        return Err(Failure::config("no topics: name them in source.kafka.topics or with --topic", ""));
    }
    Ok(source)
}

fn options(args: &RunArgs, source: &SourceKafka) -> MappingOptions {
    let committed = if args.reset { CommittedOffsets::Ignored } else { CommittedOffsets::Honoured };
    MappingOptions {
        topics: Topics::new(source.topics.clone()),
        batching: Batching {
            limits: EventLimits { max_records: args.batch_size.max(1), max_bytes: args.batch_bytes.max(1) },
            window_ms: args.batch_window_ms,
        },
        concurrency: args.concurrency.max(1),
        start: StartPlan { start: args.start, committed, seeks: args.seeks.iter().cloned().collect(), on_expired: args.on_expired },
        until: match args.until {
            None => Until::Stopped,
            Some(UntilArg::End) => Until::End,
        },
        retries: Retries { max_attempts: args.max_attempts, ..Retries::default() },
        timeout_ms: args.timeout_s.saturating_mul(1_000),
        grace_ms: args.grace_s.saturating_mul(1_000),
    }
}

fn function(ingest: Ingest, args: &RunArgs) -> Result<Arc<dyn Function>, Failure> {
    match &args.function {
        None => Ok(Arc::new(LocalFunction(Arc::new(ingest)))),
        Some(address) => match HttpFunction::at(address) {
            Ok(function) => Ok(Arc::new(function)),
            Err(error) => Err(Failure::config(error.to_string(), "")),
        },
    }
}

/// A task that ends with its handle.
struct Served(tokio::task::JoinHandle<()>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve_metrics(args: &RunArgs, progress: &Arc<Progress>) -> Result<Option<Served>, Failure> {
    let Some(address) = args.metrics else { return Ok(None) };
    let listener = metrics::listen(address).await;
    let listener =
        listener.map_err(|error| Failure::failed(format!("metrics at {address}: {error}"), "another process may have that address"))?;
    let progress = Arc::clone(progress);
    let serving = tokio::spawn(async move {
        let Err(error) = metrics::serve(listener, progress).await;
        tracing::error!(%error, "the metrics are not served any more");
    });
    Ok(Some(Served(serving)))
}

/// SIGTERM or SIGINT.
fn stop() -> Result<impl Future<Output = ()> + Send, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("signals cannot be received: {error}"), "");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
