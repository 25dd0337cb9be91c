//! Taking connections, or turning them away.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::{Phase, connection};
use crate::http::limits::{HANDSHAKE_WITHIN, RETRY_AFTER};
use crate::http::state::App;

/// Connections that are being turned away; more are dropped without a word.
pub(super) const MAX_REFUSALS: usize = 64;

/// How long a peer may take to read that it is turned away.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// After an error of the socket itself, such as too many open files: it does not go away at once.
const PAUSE: Duration = Duration::from_millis(100);

/// All that the accept loop needs; it keeps nothing, so that another may take over.
#[derive(Clone)]
pub(super) struct Acceptor {
    pub(super) listener: Arc<TcpListener>,
    pub(super) tls: Option<TlsAcceptor>,
    /// A permit for each connection, until it is closed.
    pub(super) connections: Arc<Semaphore>,
    pub(super) refusals: Arc<Semaphore>,
    pub(super) router: Router,
    pub(super) app: App,
}

impl Acceptor {
    /// Returns when the gateway stops.
    pub(super) async fn run(self) {
        let mut phase = self.app.phase.clone();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                // An error says that the gateway is gone altogether.
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
            };
            match accepted {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) if of_the_peer(&error) => {
                    tracing::debug!(%error, "a connection ended before it was accepted");
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted: trying again soon");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else {
            return self.turn_away(stream);
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "answers may be late");
        }
        let (router, phase) = (self.router.clone(), self.app.phase.clone());
        let header_time = self.app.limits.header_time;
        // A task each: one without TLS should not have the room of one with.
        let Some(tls) = self.tls.clone() else {
            tokio::spawn(async move {
                connection::serve(stream, peer, router, header_time, phase).await;
                drop(permit);
            });
            return;
        };
        tokio::spawn(async move {
            match timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
                Ok(Ok(stream)) => connection::serve(stream, peer, router, header_time, phase).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
                Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
            }
            drop(permit);
        });
    }

    /// Says 503 where that can be read: not under TLS, whose handshake is what costs.
    fn turn_away(&self, mut stream: TcpStream) {
        metrics::counter!(bellwether::metrics::HTTP_REFUSED, "why" => "connections").increment(1);
        if self.tls.is_some() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        tokio::spawn(async move {
            let refused = timeout(REFUSED_WITHIN, async {
                stream.write_all(refusal().as_bytes()).await?;
                stream.shutdown().await?;
                // A socket that is closed with bytes unread is reset, and the answer lost with it.
                tokio::io::copy(&mut (&mut stream).take(64 * 1024), &mut tokio::io::sink()).await
            });
            if !matches!(refused.await, Ok(Ok(_))) {
                tracing::trace!("a connection that was turned away did not hear it");
            }
            drop(permit);
        });
    }
}

fn refusal() -> String {
    let body = concat!(
        r#"{"type":"urn:bellwether:problem:saturated","title":"The gateway has too much to do","status":503,"#,
        r#""detail":"there are as many connections as there may be: try again later, or elsewhere"}"#
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: {}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        RETRY_AFTER.as_secs(),
        body.len(),
    )
}

/// Of one connection that is over, not of the socket that listens.
fn of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
