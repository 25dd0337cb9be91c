//! The link of one member of an ensemble to another: a TCP proxy that can be cut or made slow.
//!
//! A follower connects to the quorum port of its leader through its link. Elections use other ports, which have no
//! proxy: a member whose link is cut can vote, but cannot follow. The proxy copies bytes without looking at them, on a
//! thread of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

const CHUNK: usize = 16 * 1024;
/// A new leader opens its quorum port a moment after its election. Without a link, a follower that is refused tries again; a
/// connection that is accepted and closed makes it vote again, which the leader notices only at the end of its init limit.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
const CONNECT_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Each byte arrives after this delay.
    Up(Duration),
    /// Nothing arrives. Connections stay open until the link is up again, and are reset then.
    Cut,
}

/// A running proxy. Dropping it closes its connections.
#[derive(Debug)]
pub(super) struct Link {
    address: SocketAddr,
    state: watch::Sender<State>,
}

impl Link {
    /// Starts a link to the quorum port of a member, which may start later.
    pub(super) fn to(member: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (state, watched) = watch::channel(State::Up(Duration::ZERO));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("member-link".to_owned()).spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a bound socket can be registered");
                let mut alive = watched.clone();
                tokio::select! {
                    // The condition never holds, so this returns when the link is dropped.
                    _ = alive.wait_for(|_| false) => {}
                    () = accept(listener, member, watched) => {}
                }
            });
        })?;
        Ok(Self { address, state })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    pub(super) fn delay(&self, delay: Duration) {
        self.state.send_replace(State::Up(delay));
    }
}

async fn accept(listener: TcpListener, member: SocketAddr, state: watch::Receiver<State>) {
    loop {
        let (from, _) = listener.accept().await.expect("accept on loopback fails only without descriptors");
        tokio::spawn(serve(from, member, state.clone()));
    }
}

/// Serves a connection until one side closes it, or the link is up again after a cut.
async fn serve(from: TcpStream, member: SocketAddr, mut state: watch::Receiver<State>) {
    let was_cut = async |state: &mut watch::Receiver<State>| {
        // An error means that the link is being dropped.
        state.wait_for(|state| *state == State::Cut).await.is_ok()
    };
    let watched = state.clone();
    let copied = async {
        let Some(to) = connect(member).await else { return };
        let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
        tokio::select! {
            () = copy(from_read, to_write, watched.clone()) => {}
            () = copy(to_read, from_write, watched) => {}
        }
    };
    tokio::pin!(copied);
    tokio::select! {
        biased;
        true = was_cut(&mut state) => {
            // The sockets stay open, because `copied` owns them, and silent, because it is not polled.
            drop(state.wait_for(|state| *state != State::Cut).await);
        }
        () = &mut copied => {}
    }
}

async fn connect(member: SocketAddr) -> Option<TcpStream> {
    let begun = Instant::now();
    loop {
        match TcpStream::connect(member).await {
            Ok(stream) => return Some(stream),
            Err(_) if begun.elapsed() < CONNECT_WITHIN => tokio::time::sleep(CONNECT_EVERY).await,
            Err(_) => return None,
        }
    }
}

/// Copies one direction. The queue is unbounded: a bound would limit the throughput of a slow link.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: watch::Receiver<State>) {
    let (sender, mut chunks) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async {
        loop {
            let mut chunk = vec![0; CHUNK];
            let Ok(length @ 1..) = from.read(&mut chunk).await else { return };
            chunk.truncate(length);
            // At the moment of a cut, the last chunk still passes.
            let delay = if let State::Up(delay) = *state.borrow() { delay } else { Duration::ZERO };
            if sender.send((Instant::now() + delay, chunk)).is_err() {
                return;
            }
        }
    };
    let write = async {
        while let Some((due, chunk)) = chunks.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&chunk).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = write => {}
    }
}
