//! The lease watcher: feeds core's [`Leases`], as `actors/host/src/leader/lease_watcher.rs` does.

use std::time::Duration;

use bellwether_core::job::Assignment;
use bellwether_core::machine::assigner;
use bellwether_core::machine::lease::{Case, Effect, Event, Leases, Place as Held, Revocation, Stand};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place as ZnodePlace};
use bellwether_core::time::Millis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::registry::stored;
use super::{AssignerMsg, Place, SWEEP};
use crate::node::context::{Context, Route};
use crate::zk::{ReadResult, Znode};

pub(crate) enum LeasesMsg {
    Resume,
    Sweep,
    /// The timer with this number.
    Tick(u64),
    Watching(bool),
    Changed(WatchedEvent),
    Inboxes(ReadResult<Option<Vec<String>>>),
    Listed(WorkerId, ReadResult<Option<Vec<String>>>),
    Looked(Vec<Held>, ReadResult<Vec<Option<Znode>>>),
    Judged(Vec<Held>, ReadResult<Vec<Option<Znode>>>),
    Committed(Batch<Revocation>, Outcome<()>),
}

pub(super) struct LeaseWatcher {
    place: Place,
    machine: Leases,
    timers: u64,
    armed: Option<Millis>,
}

impl LeaseWatcher {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let watcher = Self { place, machine: Leases::new(place.term.epoch), timers: 0, armed: None };
        watcher.watch(cx);
        watcher.sweep(cx);
        watcher
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.term.zk,
            path::ASSIGNMENTS,
            move |set| place.leases(LeasesMsg::Watching(set)),
            move |event| place.leases(LeasesMsg::Changed(event.clone())),
        );
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.leases(LeasesMsg::Sweep));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: LeasesMsg) {
        match msg {
            LeasesMsg::Resume => self.watch(cx),
            LeasesMsg::Sweep => {
                self.feed(cx, Event::Resync);
                self.sweep(cx);
            }
            LeasesMsg::Tick(number) if number == self.timers => {
                self.armed = None;
                self.feed(cx, Event::Tick);
            }
            // One that was replaced.
            LeasesMsg::Tick(_) => {}
            LeasesMsg::Watching(false) => {}
            LeasesMsg::Watching(true) => self.feed(cx, Event::Resync),
            LeasesMsg::Changed(event) => {
                let ZnodePlace::Assignment(worker, job) = path::parse(&event.path) else { return };
                match event.kind {
                    EventKind::NodeCreated | EventKind::NodeDataChanged => {
                        self.feed(cx, Event::Changed((worker, job)));
                    }
                    EventKind::NodeDeleted => self.feed(cx, Event::Gone((worker, job))),
                    EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved => {}
                }
            }
            LeasesMsg::Inboxes(Ok(names)) => {
                let workers = names.iter().flatten().filter_map(|name| WorkerId::parse(name)).collect();
                self.feed(cx, Event::Inboxes(workers));
            }
            LeasesMsg::Listed(worker, Ok(names)) => {
                for job in names.iter().flatten().filter_map(|name| JobId::new(name).ok()) {
                    self.feed(cx, Event::Seen((worker, job)));
                }
            }
            // The session's return, or the next sweep, lists again.
            LeasesMsg::Inboxes(Err(_)) | LeasesMsg::Listed(_, Err(_)) => {}
            LeasesMsg::Looked(places, Ok(nodes)) => {
                let looked = places.into_iter().zip(nodes.iter().map(|node| stand(node.as_ref())));
                let event = Event::Looked(looked.collect());
                self.feed(cx, event);
            }
            LeasesMsg::Judged(places, Ok(nodes)) => self.feed(cx, Event::Judged(cases(places, nodes))),
            LeasesMsg::Looked(places, Err(_)) | LeasesMsg::Judged(places, Err(_)) => {
                self.feed(cx, Event::ReadFailed(places));
            }
            LeasesMsg::Committed(batch, outcome) => self.feed(cx, Event::Committed(batch, outcome)),
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, place) = (self.place.term.zk, self.place);
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), cx.wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::ListInboxes => cx.children(zk, path::ASSIGNMENTS.to_owned(), move |listed| {
                    place.leases(LeasesMsg::Inboxes(listed))
                }),
                Effect::List(worker) => cx.children(zk, path::inbox(worker), move |listed| {
                    place.leases(LeasesMsg::Listed(worker, listed))
                }),
                Effect::Look(places) => {
                    let path = |(worker, job): &Held| path::assignment(*worker, job);
                    let paths: Vec<_> = places.iter().map(path).collect();
                    cx.get_many(zk, paths, move |nodes| place.leases(LeasesMsg::Looked(places, nodes)));
                }
                Effect::Judge(places) => {
                    let both = |(worker, job): &Held| [path::assignment(*worker, job), path::record(job)];
                    let paths: Vec<_> = places.iter().flat_map(both).collect();
                    cx.get_many(zk, paths, move |nodes| place.leases(LeasesMsg::Judged(places, nodes)));
                }
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.leases(LeasesMsg::Committed(batch, outcome))
                }),
                Effect::Revoked(revoked) => {
                    let hangs = AssignerMsg::Event(assigner::Event::Hangs(revoked.worker));
                    cx.tell(Route::LeasesToAssigner, place.assigner(hangs));
                }
                Effect::FencedOut => place.fenced_out(cx),
            }
        }
        let Some(due) = self.machine.next_due() else { return };
        // What is due already waits for an answer, not for the time.
        if due > cx.now() && self.armed.is_none_or(|armed| due < armed) {
            self.armed = Some(due);
            self.timers += 1;
            cx.at(due, place.leases(LeasesMsg::Tick(self.timers)));
        }
    }
}

fn stand(node: Option<&Znode>) -> Option<(Stand, Duration)> {
    let node = node?;
    let assignment = wire::decode::<Assignment>(&node.data).ok()?;
    Some((Stand { created: node.created, version: node.version }, assignment.lease))
}

/// Pairs each place with its two znodes, in the order in which they were asked for.
fn cases(places: Vec<Held>, nodes: Vec<Option<Znode>>) -> Vec<Case> {
    let mut nodes = nodes.into_iter();
    let cases = places.into_iter().map(|place| {
        let (assignment, record) = (nodes.next().flatten(), nodes.next().flatten());
        let created = assignment.as_ref().map_or(0, |node| node.created);
        Case { place, created, assignment: stored(assignment), record: stored(record) }
    });
    cases.collect()
}
