//! The fuzz targets of the gateway. See `src/fuzz.rs` for how it runs, and for the other targets.
//!
//! hyper, the layers and the routes run as in production, without sockets. The client has no session and its clock passes
//! every deadline at once, so a request that needs ZooKeeper is answered with 503. All other checks decide by the bytes alone.

mod peer;
mod without_session;

use std::cell::RefCell;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::map_response;
use axum::response::Response;
use bellwether::Client;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub use super::access::fuzz::credentials;

use self::peer::Peer;
use self::without_session::WithoutSession;
use super::access::Tokens;
use super::builder::Auditing;
use super::exposure::Protection;
use super::limits::Limits;
use super::routes;
use super::server::{Phase, serve_bytes};
use super::state::{App, Around};

/// The digests of the tokens `fuzz-admin`, `fuzz-mail` and `fuzz-work`.
const TOKENS: &str = "\
admin admin sha256:1c64ed42d0e14a2b1a137b7634c45cc09a6b67d48ea1767a8a30cdad14225918
mail submit sha256:80cd328d2df68a19161916951ea1feab36e7bea28d8569953559ee7ae5235962 kinds=mail,report.* lanes=eu-* max_priority=5
work work sha256:0403775ae251e799822c61d3135d8e232b10bab4af1a915b88b1785ec02c7359
";

/// Limit of polls for one connection: far more than any bytes need.
const MOST_POLLS: usize = 10_000;

/// The bytes that a caller sends on one connection, after one byte that chooses the gateway (with or without tokens) and
/// whether the caller then disconnects.
///
/// Checked: no panic, also none that the gateway turns into a 500; every request is answered, or waits for more bytes; an
/// error is a problem document; only a missing session is a 5xx.
pub fn http(bytes: &[u8]) {
    thread_local!(static GATEWAYS: Gateways = Gateways::new());
    let Some((choice, sent)) = bytes.split_first() else { return };
    GATEWAYS.with(|gateways| gateways.serve(choice & 1 == 1, Peer::new(sent, choice & 2 == 2)));
}

struct Gateways {
    runtime: Runtime,
    session: Arc<WithoutSession>,
    open: Router,
    closed: Router,
    phase: watch::Sender<Phase>,
}

/// A client without a session.
#[cfg(test)]
pub(super) fn client() -> Client {
    Client::over(Arc::new(WithoutSession::default()) as _, Duration::ZERO)
}

impl Gateways {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let session = Arc::new(WithoutSession::default());
        let (phase, phases) = watch::channel(Phase::Serving);
        let tokens = Tokens::parse(TOKENS, Path::new("fuzzed")).expect("valid tokens");
        let protected = Protection::default().tokens(tokens);
        let [open, closed] = [Protection::default(), protected].map(|protection| {
            let around = Around {
                protection: &protection,
                local_only: true,
                metrics: None,
                auditing: Auditing::default(),
                trusted_proxies: Vec::new(),
            };
            let client = Client::over(Arc::clone(&session) as _, Duration::ZERO);
            let app = App::new(client, Limits::default(), around, phases.clone());
            routes::router(app).layer(map_response(checked))
        });
        Self { runtime, session, open, closed, phase }
    }

    /// Polls the connection and the tasks of the client until all of them wait.
    fn serve(&self, closed: bool, peer: Peer) {
        let _timers = self.runtime.enter();
        ANSWERED.with_borrow_mut(Vec::clear);
        let router = if closed { &self.closed } else { &self.open };
        let mut connection = pin!(serve_bytes(peer, router.clone(), self.phase.subscribe()));
        let woken = self.session.woken();
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        for _ in 0..MOST_POLLS {
            woken.reset();
            if connection.as_mut().poll(&mut context) == Poll::Ready(()) {
                return;
            }
            self.session.poll_tasks(&mut context);
            if !woken.is_set() {
                return;
            }
        }
        panic!("the connection does not come to rest");
    }
}

thread_local! {
    /// The statuses of the connection so far.
    static ANSWERED: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
}

async fn checked(answer: Response) -> Response {
    let status = answer.status();
    ANSWERED.with_borrow_mut(|answered| answered.push(status.as_u16()));
    assert!(!status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
    if status.is_client_error() || status.is_server_error() {
        let form = answer.headers().get(CONTENT_TYPE).expect("an error has a content type");
        assert_eq!(form, "application/problem+json", "{status}");
    }
    answer
}

#[cfg(test)]
mod tests {
    use bellwether_testkit::fuzz::{Corpus, MUTANTS};

    use super::ANSWERED;

    fn corpus() -> Corpus {
        Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../server/fuzz/corpus"), "http")
    }

    /// Otherwise the target would test only how requests are refused.
    #[test]
    fn requests_reach_their_routes_and_those_that_need_a_session_get_503() {
        let answered = |sent: &str| {
            super::http(sent.as_bytes());
            ANSWERED.with_borrow(Clone::clone)
        };
        let get = |choice, path: &str, token: &str| {
            answered(&format!(
                "{choice}GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
            ))
        };
        assert_eq!(get('1', "/v1/caller", "fuzz-mail"), [200]);
        assert_eq!(get('1', "/v1/jobs", "fuzz-admin"), [503]);
        assert_eq!(get('1', "/v1/jobs", "fuzz-work"), [403]);
        assert_eq!(get('1', "/v1/jobs", "unknown"), [401]);
        assert_eq!(get('0', "/v1/jobs?limit=none", ""), [400]);
        let body = r#"{"kind":"mail"}"#;
        let submit = format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(answered(&format!("0{submit}{submit}")), [503, 503]);
        assert!(
            answered(&format!("0{}", &submit[..submit.len() - 1])).is_empty(),
            "it waits for the last byte"
        );
    }

    #[test]
    fn any_bytes_of_a_caller_are_answered_or_refused() {
        let words: [&[u8]; 14] = [
            b"\r\n",
            b"\r\n\r\n",
            b"GET /v1/jobs",
            b"POST ",
            b"HTTP/1.1",
            b"Transfer-Encoding: chunked\r\n",
            b"Content-Length: 2\r\n",
            b"Authorization: Bearer fuzz-admin\r\n",
            b"?limit=",
            b"%00",
            b"&",
            b"{\"kind\":\"mail\",",
            b"null",
            b"1e400",
        ];
        corpus().exercise(MUTANTS, &words, super::http);
    }
}
