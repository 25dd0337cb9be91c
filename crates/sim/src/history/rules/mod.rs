//! The rules: each is a predicate over the events.
//!
//! A rule stores its own state and reads everything else from the checker's world. It has the id of the invariant in
//! `docs/invariants.md` that it checks; several rules may check parts of one invariant.

use super::checker::{Found, Step, World};

mod accepted;
mod attempts;
mod bounded_calls;
mod cancelled;
mod clean_end;
mod cut_off;
mod dead_letters;
mod drained_soon;
mod draining;
mod due_ticks;
mod epochs;
mod failed_submissions;
mod fenced;
#[cfg(test)]
mod fixture;
mod fresh_reads;
mod group_progress;
mod ids;
mod join_runs;
mod joins;
mod lane_order;
mod lane_runs;
mod leader_soon;
mod leases;
mod neighbours;
mod no_idling;
mod no_sweep_waits;
mod offers;
mod one_end;
mod one_leader;
mod paused;
mod paused_writes;
mod pauses;
mod payloads;
mod places;
mod recovered_soon;
mod removals;
mod replaced_soon;
mod runs;
mod seen_ends;
mod settled;
mod ticks;
mod times;
mod waiting;
mod workers;

/// Checks one invariant.
pub(super) trait Predicate {
    /// Handles an event. `world` is the state after it.
    fn observe(&mut self, step: &Step<'_>, world: &World, found: &mut Found<'_>);

    /// Handles the end of the history.
    fn finish(&mut self, _: &World, _: &mut Found<'_>) {}
}

/// One line of the table.
pub struct Rule {
    /// The invariant's id.
    pub id: &'static str,
    /// What the rule checks, in one line.
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

/// All rules.
pub const RULES: &[Rule] = &[
    rule("S1", "an acknowledged job has a record until its retention is over", new::<accepted::Accepted>),
    rule(
        "S1",
        "a submission answered as failed creates no job",
        new::<failed_submissions::FailedSubmissions>,
    ),
    rule(
        "S1",
        "a job has one place while it is open, and its turn until its sub-jobs have ended",
        new::<places::Places>,
    ),
    rule("S2", "a job ends once per generation", new::<one_end::OneEnd>),
    rule(
        "S2",
        "a death creates the job's dead-letter job, and nothing else does",
        new::<dead_letters::DeadLetters>,
    ),
    rule("S3", "a leader's transaction checks the epoch of its session", new::<fenced::Fenced>),
    rule("S4", "epochs increase, and each belongs to the session that claimed it", new::<epochs::Epochs>),
    rule("S5", "two running nodes are never active at the same time", new::<one_leader::OneLeader>),
    rule("S5", "a leader that has noticed its lost connection does not act", new::<cut_off::CutOff>),
    rule("S5", "a paused leader begins no write", new::<paused_writes::PausedWrites>),
    rule("S6", "a lane's assignments are disjoint and in order", new::<lane_order::LaneOrder>),
    rule(
        "S7",
        "a join runs after all members, a finished handler after its parent, the join and the further groups",
        new::<join_runs::JoinRuns>,
    ),
    rule("S7", "a join is created once, after all members ended", new::<joins::Joins>),
    rule("S8", "a tick has one job, or is recorded as skipped", new::<ticks::Ticks>),
    rule("S9", "attempts are 1, 2, …, within the policy, each closed once", new::<attempts::Attempts>),
    rule("S9", "no job is taken from a worker before its lease is over", new::<leases::Leases>),
    rule("S10", "no job is assigned after its end, and every run was assigned", new::<runs::Runs>),
    rule("S11", "one id is one job", new::<ids::Ids>),
    rule("S12", "an acknowledged cancel is effective", new::<cancelled::Cancelled>),
    rule("S13", "a submitted payload does not change, and is the one that runs", new::<payloads::Payloads>),
    rule("S14", "a worker id is one incarnation of one process", new::<workers::Workers>),
    rule("S15", "an end that a client has seen is final", new::<seen_ends::SeenEnds>),
    rule("S16", "no job is assigned before its start time or after its expiry", new::<times::Times>),
    rule("S17", "a new leader assigns no job of a paused kind", new::<paused::Paused>),
    rule("S18", "a draining worker gets no jobs and continues to drain", new::<draining::Draining>),
    rule("S19", "a lane's runs do not overlap on running processes", new::<lane_runs::LaneRuns>),
    rule("S20", "the last loss of a job comes from a run alone", new::<neighbours::Neighbours>),
    rule("S23", "a read that follows an acknowledged submission sees it", new::<fresh_reads::FreshReads>),
    rule("S24", "an assignment obeys the registration of its worker", new::<offers::Offers>),
    rule("L1", "there is a new leader soon", new::<leader_soon::LeaderSoon>),
    rule("L1", "a silent leader is replaced soon", new::<replaced_soon::ReplacedSoon>),
    rule("L2", "a dead worker's jobs are taken back soon", new::<recovered_soon::RecoveredSoon>),
    rule("L3", "every job that can run ends", new::<settled::Settled>),
    rule("L3", "every group that can advance does", new::<group_progress::GroupProgress>),
    rule("L4", "each due tick is handled", new::<due_ticks::DueTicks>),
    rule("L5", "a pause ends before the trust ends", new::<pauses::Pauses>),
    rule("L6", "resources are released", new::<clean_end::CleanEnd>),
    rule("L7", "every call is answered within its deadline", new::<bounded_calls::BoundedCalls>),
    rule(
        "L8",
        "no node exits unplanned, and no worker is idle while there is work",
        new::<no_idling::NoIdling>,
    ),
    rule("L9", "a draining worker leaves", new::<drained_soon::DrainedSoon>),
    rule("L10", "without faults, no job waits for a sweep", new::<no_sweep_waits::NoSweepWaits>),
];
