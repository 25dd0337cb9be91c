//! Leader election for services that need a leader but no jobs.
//!
//! ```no_run
//! use bellwether::election::{Election, LeadershipState};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let election = Election::builder("zk1:2181,zk2:2181/my-service").node_id("web-1").start().await?;
//! let mut leadership = election.watch();
//! loop {
//!     match leadership.changed().await {
//!         LeadershipState::Active(term) => println!("leading under epoch {}", term.epoch()),
//!         LeadershipState::Paused { term, .. } => println!("cut off, epoch {} may continue", term.epoch()),
//!         LeadershipState::Inactive(_) => println!("not the leader"),
//!     }
//! }
//! # }
//! ```
//!
//! # Guarantees
//!
//! * Under [`Policy::AtMostOne`] [`Election::is_leader`] is never true on two nodes at the same time, while ZooKeeper
//!   keeps sessions for their timeout, the machine's monotonic clock runs, and no operator deletes the election's
//!   znodes or ends a session.
//! * Under every policy, ZooKeeper rejects a write that is fenced with an epoch once a later epoch was claimed. Use
//!   [`Election::commit`], or begin your own multi with a check of [`Election::fence`]. A node that is the leader
//!   when it decides may no longer be the leader when its write arrives; only the fence detects that.
//! * A leader that is dead, frozen or hung is replaced about 3 s after its last beat, or when its session ends, whichever
//!   is first. A leader that steps down or closes is replaced within a second.
//!
//! # When the connection is lost
//!
//! The leader becomes `Paused` as soon as its connection breaks. It keeps its state, but does not act. If the connection
//! returns in time and nothing has changed, it becomes `Active` again with the same epoch. Otherwise it becomes `Inactive`.
//! It never acts when another node can be the leader.
//!
//! # At least one
//!
//! Under [`Policy::AtLeastOne`] a paused leader continues to act: [`Election::is_leader`] stays true until the node *learns* that another
//! node has claimed, or until `paused_at_most`, even if its session ends meanwhile. When it is connected again, it reads
//! `/epoch`. If no other node has claimed, it becomes `Active`, with the same epoch or with a new one, and is not `Inactive` in
//! between. So while a process that led lives, a leader acts; in exchange, two nodes may act at the same time, possibly for a long time.
//!
//! * While it is paused, [`Election::commit`] and [`Election::fence`] refuse. After a successor has claimed, ZooKeeper
//!   rejects every write with the fence of the old epoch.
//! * So let a paused leader do only work that may be done twice, or work in a store that remembers the highest epoch and
//!   rejects a lower one: [`Term::epoch`].
//! * A process that ends, a restarted actor of the election, and [`Election::step_down`] keep no term.
//! * The nodes of the scheduler always use [`Policy::AtMostOne`].
//!
//! It also becomes `Paused` when no beat was applied for 2.7 s: it writes one per second, and the next candidate replaces a
//! leader that is silent for 3 s. So the runtime of the election must not be blocked for longer. The times are stored in the
//! namespace.
//!
//! Epochs are the versions of one znode, `/epoch` in the namespace. They only grow, and each belongs to one session.

mod builder;
pub(crate) mod candidates;
mod candidates_watch;
mod commit;
mod state;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::machine::election::leadership::LeadershipState as State;
use bellwether_core::path;
use bellwether_host::election::{ActiveTerm, Election as Actor};
use bellwether_host::session::{Session, SessionStatus};

pub use bellwether_core::machine::election::campaign::Strategy;
pub use bellwether_core::machine::election::leadership::{Inactive, Policy, Term};
pub use bellwether_core::txn::{Lifetime, Op};
pub use builder::{ElectionBuilder, StartError};
pub use candidates::{Candidate, Candidates};
pub use candidates_watch::{CandidatesError, CandidatesWatch};
pub use commit::CommitError;
pub use state::LeadershipState;
pub use watch::Watch;

/// How long [`Election::close`] waits for each of its two actors. The session actor waits up to 2 s of it for
/// ZooKeeper.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// The participation of one node in an election. Cheap to clone. Dropping the last clone ends the participation like
/// [`Election::close`], without waiting.
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

/// The znode and version that a leader's write must check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fence {
    /// The path of the znode from ZooKeeper's root, for a client without this namespace's chroot.
    pub path: String,
    /// The version that the znode must have: the epoch.
    pub version: i32,
}

impl Election {
    /// Returns a builder for the election of a namespace: `HOST:PORT[,HOST:PORT…][/CHROOT]`.
    #[must_use]
    pub fn builder(zookeeper: impl Into<String>) -> ElectionBuilder {
        ElectionBuilder::new(zookeeper.into())
    }

    /// Returns a snapshot of this node's leadership. To make a decision, use [`Election::is_leader`].
    #[must_use]
    pub fn leadership(&self) -> LeadershipState {
        LeadershipState::of(&self.0.actor.leadership().borrow())
    }

    /// Returns a stream of changes of [`Election::leadership`].
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(self.0.actor.leadership())
    }

    /// Lists the candidates in their order.
    ///
    /// With [`Strategy::Queue`] each node that takes part has a place. With [`Strategy::Single`] only the owner of the one
    /// znode is known; the nodes that wait for it are not.
    ///
    /// # Errors
    /// [`CandidatesError`]: immediately while the session is not connected. Unreadable znodes do not fail the call: they are
    /// counted ([`Candidates::unreadable`]) or listed without a name.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    pub async fn candidates(&self) -> Result<Candidates, CandidatesError> {
        let connected = match &*self.0.session.status().borrow() {
            SessionStatus::Connected(zk) => Some(zk.clone()),
            SessionStatus::Connecting { .. } | SessionStatus::Disconnected | SessionStatus::Refused(_) => {
                None
            }
        };
        let zk = connected.ok_or(CandidatesError::Disconnected)?;
        candidates::read(&zk).await.map_err(CandidatesError::of_read)
    }

    /// Returns a stream of changes of [`Election::candidates`].
    ///
    /// The election itself needs no such watch: a candidate watches only its predecessor, so the end of a leader wakes one
    /// node. Each `CandidatesWatch` is woken by every change of the membership and then reads all candidates. Use it on the
    /// few nodes that show or supervise the membership.
    #[must_use]
    pub fn watch_candidates(&self) -> CandidatesWatch {
        CandidatesWatch::new(self.0.session.status())
    }

    /// Whether this node may act as the leader at this moment. Compares a clock, so it is also correct in a process
    /// that has just resumed from a freeze.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.actor.may_act()
    }

    /// Returns the check for your own transactions; `None` unless this node is the active leader.
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        let leadership = self.0.actor.leadership();
        let version = match &*leadership.borrow() {
            State::Active(ActiveTerm { term, .. }) => term.epoch(),
            State::Paused { .. } | State::Inactive(_) => return None,
        };
        let root = self.0.chroot.trim_end_matches('/');
        Some(Fence { path: format!("{root}{}", path::EPOCH), version })
    }

    /// Gives up leadership and candidacy until [`Election::stand`] is called. This node stops being the leader
    /// immediately. The future completes when its candidate is removed from ZooKeeper or its session has ended.
    ///
    /// # Cancellation
    /// Dropping the future only stops the waiting.
    ///
    /// # Connection loss
    /// Waits for the connection or the end of the session, which may take up to twice the session timeout.
    pub async fn step_down(&self) {
        self.0.actor.step_down().await;
    }

    /// Takes part again, at the end of the candidates' queue.
    pub fn stand(&self) {
        self.0.actor.stand();
    }

    /// Ends the participation of all clones: gives up leadership and closes the session, so that another node becomes
    /// the leader immediately. Returns when ZooKeeper has closed the session, after at most about 6 s.
    ///
    /// # Cancellation
    /// After the first poll, dropping the future only stops the waiting.
    pub async fn close(self) {
        for cell in [self.0.actor.cell(), self.0.session.cell()] {
            if cell.stop_and_wait(None, Some(CLOSE_WITHIN)).await.is_err() {
                tracing::debug!("an actor of the election had ended, or did not end in time");
            }
        }
    }
}
