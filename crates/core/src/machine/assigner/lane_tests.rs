//! Lanes: the gate by itself, then any number of leaders against a model of ZooKeeper that applies the real
//! transactions.

use std::collections::BTreeMap;

use proptest::prelude::{
    ProptestConfig, TestCaseError, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::strategy::Strategy as Generator;
use uuid::Uuid;

use super::*;
use crate::budget::MAX_READ_BATCH;
use crate::job::{Attempt, Ending, JobRecord, JobState, Next, Payload, Placement, Policy, Turn, TurnIndex};
use crate::name::NodeId;
use crate::outcome::Reason;
use crate::path::{self, Place};
use crate::txn::Op;
use crate::wire;

const WALL: WallMillis = WallMillis(1_000);

fn job(n: usize) -> JobId {
    JobId::new(format!("j{n}")).unwrap()
}

fn lane(n: u8) -> Lane {
    Lane::new(format!("lane-{n}")).unwrap()
}

fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

fn info() -> WorkerInfo {
    WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![Kind::new("sum").unwrap()],
        slots: 3,
        tags: vec![],
        codec: 1,
        started_at: WallMillis(0),
        draining: false,
    }
}

fn record(lane: Option<Lane>) -> JobRecord {
    JobRecord {
        kind: Kind::new("sum").unwrap(),
        payload: Payload::json(*b"1").unwrap(),
        policy: Policy::default(),
        placement: Placement { lane, ..Placement::default() },
        token: Uuid::nil(),
        submitted_at: WallMillis(0),
        generation: 1,
        attempts: 0,
        failures: 0,
        losses: 0,
        last: None,
        last_error: None,
        state: JobState::Open { not_before: None },
    }
}

/// An assigner with a worker that has room, and jobs of one lane that it has heard of.
struct Bench(Assigner);

impl Bench {
    fn new() -> Self {
        let mut bench = Self(Assigner::new(7, Strategy::LeastLoaded, 1));
        bench.handle(Event::Worker(worker(1), info(), 0));
        bench.handle(Event::Inbox(worker(1), Some(0)));
        bench
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(Millis(0), WALL, event, &mut out);
        out
    }

    fn queue(&mut self, jobs: impl IntoIterator<Item = usize>) -> Vec<Effect> {
        let entry = record(Some(lane(1))).entry();
        self.handle(Event::Queued(jobs.into_iter().map(|n| (job(n), entry.clone())).collect()))
    }

    fn listed(&mut self, ticket: u64, jobs: impl IntoIterator<Item = usize>) -> Vec<Effect> {
        let lists = Some(vec![jobs.into_iter().map(spot).collect()]);
        self.handle(Event::LanesListed { ticket, lanes: vec![lane(1)], lists })
    }

    /// Answers the read of these turns: they were made in the order of their numbers.
    fn read(&mut self, effects: &[Effect]) -> Vec<Effect> {
        let [Effect::ReadTurns { ticket, turns }] = effects else { panic!("{effects:?}") };
        let number = |job: &JobId| job.as_str()[1..].parse::<i64>().unwrap();
        let found = Some(turns.iter().map(|(_, (_, job))| Some((number(job), 0))).collect());
        self.handle(Event::TurnsRead { ticket: *ticket, turns: turns.clone(), found })
    }
}

fn spot(n: usize) -> Spot {
    (1, job(n))
}

fn assigned(effects: &[Effect]) -> Vec<JobId> {
    let jobs = effects.iter().filter_map(|effect| match effect {
        Effect::Commit(batch) => Some(batch.keys().map(|job| job.id.clone()).collect::<Vec<_>>()),
        _ => None,
    });
    jobs.flatten().collect()
}

#[test]
fn only_the_lowest_of_a_lane_is_assigned_and_the_next_one_when_it_is_gone() {
    let mut bench = Bench::new();
    assert_eq!(bench.queue([3, 2]), [Effect::ListLanes { ticket: 1, lanes: vec![lane(1)] }]);
    let read = bench.listed(1, [3, 2, 5]);
    let sent = bench.read(&read);
    assert_eq!(assigned(&sent), [job(2)]);
    let Some(Effect::Commit(batch)) = sent.into_iter().next() else { panic!("it is sent") };
    assert_eq!(assigned(&bench.handle(Event::Committed(batch, Outcome::Applied(())))), []);
    assert_eq!(assigned(&bench.handle(Event::TurnGone(lane(1), spot(2)))), [job(3)]);
}

#[test]
fn nobody_goes_before_the_whole_list_is_read() {
    let mut bench = Bench::new();
    bench.queue(0..150);
    let first = bench.listed(1, 0..150);
    let second = bench.handle(Event::Queued(vec![]));
    assert_eq!((first.len(), second), (1, vec![]), "what does not fill a read waits for the one in flight");
    let Effect::ReadTurns { ticket, turns } = first[0].clone() else { panic!("{first:?}") };
    let rest =
        bench.handle(Event::TurnsRead { ticket, found: Some(vec![Some((200, 0)); turns.len()]), turns });
    assert_eq!(assigned(&rest), [], "the lowest may be among the rest");
    assert_eq!(assigned(&bench.read(&rest)).len(), 1);
}

#[test]
fn one_that_is_alone_in_its_lane_needs_no_read() {
    let mut bench = Bench::new();
    bench.queue([4]);
    let sent = bench.listed(1, [4]);
    assert_eq!(assigned(&sent), [job(4)]);
    let Some(Effect::Commit(batch)) = sent.first() else { panic!("{sent:?}") };
    let turn = Op::Check { path: path::turn(&record(Some(lane(1))).turn().unwrap(), &job(4)), version: 0 };
    assert_eq!(batch.ops().last(), Some(&turn), "the assignment depends on it");
}

#[test]
fn a_lane_waits_for_a_head_that_is_not_in_the_queue() {
    let mut bench = Bench::new();
    bench.queue([2]);
    let read = bench.listed(1, [1, 2]);
    assert_eq!(bench.read(&read), [], "job 1 runs, waits out a backoff, or is set aside");
    // It is queued again: it is its turn still.
    assert_eq!(assigned(&bench.queue([1])), [job(1)]);
}

#[test]
fn a_list_that_was_asked_for_before_a_turn_went_does_not_bring_it_back() {
    let mut bench = Bench::new();
    bench.queue([2]);
    assert_eq!(bench.handle(Event::TurnGone(lane(1), spot(1))), []);
    assert_eq!(assigned(&bench.listed(1, [1, 2])), [job(2)]);
}

#[test]
fn an_entry_whose_turn_no_list_has_is_read_again_once_a_sweep() {
    let mut bench = Bench::new();
    bench.queue([1]);
    assert_eq!(bench.listed(1, []), [Effect::Resolve(vec![job(1)])]);
    let same = record(Some(lane(1))).entry();
    assert_eq!(
        bench.handle(Event::Resolved(Some(vec![(job(1), Some(same))]))),
        [],
        "an operator's hand took it"
    );
    let swept = bench.handle(Event::Resume);
    assert!(swept.contains(&Effect::ListLanes { ticket: 2, lanes: vec![lane(1)] }), "{swept:?}");
    let sent = bench.listed(2, []);
    assert!(sent.contains(&Effect::Resolve(vec![job(1)])), "{sent:?}");
    // It was retried meanwhile, and has another turn.
    let again = record(Some(lane(1))).reopen().entry();
    let asked = bench.handle(Event::Resolved(Some(vec![(job(1), Some(again))])));
    assert_eq!(asked, [Effect::ListLanes { ticket: 3, lanes: vec![lane(1)] }]);
    let lists = Some(vec![vec![(2, job(1))]]);
    assert_eq!(
        assigned(&bench.handle(Event::LanesListed { ticket: 3, lanes: vec![lane(1)], lists })),
        [job(1)]
    );
}

#[test]
fn what_is_known_of_turns_is_forgotten_when_they_are_watched_anew() {
    let mut bench = Bench::new();
    bench.queue([1, 2]);
    let read = bench.listed(1, [1, 2]);
    let asked = bench.handle(Event::LanesWatched);
    assert_eq!(bench.read(&read), [], "an answer of before");
    let Some(Effect::ListLanes { ticket, .. }) = asked.last() else { panic!("{asked:?}") };
    let read = bench.listed(*ticket, [1, 2]);
    assert_eq!(assigned(&bench.read(&read)), [job(1)]);
}

#[test]
fn ten_thousand_of_one_lane_are_listed_once_and_read_once() {
    const JOBS: usize = 10_000;
    let mut bench = Bench::new();
    bench.queue(0..JOBS);
    let (mut lists, mut reads, mut order) = (1, 0, Vec::new());
    let mut left = bench.listed(1, 0..JOBS);
    while !left.is_empty() {
        let mut next = Vec::new();
        for effect in left {
            match effect {
                Effect::ReadTurns { .. } => {
                    reads += 1;
                    next.extend(bench.read(&[effect]));
                }
                Effect::ListLanes { .. } => lists += 1,
                Effect::Commit(batch) => {
                    let sent = batch.keys().map(|job| job.id.clone()).collect::<Vec<_>>();
                    next.extend(bench.handle(Event::Committed(batch, Outcome::Applied(()))));
                    for done in sent {
                        next.extend(bench.handle(Event::InboxChanged(worker(1))));
                        next.extend(bench.handle(Event::TurnGone(lane(1), (1, done.clone()))));
                        order.push(done);
                    }
                }
                Effect::ListInbox(id) => next.extend(bench.handle(Event::Inbox(id, Some(0)))),
                Effect::Resolve(_) | Effect::FencedOut | Effect::Assigned { .. } => {}
            }
        }
        left = next;
    }
    assert_eq!((lists, reads), (1, JOBS / MAX_READ_BATCH));
    assert_eq!(order, (0..JOBS).map(job).collect::<Vec<_>>());
}

#[test]
fn ten_thousand_lanes_are_listed_a_hundred_at_a_time() {
    const LANES: usize = 10_000;
    let mut bench = Bench::new();
    let entry = |n: usize| record(Some(Lane::new(format!("lane-{n}")).unwrap())).entry();
    let mut left = bench.handle(Event::Queued((0..LANES).map(|n| (job(n), entry(n))).collect()));
    let mut lists = 0;
    while let Some(effect) = left.pop() {
        if let Effect::ListLanes { ticket, lanes } = effect {
            lists += 1;
            let turn = |lane: &Lane| (1, JobId::new(lane.as_str().replace("lane-", "j")).unwrap());
            let found = Some(lanes.iter().map(|lane| vec![turn(lane)]).collect());
            left.extend(bench.handle(Event::LanesListed { ticket, lanes, lists: found }));
        }
    }
    assert_eq!(lists, LANES / MAX_READ_BATCH);
    assert_eq!(bench.0.gate.len(), 0, "all may go");
}

#[derive(Debug, Clone)]
enum Step {
    /// One multi of jobs; of a lane, or of none.
    Submit(Vec<Option<u8>>),
    /// An attempt ends.
    Close(usize, How),
    Promote(usize),
    Cancel(usize),
    Reopen(usize),
    /// A leader reads the queue.
    See(usize),
    /// One of a leader's answers or hints arrives: any of them.
    Answer(usize, usize),
    /// A leader's hints are lost.
    Deafen(usize),
    /// A leader's answers are lost; each write of them is applied now, later, or never.
    Break(usize, bool),
    /// A write of a lost answer is applied after all.
    Late(usize),
}

#[derive(Debug, Clone, Copy)]
enum How {
    Succeeds,
    Fails,
    Lost,
}

const LEADERS: usize = 3;

fn steps() -> impl Generator<Value = Vec<Step>> {
    let how = prop_oneof![
        any::<bool>().prop_map(|_| How::Succeeds),
        any::<bool>().prop_map(|lost| { if lost { How::Lost } else { How::Fails } })
    ];
    let leader = || 0..LEADERS;
    let step = prop_oneof![
        2 => prop::collection::vec(prop::option::weighted(0.9, 0u8..3), 1..5).prop_map(Step::Submit),
        4 => (any::<usize>(), how).prop_map(|(n, how)| Step::Close(n, how)),
        2 => any::<usize>().prop_map(Step::Promote),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Reopen),
        3 => leader().prop_map(Step::See),
        9 => (leader(), any::<usize>()).prop_map(|(leader, n)| Step::Answer(leader, n)),
        1 => leader().prop_map(Step::Deafen),
        1 => (leader(), any::<bool>()).prop_map(|(leader, late)| Step::Break(leader, late)),
        1 => any::<usize>().prop_map(Step::Late),
    ];
    prop::collection::vec(step, 1..150)
}

#[derive(Clone)]
struct Znode {
    created: i64,
    version: i32,
    data: Vec<u8>,
}

/// Applies transactions as ZooKeeper does, and watches over S6.
#[derive(Default)]
struct Server {
    nodes: BTreeMap<String, Znode>,
    zxid: i64,
    submitted: usize,
}

impl Server {
    fn commit(&mut self, ops: &[Op]) -> Result<(Outcome<()>, Vec<Place>), TestCaseError> {
        let mut nodes = self.nodes.clone();
        let mut gone = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            let there = nodes.get(op.path()).cloned();
            let reason = match (op, there) {
                (Op::Create { .. }, Some(_)) => Some(Reason::NodeExists),
                (Op::Create { path, data, .. }, None) => {
                    let node = Znode { created: self.zxid + 1, version: 0, data: data.clone() };
                    nodes.insert(path.clone(), node);
                    None
                }
                (_, None) => Some(Reason::NoNode),
                (Op::Check { version, .. } | Op::Set { version, .. }, Some(node))
                    if *version != node.version =>
                {
                    Some(Reason::BadVersion)
                }
                (Op::Check { .. }, Some(_)) => None,
                (Op::Set { path, data, version }, Some(node)) => {
                    let node = Znode { version: version + 1, data: data.clone(), ..node };
                    nodes.insert(path.clone(), node);
                    None
                }
                (Op::Delete { path, .. }, Some(_)) => {
                    nodes.remove(path);
                    gone.push(path::parse(path));
                    None
                }
            };
            if let Some(reason) = reason {
                return Ok((Outcome::Rejected(Rejection { at, reason }), Vec::new()));
            }
        }
        self.zxid += 1;
        self.nodes = nodes;
        self.invariant_one_of_a_lane_and_the_lowest(ops)?;
        Ok((Outcome::Applied(()), gone))
    }

    fn invariant_one_of_a_lane_and_the_lowest(&self, ops: &[Op]) -> Result<(), TestCaseError> {
        let mut assigned = BTreeMap::<Lane, Vec<JobId>>::new();
        for (_, job) in self.assignments() {
            if let Some(lane) = self.record(&job).0.placement.lane {
                assigned.entry(lane).or_default().push(job);
            }
        }
        for (lane, jobs) in &assigned {
            prop_assert!(jobs.len() == 1, "S6: {:?} of {:?} are assigned at once", jobs, lane);
        }
        for op in ops {
            let Op::Create { path, .. } = op else { continue };
            let Place::Assignment(_, job) = path::parse(path) else { continue };
            let Some(turn) = self.record(&job).0.turn() else { continue };
            let lowest = self.turns(&turn.lane).into_iter().min().map(|(_, spot)| spot);
            prop_assert_eq!(lowest, Some((turn.generation, job)), "out of order");
        }
        Ok(())
    }

    fn record(&self, job: &JobId) -> (JobRecord, i32) {
        let node = &self.nodes[&path::record(job)];
        (wire::decode(&node.data).unwrap(), node.version)
    }

    fn places(&self) -> impl Iterator<Item = (Place, &Znode)> {
        self.nodes.iter().map(|(path, node)| (path::parse(path), node))
    }

    fn assignments(&self) -> Vec<(WorkerId, JobId)> {
        let assigned = self.places().filter_map(|(place, _)| match place {
            Place::Assignment(worker, job) => Some((worker, job)),
            _ => None,
        });
        assigned.collect()
    }

    fn queue(&self) -> Vec<(JobId, QueueEntry)> {
        let queued = self.places().filter_map(|(place, node)| match place {
            Place::QueueEntry(job) => Some((job, wire::decode(&node.data).unwrap())),
            _ => None,
        });
        queued.collect()
    }

    fn delayed(&self) -> Vec<(u64, JobId, QueueEntry)> {
        let delayed = self.places().filter_map(|(place, node)| match place {
            Place::DelayedEntry(minute, job) => Some((minute, job, wire::decode(&node.data).unwrap())),
            _ => None,
        });
        delayed.collect()
    }

    fn turns(&self, of: &Lane) -> Vec<(Order, Spot)> {
        let turns = self.places().filter_map(|(place, node)| match place {
            Place::Turn(turn, job) if turn.lane == *of => {
                let TurnIndex(index) = wire::decode(&node.data).unwrap();
                Some(((node.created, index), (turn.generation, job)))
            }
            _ => None,
        });
        turns.collect()
    }

    fn order(&self, lane: &Lane, (generation, job): &Spot) -> Option<Order> {
        let turn = Turn { lane: lane.clone(), generation: *generation };
        let node = self.nodes.get(&path::turn(&turn, job))?;
        let TurnIndex(index) = wire::decode(&node.data).unwrap();
        Some((node.created, index))
    }
}

struct World {
    server: Server,
    leaders: Vec<Leader>,
    /// Writes whose answers were lost.
    late: Vec<Vec<Op>>,
}

struct Leader {
    machine: Assigner,
    answers: Vec<Event>,
}

impl World {
    fn new() -> Self {
        let mut server = Server::default();
        let node = |version, data| Znode { created: 0, version, data };
        server.nodes.insert(path::EPOCH.to_owned(), node(7, Vec::new()));
        for n in [1, 2] {
            server.nodes.insert(path::worker(worker(n)), node(0, wire::encode(&info())));
        }
        let leader = || Leader { machine: Assigner::new(7, Strategy::LeastLoaded, 1), answers: Vec::new() };
        let mut world = Self { server, leaders: (0..LEADERS).map(|_| leader()).collect(), late: Vec::new() };
        for leader in 0..LEADERS {
            for n in [1, 2] {
                world.hear(leader, Event::Worker(worker(n), info(), 0)).unwrap();
            }
        }
        world
    }

    fn commit(&mut self, ops: &[Op]) -> Result<Outcome<()>, TestCaseError> {
        let (outcome, gone) = self.server.commit(ops)?;
        for place in gone {
            for leader in &mut self.leaders {
                match &place {
                    Place::Turn(turn, job) => {
                        let spot = (turn.generation, job.clone());
                        leader.answers.push(Event::TurnGone(turn.lane.clone(), spot));
                    }
                    Place::Assignment(worker, _) => leader.answers.push(Event::InboxChanged(*worker)),
                    _ => {}
                }
            }
        }
        Ok(outcome)
    }

    fn hear(&mut self, leader: usize, event: Event) -> Result<(), TestCaseError> {
        let mut effects = Vec::new();
        self.leaders[leader].machine.handle(Millis(0), WALL, event, &mut effects);
        for effect in effects {
            let answer = match effect {
                Effect::Commit(batch) => {
                    let ops = batch.ops().cloned().collect::<Vec<_>>();
                    let outcome = self.commit(&ops)?;
                    Event::Committed(batch, outcome)
                }
                Effect::ListInbox(id) => {
                    let held = self.server.assignments().iter().filter(|(of, _)| *of == id).count();
                    Event::Inbox(id, Some(held))
                }
                Effect::Resolve(jobs) => {
                    let queue = self.server.queue().into_iter().collect::<BTreeMap<_, _>>();
                    let found = jobs.into_iter().map(|job| (job.clone(), queue.get(&job).cloned()));
                    Event::Resolved(Some(found.collect()))
                }
                Effect::ListLanes { ticket, lanes } => {
                    let spots = |lane| self.server.turns(lane).into_iter().map(|(_, spot)| spot).collect();
                    let lists = Some(lanes.iter().map(spots).collect());
                    Event::LanesListed { ticket, lanes, lists }
                }
                Effect::ReadTurns { ticket, turns } => {
                    let found =
                        Some(turns.iter().map(|(lane, spot)| self.server.order(lane, spot)).collect());
                    Event::TurnsRead { ticket, turns, found }
                }
                Effect::FencedOut => return Err(TestCaseError::fail("nobody claims")),
                Effect::Assigned { .. } => continue,
            };
            self.leaders[leader].answers.push(answer);
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Submit(lanes) => {
                let mut ops = Vec::new();
                for (index, of) in (0..).zip(lanes) {
                    let id = job(self.server.submitted);
                    self.server.submitted += 1;
                    ops.extend(txn::submit(&id, &record(of.map(lane)), index));
                }
                let outcome = self.commit(&ops)?;
                prop_assert_eq!(outcome, Outcome::Applied(()));
            }
            Step::Close(n, how) => {
                let Some((worker, job)) = pick(&self.server.assignments(), n) else { return Ok(()) };
                let (record, version) = self.server.record(&job);
                let ending = match how {
                    How::Succeeds => Ending::Succeeded(Payload::json(*b"1").unwrap()),
                    How::Fails => Ending::Failed("no".into()),
                    How::Lost => Ending::Lost,
                };
                let attempt = Attempt { number: record.attempts + 1, worker };
                let (closed, next) = record.close(attempt, ending, WALL, 0);
                let outcome = self.commit(&txn::close(&job, worker, version, None, &closed, &next))?;
                prop_assert_eq!(&outcome, &Outcome::Applied(()), "{:?}", next);
                let turn = closed.turn().map(|turn| self.server.nodes.contains_key(&path::turn(&turn, &job)));
                prop_assert!(turn.is_none_or(|there| there != matches!(next, Next::Terminal)));
            }
            Step::Promote(n) => {
                let Some((minute, job, entry)) = pick(&self.server.delayed(), n) else { return Ok(()) };
                self.commit(&txn::promote(&job, minute, &entry))?;
            }
            Step::Cancel(n) => {
                let waiting = self.server.queue().into_iter().map(|(job, _)| (job, txn::Waiting::Queued));
                let delayed = self.server.delayed().into_iter();
                let delayed = delayed.map(|(minute, job, _)| (job, txn::Waiting::Delayed(minute)));
                let all = waiting.chain(delayed).collect::<Vec<_>>();
                let Some((job, waiting)) = pick(&all, n) else { return Ok(()) };
                let (record, version) = self.server.record(&job);
                self.commit(&txn::cancel(&job, version, &record.cancel(WALL), waiting))?;
            }
            Step::Reopen(n) => {
                let over = (0..self.server.submitted).map(job);
                let over = over.filter(|job| self.server.record(job).0.is_terminal()).collect::<Vec<_>>();
                let Some(job) = pick(&over, n) else { return Ok(()) };
                let (record, version) = self.server.record(&job);
                self.commit(&txn::reopen(&job, version, &record.reopen()))?;
            }
            Step::See(leader) => {
                let seen = Event::Queued(self.server.queue());
                self.leaders[leader].answers.push(seen);
            }
            Step::Answer(leader, n) => {
                let answers = &mut self.leaders[leader].answers;
                if answers.is_empty() {
                    return Ok(());
                }
                let answer = answers.remove(n % answers.len());
                self.hear(leader, answer)?;
            }
            Step::Deafen(leader) => {
                let hint = |event: &Event| matches!(event, Event::TurnGone(..) | Event::InboxChanged(_));
                self.leaders[leader].answers.retain(|event| !hint(event));
            }
            Step::Break(leader, watched) => self.lose(leader, watched)?,
            Step::Late(n) => {
                if self.late.is_empty() {
                    return Ok(());
                }
                let ops = self.late.remove(n % self.late.len());
                self.commit(&ops)?;
            }
        }
        Ok(())
    }

    /// All that a leader waits for is lost. What it wrote was applied; a second copy arrives later, or never.
    fn lose(&mut self, leader: usize, watched: bool) -> Result<(), TestCaseError> {
        self.hear(leader, Event::Pause)?;
        for answer in std::mem::take(&mut self.leaders[leader].answers) {
            let lost = match answer {
                Event::Committed(batch, outcome) => {
                    if outcome != Outcome::Applied(()) {
                        // As if it were still on its way.
                        self.late.push(batch.ops().cloned().collect());
                    }
                    Event::Committed(batch, Outcome::Unknown)
                }
                Event::Inbox(id, _) => Event::Inbox(id, None),
                Event::Resolved(_) => Event::Resolved(None),
                Event::LanesListed { ticket, lanes, .. } => Event::LanesListed { ticket, lanes, lists: None },
                Event::TurnsRead { ticket, turns, .. } => Event::TurnsRead { ticket, turns, found: None },
                Event::TurnGone(..) | Event::InboxChanged(_) | Event::Queued(_) => continue,
                other => other,
            };
            self.hear(leader, lost)?;
        }
        self.hear(leader, Event::Resume)?;
        if watched {
            self.hear(leader, Event::LanesWatched)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.late.clear();
        for _ in 0..400 {
            for leader in 0..LEADERS {
                self.step(Step::See(leader))?;
                self.hear(leader, Event::Resume)?;
                while !self.leaders[leader].answers.is_empty() {
                    self.step(Step::Answer(leader, 0))?;
                }
            }
            while !self.server.assignments().is_empty() {
                self.step(Step::Close(0, How::Succeeds))?;
            }
            while !self.server.delayed().is_empty() {
                self.step(Step::Promote(0))?;
            }
            if self.server.queue().is_empty() {
                break;
            }
        }
        prop_assert_eq!(self.server.queue(), [], "nothing is left waiting");
        let turns = self.server.places().filter(|(place, _)| matches!(place, Place::Turn(..))).count();
        prop_assert_eq!(turns, 0, "no turn outlives its job");
        Ok(())
    }
}

fn pick<T: Clone>(of: &[T], n: usize) -> Option<T> {
    of.get(n.checked_rem(of.len())?).cloned()
}

proptest! {
    // Each is a run of a whole cluster, so fewer than usual.
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// S6. Several leaders at once, of one epoch, as no fence will have it: whatever they see late, or not at all, and
    /// whichever of their writes is applied when, no two jobs of a lane are assigned at once, none overtakes another,
    /// and in the end all have run.
    #[test]
    fn jobs_of_a_lane_run_one_at_a_time_and_in_order(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step)?;
        }
        world.settle()?;
    }
}
