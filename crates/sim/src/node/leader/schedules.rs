//! The schedule keeper: feeds core's [`schedule`], as `actors/host/src/leader/schedule_keeper.rs` does.

use std::time::Duration;

use bellwether_core::job::JobRecord;
use bellwether_core::machine::schedule::{self, Effect, Event, Found, Key, LastJob, Stamp};
use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place as ZnodePlace};
use bellwether_core::schedule::lane;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::{Place, SWEEP};
use crate::node::context::Context;
use crate::zk::{ReadResult, Znode, ask};

/// As the actor's: a wall clock that was set is noticed within it.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(crate) enum SchedulesMsg {
    Resume,
    Sweep,
    /// The timer with this number.
    Tick(u64),
    Watching(bool),
    Changed(WatchedEvent),
    /// The two answers to a list, in either order.
    Parent(ReadResult<Option<Znode>>),
    Children(ReadResult<Option<Vec<String>>>),
    Read(Vec<ScheduleId>, ReadResult<Vec<Option<Znode>>>),
    JobsRead(Vec<(Key, JobId)>, ReadResult<Vec<Option<Znode>>>),
    LaneMade(Key),
    Committed(Batch<Key>, Outcome<()>),
}

pub(super) struct Schedules {
    place: Place,
    machine: schedule::Keeper,
    parent: Option<ReadResult<Option<Znode>>>,
    children: Option<ReadResult<Option<Vec<String>>>>,
    timers: u64,
}

impl Schedules {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let machine = schedule::Keeper::new(place.term.epoch);
        let mut schedules = Self { place, machine, parent: None, children: None, timers: 0 };
        schedules.watch(cx);
        schedules.sweep(cx);
        schedules.timer(cx, LONGEST_SLEEP);
        schedules
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.term.zk,
            path::SCHEDULES,
            move |set| place.schedules(SchedulesMsg::Watching(set)),
            move |event| place.schedules(SchedulesMsg::Changed(event.clone())),
        );
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.schedules(SchedulesMsg::Sweep));
    }

    fn timer(&mut self, cx: &mut Context<'_>, wait: Duration) {
        self.timers += 1;
        cx.after(wait, self.place.schedules(SchedulesMsg::Tick(self.timers)));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: SchedulesMsg) {
        match msg {
            SchedulesMsg::Resume => self.watch(cx),
            SchedulesMsg::Sweep => {
                self.feed(cx, Event::Resync);
                self.sweep(cx);
            }
            SchedulesMsg::Tick(number) if number == self.timers => self.feed(cx, Event::Tick),
            // One that was replaced.
            SchedulesMsg::Tick(_) => {}
            SchedulesMsg::Watching(false) => {}
            SchedulesMsg::Watching(true) => self.feed(cx, Event::Resync),
            SchedulesMsg::Changed(event) => {
                let ZnodePlace::Schedule(schedule) = path::parse(&event.path) else { return };
                match event.kind {
                    EventKind::NodeCreated | EventKind::NodeDataChanged => {
                        self.feed(cx, Event::Changed(schedule));
                    }
                    EventKind::NodeDeleted => self.feed(cx, Event::Gone(schedule)),
                    EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved => {}
                }
            }
            SchedulesMsg::Parent(parent) => {
                self.parent = Some(parent);
                self.listed(cx);
            }
            SchedulesMsg::Children(children) => {
                self.children = Some(children);
                self.listed(cx);
            }
            SchedulesMsg::Read(schedules, Ok(nodes)) => {
                let found = |(schedule, node): (ScheduleId, Option<Znode>)| {
                    let found = node.map_or(Found::Nothing, |node| self.found(&schedule, &node));
                    (schedule, found)
                };
                let event = Event::Read(schedules.into_iter().zip(nodes).map(found).collect());
                self.feed(cx, event);
            }
            SchedulesMsg::Read(schedules, Err(_)) => self.feed(cx, Event::ReadFailed(schedules)),
            SchedulesMsg::JobsRead(jobs, Ok(nodes)) => {
                let jobs = jobs.into_iter().zip(nodes).map(|((key, _), node)| (key, last_job(node.as_ref())));
                let event = Event::JobsRead(jobs.collect());
                self.feed(cx, event);
            }
            SchedulesMsg::JobsRead(jobs, Err(_)) => {
                let keys = jobs.into_iter().map(|(key, _)| key).collect();
                self.feed(cx, Event::JobsReadFailed(keys));
            }
            SchedulesMsg::LaneMade(key) => self.feed(cx, Event::LaneMade(key)),
            SchedulesMsg::Committed(batch, outcome) => self.feed(cx, Event::Committed(batch, outcome)),
        }
    }

    fn listed(&mut self, cx: &mut Context<'_>) {
        let (Some(_), Some(_)) = (&self.parent, &self.children) else { return };
        let event = match (self.parent.take(), self.children.take()) {
            (Some(Ok(parent)), Some(Ok(children))) => {
                let names = children.unwrap_or_default();
                let schedules = names.iter().filter_map(|name| ScheduleId::new(name).ok()).collect();
                Event::Listed { removals: parent.map_or(0, |parent| parent.version), schedules }
            }
            (_, _) => Event::ListFailed,
        };
        self.feed(cx, event);
    }

    fn found(&self, schedule: &ScheduleId, node: &Znode) -> Found {
        let stamp = Stamp { created: node.created, version: node.version };
        if self.machine.knows(schedule, stamp) {
            return Found::Same;
        }
        wire::decode(&node.data).map_or(Found::Nothing, |record| Found::Record(stamp, Box::new(record)))
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (now, zk, place) = (cx.wall(), self.place.term.zk, self.place);
        let due_before = self.machine.next_due();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(now, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::List => {
                    cx.get(zk, path::SCHEDULES.to_owned(), move |parent| {
                        place.schedules(SchedulesMsg::Parent(parent))
                    });
                    cx.children(zk, path::SCHEDULES.to_owned(), move |children| {
                        place.schedules(SchedulesMsg::Children(children))
                    });
                }
                Effect::Read(schedules) => {
                    let paths: Vec<_> = schedules.iter().map(path::schedule).collect();
                    cx.get_many(zk, paths, move |nodes| {
                        place.schedules(SchedulesMsg::Read(schedules, nodes))
                    });
                }
                Effect::ReadJobs(jobs) => {
                    let paths: Vec<_> = jobs.iter().map(|(_, job)| path::record(job)).collect();
                    cx.get_many(zk, paths, move |nodes| place.schedules(SchedulesMsg::JobsRead(jobs, nodes)));
                }
                Effect::MakeLane(key) => {
                    let make = ask::create_container(path::lane(&lane(&key.schedule)));
                    cx.ask(zk, make, move |_| place.schedules(SchedulesMsg::LaneMade(key)));
                }
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.schedules(SchedulesMsg::Committed(batch, outcome))
                }),
                Effect::Ticked(..) | Effect::PassedOver(..) => {}
                Effect::FencedOut => place.fenced_out(cx),
            }
        }
        let due = self.machine.next_due();
        if ticked || due != due_before {
            // What is due already waits for an answer, not for the time.
            let ahead = due.map(|due| due.since(now)).filter(|ahead| !ahead.is_zero());
            let wait = ahead.map_or(LONGEST_SLEEP, |ahead| ahead.min(LONGEST_SLEEP));
            self.timer(cx, wait);
        }
    }
}

fn last_job(node: Option<&Znode>) -> LastJob {
    let Some(node) = node else { return LastJob::Over(None) };
    match wire::decode::<JobRecord>(&node.data) {
        Ok(record) if record.is_terminal() => LastJob::Over(Some(node.version)),
        Ok(_) | Err(_) => LastJob::Open,
    }
}
