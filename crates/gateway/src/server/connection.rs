//! One connection, served by hyper: HTTP/1.1, keep-alive, one request after another. An event stream is taken over
//! from hyper ([`event_stream`]).
//!
//! A peer that sends headers slowly, is idle, or reads its answer slowly is disconnected. So the memory of a connection
//! is bounded by its buffers, and its duration by timers.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Phase;
use super::event_stream::{self, Exit};
use super::write_timeout::{Pace, WriteTimeout};
use crate::layers::{ClientCertificate, Peer};
use crate::limits::{LEAST_READ_RATE, MAX_BUFFER, MAX_HEADER_BYTES, MAX_HEADERS, STALLED_AFTER};

/// The other end of a connection.
pub(super) struct From {
    pub(super) peer: SocketAddr,
    pub(super) certificate: Option<ClientCertificate>,
}

/// `header_time` limits the time for headers and the idle time.
pub(super) async fn serve<S>(
    stream: S,
    from: From,
    router: Router,
    header_time: Duration,
    mut phase: watch::Receiver<Phase>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _counted = Counted::new();
    let peer = from.peer;
    // Boxed, so that the rest of a connection that has left hyper does not keep this memory.
    let by_hyper = Box::pin(by_hyper(stream, from, router, header_time, phase.clone()));
    let Some((stream, body)) = by_hyper.await else { return };
    tokio::select! {
        ended = event_stream::write(stream, body) => log(peer, ended),
        _ = phase.wait_for(|phase| *phase == Phase::Over) => {}
    }
}

/// Returns when the connection has ended, or with the stream and the body when the answer leaves hyper.
async fn by_hyper<S>(
    stream: S,
    From { peer, certificate }: From,
    router: Router,
    header_time: Duration,
    mut phase: watch::Receiver<Phase>,
) -> Option<(WriteTimeout<S>, Body)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = WriteTimeout::new(stream, Pace { pause: STALLED_AFTER, rate: LEAST_READ_RATE });
    let exit = Arc::new(Exit::new(stream.waits()));
    let service = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        if let Some(certificate) = &certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        answer(service.clone(), request, Arc::clone(&exit))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let serving = tokio::select! {
        left = driven(&mut connection, &exit, peer) => Some(left),
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => None,
    };
    let left = match serving {
        Some(left) => left,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                left = driven(&mut connection, &exit, peer) => left,
                _ = phase.wait_for(|phase| *phase == Phase::Over) => None,
            }
        }
    };
    Some((connection.into_parts().io.into_inner(), left?))
}

/// Returns the body of an answer that leaves hyper; `None` when the connection has ended.
async fn driven<C, E>(connection: &mut C, exit: &Exit, peer: SocketAddr) -> Option<Body>
where
    C: Future<Output = Result<(), E>> + Unpin,
    E: fmt::Display,
{
    poll_fn(|cx| match Pin::new(&mut *connection).poll(cx) {
        Poll::Ready(ended) => {
            log(peer, ended);
            Poll::Ready(None)
        }
        Poll::Pending => exit.taken().map_or(Poll::Pending, |body| Poll::Ready(Some(body))),
    })
    .await
}

async fn answer(
    service: TowerToHyperService<Router>,
    request: Request<Incoming>,
    exit: Arc<Exit>,
) -> Result<Response<Body>, Infallible> {
    let may_leave = Exit::serves(&request);
    let answer = hyper::service::Service::call(&service, request).await?;
    Ok(if may_leave { exit.answer(answer) } else { answer })
}

/// Peers may end connections at any time, so this is not a warning.
fn log(peer: SocketAddr, ended: Result<(), impl fmt::Display>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection to the gateway ended");
    }
}

/// Counts an open connection.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!(bellwether::metrics::HTTP_CONNECTIONS).increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!(bellwether::metrics::HTTP_CONNECTIONS).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::response::IntoResponse;
    use axum::routing::get;
    use futures::StreamExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::super::EventStream;
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// Smaller than a head, so that its first write never completes.
    const NARROW: usize = 16;

    struct Served {
        heard: ReadHalf<DuplexStream>,
        asked: JoinHandle<WriteHalf<DuplexStream>>,
        phase: watch::Sender<Phase>,
        task: JoinHandle<()>,
    }

    /// `/few` answers `few`; `/on` sends `on` and continues until the gateway drains.
    fn served(ask: &'static str) -> Served {
        let (near, far) = tokio::io::duplex(NARROW);
        let (heard, mut asking) = tokio::io::split(far);
        let asked = tokio::spawn(async move {
            asking.write_all(ask.as_bytes()).await.unwrap();
            asking
        });
        let (phase, phases) = watch::channel(Phase::Serving);
        let until = phases.clone();
        let on = get(async move || {
            let mut until = until.clone();
            let said = futures::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"on"))]);
            let silent = async move { until.wait_for(|phase| *phase > Phase::Serving).await.map(drop).ok() };
            let silent = futures::stream::once(silent).filter_map(async |_| None);
            let mut answer = Body::from_stream(said.chain(silent)).into_response();
            answer.extensions_mut().insert(EventStream);
            answer
        });
        let router = Router::new().route("/few", get(async || "few")).route("/on", on);
        let from = From { peer: "127.0.0.1:1".parse().unwrap(), certificate: None };
        let task = tokio::spawn(serve(near, from, router, SOON, phases));
        Served { heard, asked, phase, task }
    }

    impl Served {
        async fn read_until(&mut self, end: &str) -> String {
            let mut read = Vec::new();
            let reading = async {
                while !read.ends_with(end.as_bytes()) {
                    read.push(self.heard.read_u8().await.unwrap());
                }
            };
            timeout(SOON, reading).await.expect("the text is sent in time");
            String::from_utf8(read).unwrap()
        }

        /// Reads until the connection is closed.
        async fn rest(mut self) -> String {
            let mut read = String::new();
            timeout(SOON, self.heard.read_to_string(&mut read)).await.expect("closed in time").unwrap();
            timeout(SOON, self.task).await.expect("the task ends in time").unwrap();
            read
        }
    }

    #[tokio::test]
    async fn an_event_stream_follows_complete_answers_and_ends_with_the_gateway() {
        let mut served = served("GET /few HTTP/1.1\r\n\r\nGET /few HTTP/1.1\r\n\r\nGET /on HTTP/1.1\r\n\r\n");
        for _ in 0..2 {
            let few = served.read_until("\r\n\r\nfew").await;
            assert!(few.starts_with("HTTP/1.1 200 OK\r\n"), "{few}");
            assert!(!few.contains("connection: close"), "{few}");
        }
        let head = served.read_until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        for header in ["transfer-encoding: chunked\r\n", "connection: close\r\n", "date: "] {
            assert!(head.contains(header), "{head}");
        }
        assert_eq!(served.read_until("on\r\n").await, "2\r\non\r\n");
        served.phase.send_replace(Phase::Draining);
        assert_eq!(served.rest().await, "0\r\n\r\n");
    }

    #[tokio::test]
    async fn an_answer_without_chunks_or_without_a_body_stays_with_hyper() {
        let mut old = served("GET /on HTTP/1.0\r\n\r\n");
        let head = old.read_until("\r\n\r\n").await;
        assert!(!head.contains("chunked"), "{head}");
        assert_eq!(old.read_until("on").await, "on");
        old.phase.send_replace(Phase::Draining);
        assert_eq!(old.rest().await, "");

        let head_only = served("HEAD /on HTTP/1.1\r\n\r\nGET /few HTTP/1.1\r\nconnection: close\r\n\r\n");
        let said = head_only.rest().await;
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\nfew"), "{said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 2, "{said}");
    }

    #[tokio::test]
    async fn a_connection_ends_when_its_peer_disconnects_or_the_gateway_is_over() {
        let following = async || {
            let mut served = served("GET /on HTTP/1.1\r\n\r\n");
            served.read_until("on\r\n").await;
            served
        };
        let Served { heard, asked, phase: _serving, task } = following().await;
        drop((heard, asked.await.unwrap()));
        timeout(SOON, task).await.expect("the connection ends after its peer has disconnected").unwrap();
        let Served { heard: _hears, asked: _asks, phase, task } = following().await;
        phase.send_replace(Phase::Over);
        timeout(SOON, task).await.expect("the connection ends with the gateway").unwrap();
    }
}
