//! The proxy's thread: it accepts connections or resets them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::connection::{Connection, reset};
use super::controls::{Controls, Door};
use super::fault::Plan;
use crate::Credentials;
use crate::raw::connect_response;

/// Data that the proxy has observed.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The sessions that have not been closed; the last one was granted last.
    sessions: Mutex<Vec<Credentials>>,
    handshakes: AtomicU64,
}

impl Observed {
    /// Records the granted session and returns its id.
    pub(super) fn connect_response(&self, frame: &[u8]) -> Option<i64> {
        match connect_response(frame) {
            // A timeout of zero means that the session has expired.
            Some((Duration::ZERO, _)) | None => None,
            Some((_, session)) => {
                let id = session.session_id;
                self.closed(id);
                self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session);
                self.handshakes.fetch_add(1, Ordering::Release);
                Some(id)
            }
        }
    }

    /// Forgets a session that its client closes.
    pub(super) fn closed(&self, id: i64) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.session_id != id);
    }

    pub(super) fn session(&self) -> Option<Credentials> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    pub(super) fn handshakes(&self) -> u64 {
        self.handshakes.load(Ordering::Acquire)
    }
}

/// Starts the thread of a proxy; returns its listen address. The thread ends when the sender of `controls` is dropped.
pub(super) fn spawn(
    upstream: SocketAddr,
    controls: watch::Receiver<Controls>,
    plan: Arc<Plan>,
    observed: Arc<Observed>,
) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("fault-proxy".to_owned()).spawn(move || {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("a bound socket can be registered");
            let mut alive = controls.clone();
            tokio::select! {
                // The condition never holds, so this returns when the last handle is dropped.
                _ = alive.wait_for(|_| false) => {}
                () = let_in(listener, upstream, controls, plan, observed) => {}
            }
        });
    })?;
    Ok(address)
}

async fn let_in(
    listener: TcpListener,
    upstream: SocketAddr,
    controls: watch::Receiver<Controls>,
    plan: Arc<Plan>,
    observed: Arc<Observed>,
) {
    loop {
        let (client, _) = listener.accept().await.expect("accept on loopback fails only without descriptors");
        // Door and count are read together: a connection accepted before a refusal is also older than the cut.
        let Controls { door, cuts: born, .. } = *controls.borrow();
        if door == Door::Closed {
            reset(client);
            continue;
        }
        let (controls, plan, observed) = (controls.clone(), Arc::clone(&plan), Arc::clone(&observed));
        tokio::spawn(Connection { client, upstream, controls, born, plan, observed }.serve());
    }
}
