//! Listening and stopping.
//!
//! ```text
//! supervisor ── accept loop ── connection ── connection …
//! ```
//!
//! Connections are tasks and not actors: a connection has no state that outlives it or that another task needs (ADR
//! 18). A panic in a request is answered with 500 and affects nothing else. After a panic in the accept loop, which
//! handles no request, the loop is restarted on the same socket; after ten restarts in half a minute the gateway ends.

mod accept;
mod addresses;
mod connection;
mod event_stream;
mod write_timeout;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::builder::{GatewayBuilder, GatewayError};
use super::limits::SEND_BUFFER;
use super::remote::RemoteWorkers;
use super::samples::Samples;
use super::state::{App, Around};
use super::tls::LoadedTls;
use super::{reload, routes};
use accept::Acceptor;
use addresses::Addresses;
pub(super) use addresses::PerAddress;
use bellwether::client::Client;
pub(super) use event_stream::EventStream;

/// Time for running requests to end when the gateway stops. Long polls and event streams end immediately.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Connections that the kernel has established and the gateway has not accepted yet.
const BACKLOG: u32 = 1_024;

/// As for the node: a restart does not cure a fault that recurs this often.
const RESTARTS: usize = 10;
const RESTARTS_WITHIN: Duration = Duration::from_secs(30);

/// Phase of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// Accepts no connections, and no further request on open ones.
    Draining,
    /// Drops the remaining connections.
    Over,
}

/// A running gateway. Cheap to clone. It serves until it is stopped, even if all clones are dropped.
#[derive(Clone)]
pub struct Gateway {
    address: SocketAddr,
    phase: Arc<watch::Sender<Phase>>,
    connections: Arc<Semaphore>,
    most: u32,
    client: Client,
    remote_workers: RemoteWorkers,
    ended: watch::Receiver<Option<bool>>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Returns a builder for a gateway to the namespace of this client. The gateway owns the client and closes it when it stops.
    pub fn builder(client: Client) -> GatewayBuilder {
        GatewayBuilder::new(client)
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting connections, gives running requests up to 5 s to end, closes the rest, and closes the client. The
    /// attempts of remote workers are handed back at the same time.
    ///
    /// # Cancellation
    /// If the future is dropped, the gateway is stopped partially: call it again.
    pub async fn stop(&self) {
        self.phase.send_replace(Phase::Draining);
        let requests = timeout(STOP_WITHIN, self.connections.acquire_many(self.most));
        let (requests, ()) = tokio::join!(requests, self.remote_workers.stop());
        if requests.is_err() {
            tracing::info!("the gateway closes connections whose requests did not end in time");
        }
        self.phase.send_replace(Phase::Over);
        self.client.clone().close().await;
    }

    /// Waits until the gateway has ended.
    ///
    /// # Errors
    /// [`GatewayError::Died`] if it ended without a call of [`Gateway::stop`].
    pub async fn ended(&self) -> Result<(), GatewayError> {
        let mut ended = self.ended.clone();
        let well = ended.wait_for(Option::is_some).await.is_ok_and(|well| *well == Some(true));
        if well { Ok(()) } else { Err(GatewayError::Died) }
    }
}

/// The caller has checked the builder, and loaded its TLS files.
pub(super) async fn start(builder: GatewayBuilder, tls: Option<LoadedTls>) -> Result<Gateway, GatewayError> {
    let GatewayBuilder {
        client,
        address,
        any_port,
        protection,
        limits,
        metrics,
        open_namespace,
        auditing,
        trusted_proxies,
    } = builder;
    let listen = |source| GatewayError::Listen { address, source };
    let listener = match bind(address) {
        Err(error) if any_port && error.kind() == io::ErrorKind::AddrInUse => {
            bind(SocketAddr::new(address.ip(), 0))
        }
        bound => bound,
    };
    let listener = listener.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let (phase, phases) = watch::channel(Phase::Serving);
    let local_only = address.ip().to_canonical().is_loopback();
    let around = Around { protection: &protection, local_only, metrics, auditing, trusted_proxies };
    let app = App::new(client.clone(), limits, around, phases.clone());
    let remote_workers = app.remote_workers.clone();
    let sampled = app.clone();
    tokio::spawn(async move {
        Samples::collect(&sampled, !open_namespace).await;
    });
    reload::start(&protection, tls.clone(), phases.clone());
    let listening = Listening {
        listener: Arc::new(listener),
        tls,
        connections: limits.connections,
        per_address: limits.per_address(),
        header_time: limits.header_time,
        router: routes::router(app),
        phase: phases,
    };
    let Started { connections, most, ended } = listening.start();
    Ok(Gateway { address, phase: Arc::new(phase), connections, most, client, remote_workers, ended })
}

/// Serves one connection of this machine, which has no socket.
#[cfg(any(test, fuzzing))]
pub(super) async fn serve_bytes<S>(stream: S, router: Router, phase: watch::Receiver<Phase>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let from =
        connection::From { peer: SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 1)), certificate: None };
    connection::serve(stream, from, router, super::limits::Limits::default().header_time, phase).await;
}

/// Listens. Accepted connections inherit the send buffer.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As `TcpListener::bind`: a restart need not wait for the connections of the former process.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A socket that listens, and how its connections are served.
pub(super) struct Listening {
    pub(super) listener: Arc<TcpListener>,
    pub(super) tls: Option<LoadedTls>,
    /// The maximum number of open connections.
    pub(super) connections: usize,
    /// The limit of each address.
    pub(super) per_address: PerAddress,
    pub(super) header_time: Duration,
    pub(super) router: Router,
    pub(super) phase: watch::Receiver<Phase>,
}

/// A running accept loop.
pub(super) struct Started {
    /// One permit for each connection that may still be opened.
    connections: Arc<Semaphore>,
    most: u32,
    /// Whether the loop ended on request; `None` while it runs.
    ended: watch::Receiver<Option<bool>>,
}

impl Listening {
    /// Accepts connections until the phase changes or its sender is dropped.
    pub(super) fn start(self) -> Started {
        let most = u32::try_from(self.connections).unwrap_or(u32::MAX).min(1 << 24);
        let connections = Arc::new(Semaphore::new(most as usize));
        let acceptor = Acceptor {
            listener: self.listener,
            tls: self.tls,
            connections: Arc::clone(&connections),
            addresses: Addresses::new(self.per_address),
            refusals: Arc::new(Semaphore::new(accept::MAX_REFUSALS)),
            router: self.router,
            header_time: self.header_time,
            phase: self.phase,
        };
        let (end, ended) = watch::channel(None);
        tokio::spawn(async move {
            let well = supervise(acceptor).await;
            end.send_replace(Some(well));
        });
        Started { connections, most, ended }
    }
}

/// Accepts connections until the gateway stops. Returns whether it was stopped on request.
async fn supervise(acceptor: Acceptor) -> bool {
    let mut died: Vec<Instant> = Vec::new();
    loop {
        match tokio::spawn(acceptor.clone().run()).await {
            Ok(()) => return true,
            Err(error) if error.is_cancelled() => return false,
            Err(error) => {
                tracing::error!(%error, "the accept loop of the gateway panicked");
                died.retain(|at| at.elapsed() < RESTARTS_WITHIN);
                died.push(Instant::now());
                if died.len() > RESTARTS {
                    return false;
                }
                tracing::info!("the gateway restarts its accept loop");
                metrics::counter!(bellwether::metrics::ACTOR_RESTARTS).increment(1);
            }
        }
    }
}
