//! Watching the members of an election.

use bellwether_core::outcome::Reason;
use bellwether_core::path;
use bellwether_core::port::{ReadError, Watch};
use bellwether_core::remedy::ErrorClass;
use bellwether_host::session::SessionStatus;
use bellwether_zk::Zk;
use tokio::sync::watch;

use super::candidates::{self, Candidates};

/// The candidates of an election cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CandidatesError {
    /// The session is not connected, or the connection was lost before the answer.
    #[error("the connection to ZooKeeper is lost")]
    Disconnected,
    /// ZooKeeper refused to list the candidates, for example because the session may not read them.
    #[error("ZooKeeper refused to list the candidates")]
    Refused(#[source] Reason),
    /// This node's participation has ended.
    #[error("the election is closed")]
    Closed,
}

impl CandidatesError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Disconnected => ErrorClass::Unavailable,
            Self::Refused(reason) => reason.class(),
            Self::Closed => ErrorClass::Closed,
        }
    }
}

bellwether_core::impl_remedy!(CandidatesError);

impl CandidatesError {
    pub(super) fn of_read(error: ReadError) -> Self {
        match error {
            ReadError::Disconnected => Self::Disconnected,
            ReadError::Refused(reason) => Self::Refused(reason),
        }
    }
}

/// Watches the candidates of an election. Of changes in quick succession only the last state is seen.
pub struct CandidatesWatch {
    status: watch::Receiver<SessionStatus>,
    /// The watches on the candidates and on the epoch; `None` while they are not set.
    watching: Option<[Box<dyn Watch>; 2]>,
    /// Whether the candidates may have changed since they were read.
    stale: bool,
    seen: Option<Candidates>,
}

impl std::fmt::Debug for CandidatesWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CandidatesWatch").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl CandidatesWatch {
    pub(super) fn new(status: watch::Receiver<SessionStatus>) -> Self {
        Self { status, watching: None, stale: true, seen: None }
    }

    /// Returns the candidates on the first call, and after that each time that they have changed.
    ///
    /// With [`Strategy::Single`](super::Strategy::Single) a change is reported when a candidate claims.
    ///
    /// # Errors
    /// [`CandidatesError::Refused`] and [`CandidatesError::Closed`]. The next call tries again.
    ///
    /// # Connection loss
    /// Waits for the connection, or for the next session, and reads again: a change in between is reported then.
    ///
    /// # Cancellation
    /// Cancel safe: a state that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> Result<Candidates, CandidatesError> {
        loop {
            match self.next().await {
                Ok(now) if self.seen.as_ref() != Some(&now) => {
                    self.seen = Some(now.clone());
                    return Ok(now);
                }
                Ok(_) => {}
                // The watches end with the connection.
                Err(CandidatesError::Disconnected) => self.watching = None,
                Err(error) => return Err(error),
            }
        }
    }

    async fn next(&mut self) -> Result<Candidates, CandidatesError> {
        if let Some([members, epoch]) = self.watching.as_mut().filter(|_| !self.stale) {
            let changes = tokio::select! {
                biased;
                changes = members.changes() => changes,
                changes = epoch.changes() => changes,
            };
            if changes.is_none() {
                self.watching = None;
            }
            self.stale = true;
        }
        let zk = self.connected().await?;
        if self.watching.is_none() {
            let watches = [path::ELECTION, path::EPOCH].map(|path| zk.watch_path(path.to_owned()));
            let [members, epoch] = watches;
            self.watching = Some([
                Box::new(members.await.map_err(CandidatesError::of_read)?),
                Box::new(epoch.await.map_err(CandidatesError::of_read)?),
            ]);
        }
        // Requested after the watches are set: they report everything that this list does not show.
        let now = candidates::read(&zk).await.map_err(CandidatesError::of_read)?;
        self.stale = false;
        Ok(now)
    }

    /// Waits for a connected session.
    async fn connected(&mut self) -> Result<Zk, CandidatesError> {
        loop {
            match &*self.status.borrow_and_update() {
                SessionStatus::Connected(zk) if bellwether_core::port::Session::is_connected(zk) => {
                    return Ok(zk.clone());
                }
                SessionStatus::Refused(_) => return Err(CandidatesError::Closed),
                SessionStatus::Connected(_)
                | SessionStatus::Connecting { .. }
                | SessionStatus::Disconnected => {}
            }
            self.status.changed().await.map_err(|_closed| CandidatesError::Closed)?;
        }
    }
}
