//! The states, the steps between them, and the properties.

use bellwether_core::job::{Ending, JobRecord, JobState, Payload, Verdict};
use bellwether_core::path;
use bellwether_core::segment::{ChunkEnd, Members};
use bellwether_core::txn::Op;
use stateright::{Model, Property};

use super::check::broken;
use super::requests::{Request, SESSION, Stage, WORKERS, What};
use crate::explore::{Milestones, invariants, milestones};
use crate::fixture::worker;
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

/// How often each request may be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    pub(super) submits: u8,
    pub(super) assigns: u8,
    pub(super) successes: u8,
    /// Extractions by the worker.
    pub(super) extractions: u8,
    /// Extractions by a leader, of a live or a dead worker.
    pub(super) recoveries: u8,
    /// Extractions of a segment that waits.
    pub(super) waiting: u8,
    /// Closes of extracted members.
    pub(super) ends: u8,
    pub(super) cancels: u8,
    /// Extractions of succeeded members, each followed by an opening.
    pub(super) retries: u8,
    /// Removals of the segment.
    pub(super) removals: u8,
    /// Removals of records.
    pub(super) forgets: u8,
    /// Workers whose session ends.
    pub(super) losses: u8,
    /// Claims by another leader.
    pub(super) claims: u8,
}

pub(super) struct Segments {
    stage: Stage,
    bounds: Bounds,
    /// Most requests in flight.
    most: usize,
    milestones: Milestones<Milestone>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    zk: Part<ZooKeeper>,
    flight: Vec<Part<Request>>,
    /// The members whose record was removed.
    forgotten: Members,
    left: Bounds,
    broken: Option<Invariant>,
}

/// A request is sent, or something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// The oldest but so many requests is applied.
    Apply(usize),
    Submit,
    /// A leader assigns the segment to a worker.
    Assign(i32, usize),
    Succeed(usize, Members),
    Extract(usize, Members),
    HandBack(usize, Members),
    Recover(i32, usize),
    ExtractWaiting,
    Remove(i32),
    Close(usize, u8, bool),
    Reclaim(i32, usize, u8),
    AssignAlone(i32, usize, u8),
    Cancel(u8),
    Reopen(u8),
    Forget(u8),
    /// The session of a worker ends.
    Lose(usize),
    Claim,
}

invariants! { Segments {
    Refines = "S22: a transaction of a segment is that of single jobs or nothing",
    OnePlace = "S22, S1: a member is in one place",
    OneEnd = "S22, S2: a member leaves its segment once",
    Record = "S22: a member has a record if and only if it was extracted and its record was not removed",
    Fence = "S3: a stale leader changes nothing",
}}

milestones! { Segments {
    Succeeded = "all members succeed",
    Twice = "a second copy of the submission is rejected",
    Zombie = "results are rejected because the members were extracted",
    Extracted = "an extraction is rejected because members have succeeded",
    EndedAlone = "an extracted member ends",
    Lost = "an extracted member of a dead worker is lost",
    Left = "members of a dead worker succeed by a late write",
    Waiting = "an extraction of waiting members is rejected because they were assigned",
    Cancelled = "an extracted member is cancelled while it waits",
    Reopened = "an ended member is opened again",
    Removed = "the segment is removed",
    RemovedBeside = "the segment is removed and a member is open",
    Kept = "a removal is rejected because a member was extracted",
    Stale = "a stale leader is rejected",
}}

impl Segments {
    pub(super) fn new(members: u8, most: usize, bounds: Bounds, expected: &'static [Milestone]) -> Self {
        let milestones = Milestones::expecting(expected);
        Self { stage: Stage::new(members), bounds, most, milestones }
    }

    /// Applies a request and checks it.
    fn apply(&self, state: &mut State, request: &Request) {
        let after = match state.zk.after(SESSION, &request.ops) {
            Ok(after) => after,
            Err(rejection) => return self.note_rejection(request.what, request.ops[rejection.at].path()),
        };
        self.note_commit(&state.zk, request, &after);
        let removed = self.stage.id.members().iter().filter(|number| {
            let record = path::record(&self.stage.job(*number));
            request.what == What::Job && state.zk.get(&record).is_some() && after.get(&record).is_none()
        });
        state.forgotten = state.forgotten.with(removed.collect());
        let found = broken(&self.stage, &state.zk, request, &after, state.forgotten);
        state.broken = state.broken.or(found);
        state.zk = Part::new(after);
    }

    fn note_commit(&self, before: &ZooKeeper, request: &Request, after: &ZooKeeper) {
        let chunks = self.stage.chunks(after);
        let record = |number, zk: &ZooKeeper| {
            zk.value::<JobRecord>(&path::record(&self.stage.job(number))).map(|(record, _)| record)
        };
        match request.what {
            What::Submit | What::Assign | What::Extract | What::ExtractWaiting => {}
            What::Succeed => {
                if chunks.members(ChunkEnd::Succeeded) == self.stage.id.members() {
                    self.note(Milestone::Succeeded);
                }
                if (0..WORKERS).any(|n| after.get(&path::worker(worker(n))).is_none()) {
                    self.note(Milestone::Left);
                }
            }
            What::Remove => {
                self.note(Milestone::Removed);
                let open = |number| record(number, after).is_some_and(|record| !record.is_terminal());
                if self.stage.id.members().iter().any(open) {
                    self.note(Milestone::RemovedBeside);
                }
            }
            What::Job => {
                for number in self.stage.id.members().iter() {
                    let (Some(was), Some(is)) = (record(number, before), record(number, after)) else {
                        continue;
                    };
                    match is.state {
                        JobState::Terminal { verdict: Verdict::Succeeded(_), .. } => {
                            self.note(Milestone::EndedAlone);
                        }
                        JobState::Terminal { verdict: Verdict::Cancelled, .. } => {
                            self.note(Milestone::Cancelled)
                        }
                        _ if is.losses > 0 => self.note(Milestone::Lost),
                        _ if is.generation > was.generation => self.note(Milestone::Reopened),
                        _ => {}
                    }
                }
            }
        }
    }

    fn note_rejection(&self, what: What, at: &str) {
        match what {
            _ if at == path::EPOCH => self.note(Milestone::Stale),
            What::Submit => self.note(Milestone::Twice),
            What::Succeed => self.note(Milestone::Zombie),
            What::Extract => self.note(Milestone::Extracted),
            What::ExtractWaiting => self.note(Milestone::Waiting),
            What::Remove => self.note(Milestone::Kept),
            What::Assign | What::Job => {}
        }
    }

    /// The request of an action; `None` if there is no reason for it.
    fn request(&self, zk: &ZooKeeper, action: Action) -> Option<Request> {
        let stage = &self.stage;
        let ending = |ok| {
            let result = Payload::json(*b"2").expect("small");
            if ok { Ending::Succeeded(result) } else { Ending::Failed("no".into()) }
        };
        match action {
            Action::Apply(_) => None,
            Action::Submit => stage.submit(zk),
            Action::Assign(epoch, n) => stage.assign(zk, epoch, n),
            Action::Succeed(n, members) => stage.succeed(zk, n, members),
            Action::Extract(n, members) => stage.extract(zk, n, (None, members)),
            Action::HandBack(n, members) => stage.hand_back(zk, n, members),
            Action::Recover(epoch, n) => stage.extract(zk, n, (Some(epoch), stage.id.members())),
            Action::ExtractWaiting => stage.extract_waiting(zk),
            Action::Remove(epoch) => stage.remove(zk, epoch),
            Action::Close(n, number, ok) => stage.close(zk, n, number, ending(ok)),
            Action::Reclaim(epoch, n, number) => stage.reclaim(zk, epoch, n, number),
            Action::AssignAlone(epoch, n, number) => stage.assign_alone(zk, (epoch, n), number),
            Action::Cancel(number) => stage.cancel(zk, number),
            Action::Reopen(number) => stage.reopen(zk, number),
            Action::Forget(number) => stage.forget(zk, number),
            Action::Lose(n) => {
                let gone = Op::Delete { path: path::worker(worker(n)), version: None };
                zk.get(gone.path()).is_some().then(|| happens(gone))
            }
            Action::Claim => {
                Some(happens(Op::Set { path: path::EPOCH.into(), data: vec![], version: epoch(zk) }))
            }
        }
    }

    fn step(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        if let Action::Apply(at) = action {
            let request = state.flight.remove(at);
            self.apply(&mut state, &request);
            return Some(state);
        }
        let left = state.left.of(action);
        *left -= 1;
        // When a segment is removed, it is old: its submissions have arrived.
        let submitted = before.flight.iter().any(|sent| sent.what == What::Submit);
        let removed = before.left.removals < self.bounds.removals;
        let is_early = match action {
            Action::Submit => removed,
            Action::Remove(_) => submitted,
            _ => false,
        };
        let request = self.request(&before.zk, action).filter(|_| !is_early)?;
        if matches!(action, Action::Lose(_) | Action::Claim) {
            self.apply(&mut state, &request);
        } else {
            state.flight.push(Part::new(request));
        }
        Some(state)
    }
}

impl Bounds {
    /// How often the action may still happen.
    fn of(&mut self, action: Action) -> &mut u8 {
        match action {
            Action::Apply(_) => unreachable!("it sends nothing"),
            Action::Submit => &mut self.submits,
            Action::Assign(..) | Action::AssignAlone(..) => &mut self.assigns,
            Action::Succeed(..) => &mut self.successes,
            Action::Extract(..) | Action::HandBack(..) => &mut self.extractions,
            Action::Recover(..) => &mut self.recoveries,
            Action::ExtractWaiting => &mut self.waiting,
            Action::Reopen(_) => &mut self.retries,
            Action::Remove(_) => &mut self.removals,
            Action::Close(..) | Action::Reclaim(..) => &mut self.ends,
            Action::Cancel(_) => &mut self.cancels,
            Action::Forget(_) => &mut self.forgets,
            Action::Lose(_) => &mut self.losses,
            Action::Claim => &mut self.claims,
        }
    }
}

/// A change that no process sends.
fn happens(op: Op) -> Request {
    Request { ops: vec![op.clone()], alone: vec![op], what: What::Submit }
}

fn epoch(zk: &ZooKeeper) -> i32 {
    zk.get(path::EPOCH).expect("an epoch").1
}

/// All sets of some members.
fn subsets(all: Members) -> impl Iterator<Item = Members> {
    (1..=all.bits()).filter_map(Members::from_bits)
}

impl Model for Segments {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let zk = Part::new(self.stage.zookeeper());
        vec![State { zk, flight: vec![], forgotten: Members::NONE, left: self.bounds, broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        actions.extend((0..state.flight.len()).map(Action::Apply));
        actions.extend([Action::Submit, Action::ExtractWaiting, Action::Claim]);
        let numbers = || self.stage.id.members().iter();
        actions.extend(numbers().flat_map(|m| [Action::Cancel(m), Action::Reopen(m), Action::Forget(m)]));
        for n in 0..WORKERS {
            actions.push(Action::Lose(n));
            let sets = subsets(self.stage.id.members());
            actions.extend(sets.flat_map(|set| {
                [Action::Succeed(n, set), Action::Extract(n, set), Action::HandBack(n, set)]
            }));
            actions.extend(numbers().flat_map(|m| [Action::Close(n, m, true), Action::Close(n, m, false)]));
        }
        for epoch in 0..=epoch(&state.zk) {
            actions.push(Action::Remove(epoch));
            for n in 0..WORKERS {
                actions.extend([Action::Assign(epoch, n), Action::Recover(epoch, n)]);
                actions.extend(
                    numbers().flat_map(|m| [Action::Reclaim(epoch, n, m), Action::AssignAlone(epoch, n, m)]),
                );
            }
        }
        let (mut left, full) = (state.left, state.flight.len() >= self.most);
        actions.retain(|action| match action {
            Action::Apply(_) => true,
            Action::Lose(_) | Action::Claim => *left.of(*action) > 0,
            _ => !full && *left.of(*action) > 0,
        });
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.step(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants().into_iter().chain(self.milestones()).collect()
    }
}
