//! The proxy between a node and the keeper, which a test can cut.
//!
//! Bytes are forwarded as they arrive. The state is checked between reading and writing, so bytes that are read after
//! a cut are always dropped. A stream that has lost bytes is closed before anything else is written to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

const CHUNK: usize = 16 * 1024;

/// What the proxy forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Requests reach the server; replies are dropped.
    NoReplies,
    /// Connections are closed, and new ones are refused.
    Cut,
}

/// A port that leads to the keeper. Dropping it closes the port and all its connections.
#[derive(Debug)]
pub(super) struct KeeperProxy {
    address: SocketAddr,
    way: watch::Sender<Way>,
    listening: AbortHandle,
}

impl KeeperProxy {
    pub(super) async fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let way = watch::Sender::new(Way::Open);
        let listening = tokio::spawn(listen(listener, server, way.subscribe())).abort_handle();
        Ok(Self { address, way, listening })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    pub(super) fn lose_replies(&self) {
        self.way.send_replace(Way::NoReplies);
    }

    pub(super) fn mend(&self) {
        self.way.send_replace(Way::Open);
    }
}

impl Drop for KeeperProxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, server: SocketAddr, way: watch::Receiver<Way>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => drop(connections.spawn(serve(client, server, way.clone()))),
                Err(error) => tracing::warn!(%error, "the proxy could not accept a connection"),
            },
            Some(ended) = connections.join_next() => {
                let closed = ended.unwrap_or(Ok(()));
                tracing::trace!(?closed, "a connection of the proxy ended");
            }
        }
    }
}

async fn serve(client: TcpStream, server: SocketAddr, mut way: watch::Receiver<Way>) -> io::Result<()> {
    if *way.borrow_and_update() == Way::Cut {
        return Ok(());
    }
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (requests, replies) = (way.clone(), way.clone());
    tokio::select! {
        done = pass(from_client, to_server, requests, Way::Cut) => done,
        done = pass(from_server, to_client, replies, Way::NoReplies) => done,
        // Dropping the proxy drops the sender, which also ends this task.
        _ = way.wait_for(|way| *way == Way::Cut) => Ok(()),
    }
}

/// Forwards bytes until the proxy is cut. Bytes that arrive in the state `lossy` are dropped.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: watch::Receiver<Way>,
    lossy: Way,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut lost = false;
    loop {
        let read = from.read(&mut chunk).await?;
        let now = *way.borrow();
        if read == 0 || now == Way::Cut || (lost && now != lossy) {
            return Ok(());
        }
        if now == lossy {
            lost = true;
        } else {
            to.write_all(&chunk[..read]).await?;
        }
    }
}
