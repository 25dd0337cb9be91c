//! The layers of every request and every answer.
//!
//! [`pass`] applies the steps in this order: id, audit line, checks that may refuse the request (framing, origin,
//! credentials, role, admission), time limit; then the answer gets its form, is counted and audited. A refusal is an answer
//! like any other, so it also has an id, a line and a count.

mod admission;
mod audit;
mod certificate;
mod credentials;
mod framing;
mod guard;
mod headers;
mod operations;
mod origin;
mod page_turns;
mod proxy;
mod request_id;
mod sampler;

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bellwether::metrics as metric;
use futures::FutureExt;
use metrics::{counter, histogram};
use tokio::time::timeout;

pub(super) use admission::{Admission, Limited};
pub(super) use audit::AuditNote;
pub(super) use certificate::ClientCertificate;
pub(super) use credentials::Caller;
pub(super) use guard::{Guard, guard};
pub(super) use operations::Operations;
pub(super) use page_turns::PageTurns;
pub(super) use sampler::Sampler;

use super::problem::{Fault, Problem};
use super::routes::{EVENTS, POLL, WAIT, WAIT_GROUP, is_docs, is_open};
use super::state::App;
use admission::{attached, held};
use audit::Line;
use request_id::RequestId;

/// The address of the peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// How a request is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Health checks are not limited: they must be answered especially when the gateway is saturated.
    Health,
    /// A long poll. Its route limits its time.
    Wait,
    /// An event stream.
    Stream,
    Short,
}

impl Class {
    fn of(route: Option<&MatchedPath>) -> Self {
        match route.map(MatchedPath::as_str) {
            Some("/healthz" | "/readyz") => Self::Health,
            Some(WAIT | WAIT_GROUP | POLL) => Self::Wait,
            Some(EVENTS) => Self::Stream,
            Some(_) | None => Self::Short,
        }
    }
}

/// State of the layer around all routes.
#[derive(Clone)]
pub(super) struct Layers {
    pub(super) app: App,
    pub(super) operations: Operations,
}

pub(super) async fn pass(State(layers): State<Layers>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    let class = Class::of(request.extensions().get::<MatchedPath>());
    if let Some(Peer(peer)) = request.extensions().get::<Peer>().copied() {
        let caller = proxy::caller(&layers.app.trusted_proxies, peer, request.headers());
        request.extensions_mut().insert(Peer(caller));
    }
    let is_docs = is_docs(request.uri().path());
    let mut line = Line::begin(&request, &id, &layers);
    let answer = answered(admit(&layers, class, request, next, &mut line)).await;
    let answer = finished(answer, &id, is_docs, layers.app.tls);
    let status = answer.status();
    line.end(status, answer.extensions().get::<AuditNote>());
    counter!(metric::HTTP_REQUESTS, "outcome" => outcome(status)).increment(1);
    if class == Class::Short {
        histogram!(metric::HTTP_REQUEST_DURATION_SECONDS).record(started.elapsed());
    }
    answer
}

/// Always returns an answer. A panic is a defect of the gateway and fails only this request.
async fn answered(admitted: impl Future<Output = Result<Response, Problem>>) -> Response {
    match AssertUnwindSafe(admitted).catch_unwind().await {
        Ok(Ok(answer)) => answer,
        Ok(Err(problem)) => problem.into_response(),
        // The panic hook has written the panic to stderr.
        Err(_) => Fault::Panicked.because("the request failed; the gateway keeps serving").into_response(),
    }
}

/// Runs the route if all checks pass.
async fn admit(
    layers: &Layers,
    class: Class,
    mut request: Request,
    next: Next,
    line: &mut Line,
) -> Result<Response, Problem> {
    let app = &layers.app;
    let route = request.extensions().get::<MatchedPath>().cloned();
    framing::check(request.headers())?;
    origin::check(app.local_only, request.method(), request.headers())?;
    if class == Class::Health || is_open(request.uri().path()) {
        return Ok(next.run(request).await);
    }
    let caller = credentials::caller(&app.accepted, &request)?;
    line.by(&caller);
    if let Some(operation) = layers.operations.of(request.method(), route.as_ref())
        && !caller.role.permits(operation.role)
    {
        return Err(Fault::Forbidden.because(format!(
            "the {} {} has the role {}: this operation needs {}",
            caller.credential, caller.name, caller.role, operation.role
        )));
    }
    let limited = match class {
        Class::Wait => &app.waits,
        Class::Stream => &app.streams,
        Class::Short | Class::Health => &app.admission,
    };
    let permit = limited.enter(&caller)?;
    line.intend(&caller)?;
    let mutates = mutates(request.method());
    request.extensions_mut().insert(caller);
    if class != Class::Short {
        return Ok(attached(next.run(request).await, permit));
    }
    let within = app.limits.request_time;
    let answered = timeout(within, next.run(request)).await.map_err(|_| match mutates {
        false => Fault::Late.because(format!("no answer within {within:?}: try again")),
        true => Fault::Unknown.because(format!(
            "no answer within {within:?}: the change may or may not have been applied; read the state before you \
             repeat it"
        )),
    });
    Ok(attached(answered.unwrap_or_else(Problem::into_response), permit))
}

/// Gives an answer its form: errors become problems, and all answers get the common headers.
fn finished(mut answer: Response, id: &RequestId, is_docs: bool, is_tls: bool) -> Response {
    let status = answer.status();
    let problem = answer.extensions_mut().remove::<Problem>();
    let problem = problem.or_else(|| {
        (status.is_client_error() || status.is_server_error()).then(|| Problem::of_status(status))
    });
    let mut answer = match problem {
        Some(problem) => {
            let answer = problem.clone().written(answer, id.as_str());
            // Each server error in the metric has a log line, because the caller may not report it.
            if outcome(answer.status()) == SERVER_ERROR {
                let (status, (problem, detail)) = (answer.status().as_u16(), problem.for_log());
                tracing::warn!(
                    request_id = id.as_str(),
                    status,
                    problem,
                    detail,
                    "the gateway answered with a server error"
                );
            }
            answer
        }
        None => answer,
    };
    let headers = answer.headers_mut();
    headers.insert("x-request-id", id.header());
    headers::protect(headers, is_docs, is_tls);
    if framing::ends_connection(answer.status()) {
        answer.headers_mut().insert(axum::http::header::CONNECTION, HeaderValue::from_static("close"));
    }
    held(answer)
}

fn mutates(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Metric label for errors of the gateway or of ZooKeeper.
const SERVER_ERROR: &str = "server_error";

fn outcome(status: StatusCode) -> &'static str {
    match status.as_u16() {
        ..400 => "ok",
        429 | 503 => "refused",
        400..500 => "client_error",
        500.. => SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::HeaderMap;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_as_a_defect_of_the_gateway() {
        let answer = answered(async { panic!("panic of the test") }).await;
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", HeaderValue::from_static("seven"));
        let answer = finished(answer, &RequestId::of(&headers), false, false);
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(outcome(answer.status()), SERVER_ERROR);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let body = to_bytes(answer.into_body(), 1_024).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["type"], "urn:bellwether:problem:panicked");
        assert_eq!(problem["request_id"], "seven");
        assert!(
            !String::from_utf8_lossy(&body).contains("panic of the test"),
            "the panic message is not sent"
        );
    }
}
