//! Handlers without a worker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;

use super::middleware::{Middleware, Next, from_fn};
use super::*;
use crate::client::JobKind;
use crate::{ContentType, JobId, Kind, Payload};

fn context(kind: &str, payload: Payload) -> JobContext {
    JobContext::detached(JobId::new("a").unwrap(), Kind::new(kind).unwrap(), payload)
}

async fn run(handlers: Handlers, kind: &str, payload: Payload) -> Result<String, String> {
    let handled = handlers.call(context(kind, payload)).await;
    let text = |result: Payload| String::from_utf8(result.bytes().to_vec()).unwrap();
    handled.map(text).map_err(|error| error.message().to_owned())
}

fn json(text: &str) -> Payload {
    Payload::json(text.as_bytes()).unwrap()
}

struct Double;

impl JobKind for Double {
    const NAME: &'static str = "double";
    type Payload = i64;
    type Result = i64;
}

fn double() -> Handlers {
    Handlers::new().kind::<Double>(|_, n| async move { Ok(2 * n) })
}

#[tokio::test]
async fn a_typed_handler_receives_its_payload_and_returns_its_result() {
    assert_eq!(run(double(), "double", json("21")).await, Ok("42".into()));
    let blocking = Handlers::new().add(blocking::<Double>(|_, n| Ok(2 * n)));
    assert_eq!(run(blocking, "double", json("21")).await, Ok("42".into()));
}

#[tokio::test]
async fn a_payload_of_another_type_fails_with_the_reason() {
    let refused = run(double(), "double", json("\"x\"")).await.unwrap_err();
    assert_eq!(
        refused,
        "the payload does not fit kind double: invalid type: string \"x\", expected i64 at line 1 column 3"
    );
    let text = Payload::new(ContentType::new("text/plain").unwrap(), *b"21").unwrap();
    let refused = run(double(), "double", text).await.unwrap_err();
    assert_eq!(refused, "kind double takes JSON, and the payload is text/plain");
    let media = ContentType::new("application/cloudevents+json; charset=utf-8").unwrap();
    assert!(run(double(), "double", Payload::new(media, *b"21").unwrap()).await.is_ok());
}

#[tokio::test]
async fn a_result_over_the_size_limit_fails() {
    let large = Handlers::new().job("large", |_, n: usize| async move { Ok("x".repeat(n)) });
    let refused = run(large, "large", json("65536")).await.unwrap_err();
    assert!(refused.starts_with("the result has 65538 bytes: at most 65536"), "{refused}");
}

#[test]
fn a_malformed_or_repeated_kind_is_an_error_of_build() {
    let twice = double().and(double()).check().unwrap_err();
    assert_eq!(twice.to_string(), "kind double has a handler already");
    let bad = Handlers::new().job("a/b", |_, (): ()| async { Ok(()) }).check().unwrap_err();
    assert_eq!(bad.to_string(), "kind has '/' at byte 1: only [A-Za-z0-9._-] are allowed");
}

#[tokio::test]
async fn a_function_and_an_async_closure_are_handlers() {
    async fn double(_: JobContext, n: i64) -> Result<i64, HandlerError> {
        Ok(2 * n)
    }
    let function = Handlers::new().kind::<Double>(double);
    assert_eq!(run(function, "double", json("21")).await, Ok("42".into()));
    let closure = Handlers::new().kind::<Double>(async |context, n| Ok(n + i64::from(context.attempt())));
    assert_eq!(run(closure, "double", json("21")).await, Ok("22".into()));
}

/// Multiplies by its own factor.
struct Times(i64);

impl Handler<Double> for Times {
    async fn run(&self, context: JobContext, n: i64) -> Result<i64, HandlerError> {
        n.checked_mul(self.0).ok_or_else(|| HandlerError::new(format!("{} overflows", context.job())))
    }
}

#[tokio::test]
async fn a_type_with_state_is_a_handler() {
    let handlers = || Handlers::new().add(from_impl::<Double>(Times(3)));
    assert_eq!(run(handlers(), "double", json("14")).await, Ok("42".into()));
    assert_eq!(run(handlers(), "double", json("9223372036854775807")).await, Err("a overflows".into()));
}

#[tokio::test]
async fn handlers_share_a_state() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let shared = with_state(Arc::clone(&log));
    let handlers = Handlers::new()
        .add(shared.kind::<Double>(|log, _, n| async move {
            log.lock().unwrap().push(n);
            Ok(2 * n)
        }))
        .add(shared.job("negate", |log, _, n: i64| async move {
            log.lock().unwrap().push(-n);
            Ok(-n)
        }))
        .add(shared.blocking_job("last", |log, _, (): ()| Ok(log.lock().unwrap().last().copied())))
        .add(shared.raw("bytes", |_, context| async move { Ok(context.payload().clone()) }))
        .add(shared.blocking_raw("bytes-on-a-thread", |_, context| Ok(context.payload().clone())));
    assert_eq!(run(handlers.clone(), "double", json("4")).await, Ok("8".into()));
    assert_eq!(run(handlers.clone(), "negate", json("5")).await, Ok("-5".into()));
    assert_eq!(run(handlers.clone(), "last", json("null")).await, Ok("-5".into()));
    let text = Payload::new(ContentType::new("text/plain").unwrap(), *b"as is").unwrap();
    for kind in ["bytes", "bytes-on-a-thread"] {
        assert_eq!(run(handlers.clone(), kind, text.clone()).await, Ok("as is".into()));
    }
    assert_eq!(*log.lock().unwrap(), [4, -5]);
}

#[test]
fn each_handler_has_its_own_options() {
    let minute = Duration::from_secs(60);
    let handlers = Handlers::new()
        .kind::<Double>(|_, n| async move { Ok(n) })
        .add(job("quick", |_, (): ()| async { Ok(()) }).lease(minute))
        .add(job("slow", |_, (): ()| async { Ok(()) }).auto_renew(true).on_invalid(|_, _| async {}));
    let registry = handlers.build(None).unwrap();
    let options = ["double", "quick", "slow"].map(|kind| {
        let registered = registry.registered(&Kind::new(kind).unwrap()).unwrap();
        (registered.lease, registered.auto_renew, registered.on_invalid.is_some())
    });
    assert_eq!(options, [(None, false, false), (Some(minute), false, false), (None, true, true)]);
}

#[tokio::test]
async fn an_unknown_kind_has_no_handler() {
    assert_eq!(run(double(), "halve", json("21")).await, Err("no handler for kind halve".into()));
    assert_eq!(double().kinds().map(Kind::as_str).collect::<Vec<_>>(), ["double"]);
}

type Log = Arc<Mutex<Vec<String>>>;

/// Writes a line before and after the handler.
struct Traced {
    name: &'static str,
    log: Log,
}

impl Middleware for Traced {
    async fn handle(&self, context: JobContext, next: Next) -> HandlerResult {
        self.log.lock().unwrap().push(format!("{} before {}", self.name, context.job()));
        let result = next.run(context).await;
        self.log.lock().unwrap().push(format!("{} after {}", self.name, result.is_ok()));
        result
    }
}

#[tokio::test]
async fn the_first_layer_is_the_outermost_and_layers_of_the_set_are_outside_of_those_of_a_handler() {
    let log = Log::default();
    let traced = |name| Traced { name, log: Arc::clone(&log) };
    let others = double().layer(traced("others"));
    let quiet = || job("quiet", |_, (): ()| async { Ok(()) });
    let handlers = Handlers::new()
        .layer(traced("first"))
        .add(quiet().layer(traced("own")).layer(traced("inner")))
        .and(others)
        .layer(traced("second"));
    run(handlers.clone(), "quiet", json("null")).await.unwrap();
    let told = std::mem::take(&mut *log.lock().unwrap());
    let before = ["first", "second", "own", "inner"].map(|name| format!("{name} before a"));
    let after = ["inner", "own", "second", "first"].map(|name| format!("{name} after true"));
    assert_eq!(told, [before, after].concat());
    run(handlers, "double", json("1")).await.unwrap();
    let told = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(told[..3], ["first", "second", "others"].map(|name| format!("{name} before a")));
}

#[tokio::test]
async fn a_layer_replaces_the_result_and_the_error() {
    let handlers = double().layer(from_fn(|context, next| async move {
        match next.run(context).await {
            Ok(_) => Ok(Payload::json(*b"0")?),
            Err(error) if error.is_invalid() => Err(HandlerError::retry_later(Duration::from_secs(5))),
            Err(error) => Err(error),
        }
    }));
    assert_eq!(run(handlers.clone(), "double", json("21")).await, Ok("0".into()));
    let error = handlers.call(context("double", json("true"))).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
}

#[tokio::test]
async fn a_layer_refuses_to_run_the_handler() {
    for blocking in [false, true] {
        let never = if blocking {
            blocking_job("never", |_, (): ()| -> Result<(), _> { panic!("the handler ran") })
        } else {
            job("never", |_, (): ()| async { panic!("the handler ran") as Result<(), _> })
        };
        let refuse = from_fn(async |_, _| Err(HandlerError::new("not on this node")));
        let handlers = Handlers::new().add(never.layer(refuse));
        assert_eq!(run(handlers, "never", json("null")).await, Err("not on this node".into()));
    }
}

/// Counts the recorded values of each series.
#[derive(Debug, Default)]
struct Recorder(Mutex<std::collections::BTreeMap<String, Arc<Series>>>);

#[derive(Debug, Default)]
struct Series(Mutex<Vec<f64>>);

impl metrics::HistogramFn for Series {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl Recorder {
    fn values(&self, series: &str) -> Vec<f64> {
        self.0.lock().unwrap().get(series).map(|series| series.0.lock().unwrap().clone()).unwrap_or_default()
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}

    fn register_counter(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        metrics::Counter::noop()
    }

    fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::noop()
    }

    fn register_histogram(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
        let labels = key.labels().map(|label| format!("{}={}", label.key(), label.value()));
        let series = format!("{}{{{}}}", key.name(), labels.collect::<Vec<_>>().join(","));
        metrics::Histogram::from_arc(Arc::clone(self.0.lock().unwrap().entry(series).or_default()))
    }
}

/// The built-in layer sees each way in which a run ends.
#[tokio::test]
async fn each_run_of_a_handler_is_measured_once_with_its_layers() {
    let recorder = Recorder::default();
    let _installed = metrics::set_default_local_recorder(&recorder);
    let refuse = from_fn(async |_, _| Err(HandlerError::new("not on this node")));
    let handlers = Handlers::new()
        .job("ok", |_, (): ()| async { Ok(()) })
        .job("fails", |_, (): ()| async { Err::<(), _>(HandlerError::new("broken")) })
        .job("panics", |_, (): ()| async { panic!("planned") as Result<(), _> })
        .job("hangs", |_, (): ()| std::future::pending::<Result<(), _>>())
        .add(job("refused", |_, (): ()| async { Ok(()) }).layer(refuse));
    let kinds = ["ok", "fails", "panics", "hangs", "refused"];
    for kind in kinds {
        let call = std::panic::AssertUnwindSafe(handlers.call(context(kind, json("null"))));
        // A future that is pending is dropped here, as by a timeout.
        let ended = call.catch_unwind().now_or_never();
        assert_eq!(ended.is_some(), kind != "hangs");
        let series = format!("bellwether_handler_duration_seconds{{kind={kind}}}");
        assert_eq!(recorder.values(&series).len(), 1, "{kind}");
    }
    assert_eq!(recorder.0.lock().unwrap().len(), kinds.len());
}

#[tokio::test]
async fn a_handler_and_its_middleware_run_in_the_span_of_the_attempt() {
    fn current() -> Option<&'static str> {
        tracing::Span::current().metadata().map(|span| span.name())
    }

    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
    let outside = Arc::new(Mutex::new(None));
    let handlers = {
        let outside = Arc::clone(&outside);
        Handlers::new()
            .job("name", |_, (): ()| async {
                tokio::task::yield_now().await;
                Ok(current())
            })
            .layer(from_fn(move |context: JobContext, next: Next| {
                *outside.lock().unwrap() = current();
                next.run(context)
            }))
    };
    let mut context = context("name", json("null"));
    context.run.span = tracing::info_span!("run");
    let result = handlers.call(context).await.unwrap();
    assert_eq!(result.bytes(), b"\"run\"");
    assert_eq!(*outside.lock().unwrap(), Some("run"));
    assert_eq!(current(), None);
}
