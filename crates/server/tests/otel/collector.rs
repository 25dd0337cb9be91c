//! A minimal collector: OTLP over HTTP, in protobuf.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use tokio::net::TcpListener;

/// A received span.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for the first span of a trace.
    pub(crate) parent: String,
    pub(crate) fields: BTreeMap<String, String>,
    /// The attributes of the process.
    pub(crate) resource: BTreeMap<String, String>,
    /// The error message, if the span is an error.
    pub(crate) error: Option<String>,
}

impl Span {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

pub(crate) struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::default();
        tokio::spawn(serve(listener, Arc::clone(&spans)));
        Self { address, spans }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the spans of this name about this job, in the order of their arrival.
    pub(crate) fn of(&self, job: &str, name: &str) -> Vec<Span> {
        let all = self.spans.lock().unwrap();
        let theirs = |span: &&Span| span.name == name && span.fields.get("job").is_some_and(|of| of == job);
        all.iter().filter(theirs).cloned().collect()
    }

    /// Returns the submissions of a schedule, in the order of their arrival.
    pub(crate) fn of_schedule(&self, schedule: &str) -> Vec<Span> {
        let all = self.spans.lock().unwrap();
        let theirs = |span: &&Span| {
            span.name == "submit" && span.fields.get("schedule").is_some_and(|of| of == schedule)
        };
        all.iter().filter(theirs).cloned().collect()
    }
}

async fn serve(listener: TcpListener, spans: Arc<Mutex<Vec<Span>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let spans = Arc::clone(&spans);
        let service = service_fn(move |request| take(request, Arc::clone(&spans)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn take(
    request: Request<Incoming>,
    spans: Arc<Mutex<Vec<Span>>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let body = request.into_body().collect().await?.to_bytes();
    let export = ExportTraceServiceRequest::decode(body).unwrap();
    for of_process in export.resource_spans {
        let resource = fields(of_process.resource.unwrap().attributes);
        let of_process = of_process.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.lock().unwrap().extend(of_process.map(|span| {
            // 2 is an error.
            let status = span.status.filter(|status| status.code == 2);
            Span {
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                fields: fields(span.attributes),
                resource: resource.clone(),
                error: status.map(|status| status.message),
            }
        }));
    }
    let answer = ExportTraceServiceResponse::default().encode_to_vec();
    let answer =
        Response::builder().header("content-type", "application/x-protobuf").body(Full::from(answer));
    Ok(answer.unwrap())
}

fn fields(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let value = |field: KeyValue| Some((field.key, text(field.value?.value?)));
    attributes.into_iter().filter_map(value).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
