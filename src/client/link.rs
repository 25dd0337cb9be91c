//! The client's way to a usable session.
//!
//! A [`Session`] actor without a supervisor owns the connection. Calls do not subscribe to its events: they wait
//! for its status to say *connected* and then ask, and ask again after a reconnection or under a new session,
//! until their deadline. The client has no ephemerals and no standing watches, so a new session is as good as
//! the old one.

use std::time::Duration;

use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::txn::Op;
use bellwether_host::session::{Session, SessionConfig, SessionStatus};
use bellwether_zk::{ReadError, ReadResult, SessionState, Zk};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{Error, Unavailable};

/// How soon to look again when a session says *disconnected* and its actor has not said so yet.
const LAG: Duration = Duration::from_millis(20);

/// How long [`Link::close`] waits for the actor, which itself waits 2 s for ZooKeeper.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// A session actor of this client's own; dropping it ends the session.
#[derive(Debug)]
pub(super) struct Link {
    session: Session,
    servers: String,
}

/// What a write did, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Applied,
    /// A znode was not as expected: read again and decide anew.
    Lost,
    /// The reply was lost: read again, and remember that it may have been applied.
    Unknown,
}

impl Link {
    pub(super) async fn start(config: SessionConfig) -> Result<Self, Unavailable> {
        let servers = config.connect.servers().join(", ");
        let session = Session::start(config, None).await.map_err(|_| Unavailable::Closed)?;
        Ok(Self { session, servers })
    }

    /// Whether there is a session that serves now.
    pub(super) fn is_usable(&self) -> bool {
        match &*self.session.status().borrow() {
            SessionStatus::Connected(zk) => zk.state() == SessionState::Connected,
            SessionStatus::Connecting { .. } | SessionStatus::Disconnected | SessionStatus::Refused(_) => {
                false
            }
        }
    }

    /// Waits for a session that serves, for as long as it takes.
    pub(super) async fn usable(&self) -> Result<Zk, Unavailable> {
        let mut status = self.session.status();
        loop {
            let lagging = match &*status.borrow_and_update() {
                SessionStatus::Connected(zk) if zk.state() == SessionState::Connected => {
                    return Ok(zk.clone());
                }
                SessionStatus::Refused(error) => return Err(Unavailable::Refused(error.clone())),
                SessionStatus::Connected(_) => true,
                SessionStatus::Connecting { .. } | SessionStatus::Disconnected => false,
            };
            let ended = if lagging {
                timeout(LAG, status.changed()).await.is_ok_and(|changed| changed.is_err())
            } else {
                status.changed().await.is_err()
            };
            if ended {
                return Err(Self::ended(&status));
            }
        }
    }

    /// The actor is gone: it was stopped, or it has just refused the namespace.
    fn ended(status: &watch::Receiver<SessionStatus>) -> Unavailable {
        match &*status.borrow() {
            SessionStatus::Refused(error) => Unavailable::Refused(error.clone()),
            SessionStatus::Connected(_) | SessionStatus::Connecting { .. } | SessionStatus::Disconnected => {
                Unavailable::Closed
            }
        }
    }

    /// As [`Link::usable`], but no longer than `by`.
    pub(super) async fn usable_by(&self, by: Deadline) -> Result<Zk, Unavailable> {
        timeout_at(by.at, self.usable()).await.unwrap_or_else(|_| Err(self.not_in_time(by)))
    }

    /// Reads, and reads again after a lost connection, until there is an answer.
    pub(super) async fn read<T, F>(&self, by: Deadline, mut ask: impl FnMut(&Zk) -> F) -> Result<T, Error>
    where
        F: Future<Output = ReadResult<T>>,
    {
        loop {
            let zk = self.usable_by(by).await?;
            match timeout_at(by.at, ask(&zk)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(ReadError::Refused(reason))) => return Err(Error::Refused(reason)),
                Ok(Err(ReadError::Disconnected)) => {}
                Err(_) => return Err(self.not_in_time(by).into()),
            }
        }
    }

    /// Commits once. Not sent counts as [`Written::Lost`]: nothing was changed, and the caller reads again, which
    /// waits for the session.
    pub(super) async fn commit(&self, by: Deadline, ops: Vec<Op>) -> Result<Written, Error> {
        let zk = self.usable_by(by).await?;
        match timeout_at(by.at, zk.commit(ops)).await {
            Ok(Outcome::Applied(())) => Ok(Written::Applied),
            Ok(Outcome::Unknown) | Err(_) => Ok(Written::Unknown),
            Ok(Outcome::Rejected(rejection)) => match rejection.reason {
                Reason::NoNode | Reason::NodeExists | Reason::BadVersion | Reason::NotSent => {
                    Ok(Written::Lost)
                }
                reason @ (Reason::NotEmpty
                | Reason::NoAuth
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_)) => Err(Error::Refused(reason)),
            },
        }
    }

    /// Makes a container. Whether it is there, when that is not known, the write that needs it tells.
    pub(super) async fn make_container(&self, by: Deadline, path: String) -> Result<(), Error> {
        let zk = self.usable_by(by).await?;
        match timeout_at(by.at, zk.create_container(path)).await {
            Ok(Outcome::Applied(()) | Outcome::Unknown) | Err(_) => Ok(()),
            Ok(Outcome::Rejected(rejection)) => match rejection.reason {
                Reason::NodeExists | Reason::NotSent => Ok(()),
                reason @ (Reason::NoNode
                | Reason::BadVersion
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_)) => Err(Error::Refused(reason)),
            },
        }
    }

    /// Why nothing came in time, as the session tells it.
    pub(super) fn not_in_time(&self, by: Deadline) -> Unavailable {
        let servers = &self.servers;
        let (reason, served) = match &*self.session.status().borrow() {
            SessionStatus::Connecting { error: Some(error) } => (error.clone(), false),
            SessionStatus::Connecting { error: None } => (format!("no answer from {servers}"), false),
            SessionStatus::Connected(_) => (format!("{servers} gave a session but no answer"), true),
            SessionStatus::Disconnected => (format!("the connection to {servers} is lost"), false),
            SessionStatus::Refused(error) => return Unavailable::Refused(error.clone()),
        };
        Unavailable::NotInTime { within: by.within, reason, served }
    }

    pub(super) async fn close(&self) {
        if self.session.cell().stop_and_wait(None, Some(CLOSE_WITHIN)).await.is_err() {
            tracing::debug!("the session actor had ended, or did not end in time");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.session.cell().stop(None);
    }
}

/// Until when a call may take, and how long that was, for its error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) within: Duration,
}

impl Deadline {
    pub(super) fn after(within: Duration) -> Self {
        // A wait that does not fit the clock is one without an end.
        const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        Self { at: Instant::now() + within.min(FOREVER), within }
    }
}
