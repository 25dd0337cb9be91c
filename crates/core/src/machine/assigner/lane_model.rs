//! Several leaders against a model of ZooKeeper that applies the real transactions and checks S6.
#![allow(clippy::wildcard_enum_match_arm, reason = "a test picks what it looks for")]

use std::collections::BTreeMap;

use proptest::prelude::{
    ProptestConfig, TestCaseError, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::strategy::Strategy as Generator;

use super::lane_tests::{WALL, info, job, lane, record, worker};
use super::tests::counted;
use super::*;
use crate::job::{Attempt, Delay, Ending, JobRecord, Next, Payload, QueueEntry, Turn, TurnIndex};
use crate::name::Lane;
use crate::path::{self, Place};
use crate::txn::Op;
use crate::wire;
use crate::zookeeper::{Znode, ZooKeeper};

#[derive(Debug, Clone)]
enum Step {
    /// One multi of jobs, each with or without a lane.
    Submit(Vec<Option<u8>>),
    /// An attempt ends.
    Close(usize, How),
    Promote(usize),
    Cancel(usize),
    Reopen(usize),
    /// A leader reads the queue.
    See(usize),
    /// An answer or a watch event reaches a leader, in any order.
    Answer(usize, usize),
    /// A leader's watch events are lost.
    Deafen(usize),
    /// A leader's answers are lost; each of its writes is applied now, later, or never.
    Break(usize, bool),
    /// A write whose answer was lost is applied late.
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

/// Commits transactions to a ZooKeeper model and checks S6.
struct Server {
    zookeeper: ZooKeeper,
    submitted: usize,
}

impl Server {
    fn new() -> Self {
        let mut zookeeper = ZooKeeper::new();
        zookeeper.put(path::EPOCH, Vec::new(), 7);
        for n in [1, 2] {
            zookeeper.put(&path::worker(worker(n)), wire::encode(&info()), 0);
            zookeeper.make_parents(&path::assignment(worker(n), &job(0)));
        }
        zookeeper.make_parents(&format!("{}/entry", path::delayed_minute(WALL.minute())));
        Self { zookeeper, submitted: 0 }
    }

    fn commit(&mut self, ops: &[Op]) -> Result<(Outcome<()>, Vec<Place>), TestCaseError> {
        let outcome = self.zookeeper.commit(self.zookeeper.operator, ops);
        if outcome != Outcome::Applied(()) {
            return Ok((outcome, Vec::new()));
        }
        self.invariant_one_of_a_lane_and_the_lowest(ops)?;
        let gone = ops.iter().filter(|op| matches!(op, Op::Delete { .. }));
        Ok((outcome, gone.map(|op| path::parse(op.path())).collect()))
    }

    fn invariant_one_of_a_lane_and_the_lowest(&self, ops: &[Op]) -> Result<(), TestCaseError> {
        let mut assigned = BTreeMap::<Lane, Vec<JobId>>::new();
        for (_, job) in self.assignments() {
            if let Some(lane) = self.record(&job).0.placement.lane {
                assigned.entry(lane).or_default().push(job);
            }
        }
        for (lane, jobs) in &assigned {
            prop_assert!(jobs.len() == 1, "S6: {:?} of {:?} are assigned at the same time", jobs, lane);
        }
        for op in ops {
            let Op::Create { path, .. } = op else { continue };
            let Place::Assignment(_, job) = path::parse(path) else { continue };
            let Some(turn) = self.record(&job).0.turn() else { continue };
            let lowest = self.turns(&turn.lane).into_iter().min().map(|(_, spot)| spot);
            prop_assert_eq!(lowest, Some((turn.generation, job)), "the lane is out of order");
        }
        Ok(())
    }

    fn record(&self, job: &JobId) -> (JobRecord, i32) {
        let node = self.zookeeper.get(&path::record(job)).unwrap();
        (wire::decode(&node.data).unwrap(), node.version)
    }

    fn places(&self) -> impl Iterator<Item = (Place, &Znode)> {
        self.zookeeper.znodes().iter().map(|(path, node)| (path::parse(path), node))
    }

    fn assignments(&self) -> Vec<(WorkerId, JobId)> {
        let assigned = self.places().filter_map(|(place, _)| match place {
            Place::Assignment(worker, job) => Some((worker, job)),
            _ => None,
        });
        assigned.collect()
    }

    fn queue(&self) -> Vec<Waiting> {
        let queued = self.places().filter_map(|(place, node)| match place {
            Place::Ready(at) => {
                let entry = at.plain().unwrap_or_else(|| wire::decode(&node.data).unwrap());
                Some(Waiting { at, entry })
            }
            _ => None,
        });
        queued.collect()
    }

    fn delayed(&self) -> Vec<(Delay, JobId, QueueEntry)> {
        let delayed = self.places().filter_map(|(place, node)| match place {
            Place::DelayedEntry(delay, job) => Some((delay, job, wire::decode(&node.data).unwrap())),
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
        let node = self.zookeeper.get(&path::turn(&turn, job))?;
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
        let leader = || {
            let mut machine = Assigner::new(7, OwnStrategies::default(), 1);
            machine.handle(Millis(0), WALL, Event::Settings(Some(Settings::default())), &mut Vec::new());
            Leader { machine, answers: Vec::new() }
        };
        let mut world = Self {
            server: Server::new(),
            leaders: (0..LEADERS).map(|_| leader()).collect(),
            late: Vec::new(),
        };
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
        let machine = &self.leaders[leader].machine;
        prop_assert_eq!(counted(machine), machine.waiting(), "the counts by kind are all waiting jobs");
        for effect in effects {
            let answer = match effect {
                Effect::Commit(batch) => {
                    let ops = batch.ops().cloned().collect::<Vec<_>>();
                    let outcome = self.commit(&ops)?;
                    Event::Committed(batch, outcome)
                }
                Effect::ReadInbox(id) => {
                    let names = self.inbox(id);
                    Event::InboxRead(id, Some(InboxContents { names, ..InboxContents::default() }))
                }
                Effect::ListInbox(id) => Event::Inbox(id, Some(self.inbox(id))),
                Effect::Resolve(entries) => {
                    let exists =
                        |at: &ReadyEntry| self.server.zookeeper.get(&path::ready_entry(at)).is_some();
                    Event::Resolved(Some(entries.into_iter().map(|at| (at.clone(), exists(&at))).collect()))
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
                Effect::ReadSettings | Effect::Fallback(_) | Effect::Overdue(_) => {
                    return Err(TestCaseError::fail("no job expires and no kind is paused"));
                }
                Effect::FencedOut => return Err(TestCaseError::fail("no leader claims")),
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
                    let record = record(of.map(lane));
                    let turn = record.turn().map(|turn| path::turn(&turn, &id));
                    let entry = path::ready_entry(&ReadyEntry::of_record(&id, &record));
                    for path in [path::record(&id), entry].iter().chain(&turn) {
                        self.server.zookeeper.make_parents(path);
                    }
                    ops.extend(txn::submit(&id, &record, index));
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
                let turn =
                    closed.turn().map(|turn| self.server.zookeeper.get(&path::turn(&turn, &job)).is_some());
                prop_assert!(turn.is_none_or(|there| there != matches!(next, Next::Terminal)));
            }
            Step::Promote(n) => {
                let Some((delay, job, entry)) = pick(&self.server.delayed(), n) else { return Ok(()) };
                self.commit(&txn::promote(&job, delay, &entry))?;
            }
            Step::Cancel(n) => {
                let ready = |Waiting { at, .. }: Waiting| (at.job().clone(), txn::EntryLocation::Ready(at));
                let waiting = self.server.queue().into_iter().map(ready);
                let delayed = self.server.delayed().into_iter();
                let delayed = delayed.map(|(delay, job, _)| (job, txn::EntryLocation::Delayed(delay)));
                let all = waiting.chain(delayed).collect::<Vec<_>>();
                let Some((job, waiting)) = pick(&all, n) else { return Ok(()) };
                let (record, version) = self.server.record(&job);
                self.commit(&txn::cancel(&job, version, &record.cancel(WALL), &waiting))?;
            }
            Step::Reopen(n) => {
                let over = (0..self.server.submitted).map(job);
                let over = over.filter(|job| self.server.record(job).0.is_terminal()).collect::<Vec<_>>();
                let Some(job) = pick(&over, n) else { return Ok(()) };
                let (record, version) = self.server.record(&job);
                self.commit(&txn::reopen(&job, version, &record.reopen(), 0))?;
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

    fn inbox(&self, id: WorkerId) -> Vec<String> {
        let held = self.server.assignments();
        held.iter().filter(|(of, _)| *of == id).map(|(_, job)| job.to_string()).collect()
    }

    /// Loses all pending answers of a leader. Its writes were applied; a second copy may arrive later.
    fn lose(&mut self, leader: usize, watched: bool) -> Result<(), TestCaseError> {
        // The first answer that was not sent shows that the session is disturbed.
        self.hear(leader, Event::InboxRead(worker(99), None))?;
        for answer in std::mem::take(&mut self.leaders[leader].answers) {
            let lost = match answer {
                Event::Committed(batch, outcome) => {
                    if outcome != Outcome::Applied(()) {
                        // As if it were still in flight.
                        self.late.push(batch.ops().cloned().collect());
                    }
                    Event::Committed(batch, Outcome::Unknown)
                }
                Event::InboxRead(id, _) => Event::InboxRead(id, None),
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
        prop_assert_eq!(self.server.queue(), [], "no job is left waiting");
        let turns = self.server.places().filter(|(place, _)| matches!(place, Place::Turn(..))).count();
        prop_assert_eq!(turns, 0, "no turn outlives its job");
        Ok(())
    }
}

fn pick<T: Clone>(of: &[T], n: usize) -> Option<T> {
    of.get(n.checked_rem(of.len())?).cloned()
}

proptest! {
    // Each case runs a whole cluster, so there are fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// S6. Several leaders run in the same epoch, which the fence normally prevents. Whatever they see late or not at
    /// all, and whenever their writes are applied: no two jobs of a lane are assigned at the same time, jobs do not
    /// overtake each other, and all jobs run.
    #[test]
    fn jobs_of_a_lane_run_one_at_a_time_and_in_order(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step)?;
        }
        world.settle()?;
    }
}
