//! Accepting and refusing connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bellwether::metrics::HttpRefusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::Phase;
use super::addresses::Addresses;
use super::connection::{self, From};
use crate::layers::ClientCertificate;
use crate::limits::{HANDSHAKE_WITHIN, RETRY_AFTER};
use crate::metrics::refused;
use crate::tls::LoadedTls;

/// Connections that are being refused with an answer; further ones are closed without one.
pub(super) const MAX_REFUSALS: usize = 64;

/// Time for a peer to read the refusal.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// Pause after an error of the listening socket, such as too many open files, which may last.
const PAUSE: Duration = Duration::from_millis(100);

/// State of the accept loop. The loop owns nothing else, so it can be restarted.
#[derive(Clone)]
pub(super) struct Acceptor {
    pub(super) listener: Arc<TcpListener>,
    pub(super) tls: Option<LoadedTls>,
    /// One permit for each open connection.
    pub(super) connections: Arc<Semaphore>,
    pub(super) addresses: Addresses,
    pub(super) refusals: Arc<Semaphore>,
    pub(super) router: Router,
    pub(super) header_time: Duration,
    pub(super) phase: watch::Receiver<Phase>,
}

impl Acceptor {
    /// Returns when the gateway stops.
    pub(super) async fn run(self) {
        let mut phase = self.phase.clone();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                // An error means that the listener was dropped.
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
            };
            match accepted {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) if of_the_peer(&error) => {
                    tracing::debug!(%error, "a connection ended before the gateway accepted it");
                }
                Err(error) => {
                    let address = self.listener.local_addr().ok();
                    tracing::warn!(?address, %error, "the gateway cannot accept connections: it retries");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let permit = Arc::clone(&self.connections).try_acquire_owned().ok();
        let Some(permit) = permit.zip(self.addresses.enter(peer.ip())) else {
            return self.turn_away(stream);
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "the gateway could not set TCP_NODELAY on a connection: answers may be delayed");
        }
        let (router, phase, header_time) = (self.router.clone(), self.phase.clone(), self.header_time);
        // Separate tasks, so that a connection without TLS does not need the memory of one with TLS.
        let Some(tls) = self.tls.clone() else {
            tokio::spawn(async move {
                let from = From { peer, certificate: None };
                connection::serve(stream, from, router, header_time, phase).await;
                drop(permit);
            });
            return;
        };
        tokio::spawn(async move {
            match timeout(HANDSHAKE_WITHIN, TlsAcceptor::from(tls.config()).accept(stream)).await {
                Ok(Ok(stream)) => {
                    let from = From { peer, certificate: ClientCertificate::of(stream.get_ref().1, &tls) };
                    connection::serve(stream, from, router, header_time, phase).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "the TLS handshake of a connection failed"),
                Err(_) => tracing::debug!(%peer, "the TLS handshake of a connection took too long"),
            }
            drop(permit);
        });
    }

    /// Answers 503 unless TLS is on, because the handshake is the expensive part.
    fn turn_away(&self, mut stream: TcpStream) {
        refused(HttpRefusal::Connections);
        if self.tls.is_some() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        tokio::spawn(async move {
            let refused = timeout(REFUSED_WITHIN, async {
                stream.write_all(refusal().as_bytes()).await?;
                stream.shutdown().await?;
                // Closing a socket with unread bytes resets it, and the answer would be lost.
                tokio::io::copy(&mut (&mut stream).take(64 * 1024), &mut tokio::io::sink()).await
            });
            if !matches!(refused.await, Ok(Ok(_))) {
                tracing::trace!("a refused connection did not receive the answer");
            }
            drop(permit);
        });
    }
}

fn refusal() -> String {
    let body = concat!(
        r#"{"type":"urn:bellwether:problem:saturated","title":"Gateway saturated","status":503,"#,
        r#""detail":"the limit of connections is reached: try again later, or on another gateway"}"#
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: {}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        RETRY_AFTER.as_secs(),
        body.len(),
    )
}

/// Whether the error concerns a single connection and not the listening socket.
fn of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
