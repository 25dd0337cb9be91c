//! The worker registry: feeds core's [`Membership`] and [`Recovery`], as `actors/host/src/leader/worker_registry.rs` does.

use std::collections::BTreeSet;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::machine::assigner;
use bellwether_core::machine::membership::{self, Membership};
use bellwether_core::machine::recovery::{self, Orphan, Recovery, Stored};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place as ZnodePlace};
use bellwether_core::wire;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::{AssignerMsg, Place, SWEEP};
use crate::node::context::{Context, Route};
use crate::zk::{ReadResult, Znode};

pub(crate) enum RegistryMsg {
    Resume,
    Sweep,
    Watching(bool),
    Changed(WatchedEvent),
    Listed(ReadResult<BTreeSet<WorkerId>>),
    Workers(Vec<WorkerId>, ReadResult<Vec<Option<Znode>>>),
    Recovery(recovery::Event),
}

pub(super) struct Registry {
    place: Place,
    membership: Membership,
    recovery: Recovery,
}

impl Registry {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let recovery = Recovery::new(place.term.epoch);
        let registry = Self { place, membership: Membership::default(), recovery };
        registry.watch(cx);
        registry.sweep(cx);
        registry
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.term.zk,
            path::WORKERS,
            move |set| place.registry(RegistryMsg::Watching(set)),
            move |event| place.registry(RegistryMsg::Changed(event.clone())),
        );
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.registry(RegistryMsg::Sweep));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: RegistryMsg) {
        match msg {
            RegistryMsg::Resume => self.watch(cx),
            RegistryMsg::Sweep => {
                self.list(cx);
                self.sweep(cx);
            }
            RegistryMsg::Watching(false) => {}
            RegistryMsg::Watching(true) => self.list(cx),
            RegistryMsg::Changed(event) => {
                let ZnodePlace::Worker(worker) = path::parse(&event.path) else { return };
                match event.kind {
                    EventKind::NodeCreated | EventKind::NodeDataChanged => {
                        self.member(cx, membership::Event::Seen(worker));
                    }
                    EventKind::NodeDeleted => self.member(cx, membership::Event::Deleted(worker)),
                    EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved => {}
                }
            }
            RegistryMsg::Listed(Ok(listed)) => self.member(cx, membership::Event::Listed(listed)),
            RegistryMsg::Workers(workers, Ok(nodes)) => {
                for (worker, node) in workers.into_iter().zip(nodes) {
                    self.member(cx, membership::Event::Read(worker, stored(node)));
                }
            }
            // The session's return, or the next sweep, looks again.
            RegistryMsg::Listed(Err(_)) | RegistryMsg::Workers(_, Err(_)) => {}
            RegistryMsg::Recovery(event) => self.recover(cx, event),
        }
    }

    fn list(&mut self, cx: &mut Context<'_>) {
        let place = self.place;
        let paths = [path::WORKERS.to_owned(), path::ASSIGNMENTS.to_owned()];
        cx.children_many(place.term.zk, paths, move |lists| {
            let ids = lists.map(|lists| {
                let names = lists.into_iter().flatten().flatten();
                names.filter_map(|name| WorkerId::parse(&name)).collect()
            });
            place.registry(RegistryMsg::Listed(ids))
        });
        self.recover(cx, recovery::Event::Sweep);
    }

    fn member(&mut self, cx: &mut Context<'_>, event: membership::Event) {
        let place = self.place;
        let mut effects = Vec::new();
        self.membership.handle(event, &mut effects);
        for effect in effects {
            let told = match effect {
                membership::Effect::Read(workers) => {
                    for workers in workers.chunks(MAX_READ_BATCH) {
                        let workers = workers.to_vec();
                        let paths: Vec<_> = workers.iter().map(|id| path::worker(*id)).collect();
                        cx.get_many(place.term.zk, paths, move |nodes| {
                            place.registry(RegistryMsg::Workers(workers, nodes))
                        });
                    }
                    continue;
                }
                membership::Effect::Lives(worker, info, version) => {
                    assigner::Event::Worker(worker, info, version)
                }
                membership::Effect::Dead(worker) => {
                    let lost = RegistryMsg::Recovery(recovery::Event::Lost(worker));
                    cx.tell(Route::RegistryToItself, place.registry(lost));
                    assigner::Event::WorkerGone(worker)
                }
                membership::Effect::Unreadable(worker, _) => assigner::Event::WorkerGone(worker),
            };
            cx.tell(Route::RegistryToAssigner, place.assigner(AssignerMsg::Event(told)));
        }
    }

    fn recover(&mut self, cx: &mut Context<'_>, event: recovery::Event) {
        use recovery::{Effect, Event};
        let (zk, place) = (self.place.term.zk, self.place);
        let answer = move |event| place.registry(RegistryMsg::Recovery(event));
        let mut effects = Vec::new();
        self.recovery.handle(cx.wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::List(worker) => cx.children(zk, path::inbox(worker), move |names| {
                    let ids = |names: Vec<String>| names.iter().filter_map(|n| JobId::new(n).ok()).collect();
                    answer(Event::Listed(worker, names.map(|names| names.map(ids)).map_err(|_| ())))
                }),
                Effect::Read(worker, jobs) => {
                    let both = |job: &JobId| [path::assignment(worker, job), path::record(job)];
                    let paths: Vec<_> = jobs.iter().flat_map(both).collect();
                    cx.get_many(zk, paths, move |nodes| {
                        answer(Event::Read(worker, nodes.map(|nodes| orphans(jobs, nodes)).map_err(|_| ())))
                    });
                }
                Effect::Commit(worker, batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    answer(Event::Committed(worker, batch, outcome))
                }),
                Effect::Remove(worker, ops) => {
                    cx.commit(zk, &ops, move |outcome| answer(Event::Removed(worker, outcome)));
                }
                Effect::FencedOut => place.fenced_out(cx),
                Effect::Closed(_) => {}
            }
        }
    }
}

pub(super) fn stored<T: wire::Stored>(node: Option<Znode>) -> Stored<T> {
    match node {
        None => Stored::Absent,
        Some(node) => match wire::decode(&node.data) {
            Ok(value) => Stored::Value(value, node.version),
            Err(error) => Stored::Unreadable(error.to_string()),
        },
    }
}

/// Pairs each job with its two znodes, in the order in which they were asked for.
fn orphans(jobs: Vec<JobId>, nodes: Vec<Option<Znode>>) -> Vec<Orphan> {
    let mut nodes = nodes.into_iter();
    let orphans = jobs.into_iter().map(|job| {
        let (assignment, record) = (nodes.next().flatten(), nodes.next().flatten());
        Orphan { job, assignment: stored(assignment), record: stored(record) }
    });
    orphans.collect()
}
