//! Two leaders, one of which may be stale, and clients that submit, end and retry members, on one tree, in any order.
//! Replies are lost, writes are applied late, hints are dropped, and a look reads at three different moments.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::group::Stage;
use crate::job::{JobRecord, JobState, Membership, Payload, Role, Verdict};
use crate::machine::worker_registry::recovery::Stored;
use crate::name::Kind;
use crate::ready::{ReadyEntry, Shard};
use crate::txn::EntryLocation;
use crate::wire::{decode, encode};
use crate::zookeeper::ZooKeeper;
use crate::{path, txn};

const MEMBERS: u32 = 4;
const NOW: WallMillis = WallMillis(9);

/// A pseudo-random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A group and its jobs in a ZooKeeper model.
struct Tree(ZooKeeper);

impl Tree {
    fn new() -> Self {
        let mut zookeeper = ZooKeeper::new();
        zookeeper.put(path::EPOCH, Vec::new(), 1);
        zookeeper.make_parents(&path::group(&id()));
        zookeeper.make_parents(&path::members(&id()));
        for job in (0..MEMBERS).map(member).chain([join()]) {
            zookeeper.make_parents(&path::record(&job));
        }
        Shard::all().for_each(|shard| zookeeper.put(&path::ready_shard(shard), Vec::new(), 0));
        Self(zookeeper)
    }

    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        self.0.commit(self.0.operator, ops)
    }

    fn record(&self) -> Option<(GroupRecord, i32)> {
        let znode = self.0.get(&path::group(&id()))?;
        Some((decode(&znode.data).unwrap(), znode.version))
    }

    fn job(&self, job: &JobId) -> Option<(JobRecord, i32)> {
        let znode = self.0.get(&path::record(job))?;
        Some((decode(&znode.data).unwrap(), znode.version))
    }

    fn places(&self) -> Vec<u32> {
        let names = self.0.children(&path::place_chunk(&id(), 0));
        names.iter().filter_map(|name| path::parse_place(name)).collect()
    }

    fn marks(&self) -> Vec<(u32, End)> {
        let names = self.0.children(&path::mark_chunk(&id(), 0));
        names.iter().filter_map(|name| path::parse_member_mark(name)).collect()
    }
}

fn id() -> GroupId {
    GroupId::new("g").unwrap()
}

fn kind() -> Kind {
    Kind::new("sum").unwrap()
}

fn member(number: u32) -> JobId {
    JobId::member(&kind(), &id(), number).unwrap()
}

fn join() -> JobId {
    JobId::new("sum.join:@g").unwrap()
}

/// A pending request of a leader: a look in one of its phases, or another answer.
enum Due {
    Look(Box<GroupState>, u32),
    Looked(Lookup),
    Sent(Effect),
    Answer(Event),
}

struct Leader {
    joiner: GroupJoiner,
    due: Vec<Due>,
}

impl Leader {
    fn new(epoch: i32) -> Self {
        Self { joiner: GroupJoiner::new(epoch), due: Vec::new() }
    }

    fn on(&mut self, tree: &Tree, event: Event) {
        let mut out = Vec::new();
        self.joiner.handle(NOW, event, &mut out);
        for effect in out {
            match effect {
                Effect::Look(_) => match tree.record() {
                    None => self.due.push(Due::Looked(Lookup::Absent)),
                    Some((record, version)) => {
                        let mut state = GroupState::new(record, version, WallMillis(0));
                        for name in tree.0.children(&path::group(&id())) {
                            if let Some((Mark::Join, end)) = path::parse_mark(&name) {
                                state.join = Some(end);
                            }
                        }
                        self.due.push(Due::Look(Box::new(state), 0));
                    }
                },
                Effect::Advanced(..) | Effect::Stuck(..) | Effect::FencedOut => {}
                sent @ (Effect::Commit(..) | Effect::Find(..) | Effect::Cancel(..)) => {
                    self.due.push(Due::Sent(sent))
                }
            }
        }
    }
}

struct World {
    tree: Tree,
    leaders: [Leader; 2],
    late: Vec<Vec<Op>>,
    joins: u32,
    dice: Dice,
}

impl World {
    fn new(seed: u64, fail_fast: bool) -> Self {
        let mut tree = Tree::new();
        let record = GroupRecord { fail_fast, ..GroupRecord::new(kind(), Uuid::nil(), NOW) };
        for ops in [txn::make_group(&id(), &record), txn::make_chunk(&id(), 0)] {
            assert_eq!(tree.commit(&ops), Outcome::Applied(()));
        }
        let leaders = [Leader::new(1), Leader::new(2)];
        Self { tree, leaders, late: Vec::new(), joins: 0, dice: Dice(seed) }
    }

    /// S7: checked before each transaction that creates the join.
    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        let (places, marks, record) = (self.tree.places(), self.tree.marks(), self.tree.record().unwrap().0);
        let outcome = self.tree.commit(ops);
        let makes_join = |op: &Op| matches!(op, Op::Create { path, .. } if *path == path::record(&join()));
        if outcome == Outcome::Applied(()) && ops.iter().any(makes_join) {
            self.joins += 1;
            let (stopped, _) = self.tree.record().unwrap();
            if stopped.stopped.is_none() {
                let ended = u32::try_from(marks.len()).unwrap();
                assert_eq!(
                    (record.total, places.len()),
                    (Some(ended), 0),
                    "the join was created before all members have ended"
                );
            }
            assert_eq!(self.joins, 1, "the join was created more than once");
        }
        for number in 0..MEMBERS {
            let open = self
                .tree
                .job(&member(number))
                .filter(|(job, _)| counted(job))
                .map(|(job, _)| !job.is_terminal());
            let place = self.tree.places().contains(&number);
            let mark = self.tree.marks().iter().filter(|(marked, _)| *marked == number).count();
            if let Some(open) = open {
                assert_eq!((place, mark), (open, usize::from(!open)), "member {number}");
            }
        }
        outcome
    }

    fn hint(&mut self, event: &Event) {
        for at in 0..2 {
            if !self.dice.one_in(4) {
                let World { tree, leaders, .. } = self;
                leaders[at].on(tree, event.clone());
            }
        }
    }

    fn client(&mut self) {
        let number = u32::try_from(self.dice.below(MEMBERS as usize)).unwrap();
        let (record, version) = self.tree.record().unwrap();
        let job = self.tree.job(&member(number));
        match (self.dice.below(4), job) {
            (0, _) => {
                if let Ok(sealed) = record.sealed(&id(), MEMBERS) {
                    self.commit(&txn::set_group(&id(), version, &sealed));
                    self.hint(&Event::Changed(id()));
                }
            }
            (_, None) => {
                if record.admits(&id(), number, None).is_ok() {
                    let part = Membership { group: id(), role: Role::Member(number), counted: true };
                    let job = JobRecord::new(kind(), Payload::json(*b"1").unwrap(), Uuid::nil(), NOW);
                    let job = JobRecord { membership: Some(part), ..job };
                    let mut ops = txn::submit(&member(number), &job, 0);
                    ops.extend(txn::join_group(&id(), version, number));
                    // Sent again after a lost reply, or applied late.
                    if self.dice.one_in(4) {
                        self.late.push(ops.clone())
                    }
                    if !self.dice.one_in(4) {
                        drop(self.commit(&ops))
                    }
                }
            }
            (_, Some((job, at))) if !job.is_terminal() => {
                let verdict = match self.dice.below(6) {
                    0 => Verdict::Dead,
                    1 => Verdict::Cancelled,
                    _ => Verdict::Succeeded(Payload::json(*b"1").unwrap()),
                };
                let entry = EntryLocation::Ready(ReadyEntry::of_record(&member(number), &job));
                let ended = JobRecord { state: JobState::Terminal { verdict, at: NOW }, ..job };
                let ops = txn::cancel(&member(number), at, &ended, &entry);
                if self.dice.one_in(4) {
                    self.late.push(ops.clone())
                }
                self.commit(&ops);
                let end = End::of(&ended.state).unwrap();
                self.hint(&Event::Ended(id(), Mark::Member(number), end));
            }
            (1, Some((mut job, at)))
                if !matches!(job.state, JobState::Terminal { verdict: Verdict::Succeeded(_), .. }) =>
            {
                let before = End::of(&job.state).unwrap();
                let part = job.membership.clone().unwrap();
                let rejoined = if part.counted && record.stage == Stage::Open {
                    txn::rejoin_group(&part, before, version, &record)
                } else {
                    job.membership = Some(Membership { counted: false, ..part });
                    Vec::new()
                };
                let mut ops = txn::reopen(&member(number), at, &job.reopen(), 0);
                ops.extend(rejoined);
                if self.dice.one_in(4) {
                    self.late.push(ops.clone())
                }
                self.commit(&ops);
                self.hint(&Event::Changed(id()));
            }
            (_, Some(_)) => {}
        }
    }

    /// Completes one pending request of a leader, or loses its answer.
    fn leader(&mut self, at: usize, honest: bool) {
        if self.leaders[at].due.is_empty() {
            return;
        }
        let which = self.dice.below(self.leaders[at].due.len());
        let due = self.leaders[at].due.remove(which);
        let next = match due {
            Due::Look(mut state, 0) => {
                state.open = u32::try_from(self.tree.places().len()).unwrap();
                Due::Look(state, 1)
            }
            Due::Look(mut state, _) => {
                let marks = self.tree.marks();
                state.ended = u32::try_from(marks.len()).unwrap();
                state.below = Some(state.ended);
                let failed = marks.into_iter().find(|(_, end)| *end != End::Succeeded);
                state.failed = failed.map(|(number, _)| number).filter(|_| state.record.fail_fast);
                Due::Looked(Lookup::Found(state))
            }
            Due::Looked(_) if !honest && self.dice.one_in(10) => {
                Due::Answer(Event::Looked(id(), Lookup::NotAnswered))
            }
            Due::Looked(look) => Due::Answer(Event::Looked(id(), look)),
            Due::Sent(Effect::Commit(group, ops)) => {
                let outcome = self.write(&ops, honest);
                Due::Answer(Event::Committed(group, outcome))
            }
            Due::Sent(Effect::Cancel(group, batch)) => {
                let ops = batch.ops().cloned().collect::<Vec<_>>();
                let outcome = self.write(&ops, honest);
                Due::Answer(Event::Cancelled(group, batch, outcome))
            }
            Due::Sent(Effect::Find(group, _)) => {
                let rest = self.tree.places().into_iter().map(|number| {
                    let (record, version) = self.tree.job(&member(number)).unwrap();
                    let entry = ReadyEntry::of_record(&member(number), &record);
                    let location = MemberLocation::Waits(EntryLocation::Ready(entry));
                    OpenMember { job: member(number), record: Stored::Value(record, version), location }
                });
                Due::Answer(Event::Found(group, Ok((rest.collect(), None))))
            }
            Due::Sent(other) => panic!("{other:?} has no answer"),
            Due::Answer(event) => {
                let World { tree, leaders, .. } = self;
                return leaders[at].on(tree, event);
            }
        };
        self.leaders[at].due.push(next);
    }

    fn write(&mut self, ops: &[Op], honest: bool) -> Outcome<()> {
        match self.dice.below(8) {
            0 if !honest => Outcome::Unknown,
            1 if !honest => {
                self.late.push(ops.to_vec());
                Outcome::Unknown
            }
            2 if !honest => {
                self.commit(ops);
                Outcome::Unknown
            }
            _ => self.commit(ops),
        }
    }

    fn step(&mut self) {
        match self.dice.below(12) {
            0..=3 => self.client(),
            4..=8 => {
                let at = self.dice.below(2);
                self.leader(at, false);
            }
            9 if !self.late.is_empty() => {
                let which = self.dice.below(self.late.len());
                let ops = self.late.remove(which);
                self.commit(&ops);
            }
            10 => {
                // The second leader claims.
                let claim = Op::Set { path: path::EPOCH.to_owned(), data: Vec::new(), version: 1 };
                if self.dice.one_in(6) {
                    drop(self.commit(&[claim]))
                }
            }
            _ => {
                let at = self.dice.below(2);
                let World { tree, leaders, .. } = self;
                leaders[at].on(tree, Event::Seen(vec![id()]));
                leaders[at].on(tree, Event::Resync);
            }
        }
    }

    /// From here on nothing is lost, and the second leader is active.
    fn settle(&mut self) {
        let claim = Op::Set { path: path::EPOCH.to_owned(), data: Vec::new(), version: 1 };
        self.commit(&[claim]);
        self.late.clear();
        for _ in 0..500 {
            let (record, version) = self.tree.record().unwrap();
            if let Ok(sealed) = record.sealed(&id(), MEMBERS)
                && record.total.is_none()
                && !record.closed
            {
                self.commit(&txn::set_group(&id(), version, &sealed));
            }
            for _ in 0..8 {
                self.client();
            }
            if let Some((job, at)) = self.tree.job(&join()).filter(|(job, _)| !job.is_terminal()) {
                let entry = EntryLocation::Ready(ReadyEntry::of_record(&join(), &job));
                let over = job.cancel(NOW);
                self.commit(&txn::cancel(&join(), at, &over, &entry));
            }
            let World { tree, leaders, .. } = self;
            leaders[1].on(tree, Event::Seen(vec![id()]));
            leaders[1].on(tree, Event::Resync);
            for _ in 0..40 {
                self.leader(1, true);
            }
            if matches!(self.tree.record().unwrap().0.stage, Stage::Done { .. }) {
                return;
            }
        }
        panic!("the group is not done: {:?}", self.tree.record());
    }
}

fn counted(job: &JobRecord) -> bool {
    job.membership.as_ref().is_some_and(|part| part.counted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// S7, L3
    #[test]
    fn a_group_is_joined_once_and_only_after_its_members_have_ended(seed: u64, fail_fast: bool, steps in 0usize..150) {
        let mut world = World::new(seed, fail_fast);
        for _ in 0..steps {
            world.step();
        }
        world.settle();
        prop_assert_eq!(world.joins, 1);
        drop(encode(&world.tree.record().unwrap().0));
    }
}
