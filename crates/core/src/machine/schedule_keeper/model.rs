//! Keepers against a server that answers late or not at all, while leaders change, clocks jump, and operators pause,
//! replace, remove and add schedules. Every applied write is checked (S3, S8).

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::job::{JobRecord, Payload, Placement, Policy, Priority};
use crate::name::{JobId, Kind};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path::{self, Place};
use crate::ready::ReadyEntry;
use crate::schedule::{Misfire, Overlap, ScheduleRecord, ScheduleSpec, Template, When, parse_tick};
use crate::txn::Op;
use crate::wire::{decode, encode};

fn id(n: usize) -> ScheduleId {
    ScheduleId::new(format!("s{n}")).unwrap()
}

fn spec(every: u64, misfire: Misfire, overlap: Overlap) -> ScheduleSpec {
    ScheduleSpec {
        when: When::every(Duration::from_secs(every)).unwrap(),
        misfire,
        grace: Duration::from_secs(20),
        overlap,
        template: Template {
            kind: Kind::new("report").unwrap(),
            payload: Payload::json(*b"1").unwrap(),
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::default(),
            expires_after: None,
            job_id: None,
        },
    }
}

/// The id of the job that several schedules and clients start.
fn shared() -> JobId {
    JobId::new("shared").unwrap()
}

#[derive(Clone, Hash)]
struct Znode {
    data: Vec<u8>,
    version: i32,
    created: i64,
}

#[derive(Default, Clone, Hash)]
struct Server {
    tree: BTreeMap<String, Znode>,
    zxid: i64,
    /// Events for the watches.
    events: Vec<Event>,
    /// Instants with a job, by schedule.
    ticks: BTreeMap<ScheduleId, Vec<WallMillis>>,
}

impl Server {
    fn reason(&self, op: &Op) -> Option<Reason> {
        let there = self.tree.get(op.path());
        let versioned = |version: i32| match there {
            None => Some(Reason::NoNode),
            Some(node) if version >= 0 && node.version != version => Some(Reason::BadVersion),
            Some(_) => None,
        };
        match op {
            Op::Check { version, .. } | Op::Set { version, .. } => versioned(*version),
            Op::Delete { version, .. } => versioned(version.unwrap_or(-1)),
            Op::Create { .. } => there.map(|_| Reason::NodeExists),
        }
    }

    /// The operations of a multi do not depend on each other.
    fn commit(&mut self, ops: &[Op]) -> Result<(), Rejection> {
        for (at, op) in ops.iter().enumerate() {
            if let Some(reason) = self.reason(op) {
                return Err(Rejection { at, reason });
            }
        }
        self.zxid += 1;
        self.judge(ops);
        for op in ops {
            let schedule = match path::parse(op.path()) {
                Place::Schedule(schedule) => Some(schedule),
                _ => None,
            };
            match op {
                Op::Check { .. } => {}
                Op::Create { path, data, .. } => {
                    let node = Znode { data: data.clone(), version: 0, created: self.zxid };
                    self.tree.insert(path.clone(), node);
                    self.events.extend(schedule.map(Event::Changed));
                }
                Op::Set { path, data, .. } => {
                    let node = self.tree.get_mut(path).unwrap();
                    node.data = data.clone();
                    node.version += 1;
                    self.events.extend(schedule.map(Event::Changed));
                }
                Op::Delete { path, .. } => {
                    self.tree.remove(path);
                    self.events.extend(schedule.map(Event::Gone));
                }
            }
        }
        Ok(())
    }

    /// Every move of a cursor decides each instant in between: the same write either creates its job or records that it
    /// was skipped.
    fn judge(&mut self, ops: &[Op]) {
        let made = ops.iter().filter_map(|op| match op {
            Op::Create { path, .. } if path.starts_with(path::JOBS) => {
                parse_tick(&JobId::new(path.rsplit('/').next().unwrap()).unwrap())
            }
            _ => None,
        });
        let mut made = made.collect::<BTreeMap<_, _>>();
        let mut started = ops.iter().filter(|op| self.starts_shared(op)).count();
        for op in ops {
            let (Op::Set { path, data, .. }, Place::Schedule(schedule)) = (op, path::parse(op.path())) else {
                continue;
            };
            let before = decode::<ScheduleRecord>(&self.tree[path].data).unwrap();
            let after = decode::<ScheduleRecord>(data).unwrap();
            assert!(after.cursor >= before.cursor, "S8: the cursor of {schedule} went back");
            let tick = match before.spec.template.job_id {
                None => made.remove(&schedule),
                Some(_) => {
                    let tick = after.last_tick.filter(|_| after.ticked > before.ticked);
                    started -= usize::from(tick.is_some());
                    tick
                }
            };
            assert!(tick.is_none() || !before.paused, "{schedule} ticked while paused");
            assert!(
                tick.is_none() || after.spec == before.spec,
                "{schedule} ticked with the spec of another schedule"
            );
            let skipped = after.last_skipped.filter(|_| after.skipped > before.skipped);
            let calendar = before.spec.when.calendar().unwrap();
            for at in calendar.ticks_after(before.cursor).take_while(|at| *at <= after.cursor) {
                let over =
                    skipped.is_some_and(|skipped| (skipped.ticks.from..=skipped.ticks.through).contains(&at));
                assert!(over != (tick == Some(at)), "S8: {schedule} at {at}: {tick:?}, {skipped:?}");
            }
            if let Some(at) = tick {
                assert!(calendar.last_through(at) == Some(at) && at <= after.cursor, "{at} is not a tick");
                self.ticks.entry(schedule).or_default().push(at);
            }
        }
        assert!(
            made.is_empty() && started == 0,
            "S8: a job without a move of its schedule's cursor: {made:?}"
        );
    }

    /// Whether the operation creates the shared job, or opens it again.
    fn starts_shared(&self, op: &Op) -> bool {
        if op.path() != path::record(&shared()) {
            return false;
        }
        match op {
            Op::Create { .. } => true,
            Op::Set { path, data, .. } => {
                let generation = |data| decode::<JobRecord>(data).unwrap().generation;
                let before = decode::<JobRecord>(&self.tree[path].data).unwrap();
                assert!(before.is_terminal(), "S8: the shared job was started while it was open");
                assert_eq!(generation(data), before.generation + 1);
                true
            }
            Op::Check { .. } | Op::Delete { .. } => false,
        }
    }

    /// A client submits the shared job, again if it has ended.
    fn submit_shared(&mut self, now: WallMillis) {
        let ours = JobRecord::new(
            Kind::new("report").unwrap(),
            Payload::json(*b"1").unwrap(),
            uuid::Uuid::from_u128(self.zxid.unsigned_abs().into()),
            now,
        );
        let path = path::record(&shared());
        let record = match self.tree.get_mut(&path) {
            None => {
                self.create(path, encode(&ours));
                ours
            }
            Some(node) => {
                let there = decode::<JobRecord>(&node.data).unwrap();
                if !there.is_terminal() {
                    return;
                }
                let again = crate::job::identity::reopened(ours, there, None);
                node.data = encode(&again);
                node.version += 1;
                again
            }
        };
        self.create(path::ready_entry(&ReadyEntry::of_record(&shared(), &record)), vec![]);
    }

    fn set(&mut self, schedule: &ScheduleId, change: impl FnOnce(ScheduleRecord) -> ScheduleRecord) {
        let Some(node) = self.tree.get(&path::schedule(schedule)) else { return };
        let (record, version) = (decode(&node.data).unwrap(), node.version);
        self.commit(&txn::set_schedule(schedule, version, &change(record))).unwrap();
    }

    fn create(&mut self, path: String, data: Vec<u8>) {
        self.tree.entry(path).or_insert(Znode { data, version: 0, created: 0 });
    }
}

#[derive(Clone, Hash)]
struct Leader {
    machine: ScheduleKeeper,
    /// Offset from true time; may be negative.
    skew: i64,
    asked: VecDeque<Effect>,
    told: VecDeque<Event>,
    seen: usize,
    watching: bool,
}

impl Leader {
    fn now(&self, now: WallMillis) -> WallMillis {
        WallMillis(now.0.saturating_add_signed(self.skew))
    }

    fn feed(&mut self, now: WallMillis, event: Event) {
        let now = self.now(now);
        let mut out = Vec::new();
        self.machine.handle(now, event, &mut out);
        self.asked.extend(out);
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Time passes.
    Wait(u64),
    /// A leader's clock is set.
    Skew(usize, i64),
    /// The server executes a leader's oldest request; the answer may be lost.
    Serve(usize, bool),
    /// A leader's oldest request is lost in transit; its outcome is unknown to the sender.
    Lose(usize),
    /// A leader receives an answer or a hint.
    Hear(usize),
    Hint(usize),
    /// A leader's connection is back, or its sweep is due.
    Resync(usize),
    /// The other leaders do not know of the claim yet.
    Claim,
    Pause(usize),
    Resume(usize),
    Replace(usize, u64),
    Remove(usize),
    Add(usize, u64, u8),
    /// The job of the last tick ends.
    End(usize),
    /// A client starts the job that several schedules share.
    Submit,
    /// The record of that job is removed.
    Forget,
}

fn steps() -> impl Strategy<Value = Step> {
    let leader = 0..3usize;
    let schedule = 0..3usize;
    prop_oneof![
        8 => (0..15u64).prop_map(Step::Wait),
        1 => (0..200u64).prop_map(Step::Wait),
        1 => (leader.clone(), -60..60i64).prop_map(|(n, by)| Step::Skew(n, by)),
        20 => (leader.clone(), prop::bool::weighted(0.9)).prop_map(|(n, answered)| Step::Serve(n, answered)),
        1 => leader.clone().prop_map(Step::Lose),
        20 => leader.clone().prop_map(Step::Hear),
        8 => leader.clone().prop_map(Step::Hint),
        2 => leader.prop_map(Step::Resync),
        1 => Just(Step::Claim),
        1 => schedule.clone().prop_map(Step::Pause),
        1 => schedule.clone().prop_map(Step::Resume),
        1 => (schedule.clone(), 1..20u64).prop_map(|(n, every)| Step::Replace(n, every)),
        1 => schedule.clone().prop_map(Step::Remove),
        1 => Just(Step::Submit),
        1 => Just(Step::Forget),
        3 => (schedule.clone(), 1..20u64, 0..15u8).prop_map(|(n, every, how)| Step::Add(n, every, how)),
        4 => schedule.prop_map(Step::End),
    ]
}

#[derive(Clone, Hash)]
struct World {
    server: Server,
    leaders: Vec<Leader>,
    now: WallMillis,
}

impl World {
    fn new() -> Self {
        let mut server = Server::default();
        server.create(path::EPOCH.into(), Vec::new());
        server.create(path::SCHEDULES.into(), Vec::new());
        Self { server, leaders: Vec::new(), now: WallMillis(1_000_000_000) }
    }

    fn claim(&mut self) {
        let epoch = self.server.tree.get_mut(path::EPOCH).unwrap();
        epoch.version += 1;
        let machine = ScheduleKeeper::new(epoch.version);
        let seen = self.server.events.len();
        let (asked, told) = (VecDeque::new(), VecDeque::new());
        let mut leader = Leader { machine, skew: 0, asked, told, seen, watching: true };
        leader.feed(self.now, Event::Resync);
        self.leaders.insert(0, leader);
        self.leaders.truncate(3);
    }

    fn step(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Wait(by) => {
                self.now.0 += by * 1_000;
                let now = self.now;
                self.leaders.iter_mut().for_each(|leader| leader.feed(now, Event::Tick));
            }
            Step::Skew(n, by) => {
                if let Some(leader) = self.leaders.get_mut(n) {
                    leader.skew = by * 1_000;
                }
            }
            Step::Serve(n, answered) => self.serve(n, answered),
            Step::Lose(n) => {
                if let Some(effect) = self.leaders.get_mut(n).and_then(|leader| leader.asked.pop_front()) {
                    let lost = lost(effect);
                    self.leaders[n].told.extend(lost);
                    self.leaders[n].watching = false;
                }
            }
            Step::Hear(n) => {
                if let Some(leader) = self.leaders.get_mut(n)
                    && let Some(event) = leader.told.pop_front()
                {
                    leader.feed(now, event);
                }
            }
            Step::Hint(n) => {
                if let Some(leader) = self.leaders.get_mut(n)
                    && let Some(event) = self.server.events.get(leader.seen)
                {
                    leader.seen += 1;
                    if leader.watching {
                        leader.feed(now, event.clone());
                    }
                }
            }
            Step::Resync(n) => {
                if let Some(leader) = self.leaders.get_mut(n) {
                    if !leader.watching {
                        leader.watching = true;
                        leader.seen = self.server.events.len();
                    }
                    leader.feed(now, Event::Resync);
                }
            }
            Step::Claim => self.claim(),
            Step::Pause(n) => self.server.set(&id(n), ScheduleRecord::pause),
            Step::Resume(n) => self
                .server
                .set(&id(n), |record| if record.paused { record.resume(now).unwrap() } else { record }),
            Step::Replace(n, every) => self.server.set(&id(n), |record| {
                let mut spec = spec(every, record.spec.misfire, record.spec.overlap);
                spec.template.job_id.clone_from(&record.spec.template.job_id);
                record.replace(spec, now).unwrap()
            }),
            Step::Remove(n) => {
                if let Some(node) = self.server.tree.get(&path::schedule(&id(n))) {
                    let version = node.version;
                    self.server.commit(&txn::remove_schedule(&id(n), version, None)).unwrap();
                    self.server.ticks.remove(&id(n));
                }
            }
            Step::Add(n, every, how) => {
                let catch_up = Misfire::CatchUp { limit: 3, within: Duration::from_secs(60) };
                let misfire = [Misfire::Skip, Misfire::Once, catch_up][usize::from(how % 3)];
                let overlap =
                    [Overlap::Allow, Overlap::Forbid, Overlap::Queue, Overlap::Allow, Overlap::Allow];
                let mut spec = spec(every, misfire, overlap[usize::from(how / 3)]);
                spec.template.job_id = (how >= 9).then(shared);
                let record = ScheduleRecord::new(spec, now);
                if !self.server.tree.contains_key(&path::schedule(&id(n))) {
                    self.server.commit(&txn::add_schedule(&id(n), &record)).unwrap();
                }
            }
            Step::End(n) => {
                let Some(node) = self.server.tree.get(&path::schedule(&id(n))) else { return };
                let record = decode::<ScheduleRecord>(&node.data).unwrap();
                let Some(last) = record.last_tick else { return };
                let job = record.job_of(&id(n), last);
                let Some(node) = self.server.tree.get_mut(&path::record(&job)) else { return };
                let record = decode::<JobRecord>(&node.data).unwrap();
                let entry = path::ready_entry(&ReadyEntry::of_record(&job, &record));
                node.data = encode(&record.cancel(now));
                node.version += 1;
                self.server.tree.remove(&entry);
            }
            Step::Submit => self.server.submit_shared(now),
            Step::Forget => {
                let path = path::record(&shared());
                let there = self.server.tree.get(&path).map(|node| decode::<JobRecord>(&node.data).unwrap());
                if there.is_some_and(|record| record.is_terminal()) {
                    self.server.tree.remove(&path);
                }
            }
        }
    }

    fn serve(&mut self, n: usize, answered: bool) {
        let Some(leader) = self.leaders.get_mut(n) else { return };
        let Some(effect) = leader.asked.pop_front() else { return };
        let server = &mut self.server;
        let there = |path: String| server.tree.get(&path);
        let answer = match &effect {
            Effect::List => {
                let removals = there(path::SCHEDULES.into()).unwrap().version;
                let schedules = server.tree.keys().filter_map(|path| match path::parse(path) {
                    Place::Schedule(schedule) => Some(schedule),
                    _ => None,
                });
                Event::Listed { removals, schedules: schedules.collect() }
            }
            Effect::Read(schedules) => Event::Read(
                schedules
                    .iter()
                    .map(|schedule| {
                        let found = there(path::schedule(schedule)).map_or(Found::Nothing, |node| {
                            let stamp = Stamp { created: node.created, version: node.version };
                            if leader.machine.knows(schedule, stamp) {
                                return Found::Same;
                            }
                            Found::Record(stamp, Box::new(decode(&node.data).unwrap()))
                        });
                        (schedule.clone(), found)
                    })
                    .collect(),
            ),
            Effect::ReadJobs(jobs) => Event::JobsRead(
                jobs.iter()
                    .map(|(key, job)| {
                        let found = there(path::record(job)).map_or(PriorJob::Absent, |node| {
                            PriorJob::of(decode(&node.data).unwrap(), node.version, None)
                        });
                        (key.clone(), found)
                    })
                    .collect(),
            ),
            Effect::Commit(batch) => {
                let ops = batch.ops().cloned().collect::<Vec<_>>();
                assert!(matches!(&ops[0], Op::Check { path, .. } if path == path::EPOCH), "S3");
                let outcome = match server.commit(&ops) {
                    Ok(()) => Outcome::Applied(()),
                    Err(rejection) => Outcome::Rejected(rejection),
                };
                Event::Committed(batch.clone(), outcome)
            }
            Effect::Ticked(..) | Effect::Skipped(..) => return,
            Effect::FencedOut => {
                self.leaders.remove(n);
                return;
            }
        };
        if answered {
            leader.told.push_back(answer);
        } else {
            leader.told.extend(lost(effect));
            leader.watching = false;
        }
    }

    fn forget_what_all_have_heard(&mut self) {
        let heard = self.leaders.iter().map(|leader| leader.seen).min().unwrap_or(0);
        self.server.events.drain(..heard);
        self.leaders.iter_mut().for_each(|leader| leader.seen -= heard);
    }

    /// From here on every request is answered, and the last leader runs with the right clock.
    fn heal(&mut self) {
        self.leaders.clear();
        self.claim();
        for _ in 0..4_000 {
            let leader = &self.leaders[0];
            let hints = leader.seen < self.server.events.len();
            if leader.asked.is_empty() && leader.told.is_empty() && !hints {
                return;
            }
            self.step(Step::Serve(0, true));
            self.step(Step::Hear(0));
            self.step(Step::Hint(0));
        }
        panic!("the world does not become quiet");
    }
}

/// Returns the event that the sender receives when the answer to a request is lost.
fn lost(effect: Effect) -> Option<Event> {
    Some(match effect {
        Effect::List => Event::ListFailed,
        Effect::Read(schedules) => Event::ReadFailed(schedules),
        Effect::ReadJobs(jobs) => Event::JobsReadFailed(jobs.into_iter().map(|(key, _)| key).collect()),
        Effect::Commit(batch) => Event::Committed(batch, Outcome::Unknown),
        Effect::Ticked(..) | Effect::Skipped(..) | Effect::FencedOut => return None,
    })
}

/// How many more steps of each unbounded kind may happen.
#[derive(Clone, Copy, Hash)]
struct Left {
    waits: u8,
    claims: u8,
    losses: u8,
    resyncs: u8,
    operator: u8,
}

/// Returns all possible next steps, each with the remaining budget.
fn next(world: &World, left: Left) -> Vec<(Step, Left)> {
    let mut next = Vec::new();
    for (n, leader) in world.leaders.iter().enumerate() {
        if !leader.asked.is_empty() {
            next.push((Step::Serve(n, true), left));
            if left.losses > 0 {
                let left = Left { losses: left.losses - 1, ..left };
                next.extend([(Step::Serve(n, false), left), (Step::Lose(n), left)]);
            }
        }
        if !leader.told.is_empty() {
            next.push((Step::Hear(n), left));
        }
        if leader.seen < world.server.events.len() {
            next.push((Step::Hint(n), left));
        }
        if !leader.watching && left.resyncs > 0 {
            next.push((Step::Resync(n), Left { resyncs: left.resyncs - 1, ..left }));
        }
    }
    if left.waits > 0 {
        next.push((Step::Wait(10), Left { waits: left.waits - 1, ..left }));
    }
    if left.claims > 0 {
        next.push((Step::Claim, Left { claims: left.claims - 1, ..left }));
    }
    if left.operator > 0 {
        let left = Left { operator: left.operator - 1, ..left };
        let there = world.server.tree.contains_key(&path::schedule(&id(0)));
        next.push((if there { Step::Remove(0) } else { Step::Add(0, 10, 0) }, left));
        next.push((Step::Pause(0), left));
    }
    next
}

/// S8, L4: as below, in every order of steps within these bounds: two leaders, one tick, one lost request or reply, and
/// one schedule that is paused, or removed and added again.
#[test]
fn a_tick_is_created_once_in_every_order() {
    let mut world = World::new();
    world.step(Step::Add(0, 10, 0));
    world.claim();
    let left = Left { waits: 1, claims: 1, losses: 1, resyncs: 1, operator: 1 };
    let hash = |state: &(World, Left)| {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        hasher.finish()
    };
    let mut seen = HashSet::from([hash(&(world.clone(), left))]);
    let mut todo = vec![(world, left)];
    let mut ends = 0;
    while let Some((world, left)) = todo.pop() {
        let next = next(&world, left);
        if next.is_empty() {
            ends += 1;
            rests_with_every_tick_decided(world);
            continue;
        }
        for (step, left) in next {
            let mut world = world.clone();
            world.step(step);
            world.forget_what_all_have_heard();
            let state = (world, left);
            if seen.insert(hash(&state)) {
                todo.push(state);
            }
        }
    }
    println!("{} states, {ends} ends", seen.len());
    assert!(seen.len() > 10_000, "only {} states were explored", seen.len());
}

fn rests_with_every_tick_decided(mut world: World) {
    world.heal();
    let Some(node) = world.server.tree.get(&path::schedule(&id(0))) else { return };
    let record = decode::<ScheduleRecord>(&node.data).unwrap();
    let next = record.next(&record.spec.when.calendar().unwrap());
    assert!(record.paused || next > Some(world.now), "L4: {record:?} at {}", world.now);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// S8, L4: no instant is decided twice or forgotten, and every due instant is decided.
    #[test]
    fn every_tick_is_created_once_or_recorded_as_skipped(steps in prop::collection::vec(steps(), 1..300)) {
        let mut world = World::new();
        world.claim();
        world.step(Step::Add(0, 7, 0));
        for step in steps {
            world.step(step);
        }
        world.heal();
        for n in 0..3 {
            let Some(node) = world.server.tree.get(&path::schedule(&id(n))) else { continue };
            let record = decode::<ScheduleRecord>(&node.data).unwrap();
            let next = record.next(&record.spec.when.calendar().unwrap());
            prop_assert!(record.paused || next > Some(world.now), "L4: {record:?} at {}", world.now);
            let ticks = world.server.ticks.get(&id(n)).map_or(&[][..], Vec::as_slice);
            prop_assert!(ticks.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(ticks.len() as u64, record.ticked);
        }
    }
}
