//! Accepts connections within the limits until the engine ends.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::connection;
use super::inbox::Inbox;
use super::keeper::Outcome;
use super::limits::{ACCEPT_PAUSE, LINGER, Limits};
#[cfg(feature = "tls")]
use super::tls::Acceptor;
use crate::model::ConnectionId;

/// Counts of open connections. Shared with the four-letter words.
#[derive(Debug, Default)]
pub(super) struct Admission {
    open: AtomicUsize,
    rejected: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// The permit for one connection; dropping it releases the slot.
#[derive(Debug)]
struct ConnectionPermit {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    fn admit(self: &Arc<Self>, address: IpAddr, limits: &Limits) -> Option<ConnectionPermit> {
        let full = |limit: Option<usize>, count: usize| limit.is_some_and(|limit| count >= limit);
        let mut by_address = self.by_address();
        let of_address = by_address.get(&address).copied().unwrap_or(0);
        if full(limits.connections, self.open()) || full(limits.connections_per_address, of_address) {
            drop(by_address);
            self.rejected.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        by_address.insert(address, of_address + 1);
        self.open.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionPermit { admission: Arc::clone(self), address })
    }

    /// Returns the number of open connections.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the number of connections rejected by a limit.
    pub(super) fn rejected(&self) -> usize {
        self.rejected.load(Ordering::Relaxed)
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.admission.open.fetch_sub(1, Ordering::Relaxed);
        let mut by_address = self.admission.by_address();
        match by_address.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(by_address.remove(&self.address)),
        }
    }
}

/// Shared data for all connections.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) inbox: Arc<Inbox>,
    pub(super) admission: Arc<Admission>,
    pub(super) limits: Limits,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Acceptor>,
}

/// Accepts connections until the engine ends, then waits for the open ones to end.
pub(super) async fn listen(listener: TcpListener, door: Door, mut outcome: watch::Receiver<Outcome>) {
    let mut connections = JoinSet::new();
    let mut next = 1;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let id = ConnectionId(next);
                    next += 1;
                    open(&mut connections, stream, peer, id, &door);
                }
                Err(error) => {
                    warn!(error = &error as &dyn std::error::Error, "the keeper could not accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => report(ended),
            () = ended(&mut outcome) => break,
        }
    }
    drop(listener);
    let rest = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if timeout(LINGER, rest).await.is_err() {
        // The remaining ones are in their handshake or do not read.
        connections.shutdown().await;
    }
}

async fn ended(outcome: &mut watch::Receiver<Outcome>) {
    // An error means that the sender was dropped, so the engine has ended.
    drop(outcome.wait_for(Option::is_some).await);
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        warn!(error = &error as &dyn std::error::Error, "a connection task of the keeper panicked");
    }
}

fn open(connections: &mut JoinSet<()>, stream: TcpStream, peer: SocketAddr, id: ConnectionId, door: &Door) {
    let Some(place) = door.admission.admit(peer.ip(), &door.limits) else {
        warn!(%peer, "the keeper refused a connection: the connection limit is reached");
        return;
    };
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, error = &error as &dyn std::error::Error, "the keeper could not set TCP_NODELAY on a connection");
    }
    let door = door.clone();
    connections.spawn(async move {
        let ended = serve(stream, peer, id, &door).await;
        debug!(%peer, connection = id.0, ended = &ended as &dyn std::error::Error, "a connection to the keeper ended");
        drop(place);
    });
}

#[cfg(feature = "tls")]
async fn serve(stream: TcpStream, peer: SocketAddr, id: ConnectionId, door: &Door) -> connection::Ended {
    let handshake = door.limits.handshake_time;
    match &door.tls {
        None => connection::serve(stream, id, peer, handshake, &door.inbox).await,
        Some(acceptor) => match timeout(handshake, acceptor.accept(stream)).await {
            Err(_elapsed) => connection::Ended::Silent,
            Ok(Err(error)) => connection::Ended::Socket(error),
            Ok(Ok(stream)) => connection::serve(stream, id, peer, handshake, &door.inbox).await,
        },
    }
}

#[cfg(not(feature = "tls"))]
async fn serve(stream: TcpStream, peer: SocketAddr, id: ConnectionId, door: &Door) -> connection::Ended {
    connection::serve(stream, id, peer, door.limits.handshake_time, &door.inbox).await
}
