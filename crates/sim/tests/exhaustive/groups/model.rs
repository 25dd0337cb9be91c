//! The states, the steps between them, and what must hold.

use std::collections::BTreeSet;

use bellwether_core::group::{GroupRecord, Stage};
use bellwether_core::job::JobRecord;
use bellwether_core::path;
use bellwether_core::txn::Op;
use stateright::{Model, Property};

use super::calls::{Call, Phase, What};
use super::leader::Leader;
use super::stage::{self, Cast, MEMBERS, SUB_JOBS};
use crate::explore::{Sights, laws, sights};
use crate::part::Part;
use crate::zookeeper::ZooKeeper;

pub(super) const LEADERS: usize = 2;

/// How often what may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// The group's one member has sub-jobs.
    pub(crate) nested: bool,
    /// The group fails fast.
    pub(crate) fail_fast: bool,
    /// The members, or the parent's sub-jobs, are there from the start, and the total is known.
    pub(crate) submitted: bool,
    /// The total is said when the group is made: nobody seals it.
    pub(crate) total: bool,
    /// The first member, or the parent, has ended before the first leader looks: well, or not.
    pub(crate) first: Option<bool>,
    /// The second leader claims.
    pub(crate) claims: u8,
    /// It claims only while a step of the first is on its way.
    pub(crate) midway: bool,
    /// The first leader's connection breaks.
    pub(crate) cuts: u8,
    /// The reply to a call is lost.
    pub(crate) lost_replies: u8,
    /// The reply to the end of a job is lost, and it may be applied yet.
    pub(crate) lost_ends: u8,
    /// A job ends without success.
    pub(crate) failures: u8,
    /// A job stands in an inbox for a while before it ends.
    pub(crate) begins: u8,
}

pub(crate) struct Groups {
    pub(super) bounds: Bounds,
    pub(super) cast: Cast,
    sights: Sights<Sight>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) zk: Part<ZooKeeper>,
    pub(super) leaders: [Part<Leader>; LEADERS],
    pub(super) calls: Part<Vec<Call>>,
    /// Writes that were lost on the way, and may be applied yet: by a leader under this epoch, or by others.
    pub(super) late: Part<Vec<(Option<i32>, Vec<Op>)>>,
    /// Which joins and finished jobs were made.
    pub(super) made: Part<BTreeSet<usize>>,
    pub(super) left: Bounds,
    pub(crate) broken: Option<Law>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The second leader claims the epoch and begins.
    Claim,
    /// ZooKeeper takes a leader's next write, which hears of it.
    Serve(usize),
    /// A leader's look reads on.
    Look(usize),
    /// A leader hears a hint.
    Hint(usize),
    /// The first leader's connection breaks, after all that was on the way was served, or before.
    Cut {
        served: bool,
    },
    Connect,
    /// A call reads the group, and sends.
    Make(usize),
    /// ZooKeeper takes what it sent.
    Answer(usize),
    /// The reply is lost, and the request with it or not.
    Lose {
        call: usize,
        served: bool,
    },
    LookBack(usize),
    /// A job is assigned.
    Begin(usize),
    /// A job ends, well or not.
    End {
        job: usize,
        well: bool,
    },
    /// The end of a job is sent, lost, and sent again.
    LoseEnd(usize),
    /// A write that was lost is applied after all.
    Late(usize),
}

laws! { Groups {
    OneEnd = "S2: a job ends once",
    Fence = "S3: what a leader writes is applied while its epoch is the present one, or not at all",
    Once = "S7: a join and a finished job are made once",
    Sealed = "S7: no member comes in after a group was closed, sealed below its number, or went on",
    AfterTheLast = "S7: a join is made after the last end of members and parent, or a stop; a finished job after both",
    Done = "S7: a group is done, and its parent's end told, after its last job and with no member open",
    PlaceOrMark = "S7: a member has a place while it is open, or its sub-jobs are, and a mark afterwards",
    OnePlace = "S1, S10: an open job is in exactly one place, and one that is over in none",
}}

sights! { Groups {
    Joined = "a group is joined and done",
    Stopped = "a group is joined because a member failed",
    Refused = "a member is refused because its group went on",
    LateMember = "a submission that was lost on the way meets a group that went on",
    LateSeal = "a seal that was lost on the way is rejected",
    LateEnd = "an end that was lost on the way is rejected",
    LateAdvance = "a leader's step that was lost on the way is rejected",
    LateApplied = "a leader's step that was lost on the way is applied after all",
    Stale = "a stale leader's step is rejected",
    Raced = "a step is rejected, because the group was taken on or changed meanwhile",
    Cancelled = "a member that waits is cancelled by a stop",
    Asked = "a member that runs is asked to end by a stop",
    Counted = "a group of sub-jobs that nobody sealed is closed, counted and joined",
    Told = "a parent's end is told to its own group",
    StoppedByParent = "a group of sub-jobs is stopped by its parent's end",
    NoSubJobs = "a parent ends before it has sub-jobs, and can have none any more",
}}

impl Groups {
    pub(crate) fn new(bounds: Bounds, expected: &'static [Sight]) -> Self {
        Self { bounds, cast: Cast::new(bounds.nested), sights: Sights::expecting(expected) }
    }

    fn calls(&self) -> Vec<Call> {
        let outer = stage::group;
        let mut whats: Vec<_> = if self.bounds.nested {
            let sub_jobs = (0..SUB_JOBS).map(|n| What::Member(stage::inner(), n));
            [What::Spawn].into_iter().chain(sub_jobs).collect()
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
            Action::Begin(n) => {
                left.begins > 0 && self.cast.jobs[n].counts && there(&self.cast.jobs[n].queued)
            }
            Action::End { job, well } => {
                let part = &self.cast.jobs[job];
                // A join that fails would be tried again, as any other job.
                (well || (left.failures > 0 && part.counts)) && (there(&part.queued) || there(&part.assigned))
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

    /// Whether something is still to come of itself, not by an adversity.
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
        let mut properties = laws();
        properties.push(Property::<Self>::always(
            "L3: where nothing more comes of itself, all is over",
            |model, state| state.broken.is_some() || model.goes_on(state) || model.is_over(state),
        ));
        properties.push(Property::<Self>::always("a group can always be taken on", |_, state| {
            state.leaders.iter().all(|leader| !leader.stuck)
        }));
        properties.extend(self.sights());
        properties
    }
}
