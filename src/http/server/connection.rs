//! One connection, by hyper: HTTP/1.1, keep-alive, one request after the other.
//!
//! A peer that is slow with its headers, idle, or slow to take an answer is cut off, so what a connection can hold
//! is bounded by its buffers, and for how long by a few timers.

use std::net::SocketAddr;
use std::pin::pin;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Phase;
use super::patience::Patient;
use crate::http::front::Peer;
use crate::http::limits::{MAX_BUFFER, MAX_HEADER_BYTES, MAX_HEADERS, STALLED_AFTER};
use crate::http::state::App;

pub(super) async fn serve<S>(stream: S, peer: SocketAddr, router: Router, app: App)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _counted = Counted::new();
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        answer(service.clone(), request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.header_time)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(Patient::new(stream, STALLED_AFTER)), service);
    let mut connection = pin!(connection);
    let mut phase = app.phase.clone();
    tokio::select! {
        ended = connection.as_mut() => return log(peer, ended),
        _ = phase.wait_for(|phase| *phase > Phase::Serving) => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        ended = connection.as_mut() => log(peer, ended),
        _ = phase.wait_for(|phase| *phase == Phase::Over) => {}
    }
}

async fn answer(
    service: TowerToHyperService<Router>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::convert::Infallible> {
    hyper::service::Service::call(&service, request).await
}

/// Peers end connections as they like: nothing to warn of.
fn log(peer: SocketAddr, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

/// One of the open connections.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!(bellwether_core::metric::HTTP_CONNECTIONS).increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!(bellwether_core::metric::HTTP_CONNECTIONS).decrement(1.0);
    }
}
