//! Leader election for a service that wants a leader and no jobs.
//!
//! ```no_run
//! use bellwether::election::{Election, LeadershipState};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let election = Election::builder("zk1:2181,zk2:2181/my-service").node("web-1").start().await?;
//! let mut leadership = election.watch();
//! loop {
//!     match leadership.changed().await {
//!         LeadershipState::Active(term) => println!("leading under epoch {}", term.epoch()),
//!         LeadershipState::Paused { term, .. } => println!("cut off, epoch {} may go on", term.epoch()),
//!         LeadershipState::Inactive(_) => println!("not the leader"),
//!     }
//! }
//! # }
//! ```
//!
//! # What is promised
//!
//! * Under [`Policy::AtMostOne`] two nodes are never [`Election::is_leader`] at once, while ZooKeeper keeps sessions
//!   for their timeout, this machine's clock runs, and nobody deletes the election's znodes or ends a session by hand.
//! * In any case a write that is fenced with an epoch is rejected by ZooKeeper once a later epoch was claimed:
//!   [`Election::commit`], or a multi of your own that begins with a check of [`Election::fence`]. Being the leader
//!   when you decide is not being the leader when your write arrives; only the fence tells.
//! * Another node leads within the session timeout and about a second after a leader dies, and within a second
//!   after it steps down or closes.
//!
//! # When the connection is lost
//!
//! The leader is `Paused` as soon as its connection breaks: it is not asked to forget anything, and acts no more
//! (unless its policy is [`Policy::AtLeastOne`]). When the connection returns in time and nothing has changed, it is
//! `Active` with the same epoch. If not, it is `Inactive` before ZooKeeper can make another node the leader.
//!
//! Fences are versions of one znode, `/epoch` in the namespace: they only grow, and each belongs to one session.

mod builder;
mod commit;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::path;
use bellwether_host::election::{ActiveTerm, Election as Actor};
use bellwether_host::session::Session;

pub use bellwether_core::machine::election::campaign::Strategy;
pub use bellwether_core::machine::election::leadership::{Inactive, LeadershipState, Policy, Term};
pub use bellwether_core::txn::{Lifetime, Op};
pub use builder::{Builder, StartError};
pub use commit::CommitError;
pub use watch::Watch;

/// How long [`Election::close`] waits for each of its two actors; ZooKeeper itself gets 2 s of it.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// One node's part in the election, cheap to clone. Dropping the last clone ends it, as [`Election::close`]
/// does, without waiting.
#[derive(Debug, Clone)]
pub struct Election(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    actor: Actor,
    session: Session,
    chroot: String,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.actor.cell().stop(None);
        self.session.cell().stop(None);
    }
}

/// What a write of the leader checks on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The znode from ZooKeeper's root, for a client without this namespace's chroot.
    pub path: String,
    /// The version that it must have: the epoch.
    pub version: i32,
}

impl Election {
    /// Takes part in the election of a namespace: `HOST:PORT[,HOST:PORT…][/CHROOT]`.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> Builder {
        Builder::new(zookeeper.into())
    }

    /// The state of this node's leadership. A snapshot: for a decision take [`Election::is_leader`].
    #[must_use]
    pub fn leadership(&self) -> LeadershipState {
        self.0.actor.leadership().borrow().clone().map(|active| active.term)
    }

    /// Follows [`Election::leadership`].
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(self.0.actor.leadership())
    }

    /// Whether this node may act as the leader at this moment. Compares a clock: right also in a process that has
    /// just woken from a freeze.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.actor.may_act()
    }

    /// What to check in a transaction of your own; `None` unless active.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        let leadership = self.0.actor.leadership();
        let version = match &*leadership.borrow() {
            LeadershipState::Active(ActiveTerm { term, .. }) => term.epoch(),
            LeadershipState::Paused { .. } | LeadershipState::Inactive(_) => return None,
        };
        let root = self.0.chroot.trim_end_matches('/');
        Some(Fence { path: format!("{root}{}", path::EPOCH), version })
    }

    /// Gives leadership and candidacy up, and stays out until [`Election::stand`]. This node stops being the leader
    /// at once; the future is ready when its candidate is gone from ZooKeeper, or its session is over.
    ///
    /// # Cancellation
    /// Dropping the future stops the waiting only.
    ///
    /// # Connection loss
    /// Waits for the connection or the end of the session, which may take up to twice the session timeout.
    pub async fn step_down(&self) {
        self.0.actor.step_down().await;
    }

    /// Takes part again, at the end of the queue.
    pub fn stand(&self) {
        self.0.actor.stand();
    }

    /// Ends the part of all clones: leads no more, and ends the session, so that another node leads at once.
    /// Returns when ZooKeeper knows, within about 6 s at most.
    ///
    /// # Cancellation
    /// Dropping the future stops the waiting only, once it was polled.
    pub async fn close(self) {
        for cell in [self.0.actor.cell(), self.0.session.cell()] {
            if cell.stop_and_wait(None, Some(CLOSE_WITHIN)).await.is_err() {
                tracing::debug!("an actor of the election had ended, or did not end in time");
            }
        }
    }
}
