//! Events, replies, requests and effects of a campaign.

use crate::outcome::{Outcome, Rejection};
use crate::txn::{Op, Seat};

/// Matches a reply to its request. Tickets of two campaigns of one process never alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The number of the campaign, counted by its owner.
    pub campaign: u64,
    /// The number of the request within the campaign.
    pub request: u64,
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The session is connected, for the first time or again.
    Connected,
    /// The connection is lost; the session may live.
    Disconnected,
    /// Time passed.
    Tick,
    /// Look now: the position may have changed, as reported by something other than a watch.
    Look,
    /// Look again after a rest: a request of the caller, based on the last look, failed.
    Again,
    /// Give up the candidacy.
    Leave,
    /// The answer to a request.
    Reply(Ticket, Reply),
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reply {
    /// To [`Request::CreateParent`], [`Request::CreateSequential`] and [`Request::CreateEphemeral`].
    Created(Outcome<()>),
    /// To [`Request::List`]: the names of the children.
    Listed(Outcome<Vec<String>>),
    /// To [`Request::Owner`].
    Owner(Outcome<Ownership>),
    /// To [`Request::Watch`]: whether the znode exists. The watch is set in both cases.
    Watched(Outcome<bool>),
    /// A later answer to [`Request::Watch`]: the znode was changed, deleted or created. A hint, not a fact.
    Changed,
    /// To [`Request::Delete`].
    Deleted(Outcome<()>),
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send a request. Requests must reach ZooKeeper in the order of the effects.
    Send(Ticket, Request),
    /// The candidate's position according to the last look.
    Candidacy(Candidacy),
    /// ZooKeeper unexpectedly refused a request, which is tried again. For the log.
    Refused(Rejection),
}

/// One request to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// Create a persistent, empty znode.
    CreateParent {
        /// The path of the znode.
        path: &'static str,
    },
    /// Create an ephemeral whose name ZooKeeper completes with a sequence number.
    CreateSequential {
        /// The path up to the number.
        prefix: String,
        /// The node's name, for display.
        data: Vec<u8>,
    },
    /// Create an ephemeral.
    CreateEphemeral {
        /// The path of the znode.
        path: &'static str,
        /// The node's name, for display.
        data: Vec<u8>,
    },
    /// List children after a `sync`: a create whose reply was lost may have been applied on another server.
    List {
        /// The path of the parent.
        path: &'static str,
    },
    /// Read the owner of `/leader`, and the version of `/leading`, after a `sync`. `/leading` must be read first or at the same
    /// time: then no claim came between the two.
    Owner,
    /// Watch for the next change of a znode, whether it exists or not. Replaces the campaign's earlier watch of this
    /// target.
    Watch {
        /// Which candidate the znode is.
        target: WatchTarget,
        /// The path of the znode.
        path: String,
    },
    /// Delete a candidate, regardless of its version.
    Delete {
        /// Precedes the delete in the same multi.
        fence: Option<Op>,
        /// The path of the znode.
        path: String,
    },
}

impl Request {
    /// The operations of [`Request::Delete`].
    #[must_use]
    pub fn delete_ops(fence: Option<Op>, path: String) -> Vec<Op> {
        fence.into_iter().chain([Op::Delete { path, version: None }]).collect()
    }
}

/// The owner of `/leader` in the strategy `single`, and a version that each claim changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// The session that owns `/leader` (0: not ephemeral), or `None` if it is absent.
    pub owner: Option<i64>,
    /// The version of `/leading`, if it exists.
    pub leading: Option<i32>,
}

/// The candidates that a campaign watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatchTarget {
    /// Its own candidate.
    Own,
    /// The nearest candidate before its own, or the owner of `/leader`.
    Predecessor,
    /// The second nearest one.
    SecondPredecessor,
    /// The third nearest one.
    ThirdPredecessor,
}

impl WatchTarget {
    /// The predecessors, the nearest one first.
    pub const PREDECESSORS: [Self; 3] = [Self::Predecessor, Self::SecondPredecessor, Self::ThirdPredecessor];
}

/// The position of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Candidacy {
    /// It has no znode, and is creating one.
    Running,
    /// Another candidate precedes it. Sent after every look with this result.
    Behind {
        /// The place from which it may claim when the leader is silent, if it is near enough.
        next: Option<Seat>,
    },
    /// No candidate precedes it. Sent after every look with this result.
    First {
        /// Its own znode.
        candidate: String,
    },
    /// It has no znode, and has left the election.
    Left,
}
