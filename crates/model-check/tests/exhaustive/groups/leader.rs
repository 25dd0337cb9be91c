//! A leader's group joiner, its looks, and its requests in flight.
//!
//! A look consists of several reads in sequence, in the order of `actors/src/group.rs`. Each read happens at its own
//! time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bellwether_core::group::{End, GroupRecord, Mark, Stage};
use bellwether_core::machine::group_joiner::{
    Effect, Event, GroupJoiner, GroupState, Lookup, MemberLocation, OpenMember,
};
use bellwether_core::machine::worker_registry::recovery::Stored;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::txn::{Batch, EntryLocation, Op};

use super::stage::{member, worker};
use crate::fixture::WALL;
use crate::zookeeper::ZooKeeper;

/// A request in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    Advance(GroupId, Vec<Op>),
    Cancel(GroupId, Batch<JobId>),
}

impl Write {
    pub(crate) fn ops(&self) -> Vec<Op> {
        match self {
            Self::Advance(_, ops) => ops.clone(),
            Self::Cancel(_, batch) => batch.ops().cloned().collect(),
        }
    }

    fn answered(self, outcome: Outcome<()>) -> Event {
        match self {
            Self::Advance(group, _) => Event::Committed(group, outcome),
            Self::Cancel(group, batch) => Event::Cancelled(group, batch, outcome),
        }
    }
}

/// The next read of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Moment {
    /// The marks of the other jobs, and the number of places. The leader also reads further groups without a mark; they
    /// exist, because the model removes no group.
    Places,
    /// For a further group: the mark of the parent in the first group, and the number of places.
    Parent,
    /// The number of marks and, if requested, the places by number.
    Marks,
    /// The marks by number.
    Numbers,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Looking {
    group: GroupId,
    state: GroupState,
    moment: Moment,
    open: BTreeSet<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    pub(crate) epoch: i32,
    /// Present while the leader leads, or believes so.
    machine: Option<GroupJoiner>,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Write>,
    looks: VecDeque<Looking>,
    hints: VecDeque<Event>,
    /// Whether another leader has claimed. The stale leader receives no more hints, but continues with what it has.
    stale: bool,
    /// Whether it found a group that it cannot advance.
    pub(crate) stuck: bool,
}

impl Leader {
    /// Creates a node that is not leading yet.
    pub(crate) fn new() -> Self {
        let (sent, looks, hints) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { epoch: 0, machine: None, up: true, sent, looks, hints, stale: false, stuck: false }
    }

    pub(crate) fn leads(&self) -> bool {
        self.machine.is_some()
    }

    pub(crate) fn looks(&self) -> bool {
        !self.looks.is_empty()
    }

    pub(crate) fn has_hints(&self) -> bool {
        !self.hints.is_empty()
    }

    pub(crate) fn begin(&mut self, epoch: i32, zk: &ZooKeeper, groups: &[GroupId]) {
        (self.epoch, self.machine) = (epoch, Some(GroupJoiner::new(epoch)));
        self.sweep(zk, groups);
    }

    /// Lists the groups and looks at all of them.
    pub(crate) fn sweep(&mut self, zk: &ZooKeeper, groups: &[GroupId]) {
        let there = groups.iter().filter(|group| zk.znodes.contains_key(&path::group(group)));
        let there = there.cloned().collect();
        self.hear(zk, Event::Seen(there));
        self.hear(zk, Event::Resync);
    }

    pub(crate) fn hint(&mut self, event: Event) {
        if self.machine.is_some() && self.up && !self.stale && !self.hints.contains(&event) {
            self.hints.push_back(event);
        }
    }

    pub(crate) fn replaced(&mut self) {
        self.stale = true;
        self.hints.clear();
    }

    pub(crate) fn hear_hint(&mut self, zk: &ZooKeeper) {
        let event = self.hints.pop_front().expect("there is a hint");
        self.hear(zk, event);
    }

    pub(crate) fn answered(&mut self, zk: &ZooKeeper, write: Write, outcome: Outcome<()>) {
        self.hear(zk, write.answered(outcome));
    }

    /// The connection breaks: hints and reads are lost, and requests in flight become unknown.
    pub(crate) fn cut(&mut self, zk: &ZooKeeper) -> Vec<Write> {
        self.up = false;
        self.hints.clear();
        for look in std::mem::take(&mut self.looks) {
            self.hear(zk, Event::Looked(look.group, Lookup::NotAnswered));
        }
        let lost = Vec::from(std::mem::take(&mut self.sent));
        for write in lost.clone() {
            self.hear(zk, write.answered(Outcome::Unknown));
        }
        lost
    }

    pub(crate) fn connect(&mut self, zk: &ZooKeeper, groups: &[GroupId]) {
        self.up = true;
        self.sweep(zk, groups);
    }

    /// Runs the next read of the first look.
    pub(crate) fn look(&mut self, zk: &ZooKeeper) {
        let mut look = self.looks.pop_front().expect("there is a look in progress");
        if look.read(zk) {
            self.looks.push_front(look);
        } else {
            self.hear(zk, Event::Looked(look.group, Lookup::Found(Box::new(look.state))));
        }
    }

    fn hear(&mut self, zk: &ZooKeeper, first: Event) {
        let mut todo = VecDeque::from([first]);
        while let Some(event) = todo.pop_front() {
            let Some(machine) = &mut self.machine else { return };
            let mut effects = Vec::new();
            machine.handle(WALL, event, &mut effects);
            for effect in effects {
                todo.extend(self.carry_out(zk, effect));
            }
        }
    }

    fn carry_out(&mut self, zk: &ZooKeeper, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Look(group) if !self.up => Some(Event::Looked(group, Lookup::NotAnswered)),
            Effect::Look(group) => {
                let Some((record, version)) = zk.value::<GroupRecord>(&path::group(&group)) else {
                    return Some(Event::Looked(group, Lookup::Absent));
                };
                let state = GroupState::new(record, version, WALL);
                if matches!(state.record.stage, Stage::Done { .. }) {
                    return Some(Event::Looked(group, Lookup::Found(Box::new(state))));
                }
                self.looks.push_back(Looking { group, state, moment: Moment::Places, open: BTreeSet::new() });
                None
            }
            Effect::Commit(group, ops) => self.send(Write::Advance(group, ops)),
            Effect::Cancel(group, batch) => self.send(Write::Cancel(group, batch)),
            Effect::Find(group, _) if !self.up => Some(Event::Found(group, Err(()))),
            Effect::Find(group, cursor) => {
                let open = open(zk, &group).into_iter().filter(|number| *number >= cursor.from);
                let rest = open.map(|number| rest(zk, member(&group, number))).collect();
                Some(Event::Found(group, Ok((rest, None))))
            }
            Effect::Advanced(..) => None,
            Effect::Stuck(..) => {
                self.stuck = true;
                None
            }
            Effect::FencedOut => {
                (self.machine, self.looks) = (None, VecDeque::new());
                self.hints.clear();
                None
            }
        }
    }

    fn send(&mut self, write: Write) -> Option<Event> {
        if self.up {
            self.sent.push_back(write);
            return None;
        }
        Some(write.answered(Outcome::Unknown))
    }
}

impl Looking {
    /// Runs the next read. Returns whether there is more to read.
    fn read(&mut self, zk: &ZooKeeper) -> bool {
        let Self { group, state, moment, open: by_number } = self;
        match moment {
            Moment::Places => {
                let mut further = state.record.further_groups(group).map(Some).collect::<Vec<_>>();
                for (name, _) in zk.names(&path::group(group)) {
                    match path::parse_mark(name) {
                        Some((Mark::Parent, end)) => state.parent = Some(end),
                        Some((Mark::Join, end)) => state.join = Some(end),
                        Some((Mark::Finish, end)) => state.finish = Some(end),
                        Some((Mark::Further(number), _)) => further[number as usize] = None,
                        Some((Mark::Member(_), _)) | None => {}
                    }
                }
                state.further = further.into_iter().flatten().collect();
                let is_further = state.record.parent.as_ref().is_some_and(|parent| parent.first.is_some());
                state.open = count(open(zk, group).len());
                *moment = if is_further { Moment::Parent } else { Moment::Marks };
                true
            }
            Moment::Parent => {
                let first = state.record.parent.as_ref().and_then(|parent| parent.first.as_ref());
                let first = first.expect("the previous read has found it");
                for (name, _) in zk.names(&path::group(&first.group)) {
                    if let Some((Mark::Parent, end)) = path::parse_mark(name) {
                        state.parent = Some(end);
                    }
                }
                state.open = count(open(zk, group).len());
                *moment = Moment::Marks;
                true
            }
            Moment::Marks => {
                state.ended = count(ended(zk, group).len());
                *by_number = open(zk, group);
                *moment = Moment::Numbers;
                GroupState::wants_numbers(&state.record, state.ended)
            }
            Moment::Numbers => {
                let ended = ended(zk, group);
                let open = by_number.iter().filter(|number| !ended.contains_key(number)).count();
                let total = state.record.total.unwrap_or(0);
                state.members = state.record.closed.then_some(count(open + ended.len()));
                state.below = Some(count(ended.range(..total).count()));
                (state.open, state.ended) = (count(by_number.len()), count(ended.len()));
                state.failed = ended.into_iter().find(|(_, end)| *end != End::Succeeded).map(|(n, _)| n);
                false
            }
        }
    }
}

fn count(many: usize) -> u32 {
    u32::try_from(many).expect("a group has few members")
}

pub(crate) fn open(zk: &ZooKeeper, group: &GroupId) -> BTreeSet<u32> {
    let places = path::place_chunk(group, 0);
    zk.names(&places).filter_map(|(name, _)| path::parse_place(name)).collect()
}

pub(crate) fn ended(zk: &ZooKeeper, group: &GroupId) -> BTreeMap<u32, End> {
    let marks = path::mark_chunk(group, 0);
    zk.names(&marks).filter_map(|(name, _)| path::parse_member_mark(name)).collect()
}

fn rest(zk: &ZooKeeper, job: JobId) -> OpenMember {
    let record = zk.value(&path::record(&job));
    let record = record.map_or(Stored::Absent, |(record, version)| Stored::Value(record, version));
    let location = match (crate::fixture::ready(zk, &job), zk.value(&path::assignment(worker(), &job))) {
        (Some(entry), _) => MemberLocation::Waits(EntryLocation::Ready(entry)),
        (None, Some((assignment, version))) => MemberLocation::Assigned(worker(), assignment, version),
        (None, None) => MemberLocation::Nowhere,
    };
    OpenMember { job, record, location }
}
