//! Traces with OpenTelemetry: the feature `otel`.
//!
//! If the process's subscriber has OpenTelemetry's layer, the spans of a job's life (submit, assign, run, report) and
//! the spans that a handler creates are parts of one trace, across processes and crashes. A service that already
//! exports its traces has that layer and does not need this module. The `bellwether` command uses [`Exporter`], which
//! sends spans to a collector with OTLP over HTTP.
//!
//! No job waits for the collector. Ended spans wait in a queue of 2,048 (`OTEL_BSP_MAX_QUEUE_SIZE`); when the queue
//! is full, further spans are dropped. When the process ends, the queue is flushed for at most [`FLUSH`].

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// How long the process's end may wait for a collector: enough for a reachable one, and shorter than the stop timeout
/// of a process supervisor.
pub const FLUSH: Duration = Duration::from_secs(2);

/// The timeout of one request: further spans wait for it in a queue that fills up soon.
const REQUEST: Duration = Duration::from_secs(5);

/// The path for traces below a base address.
const PATH: &str = "/v1/traces";

/// Traces cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// This build cannot send to the address.
    #[error(
        "{from} is {endpoint:?}: give http://HOST:PORT of a collector; for TLS use a local collector that forwards"
    )]
    Endpoint {
        /// The source of the address.
        from: &'static str,
        /// The given address.
        endpoint: String,
    },
    /// OpenTelemetry rejected its configuration.
    #[error("cannot create the trace exporter")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Sends spans to a collector.
#[derive(Debug)]
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Starts the exporter of the process named `node`. It sends to the collector at this base address, such as
    /// `http://127.0.0.1:4318`, or else to the one that the environment names (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`). Returns `None` if neither is set, or `OTEL_SDK_DISABLED` is true. Requests run
    /// on the given runtime, which must outlive the exporter.
    ///
    /// Other variables of OpenTelemetry apply as well: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
    /// `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`, `OTEL_EXPORTER_OTLP_HEADERS`.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn start(endpoint: Option<&str>, node: &str, runtime: Handle) -> Result<Option<Self>, ExportError> {
        let Some(address) = address(endpoint)? else { return Ok(None) };
        let client = HyperClient::with_default_connector(REQUEST, None);
        let collector = Collector { client, runtime, lost: AtomicBool::new(false) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(address)
            .with_timeout(REQUEST)
            .build()?;
        let mut resource = Resource::builder().with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", node.to_owned()),
        ]);
        if env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("bellwether");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Some(Self { provider }))
    }

    /// Returns the layer that passes Bellwether's spans, and the events in them, to the exporter.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let wanted = Targets::new()
            .with_target(bellwether::SPAN_TARGET, LevelFilter::DEBUG)
            .with_target("bellwether", LevelFilter::INFO)
            .with_target("bellwether_host", LevelFilter::INFO);
        OpenTelemetryLayer::new(self.provider.tracer("bellwether"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(wanted)
    }

    /// Sends the queued spans, for at most [`FLUSH`]. Blocks the thread, which must not be a runtime thread.
    pub fn stop(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH) {
            tracing::debug!(%error, "the process could not send its last spans");
        }
    }
}

/// Returns the address: the argument first, then the environment variables.
fn address(given: Option<&str>) -> Result<Option<String>, ExportError> {
    let variable = |name| env::var(name).ok().filter(|text| !text.is_empty());
    if variable("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    const WHOLE: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let of = |from, base: &str, path| {
        let host = base.strip_prefix("http://").unwrap_or_default();
        if host.is_empty() || host.starts_with('/') {
            return Err(ExportError::Endpoint { from, endpoint: base.to_owned() });
        }
        Ok(Some(format!("{}{path}", base.trim_end_matches('/'))))
    };
    match (given, variable(WHOLE), variable(BASE)) {
        (Some(base), _, _) => of("otlp_endpoint", base, PATH),
        (None, Some(whole), _) => of(WHOLE, &whole, ""),
        (None, None, Some(base)) => of(BASE, &base, PATH),
        (None, None, None) => Ok(None),
    }
}

/// Sends the exporter's requests on the runtime: the thread that empties the queue has no runtime.
#[derive(Debug)]
struct Collector {
    client: HyperClient,
    runtime: Handle,
    /// Whether the last request failed. The change to failed is logged once, and so is the recovery.
    lost: AtomicBool,
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> BoxFuture<'b, Result<Response<Bytes>, HttpError>>
    where
        'a: 'b,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { client.send_bytes(request).await });
        async move {
            let answer = sent.await.map_err(HttpError::from).flatten();
            let why = match &answer {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(answer.status().to_string()),
                Err(error) => Some(error.to_string()),
            };
            match (&why, self.lost.swap(why.is_some(), Ordering::Relaxed)) {
                (Some(why), false) => {
                    tracing::warn!(reason = why, "the collector does not take spans: they may be lost")
                }
                (None, true) => tracing::info!("the collector takes spans again"),
                (Some(_), true) | (None, false) => {}
            }
            answer
        }
        .boxed()
    }
}
