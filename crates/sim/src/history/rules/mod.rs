//! The invariants, each a predicate over the events.
//!
//! A rule keeps what it has to remember itself, and looks at the rest in the checker's world. It names the invariant that
//! it decides by the id of `docs/invariants.md`; several may decide parts of one.

use super::checker::{Found, Step, World};

mod accepted;
mod attempts;
mod bounded_calls;
mod cancelled;
mod certain;
mod clean_end;
mod cut_off;
mod drained_soon;
mod draining;
mod due_ticks;
mod epochs;
mod fenced;
#[cfg(test)]
mod fixture;
mod ids;
mod join_runs;
mod joined;
mod joins;
mod lane_order;
mod lane_runs;
mod leader_soon;
mod leases;
mod no_idling;
mod one_end;
mod one_leader;
mod paused;
mod pauses;
mod payloads;
mod places;
mod prompt;
mod recovered_soon;
mod removals;
mod runs;
mod seen_ends;
mod settled;
mod ticks;
mod times;
mod waiting;
mod workers;

/// Decides one invariant.
pub(super) trait Predicate {
    /// Sees an event, with the world as it is after it.
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>);

    /// Sees that nothing more will come.
    fn finish(&mut self, _: &World, _: &mut Found<'_>) {}
}

/// One line of the table.
pub struct Rule {
    /// The invariant's id.
    pub id: &'static str,
    /// What is decided, in a line.
    pub says: &'static str,
    pub(super) make: fn() -> Box<dyn Predicate>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.id, self.says)
    }
}

const fn rule(id: &'static str, says: &'static str, make: fn() -> Box<dyn Predicate>) -> Rule {
    Rule { id, says, make }
}

fn new<P: Predicate + Default + 'static>() -> Box<dyn Predicate> {
    Box::new(P::default())
}

/// All of them.
pub const RULES: &[Rule] = &[
    rule("S1", "an acknowledged job has a record until its retention is over", new::<accepted::Accepted>),
    rule("S1", "a submission that is said to have failed makes no job", new::<certain::Certain>),
    rule(
        "S1",
        "an open job is in one place, with its turn; a job that is over in none",
        new::<places::Places>,
    ),
    rule("S2", "a job ends once per generation", new::<one_end::OneEnd>),
    rule("S3", "a leader's transaction checks the epoch of its own session", new::<fenced::Fenced>),
    rule("S4", "epochs increase, and each belongs to the session that claimed it", new::<epochs::Epochs>),
    rule("S5", "two nodes that run are never active at once", new::<one_leader::OneLeader>),
    rule("S5", "a leader that knows that it is cut off does not act", new::<cut_off::CutOff>),
    rule("S6", "a lane's assignments are disjoint and in order", new::<lane_order::LaneOrder>),
    rule("S6", "a lane's runs do not overlap", new::<lane_runs::LaneRuns>),
    rule(
        "S7",
        "a join runs after all members, a finished handler after its parent and the join",
        new::<join_runs::JoinRuns>,
    ),
    rule("S7", "a join is made once, after all members ended", new::<joins::Joins>),
    rule("S8", "a tick has one job, or is passed over, which is recorded", new::<ticks::Ticks>),
    rule("S9", "attempts are 1, 2, …, within the policy, each closed once", new::<attempts::Attempts>),
    rule("S9", "nothing is taken from a worker before its lease is over", new::<leases::Leases>),
    rule("S10", "nothing is assigned after the end, and what runs was assigned", new::<runs::Runs>),
    rule("S11", "one id is one job", new::<ids::Ids>),
    rule("S12", "a cancel that was acknowledged holds", new::<cancelled::Cancelled>),
    rule("S13", "what was submitted does not change, and is what runs", new::<payloads::Payloads>),
    rule("S14", "a worker id is one incarnation of one process", new::<workers::Workers>),
    rule("S15", "an end that a client has seen stays", new::<seen_ends::SeenEnds>),
    rule("S16", "nothing is assigned before its time or after its expiry", new::<times::Times>),
    rule("S17", "a new leader assigns nothing of a paused kind", new::<paused::Paused>),
    rule("S18", "a worker that drains gets nothing, and drains on", new::<draining::Draining>),
    rule("L1", "somebody leads soon", new::<leader_soon::LeaderSoon>),
    rule("L2", "a dead worker's jobs are taken back soon", new::<recovered_soon::RecoveredSoon>),
    rule("L3", "every job ends that can run", new::<settled::Settled>),
    rule("L3", "every group goes on that can", new::<joined::Joined>),
    rule("L4", "each due tick is decided", new::<due_ticks::DueTicks>),
    rule("L5", "a pause ends before the trust lapses", new::<pauses::Pauses>),
    rule("L6", "what was used is given back", new::<clean_end::CleanEnd>),
    rule("L7", "every call is answered within its deadline", new::<bounded_calls::BoundedCalls>),
    rule("L8", "nobody exits by itself, or idles while there is work", new::<no_idling::NoIdling>),
    rule("L9", "a worker that drains leaves", new::<drained_soon::DrainedSoon>),
    rule("L10", "without a fault, nothing waits for a sweep", new::<prompt::Prompt>),
];
