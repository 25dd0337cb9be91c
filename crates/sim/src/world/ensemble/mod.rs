//! An ensemble of three ZooKeeper servers.
//!
//! ```text
//!  client ── connection ── member ══ link ══ leader          log:  committed │ proposals
//!                │ reads: its own state        │ orders writes             ▲ a majority has it
//!                └ writes, sync: forwarded ────┘ owns the sessions
//! ```
//!
//! Each member's state machine is the keeper's model. There is one log; a member has a prefix of it on its disk
//! (`logged`) and has applied a shorter one (`applied`).
//!
//! * **Writes** are forwarded to the leader, which appends them to the log and proposes them. An entry is committed when
//!   a majority has it. A member applies it, fires its watches, and replies if the request came from its client.
//! * **Reads** are answered from the state of the client's member, in the order of the client's requests.
//! * **`sync`** goes to the leader, which answers after everything proposed so far is committed. The answer follows the
//!   commits on the link, so the member has applied them. The leader asks no majority, as in ZooKeeper.
//! * **Sessions** expire at the leader. Members report the sessions that they heard of in their replies to the leader's
//!   pings, every half tick. A new leader gives every session its full timeout.
//! * **A member that is cut off** from the leader continues to answer reads until it has heard nothing from the leader for
//!   syncLimit × tick. Then it closes its connections.
//! * **A new leader** is the member of a majority with the longest log. Proposals that it does not have are lost.
//!
//! | file | concern |
//! | --- | --- |
//! | `member` | connections of clients, the order of a client's requests, applying the log |
//! | `leader` | proposals, commits, sessions, pings |
//! | `link` | delays and cuts between a member and the leader |
//! | `election` | roles: start, loss and election of a leader |

mod election;
mod leader;
mod link;
mod member;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bellwether_keeper::model::{Config, Effect, Model};
use bellwether_keeper::proto::{ErrorCode, Request, Response};
use bellwether_keeper::store::{Change, Snapshot};
use fastrand::Rng;

use self::leader::Leader;
pub(super) use self::link::Step;
use self::member::Member;
use super::server::{self, Outcome};
use crate::history::{EventKind, TxnOp};
use crate::zk::library::Conn;

/// The number of members.
pub(crate) const MEMBERS: usize = 3;

/// A majority of the members.
const QUORUM: usize = MEMBERS / 2 + 1;

pub(super) struct Ensemble {
    config: Config,
    half_tick_us: u64,
    /// How long a member serves clients without hearing from the leader, and the leader without a majority.
    sync_limit_us: u64,
    now_us: u64,
    rng: Rng,
    log: Vec<Entry>,
    /// Number of entries of the log that are committed.
    committed: usize,
    /// The state after all committed entries.
    state: Model,
    members: Vec<Member>,
    leader: Option<Leader>,
    /// Number of leaders so far.
    term: u64,
    elect_at_us: Option<u64>,
    next_session: i64,
    /// When empty containers are removed next.
    next_cleaning_us: u64,
    out: Outcome,
}

/// An entry of the log.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    session: i64,
    what: What,
    /// The request that asked for it.
    origin: Option<Origin>,
    at_us: u64,
}

#[derive(Debug, Clone)]
enum What {
    /// A session begins.
    Begin {
        timeout_ms: i32,
        password: Vec<u8>,
    },
    Write(Request),
    /// A session ends: closed by its client, or expired.
    End,
    /// Empty containers are removed.
    Clean,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    member: usize,
    conn: Conn,
    xid: i32,
}

impl Ensemble {
    /// Starts with the data of a server that was laid out.
    pub(super) fn new(tick_ms: u64, sync_limit: u64, seed: u64, snapshot: &Snapshot) -> Self {
        let config = server::config(tick_ms);
        let restore = || {
            let model = Model::restore(config.clone(), snapshot.clone(), server::now(0));
            model.expect("a model can be restored from its own snapshot")
        };
        let mut this = Self {
            half_tick_us: tick_ms * 500,
            sync_limit_us: sync_limit * tick_ms * 1_000,
            now_us: 0,
            rng: Rng::with_seed(seed ^ 0x0e05_e3b1_e000),
            log: Vec::new(),
            committed: 0,
            state: restore(),
            members: (0..MEMBERS).map(|_| Member::new(restore())).collect(),
            leader: None,
            term: 0,
            elect_at_us: None,
            next_session: 1 << 56,
            next_cleaning_us: config.cleaning_interval_ms * 1_000,
            out: Outcome::default(),
            config,
        };
        this.elect();
        this
    }

    fn done(&mut self) -> Outcome {
        std::mem::take(&mut self.out)
    }

    /// Returns the member that leads.
    pub(super) fn leading(&self) -> Option<usize> {
        self.leader.as_ref().map(|leader| leader.member)
    }

    /// Returns the members that accept connections.
    pub(super) fn serving(&self) -> Vec<usize> {
        (0..MEMBERS).filter(|at| self.members[*at].is_serving()).collect()
    }

    /// Returns the session that a connection serves.
    pub(super) fn session_of(&self, conn: Conn) -> Option<i64> {
        self.members.iter().find_map(|member| member.session_of(conn))
    }

    /// Applies a write of a live session. The reply is dropped.
    pub(super) fn late(&mut self, now_us: u64, session: i64, request: Request) -> Outcome {
        self.now_us = now_us;
        if self.leader.as_ref().is_some_and(|leader| leader.accepts(session, None)) {
            self.propose(Entry { session, what: What::Write(request), origin: None, at_us: now_us });
        }
        self.done()
    }

    /// Expires a session.
    pub(super) fn expire(&mut self, now_us: u64, session: i64) -> Outcome {
        self.now_us = now_us;
        self.end_session(session, None);
        self.done()
    }

    /// Returns when the next beat is due: at every half tick.
    pub(super) fn next_beat_us(&self) -> u64 {
        (self.now_us / self.half_tick_us + 1) * self.half_tick_us
    }

    /// Marks entries as committed, and applies them to the committed state and to the leader's own.
    fn commit_to(&mut self, committed: usize) {
        for at in self.committed..committed {
            let entry = &mut self.log[at];
            // ZooKeeper uses the time of the proposal. The rules know when a transaction was committed, which is much
            // later if there was no majority.
            entry.at_us = self.now_us;
            let history = carried_out(&mut self.state, entry);
            self.out.history.extend(history);
        }
        self.committed = committed.max(self.committed);
    }
}

/// Applies an entry to the committed state. Returns its events.
fn carried_out(state: &mut Model, entry: &Entry) -> Vec<EventKind> {
    let (now, session) = (server::now(entry.at_us), entry.session);
    let mut effects: Vec<Effect> = Vec::new();
    let before = state.zxid();
    match &entry.what {
        What::Begin { timeout_ms, password } => {
            state.begin_session(now, session, *timeout_ms, password.clone());
            drop(state.take_changes());
            Vec::new()
        }
        What::Write(request) => {
            let result: Result<Response, ErrorCode> = state.apply(now, session, request, &mut effects);
            drop(state.take_changes());
            server::recorded(state.zxid(), session, request, &result).into_iter().collect()
        }
        What::End => {
            state.expire_session(session, &mut effects);
            drop(state.take_changes());
            let ended = EventKind::Txn { zxid: state.zxid(), session, ops: vec![TxnOp::CloseSession] };
            (state.zxid() > before).then_some(ended).into_iter().collect()
        }
        What::Clean => {
            state.remove_useless(now, &mut effects);
            let removed = state.take_changes().rows.into_iter().filter_map(|row| match row {
                Change::DeleteNode { path, czxid: _ } => {
                    Some(TxnOp::Delete { path: path.as_ref().to_owned() })
                }
                _ => None,
            });
            let removed = (before + 1..).zip(removed);
            removed.map(|(zxid, op)| EventKind::Txn { zxid, session: 0, ops: vec![op] }).collect()
        }
    }
}

/// Returns whether the leader must handle a request. The others are answered by the client's member.
fn through_leader(request: &Request) -> bool {
    matches!(
        request,
        Request::Multi(_)
            | Request::Write(_)
            | Request::SetAcl { .. }
            | Request::Sync { .. }
            | Request::CloseSession
    )
}

/// The sessions that the leader tracks.
type Sessions = BTreeMap<i64, leader::Tracked>;
