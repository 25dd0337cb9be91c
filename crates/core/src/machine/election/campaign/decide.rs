//! Decides the next request from the result of a look.

use super::candidate::Candidate;
use super::{Campaign, Candidacy, Effect, Goal, Ownership, Request, SWEEP, State, Strategy, WatchTarget};
use crate::path;
use crate::time::Millis;
use crate::txn::{self, Op, Seat};

/// The largest number of candidates that a claim replaces: the silent leader, and one other that does not claim. Each candidate
/// that may claim reads every beat.
const MOST_REPLACED: usize = 2;

/// The number of predecessors that a candidate watches. A candidate may claim if it has at most [`MOST_REPLACED`] predecessors. One more
/// watch shows it the deletion that leaves this number.
const WATCHED: usize = MOST_REPLACED + 1;

const _: () = assert!(WATCHED == WatchTarget::PREDECESSORS.len());

impl Campaign {
    pub(super) fn decide(&mut self, now: Millis, children: &[String], out: &mut Vec<Effect>) {
        self.rests = 0;
        let mut candidates: Vec<_> = children.iter().filter_map(|name| Candidate::parse(name)).collect();
        candidates.sort();
        let ours: Vec<usize> =
            (0..candidates.len()).filter(|at| candidates[*at].uuid == self.who.uuid).collect();
        let path_of = |at: usize| path::candidate(&candidates[at].name);
        match (self.goal, ours.as_slice()) {
            (Goal::Leave, []) => self.left(out),
            (Goal::Leave, [.., last]) | (Goal::Stand, [_, .., last]) => {
                self.delete(None, path_of(*last), out)
            }
            (Goal::Stand, []) => self.create(out),
            (Goal::Stand, [0]) => self.first(path_of(0), out),
            (Goal::Stand, [own]) => {
                let silent = || (0..*own).map(path_of).collect();
                let seat = || Seat::Queued { candidate: path_of(*own), silent: silent() };
                let nearest = (0..*own).rev().take(WATCHED).map(path_of).collect();
                self.stand_by(now, nearest, (*own <= MOST_REPLACED).then(seat), out);
            }
        }
    }

    pub(super) fn decide_single(&mut self, now: Millis, found: Ownership, out: &mut Vec<Effect>) {
        self.rests = 0;
        let ours = found.owner == Some(self.who.session);
        match (self.goal, found.owner) {
            (Goal::Leave, Some(_)) if ours => {
                let fence = txn::unclaimed_since(found.leading);
                self.delete(Some(fence), path::LEADER.to_owned(), out);
            }
            (Goal::Leave, Some(_) | None) => self.left(out),
            (Goal::Stand, None) => self.create(out),
            (Goal::Stand, Some(_)) if ours => self.first(path::LEADER.to_owned(), out),
            (Goal::Stand, Some(_)) => {
                self.stand_by(now, vec![path::LEADER.to_owned()], Some(Seat::Replacement), out);
            }
        }
    }

    fn create(&mut self, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        let data = self.who.node.as_str().as_bytes().to_vec();
        let request = match self.who.strategy {
            Strategy::Queue => {
                Request::CreateSequential { prefix: path::candidate_prefix(self.who.uuid), data }
            }
            Strategy::Single => Request::CreateEphemeral { path: path::LEADER, data },
        };
        out.push(Effect::Candidacy(Candidacy::Running));
        out.push(Effect::Send(ticket, request));
        self.state = State::Creating { ticket };
    }

    fn delete(&mut self, fence: Option<Op>, path: String, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        out.push(Effect::Send(ticket, Request::Delete { fence, path }));
        self.state = State::Deleting { ticket };
    }

    fn first(&mut self, candidate: String, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        let path = candidate.clone();
        out.push(Effect::Send(ticket, Request::Watch { target: WatchTarget::Own, path }));
        out.push(Effect::Candidacy(Candidacy::First { candidate }));
        self.state = State::First { ticket };
    }

    /// Waits for the first change of the predecessors, the nearest one first.
    fn stand_by(
        &mut self,
        now: Millis,
        predecessors: Vec<String>,
        next: Option<Seat>,
        out: &mut Vec<Effect>,
    ) {
        let ticket = self.ticket();
        for (target, path) in WatchTarget::PREDECESSORS.into_iter().zip(predecessors) {
            out.push(Effect::Send(ticket, Request::Watch { target, path }));
        }
        out.push(Effect::Candidacy(Candidacy::Behind { next }));
        self.state = State::Standby { ticket, look_at: now + SWEEP };
    }

    fn left(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::Candidacy(Candidacy::Left));
        self.state = State::Left;
    }
}
