//! A running server, to who started it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::builder::Builder;
use super::inbox::{Closed, Inbox, Message};
use crate::store::{Backup, StoreError};

/// How the engine ended; `None` while it serves.
pub(super) type Outcome = Option<Result<(), StopReason>>;

/// Why a server stopped by itself.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StopReason {
    /// A batch could not be made durable. Nobody was told of it; what the store holds is known after a restart.
    #[error("a commit failed: nothing of its batch was acknowledged, and the server has stopped")]
    Commit(#[source] Arc<StoreError>),
    /// A defect of the server.
    #[error("the engine panicked: the server has stopped")]
    Panicked,
}

/// Why a backup was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The server has stopped.
    #[error("the server has stopped")]
    Stopped,
    /// The store could not be read, or the file not be written.
    #[error("the store could not be copied")]
    Store(#[from] StoreError),
    /// A defect of the store.
    #[error("the copying thread panicked")]
    Panicked,
}

/// A running server. Dropping it stops the server without waiting for it: see [`stop`](Self::stop).
#[derive(Debug)]
pub struct Keeper {
    pub(super) address: SocketAddr,
    pub(super) inbox: Arc<Inbox>,
    pub(super) outcome: watch::Receiver<Outcome>,
    pub(super) listener: Option<JoinHandle<()>>,
}

impl Keeper {
    /// What may be decided about a server, with defaults: loopback, a free port, nothing durable.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients on this machine connect to: `127.0.0.1:2181`.
    #[must_use]
    pub fn connect_string(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // Every address includes the loopback's.
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        address.to_string()
    }

    /// Closes the listener, finishes the batch that is under way, and closes the connections behind their answers.
    /// Sessions stay: their clients may come back to the next server on the same store, as to a restarted ZooKeeper.
    ///
    /// The store's directory is free when this returns. Cancelling it leaves the server to stop by itself.
    ///
    /// # Errors
    /// When the server had stopped by itself before.
    pub async fn stop(mut self) -> Result<(), StopReason> {
        self.tell_stop();
        let outcome = self.ended().await;
        if let Some(listener) = self.listener.take() {
            // Its panic took no data along: the engine's outcome is the one that counts.
            drop(listener.await);
        }
        outcome
    }

    /// Waits for the server to stop by itself. Cancel safe.
    ///
    /// # Errors
    /// Always, as nobody else can stop it: why it stopped. A service that gets this should end with a failure.
    pub async fn wait(&self) -> Result<(), StopReason> {
        self.ended().await
    }

    /// Why the server stopped by itself; `None` while it serves.
    #[must_use]
    pub fn stopped(&self) -> Option<StopReason> {
        self.outcome.borrow().clone().and_then(Result::err)
    }

    /// Writes a copy of the store to a new file while the server goes on: of the last commit, whole or not at all,
    /// durable on return. [`store::restore`](crate::store::restore) reads it. Commits are held up while the view is
    /// taken, which folds what waits: some 200 ms at most.
    ///
    /// Cancelling it does not stop the copy.
    ///
    /// # Errors
    /// When there is a file of that name, or it cannot be written, or the server has stopped.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<Backup, BackupError> {
        let (answer, reader) = oneshot::channel();
        self.inbox.tell(Message::Reader(answer)).map_err(|Closed| BackupError::Stopped)?;
        let reader = reader.await.map_err(|_gone| BackupError::Stopped)??;
        let to = to.as_ref().to_owned();
        let copied = tokio::task::spawn_blocking(move || reader.backup(&to)).await;
        Ok(copied.map_err(|_panic| BackupError::Panicked)??)
    }

    async fn ended(&self) -> Result<(), StopReason> {
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await.map(|ended| ended.clone()) {
            Ok(Some(ended)) => ended,
            // The engine's thread is gone and left no word.
            Ok(None) | Err(_) => Err(StopReason::Panicked),
        }
    }

    fn tell_stop(&self) {
        // An engine that is gone needs not be stopped.
        let (Ok(()) | Err(Closed)) = self.inbox.tell(Message::Stop);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.tell_stop();
    }
}
