//! The handle of a running server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bellwether_remedy::{ErrorClass, impl_remedy};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::builder::Builder;
use super::inbox::{Closed, Inbox, Message};
use crate::store::{Backup, StoreError};

/// The result of the engine; `None` while the server runs.
pub(super) type Outcome = Option<Result<(), StopReason>>;

/// The reason why a server stopped without a call of [`Keeper::stop`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StopReason {
    /// A batch could not be made durable. None of it was acknowledged. A restart shows whether the store contains it.
    #[error("a commit failed: nothing of its batch was acknowledged, and the server has stopped")]
    Commit(#[source] Arc<StoreError>),
    /// A bug in the server.
    #[error("the engine panicked: the server has stopped")]
    Panicked,
}

/// The reason why a backup failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The server has stopped.
    #[error("the server has stopped")]
    Stopped,
    /// The store could not be read, or the backup file could not be written.
    #[error("the store could not be copied")]
    Store(#[from] StoreError),
    /// A bug in the store.
    #[error("the backup thread panicked")]
    Panicked,
}

impl StopReason {
    /// Returns the class of the error. The server has stopped: start another one, whose error is more precise if it cannot start either.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Commit(_) | Self::Panicked => ErrorClass::Failed,
        }
    }
}

impl BackupError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Stopped => ErrorClass::Closed,
            Self::Store(error) => error.class(),
            Self::Panicked => ErrorClass::Failed,
        }
    }
}

impl_remedy!(StopReason, BackupError);

/// A running server. Dropping it stops the server in the background; [`stop`](Self::stop) also waits for the end.
#[derive(Debug)]
pub struct Keeper {
    pub(super) address: SocketAddr,
    pub(super) inbox: Arc<Inbox>,
    pub(super) outcome: watch::Receiver<Outcome>,
    pub(super) listener: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Returns a builder with the default settings: a free loopback port and in-memory storage.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns the listen address with the actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the connect string for clients on this machine, such as `127.0.0.1:2181`.
    #[must_use]
    pub fn connect_string(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // The unspecified address includes loopback.
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        address.to_string()
    }

    /// Closes the listener, finishes the current batch, and closes the connections after their replies are sent.
    /// Sessions are kept: clients can re-attach to the next server on the same store, as after a restart of ZooKeeper.
    ///
    /// The data directory is unlocked when this returns. If the future is dropped, the server still stops in the
    /// background.
    ///
    /// # Errors
    /// Returns the reason if the server had already stopped with an error.
    pub async fn stop(mut self) -> Result<(), StopReason> {
        self.tell_stop();
        let outcome = self.ended().await;
        if let Some(listener) = self.listener.take() {
            // A panic of the listener loses no data, so only the engine's result is reported.
            drop(listener.await);
        }
        outcome
    }

    /// Waits until the server stops with an error. Cancel safe.
    ///
    /// # Errors
    /// Always returns an error, because only [`stop`](Self::stop) ends a server normally and it consumes the handle. A
    /// service that receives this error should exit with a failure.
    pub async fn wait(&self) -> Result<(), StopReason> {
        self.ended().await
    }

    /// Returns the reason why the server stopped; `None` while it runs.
    #[must_use]
    pub fn stopped(&self) -> Option<StopReason> {
        self.outcome.borrow().clone().and_then(Result::err)
    }

    /// Writes a copy of the last commit to a new file while the server runs. The copy is atomic and durable on return;
    /// [`store::restore`](crate::store::restore) reads it. Commits are delayed by at most about 200 ms, while the store
    /// folds its pending changes and opens the snapshot.
    ///
    /// If the future is dropped, the copy continues.
    ///
    /// # Errors
    /// If the file exists or cannot be written, or if the server has stopped.
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
            // The engine thread ended without a result.
            Ok(None) | Err(_) => Err(StopReason::Panicked),
        }
    }

    fn tell_stop(&self) {
        // If the inbox is closed, the engine has already stopped.
        let (Ok(()) | Err(Closed)) = self.inbox.tell(Message::Stop);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.tell_stop();
    }
}
