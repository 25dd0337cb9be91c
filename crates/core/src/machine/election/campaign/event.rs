//! What a campaign hears and what it asks for.

use crate::outcome::{Outcome, Rejection};

/// Ties a reply to its request. Tickets of two campaigns of one process never alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Which campaign, counted by its owner.
    pub campaign: u64,
    /// Which request of it.
    pub request: u64,
}

/// What a campaign hears.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// The session is connected, perhaps again.
    Connected,
    /// The connection is lost; the session may live.
    Disconnected,
    /// Time passed.
    Tick,
    /// Look now: something else than a watch says that the standing may have changed.
    Look,
    /// Look again after a rest: what the caller tried on the strength of the last look failed.
    Again,
    /// Give the candidacy up.
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
    /// To [`Request::Owner`]: the session that owns the znode (0: none does), or `None` without a znode.
    Owner(Outcome<Option<i64>>),
    /// To [`Request::Watch`]: whether the znode is there. The watch stands in both cases.
    Watched(Outcome<bool>),
    /// A later answer to [`Request::Watch`]: the znode changed, is gone, or came. A hint, not a fact.
    Changed,
    /// To [`Request::Delete`].
    Deleted(Outcome<()>),
}

/// What a campaign pushes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send a request. Requests must reach ZooKeeper in the order in which they were pushed.
    Send(Ticket, Request),
    /// How the candidate stands, as far as the last look tells.
    Candidacy(Candidacy),
    /// ZooKeeper refused something that it should not refuse; it is tried again. To be logged.
    Refused(Rejection),
}

/// One request to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// Create a persistent, empty znode.
    CreateParent {
        /// Which.
        path: &'static str,
    },
    /// Create an ephemeral whose name ZooKeeper completes with a sequence number.
    CreateSequential {
        /// The path up to the number.
        prefix: String,
        /// The node's name, for people.
        data: Vec<u8>,
    },
    /// Create an ephemeral.
    CreateEphemeral {
        /// Which.
        path: &'static str,
        /// The node's name, for people.
        data: Vec<u8>,
    },
    /// List children, after a `sync`: this may follow a create on another server whose reply was lost.
    List {
        /// Of which znode.
        path: &'static str,
    },
    /// Read who owns a znode, after a `sync`.
    Owner {
        /// Which.
        path: &'static str,
    },
    /// Watch for the next change of a znode, whether it is there or not. Replaces the campaign's earlier watch.
    Watch {
        /// Which.
        path: String,
    },
    /// Delete a znode whatever its version.
    Delete {
        /// Which.
        path: String,
    },
}

/// How a candidate stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Candidacy {
    /// It has no znode, and makes one.
    Running,
    /// Another is before it.
    Behind {
        /// The only znode that it watches.
        predecessor: String,
    },
    /// None is before it. Told after every look that finds it so.
    First {
        /// Its own znode.
        candidate: String,
    },
    /// It has no znode and wants none.
    Left,
}
