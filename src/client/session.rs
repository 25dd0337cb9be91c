//! The client's access to a usable session.
//!
//! Calls do not subscribe to the session's events. They wait until its status is *connected*, send the request, and
//! repeat it after a reconnection or under a new session, until their deadline. The client has no ephemeral znodes
//! and no standing watches, so a new session is as good as the old one.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::path;
use bellwether_core::port::{ReadError, ReadResult};
use bellwether_core::time::Millis;
use bellwether_core::txn::Op;

use super::error::{Error, Unavailable};
use super::runtime::{Runtime, Status, Zk};

/// The pause when a request reports *disconnected* but the session's status does not show it yet.
const LAG: Duration = Duration::from_millis(20);

/// The session and the runtime of a client. Cheap to clone.
#[derive(Clone)]
pub(super) struct Session(Arc<dyn Runtime>);

impl Deref for Session {
    type Target = dyn Runtime;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Applied,
    /// A znode was not as expected: read and decide again.
    Rejected,
    /// The reply was lost: read again, and consider that the write may have been applied.
    Unknown,
}

impl Session {
    pub(super) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self(runtime)
    }

    /// Returns the session if it is connected now.
    fn serving(&self) -> Option<Zk> {
        match self.status() {
            Status::Connected(zk) => Some(zk).filter(|zk| zk.is_connected()),
            Status::Connecting { .. } | Status::Disconnected | Status::Refused(_) => None,
        }
    }

    /// Whether a session is connected now.
    pub(super) fn is_usable(&self) -> bool {
        self.serving().is_some()
    }

    /// Waits for a connected session without a deadline.
    pub(super) async fn usable(&self) -> Result<Zk, Unavailable> {
        if let Some(zk) = self.serving() {
            return Ok(zk);
        }
        let mut statuses = self.statuses();
        loop {
            let lagging = match statuses.now() {
                Status::Connected(zk) if zk.is_connected() => return Ok(zk),
                Status::Refused(error) => return Err(Unavailable::Refused(error)),
                Status::Connected(_) => true,
                Status::Connecting { .. } | Status::Disconnected => false,
            };
            let open = if lagging {
                self.timeout(LAG, statuses.changed()).await.unwrap_or(true)
            } else {
                statuses.changed().await
            };
            if !open {
                return Err(self.ended());
            }
        }
    }

    /// The session was closed, or its namespace was refused just now.
    fn ended(&self) -> Unavailable {
        match self.status() {
            Status::Refused(error) => Unavailable::Refused(error),
            Status::Connected(_) | Status::Connecting { .. } | Status::Disconnected => Unavailable::Closed,
        }
    }

    /// Waits until the client is closed or its namespace is refused.
    pub(super) async fn over(&self) {
        let mut statuses = self.statuses();
        while statuses.changed().await {}
    }

    /// Like [`Session::usable`], with a deadline.
    pub(super) async fn usable_by(&self, by: Deadline) -> Result<Zk, Unavailable> {
        self.timeout_at(by.at, self.usable()).await.unwrap_or_else(|_| Err(self.not_in_time(by)))
    }

    /// Reads, and repeats the read after a lost connection until there is an answer.
    pub(super) async fn read<T, F>(&self, by: Deadline, mut ask: impl FnMut(&Zk) -> F) -> Result<T, Error>
    where
        F: Future<Output = ReadResult<T>>,
    {
        loop {
            let zk = self.usable_by(by).await?;
            match self.timeout_at(by.at, ask(&zk)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(ReadError::Refused(reason))) => return Err(Error::Refused(reason)),
                Ok(Err(ReadError::Disconnected)) => {}
                Err(_) => return Err(self.not_in_time(by).into()),
            }
        }
    }

    /// Waits until the session's server has applied every transaction that was committed before. A server of an ensemble
    /// may lag, so a read that finds nothing is definite only after this (S23).
    pub(super) async fn catch_up(&self, by: Deadline) -> Result<(), Error> {
        self.read(by, |zk| zk.sync(path::JOBS.to_owned())).await
    }

    /// Reads one thing per item in one look. Absent ones are read again after [`Session::catch_up`].
    pub(super) async fn read_each<I: Clone, T, F>(
        &self,
        by: Deadline,
        items: Vec<I>,
        is_absent: impl Fn(&T) -> bool,
        look: impl Fn(Zk, Vec<I>) -> F,
    ) -> Result<Vec<T>, Error>
    where
        F: Future<Output = ReadResult<Vec<T>>>,
    {
        let mut read = self.read(by, |zk| look(zk.clone(), items.clone())).await?;
        let absent = (0..read.len()).filter(|at| is_absent(&read[*at])).collect::<Vec<_>>();
        if !absent.is_empty() {
            self.catch_up(by).await?;
            let again = absent.iter().map(|at| items[*at].clone()).collect::<Vec<_>>();
            let again = self.read(by, |zk| look(zk.clone(), again.clone())).await?;
            absent.into_iter().zip(again).for_each(|(at, found)| read[at] = found);
        }
        Ok(read)
    }

    /// Commits once. A write that was not sent counts as [`Written::Rejected`]: nothing was changed, and the caller reads
    /// again, which waits for the session.
    pub(super) async fn commit(&self, by: Deadline, ops: Vec<Op>) -> Result<Written, Error> {
        let zk = self.usable_by(by).await?;
        match self.timeout_at(by.at, zk.commit(ops)).await {
            Ok(Outcome::Applied(())) => Ok(Written::Applied),
            Ok(Outcome::Unknown) | Err(_) => Ok(Written::Unknown),
            Ok(Outcome::Rejected(rejection)) => match rejection.reason {
                Reason::NoNode | Reason::NodeExists | Reason::BadVersion | Reason::NotSent => {
                    Ok(Written::Rejected)
                }
                reason @ (Reason::NotEmpty
                | Reason::NoAuth
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_)) => Err(Error::Refused(reason)),
            },
        }
    }

    /// Returns the error of a deadline that has passed, with the reason from the session's status.
    pub(super) fn not_in_time(&self, by: Deadline) -> Unavailable {
        let servers = self.servers();
        let (reason, served) = match self.status() {
            Status::Connecting { error: Some(error) } => (error, false),
            Status::Connecting { error: None } => (format!("no answer from {servers}"), false),
            Status::Connected(_) => (format!("{servers} accepted a session but did not answer"), true),
            Status::Disconnected => (format!("the connection to {servers} is lost"), false),
            Status::Refused(error) => return Unavailable::Refused(error),
        };
        Unavailable::NotInTime { within: by.within, reason, served }
    }

    /// Returns the deadline of a call that starts now.
    pub(super) fn by(&self, within: Duration) -> Deadline {
        // Longer waits may not fit the clock, so they are limited to 100 years.
        const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        Deadline { at: self.now() + within.min(FOREVER), within }
    }
}

/// The deadline of a call, and the original duration for its error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) at: Millis,
    pub(super) within: Duration,
}

#[cfg(test)]
mod tests;
