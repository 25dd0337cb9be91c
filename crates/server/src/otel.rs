//! Traces by OpenTelemetry: the feature `otel`.
//!
//! With OpenTelemetry's layer in the process's subscriber, the spans of a job's life (submit, assign, run, report) are parts
//! of one trace, across processes and their deaths, and so are the spans that a handler makes. A service that exports its
//! traces already has that layer, and needs nothing of this module. [`Exporter`] is what the `bellwether` command uses: it
//! sends spans to a collector by OTLP over HTTP.
//!
//! Nobody waits for the collector. Spans that have ended wait in a queue of 2,048 (`OTEL_BSP_MAX_QUEUE_SIZE`), and those that
//! find it full are dropped. When the process ends, what waits is sent within [`FLUSH`].

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

/// How long the end of a process may wait for a collector: enough for one that is there, and less than what a supervisor
/// has to wait for.
pub const FLUSH: Duration = Duration::from_secs(2);

/// How long one request may take: spans are behind it, in a queue that is soon full.
const REQUEST: Duration = Duration::from_secs(5);

/// What of a base address takes spans.
const PATH: &str = "/v1/traces";

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The address is none that this build sends to.
    #[error(
        "{from} is {endpoint:?}: give http://HOST:PORT of a collector; one that wants TLS is reached through one on this machine"
    )]
    Endpoint {
        /// Who said so.
        from: &'static str,
        /// What was said.
        endpoint: String,
    },
    /// OpenTelemetry refuses its configuration.
    #[error("the exporter of traces cannot be made")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Sends spans to a collector.
#[derive(Debug)]
pub struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Of the process that calls itself `node`, to the collector at this base address, such as `http://127.0.0.1:4318`, or the
    /// one that the environment names (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`); none if neither
    /// does, or `OTEL_SDK_DISABLED` is true. Requests are made on the runtime, which has to outlive it.
    ///
    /// Other variables of OpenTelemetry count, too: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`,
    /// `OTEL_BSP_…`, `OTEL_EXPORTER_OTLP_HEADERS`.
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

    /// What hands Bellwether's spans to it, and what happens in them.
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

    /// Sends what waits, for [`FLUSH`] at most. Blocks the thread, which must not be one of the runtime's.
    pub fn stop(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH) {
            tracing::debug!(%error, "the last spans were not sent");
        }
    }
}

/// The address of the first who says one.
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

/// The client's requests, made where its sockets can be waited for: the queue is emptied by a thread without a runtime.
#[derive(Debug)]
struct Collector {
    client: HyperClient,
    runtime: Handle,
    /// Whether the last request failed: told once, and once again when one succeeds.
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
                    tracing::warn!(why, "the collector does not take spans: they may be lost")
                }
                (None, true) => tracing::info!("the collector takes spans again"),
                (Some(_), true) | (None, false) => {}
            }
            answer
        }
        .boxed()
    }
}
