//! The leader: orders the writes, counts the acknowledgements of its proposals, and owns the sessions.

use super::link::{ToLeader, ToMember};
use super::{Ensemble, Entry, MEMBERS, Origin, QUORUM, Sessions, What};
use crate::zk::library::Conn;

pub(super) struct Leader {
    pub(super) member: usize,
    pub(super) term: u64,
    /// How much of the log is on each member's disk, as far as the leader knows.
    pub(super) acked: [usize; MEMBERS],
    /// When the last reply to a ping came from each member.
    pub(super) heard_us: [u64; MEMBERS],
    pub(super) sessions: Sessions,
    /// Syncs that wait until the log up to there is committed.
    pub(super) syncs: Vec<(usize, Origin)>,
}

/// A session at the leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tracked {
    timeout_us: u64,
    ends_at_us: u64,
    /// The connection that may send requests; requests of an earlier one are dropped.
    owner: Option<Conn>,
    /// Its end is proposed.
    closing: bool,
}

impl Leader {
    /// Returns whether a session may send a request on this connection.
    pub(super) fn accepts(&self, session: i64, conn: Option<Conn>) -> bool {
        let owned = |it: &Tracked| conn.is_none() || it.owner == conn;
        self.sessions.get(&session).is_some_and(|it| !it.closing && owned(it))
    }
}

impl Ensemble {
    pub(super) fn at_leader(&mut self, from: usize, message: ToLeader) {
        let accepts = |this: &Self, session, conn| {
            this.leader.as_ref().is_some_and(|leader| leader.accepts(session, Some(conn)))
        };
        match message {
            ToLeader::Ack(logged) => self.acknowledged(from, logged),
            ToLeader::Write(entry) => {
                let conn = entry.origin.map(|origin| origin.conn);
                if let What::Begin { timeout_ms, .. } = entry.what {
                    self.track(entry.session, timeout_ms, conn);
                    self.propose(entry);
                } else if let Some(conn) = conn.filter(|conn| !accepts(self, entry.session, *conn)) {
                    self.down(from, ToMember::Moved(conn));
                } else {
                    self.propose(entry);
                }
            }
            ToLeader::End(session, origin) => {
                if accepts(self, session, origin.conn) {
                    self.end_session(session, Some(origin));
                } else {
                    self.down(from, ToMember::Moved(origin.conn));
                }
            }
            ToLeader::Sync(session, origin) => {
                if !accepts(self, session, origin.conn) {
                    self.down(from, ToMember::Moved(origin.conn));
                } else if let Some(leader) = &mut self.leader {
                    leader.syncs.push((self.log.len(), origin));
                    self.answer_syncs();
                }
            }
            ToLeader::Validate(session, conn) => {
                let alive = self.leader.as_ref().is_some_and(|leader| leader.accepts(session, None));
                if alive {
                    self.touch(session);
                    let tracked = self.leader.as_mut().and_then(|leader| leader.sessions.get_mut(&session));
                    if let Some(tracked) = tracked {
                        tracked.owner = Some(conn);
                    }
                }
                self.down(from, ToMember::Validated(conn, alive));
            }
            ToLeader::Pong(sessions) => {
                if let Some(leader) = &mut self.leader {
                    leader.heard_us[from] = self.now_us;
                }
                sessions.into_iter().for_each(|session| self.touch(session));
            }
        }
    }

    /// Appends an entry to the log and proposes it to the members.
    pub(super) fn propose(&mut self, entry: Entry) {
        let Some(leader) = &self.leader else { return };
        let member = leader.member;
        self.log.push(Entry { at_us: self.now_us, ..entry });
        let length = self.log.len();
        for at in (0..MEMBERS).filter(|at| *at != member) {
            if self.follows(at) {
                self.down(at, ToMember::Propose(length));
            }
        }
        self.members[member].logged = length;
        self.acknowledged(member, length);
    }

    pub(super) fn acknowledged(&mut self, from: usize, logged: usize) {
        let Some(leader) = &mut self.leader else { return };
        leader.acked[from] = logged.max(leader.acked[from]);
        let mut acked = leader.acked;
        acked.sort_unstable_by(|left, right| right.cmp(left));
        let (member, committed) = (leader.member, acked[QUORUM - 1]);
        // One at a time: a sync between two entries is answered between their commits.
        while self.committed < committed {
            let next = self.committed + 1;
            self.commit_to(next);
            self.apply_to(member, next);
            for at in (0..MEMBERS).filter(|at| *at != member) {
                if self.follows(at) {
                    self.down(at, ToMember::Commit(next));
                }
            }
            self.answer_syncs();
        }
    }

    fn answer_syncs(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        let committed = self.committed;
        let (ready, waiting) =
            std::mem::take(&mut leader.syncs).into_iter().partition(|it| it.0 <= committed);
        leader.syncs = waiting;
        for (_, origin) in ready {
            if self.leading() == Some(origin.member) || self.follows(origin.member) {
                self.down(origin.member, ToMember::Synced(origin));
            }
        }
    }

    fn track(&mut self, session: i64, timeout_ms: i32, owner: Option<Conn>) {
        let timeout_us = u64::try_from(timeout_ms).unwrap_or_default() * 1_000;
        if let Some(leader) = &mut self.leader {
            leader.sessions.insert(session, Tracked { timeout_us, ends_at_us: 0, owner, closing: false });
        }
        self.touch(session);
    }

    /// Gives every session its full timeout, because the sessions were heard of by the leader before.
    pub(super) fn track_all(&mut self) {
        let sessions: Vec<_> = self.state.sessions().map(|view| (view.id, view.timeout_ms)).collect();
        for (session, timeout_ms) in sessions {
            self.track(session, timeout_ms, None);
        }
    }

    /// Restarts the timeout of a session. It ends at the first tick after the timeout.
    pub(super) fn touch(&mut self, session: i64) {
        let (now_us, tick_us) = (self.now_us, 2 * self.half_tick_us);
        let tracked = self.leader.as_mut().and_then(|leader| leader.sessions.get_mut(&session));
        if let Some(tracked) = tracked {
            tracked.ends_at_us = ((now_us + tracked.timeout_us) / tick_us + 1) * tick_us;
        }
    }

    pub(super) fn end_session(&mut self, session: i64, origin: Option<Origin>) {
        let tracked = self.leader.as_mut().and_then(|leader| leader.sessions.get_mut(&session));
        let Some(tracked) = tracked.filter(|tracked| !tracked.closing) else { return };
        tracked.closing = true;
        self.propose(Entry { session, what: What::End, origin, at_us: self.now_us });
    }

    /// What the leader does at every beat: pings, expired sessions, empty containers.
    pub(super) fn lead(&mut self) {
        let Some(leader) = &self.leader else { return };
        let (member, now_us) = (leader.member, self.now_us);
        let over = leader.sessions.iter().filter(|(_, it)| !it.closing && it.ends_at_us <= now_us);
        let over: Vec<i64> = over.map(|(session, _)| *session).collect();
        over.into_iter().for_each(|session| self.end_session(session, None));
        if self.next_cleaning_us <= now_us {
            self.next_cleaning_us = now_us + self.config.cleaning_interval_ms * 1_000;
            self.propose(Entry { session: 0, what: What::Clean, origin: None, at_us: now_us });
        }
        for at in (0..MEMBERS).filter(|at| *at != member) {
            if self.follows(at) {
                self.down(at, ToMember::Ping);
            }
        }
    }
}
