//! The roles of the members: which of them leads, which ones follow it, and which ones serve no client.

use super::super::server::Outcome;
use super::leader::Leader;
use super::link::Step;
use super::member::Role;
use super::{Ensemble, MEMBERS, QUORUM, Sessions};

/// How long an election takes from the moment a majority is connected.
const ELECTION_US: std::ops::Range<u64> = 200_000..1_500_000;

impl Ensemble {
    /// Returns whether the member follows the current leader.
    pub(super) fn follows(&self, member: usize) -> bool {
        let term = self.leader.as_ref().map(|leader| leader.term);
        term.is_some_and(|term| self.members[member].role == Role::Following(term))
    }

    pub(super) fn beat(&mut self) {
        let (now_us, limit_us) = (self.now_us, self.sync_limit_us);
        self.out.later.push((self.next_beat_us(), Step::Beat));
        if let Some(leader) = &self.leader {
            let recent = |at: &usize| now_us < leader.heard_us[*at] + limit_us;
            let heard = (0..MEMBERS).filter(|at| *at != leader.member && self.follows(*at)).filter(recent);
            let (member, heard) = (leader.member, heard.count() + 1);
            if heard < QUORUM {
                self.leave(member);
            }
        }
        for at in 0..MEMBERS {
            let silent = self.members[at].heard_us + limit_us <= now_us;
            let orphan = !self.follows(at) && !self.is_cut(at);
            if matches!(self.members[at].role, Role::Following(_)) && (silent || orphan) {
                self.look(at);
            }
        }
        self.lead();
        let looking: Vec<_> = (0..MEMBERS).filter(|at| self.can_join(*at)).collect();
        if self.leader.is_some() {
            self.elect_at_us = None;
            for at in looking {
                if self.rng.bool() {
                    self.join(at);
                }
            }
        } else if looking.len() < QUORUM {
            self.elect_at_us = None;
        } else {
            let takes = self.rng.u64(ELECTION_US);
            if *self.elect_at_us.get_or_insert(now_us + takes) <= now_us {
                self.elect();
            }
        }
    }

    fn can_join(&self, at: usize) -> bool {
        self.members[at].role == Role::Looking && !self.is_cut(at)
    }

    /// The looking members elect the one with the longest log. Proposals that it does not have are lost.
    pub(super) fn elect(&mut self) {
        let candidates: Vec<_> = (0..MEMBERS).filter(|at| self.can_join(*at)).collect();
        let longest = candidates.iter().map(|at| self.members[*at].logged).max().unwrap_or_default();
        let best: Vec<_> = candidates.iter().filter(|at| self.members[**at].logged == longest).collect();
        let Some(winner) = self.rng.choice(best).copied() else { return };
        assert!(longest >= self.committed, "a majority has every committed entry");
        self.log.truncate(longest);
        self.elect_at_us = None;
        self.term += 1;
        let (acked, heard_us) = ([0; MEMBERS], [self.now_us; MEMBERS]);
        let (sessions, syncs) = (Sessions::new(), Vec::new());
        for member in &mut self.members {
            member.logged = member.logged.min(longest);
        }
        self.leader = Some(Leader { member: winner, term: self.term, acked, heard_us, sessions, syncs });
        self.members[winner].role = Role::Leading;
        self.commit_to(longest);
        self.apply_to(winner, longest);
        self.acknowledged(winner, longest);
        self.track_all();
        for at in candidates.into_iter().filter(|at| *at != winner) {
            self.join(at);
        }
    }

    /// A member joins the leader and catches up with it.
    fn join(&mut self, at: usize) {
        let Some(leader) = &mut self.leader else { return };
        leader.heard_us[at] = self.now_us;
        let (term, length) = (leader.term, self.log.len());
        let member = &mut self.members[at];
        member.role = Role::Following(term);
        (member.logged, member.heard_us) = (length, self.now_us);
        member.link.renew();
        self.apply_to(at, self.committed);
        self.acknowledged(at, length);
    }

    /// A member has lost the leader.
    fn look(&mut self, at: usize) {
        self.members[at].role = Role::Looking;
        self.drop_clients(at);
    }

    /// A member ends its role. If it led, its followers notice, unless they are cut off.
    fn leave(&mut self, at: usize) {
        let followers: Vec<_> = (0..MEMBERS).filter(|it| self.follows(*it) && !self.is_cut(*it)).collect();
        let led = self.leader.take_if(|leader| leader.member == at).is_some();
        self.look(at);
        if led {
            followers.into_iter().for_each(|it| self.look(it));
        }
    }

    /// Kills a member.
    pub(in super::super) fn kill(&mut self, now_us: u64, at: usize, down_us: u64) -> Outcome {
        self.now_us = now_us;
        if self.members[at].role != Role::Down {
            self.leave(at);
            self.members[at].role = Role::Down;
            self.out.later.push((now_us + down_us, Step::Restart(at)));
        }
        self.done()
    }

    pub(super) fn restart(&mut self, at: usize) {
        if self.members[at].role == Role::Down {
            self.members[at].role = Role::Looking;
        }
    }

    /// Ends every fault: all members are up and follow one leader.
    pub(in super::super) fn heal(&mut self, now_us: u64) -> Outcome {
        self.now_us = now_us;
        self.mend_links();
        for at in 0..MEMBERS {
            self.restart(at);
            if matches!(self.members[at].role, Role::Following(_)) && !self.follows(at) {
                self.look(at);
            }
        }
        if self.leader.is_none() {
            self.elect();
        }
        for at in 0..MEMBERS {
            if self.can_join(at) {
                self.join(at);
            }
        }
        self.done()
    }
}
