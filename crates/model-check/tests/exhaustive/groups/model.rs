//! The states, the steps between them, and the properties.

use std::collections::BTreeSet;

use bellwether_core::group::{GroupRecord, Stage};
use bellwether_core::job::JobRecord;
use bellwether_core::path;
use bellwether_core::txn::Op;
use stateright::{Model, Property};

use super::calls::{Call, Phase, What};
use super::leader::Leader;
use super::stage::{self, Cast, MEMBERS, Part as JobPart, SUB_JOBS};
use crate::explore::{Milestones, invariants, milestones};
use crate::fixture::ready;
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

pub(super) const LEADERS: usize = 2;

/// How often each adversity may happen, and the initial state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// Whether the group's only member has sub-jobs.
    pub(crate) nested: bool,
    /// Whether its sub-jobs are in a further group; the first group has none.
    pub(crate) further: bool,
    /// Whether the group is fail-fast.
    pub(crate) fail_fast: bool,
    /// Whether the members, or the parent's sub-jobs, exist from the start, and the total is known.
    pub(crate) submitted: bool,
    /// Whether the total is set when the group is created, so that there is no seal.
    pub(crate) total: bool,
    /// Whether the first member, or the parent, has ended before the first leader looks, and with success or not.
    pub(crate) first: Option<bool>,
    /// Claims of the second leader.
    pub(crate) claims: u8,
    /// Whether it claims only while a request of the first leader is in flight.
    pub(crate) midway: bool,
    /// Lost connections of the first leader.
    pub(crate) cuts: u8,
    /// Lost replies to calls.
    pub(crate) lost_replies: u8,
    /// Lost replies to the end of a job, which may still be applied.
    pub(crate) lost_ends: u8,
    /// Jobs that end without success.
    pub(crate) failures: u8,
    /// Jobs that stay in an inbox for a while before they end.
    pub(crate) begins: u8,
}

pub(crate) struct Groups {
    pub(super) bounds: Bounds,
    pub(super) cast: Cast,
    milestones: Milestones<Milestone>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) zk: Part<ZooKeeper>,
    pub(super) leaders: [Part<Leader>; LEADERS],
    pub(super) calls: Part<Vec<Call>>,
    /// Lost writes that may still be applied: of a leader with this epoch, or of others.
    pub(super) late: Part<Vec<(Option<i32>, Vec<Op>)>>,
    /// The joins and finished jobs that were created.
    pub(super) made: Part<BTreeSet<usize>>,
    pub(super) left: Bounds,
    pub(crate) broken: Option<Invariant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The second leader claims the epoch and begins.
    Claim,
    /// ZooKeeper serves a leader's next write, and the leader handles the reply.
    Serve(usize),
    /// A leader's look runs its next read.
    Look(usize),
    /// A leader handles a hint.
    Hint(usize),
    /// The first leader's connection breaks, after all requests in flight were served, or before.
    Cut {
        served: bool,
    },
    Connect,
    /// A call reads the group and sends its transaction.
    Make(usize),
    /// ZooKeeper serves the call's transaction.
    Answer(usize),
    /// The reply is lost, with the request or without it.
    Lose {
        call: usize,
        served: bool,
    },
    LookBack(usize),
    /// A job is assigned.
    Begin(usize),
    /// A job ends, with success or not.
    End {
        job: usize,
        well: bool,
    },
    /// The end of a job is sent, its reply is lost, and it is sent again.
    LoseEnd(usize),
    /// A lost write is applied.
    Late(usize),
}

invariants! { Groups {
    OneEnd = "S2: a job ends once",
    Fence = "S3: a leader's write is applied only in its own epoch",
    Once = "S7: a join and a finished job are created once",
    Sealed = "S7: no member is created after its group was closed, sealed below its number, or advanced",
    AfterTheLast = "S7: a join is created after the last end of members and parent, or a stop; a finished job after join and parent",
    Done = "S7: a group is done, and its parent marked, after its last job and with no open member",
    PlaceOrMark = "S7: a member has a place while it is open, or its sub-jobs are, and a mark afterwards",
    Turn = "S6: a parent keeps its turn until its sub-jobs have ended, and no longer",
    OnePlace = "S1, S10: an open job is in exactly one place, a terminal job in none",
}}

milestones! { Groups {
    Joined = "a group is joined and done",
    Stopped = "a group is joined because a member failed",
    Refused = "a member is rejected because its group has advanced",
    LateMember = "a lost submission is rejected because its group has advanced",
    LateSeal = "a lost seal is rejected",
    LateEnd = "a lost end is rejected",
    LateAdvance = "a leader's lost request is rejected",
    LateApplied = "a leader's lost request is applied late",
    Stale = "a stale leader's request is rejected",
    Raced = "a request is rejected because the group was advanced or changed concurrently",
    Cancelled = "a stop cancels a waiting member",
    Asked = "a stop requests a running member to end",
    Counted = "an unsealed group of sub-jobs is closed, counted and joined",
    ParentMarked = "a parent's end is marked in its own group",
    StoppedByParent = "a parent's end stops its group of sub-jobs",
    NoSubJobs = "a parent ends before it has sub-jobs, and can no longer create any",
    NoFurther = "a parent ends before it has a further group, and can no longer create any",
    FurtherDone = "a further group is done and marked in the first one",
}}

impl Groups {
    pub(crate) fn new(bounds: Bounds, expected: &'static [Milestone]) -> Self {
        Self { bounds, cast: Cast::new(&bounds), milestones: Milestones::expecting(expected) }
    }

    fn calls(&self) -> Vec<Call> {
        let outer = stage::group;
        let mut whats: Vec<_> = if self.bounds.nested {
            let group = if self.bounds.further { stage::further() } else { stage::inner() };
            // With a sub-job, two groups have too many states, unless their parent has failed.
            let sub_jobs = if self.bounds.further && self.bounds.failures == 0 { 0 } else { SUB_JOBS };
            let sub_jobs = (0..sub_jobs).map(|n| What::Member(group.clone(), n));
            let extend = self.bounds.further.then_some(What::Extend);
            [What::Spawn].into_iter().chain(extend).chain(sub_jobs).collect()
        } else {
            (0..MEMBERS).map(|n| What::Member(outer(), n)).collect()
        };
        if !self.bounds.nested && !self.bounds.total {
            whats.push(What::Seal(outer()));
        }
        whats.into_iter().map(Call::new).collect()
    }

    pub(super) fn enabled(&self, state: &State, action: Action) -> bool {
        let left = &state.left;
        let there = |path: &String| state.zk.znodes.contains_key(path);
        let waits = |part: &JobPart| ready(&state.zk, &part.id).is_some();
        let first = &state.leaders[0];
        match action {
            Action::Claim => left.claims > 0 && (!self.bounds.midway || !first.sent.is_empty()),
            Action::Serve(n) => !state.leaders[n].sent.is_empty(),
            Action::Look(n) => state.leaders[n].looks(),
            Action::Hint(n) => state.leaders[n].has_hints(),
            Action::Cut { served } => {
                left.cuts > 0 && first.up && first.leads() && (!served || !first.sent.is_empty())
            }
            Action::Connect => !first.up,
            Action::Make(n) => state.calls[n].phase == Phase::Not && state.calls[n].can_be_made(&state.zk),
            Action::Answer(n) => matches!(state.calls[n].phase, Phase::Sent(_)),
            Action::Lose { call, .. } => {
                left.lost_replies > 0 && matches!(state.calls[call].phase, Phase::Sent(_))
            }
            Action::LookBack(n) => state.calls[n].phase == Phase::Unknown,
            Action::Begin(n) => left.begins > 0 && self.cast.jobs[n].counts && waits(&self.cast.jobs[n]),
            Action::End { job, well } => {
                let part = &self.cast.jobs[job];
                // A failed join would be retried like any other job.
                (well || (left.failures > 0 && part.counts)) && (waits(part) || there(&part.assigned))
            }
            Action::LoseEnd(n) => {
                left.lost_ends > 0 && self.cast.jobs[n].counts && there(&self.cast.jobs[n].assigned)
            }
            Action::Late(at) => at < state.late.len(),
        }
    }

    fn all(&self, state: &State) -> impl Iterator<Item = Action> {
        let leaders = (0..LEADERS).flat_map(|n| [Action::Serve(n), Action::Look(n), Action::Hint(n)]);
        let once =
            [Action::Claim, Action::Cut { served: false }, Action::Cut { served: true }, Action::Connect];
        let calls = (0..state.calls.len()).flat_map(|call| {
            let lost = [false, true].map(|served| Action::Lose { call, served });
            [Action::Make(call), Action::Answer(call), Action::LookBack(call)].into_iter().chain(lost)
        });
        let jobs = (0..self.cast.jobs.len()).flat_map(|job| {
            let ends = [true, false].map(|well| Action::End { job, well });
            [Action::Begin(job), Action::LoseEnd(job)].into_iter().chain(ends)
        });
        let late = (0..state.late.len()).map(Action::Late);
        leaders.chain(once).chain(calls).chain(jobs).chain(late)
    }

    /// Returns whether an automatic step is left, which is not an adversity.
    fn goes_on(&self, state: &State) -> bool {
        let of_itself = |action: &Action| match action {
            Action::Serve(_)
            | Action::Look(_)
            | Action::Hint(_)
            | Action::Connect
            | Action::Make(_)
            | Action::Answer(_)
            | Action::LookBack(_)
            | Action::End { well: true, .. }
            | Action::Late(_) => true,
            Action::Claim
            | Action::Cut { .. }
            | Action::Lose { .. }
            | Action::Begin(_)
            | Action::End { well: false, .. }
            | Action::LoseEnd(_) => false,
        };
        self.all(state).any(|action| of_itself(&action) && self.enabled(state, action))
    }

    fn is_over(&self, state: &State) -> bool {
        let mut groups = self.cast.groups.iter().filter_map(|group| state.zk.value(&path::group(group)));
        let done = |(group, _): (GroupRecord, i32)| matches!(group.stage, Stage::Done { .. });
        let mut jobs = self.cast.jobs.iter().filter_map(|part| state.zk.value(&part.record));
        let ended = |(job, _): (JobRecord, i32)| job.is_terminal();
        groups.all(done) && jobs.all(ended)
    }
}

impl Model for Groups {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            zk: Part::new(self.cast.zookeeper(&self.bounds)),
            leaders: std::array::from_fn(|_| Part::new(Leader::new())),
            calls: Part::new(self.calls()),
            late: Part::new(Vec::new()),
            made: Part::new(BTreeSet::new()),
            left: self.bounds,
            broken: None,
        };
        if self.bounds.submitted {
            self.submit_all(&mut state);
        }
        if let Some(well) = self.bounds.first {
            self.end_at_once(&mut state, 0, well);
        }
        let zk = state.zk.clone();
        state.leaders[0].begin(0, &zk, &self.cast.groups);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        actions.extend(self.all(state).filter(|action| self.enabled(state, *action)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.step(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = invariants();
        properties.push(Property::<Self>::always(
            "L3: when no automatic step is left, all jobs and groups are done",
            |model, state| state.broken.is_some() || model.goes_on(state) || model.is_over(state),
        ));
        properties.push(Property::<Self>::always("a group can always be advanced", |_, state| {
            state.leaders.iter().all(|leader| !leader.stuck)
        }));
        properties.extend(self.milestones());
        properties
    }
}
