//! The worker registry: who lives, and what becomes of the jobs of those who do not.

use std::collections::BTreeSet;

use bellwether_actors::leader::assigner::{Assigner, AssignerMsg};
use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::machine::assigner;
use bellwether_core::machine::membership::{self, Membership};
use bellwether_core::machine::recovery::{self, Fate, Item, Orphan, Recovered, Recovery, Stored};
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place};
use bellwether_core::wire;
use bellwether_zk::{ChangeKind, Node, ReadError, Zk};
use metrics::{counter, gauge};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::kinds::Kinds;
use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::feed::{self, Feed};
use crate::host::{self, Ref};
use crate::spawn::actor;
use crate::task::{Owned, report, sweep, tell};
use crate::unreadable::Unreadable;

pub(super) struct WorkerRegistry;

pub(super) enum WorkerRegistryMsg {
    Resume,
    Sweep,
    Feed(Feed),
    Listed(Result<BTreeSet<WorkerId>, ReadError>),
    Workers(Vec<WorkerId>, Result<Vec<Option<Node>>, ReadError>),
    Recovery(recovery::Event),
}

actor!(WorkerRegistry, "worker_registry", WorkerRegistryMsg {
    Resume,
    Sweep,
    Feed => Feed,
    Listed,
    Workers,
    Recovery => recovery::Event,
});

pub(super) struct State {
    term: Term,
    assigner: Ref<Assigner>,
    fenced: Fenced,
    membership: Membership,
    recovery: Recovery,
    unreadable: Unreadable,
    kinds: Kinds,
    _feed: Owned,
    _sweep: Owned,
}

impl Actor for WorkerRegistry {
    type Msg = WorkerRegistryMsg;
    type State = State;
    type Arguments = (Term, Ref<Assigner>, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<WorkerRegistryMsg>,
        (term, assigner, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let _feed = feed::watch(&term.zk, path::WORKERS.into(), &myself, WorkerRegistryMsg::Feed);
        let _sweep = sweep(&myself, SWEEP, || WorkerRegistryMsg::Sweep);
        let recovery = Recovery::new(term.epoch);
        Ok(State {
            term,
            assigner,
            fenced,
            membership: Membership::default(),
            recovery,
            unreadable: Unreadable::default(),
            kinds: Kinds::default(),
            _feed,
            _sweep,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<WorkerRegistryMsg>,
        message: WorkerRegistryMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            WorkerRegistryMsg::Resume => {
                state._feed =
                    feed::watch(&state.term.zk, path::WORKERS.into(), &myself, WorkerRegistryMsg::Feed);
            }
            WorkerRegistryMsg::Sweep => {
                state.list(&myself);
                state._sweep = sweep(&myself, SWEEP, || WorkerRegistryMsg::Sweep);
            }
            WorkerRegistryMsg::Feed(Feed::Watching) => state.list(&myself),
            WorkerRegistryMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let Place::Worker(worker) = change.place else { continue };
                    let event = match change.kind {
                        ChangeKind::Created | ChangeKind::DataChanged => membership::Event::Seen(worker),
                        ChangeKind::Deleted => membership::Event::Deleted(worker),
                    };
                    state.member(&myself, event);
                }
            }
            WorkerRegistryMsg::Listed(Ok(listed)) => state.member(&myself, membership::Event::Listed(listed)),
            WorkerRegistryMsg::Workers(workers, Ok(nodes)) => {
                for (worker, node) in workers.into_iter().zip(nodes) {
                    state.member(&myself, membership::Event::Read(worker, stored(node)));
                }
            }
            // The session's return, or the next sweep, looks again.
            WorkerRegistryMsg::Listed(Err(error)) | WorkerRegistryMsg::Workers(_, Err(error)) => {
                tracing::debug!(%error, "the workers were not read");
            }
            WorkerRegistryMsg::Recovery(event) => state.recover(&myself, event),
        }
        Ok(())
    }
}

impl State {
    fn list(&mut self, myself: &ActorRef<WorkerRegistryMsg>) {
        report(myself, list(self.term.zk.clone()), WorkerRegistryMsg::Listed);
        self.recover(myself, recovery::Event::Sweep);
    }

    fn member(&mut self, myself: &ActorRef<WorkerRegistryMsg>, event: membership::Event) {
        let mut effects = Vec::new();
        self.membership.handle(event, &mut effects);
        let assigner = |event| host::send(&self.assigner, AssignerMsg::Event(event));
        for effect in effects {
            match effect {
                membership::Effect::Read(workers) => {
                    for workers in workers.chunks(MAX_READ_BATCH) {
                        let workers = workers.to_vec();
                        let nodes =
                            self.term.zk.get_many(workers.iter().map(|id| path::worker(*id)).collect());
                        report(myself, nodes, move |nodes| WorkerRegistryMsg::Workers(workers, nodes));
                    }
                }
                membership::Effect::Lives(worker, info, version) => {
                    self.kinds.met(&info.kinds);
                    assigner(assigner::Event::Worker(worker, info, version));
                }
                membership::Effect::Dead(worker) => {
                    tracing::info!(%worker, "a worker is gone");
                    assigner(assigner::Event::WorkerGone(worker));
                    tell(myself, WorkerRegistryMsg::Recovery(recovery::Event::Lost(worker)));
                }
                membership::Effect::Unreadable(worker, error) => {
                    // It gets no jobs. Its registration has no version worth telling apart: it is set once.
                    self.unreadable.tell(path::worker(worker), 0, error);
                    assigner(assigner::Event::WorkerGone(worker));
                }
            }
        }
    }

    fn recover(&mut self, myself: &ActorRef<WorkerRegistryMsg>, event: recovery::Event) {
        use recovery::{Effect, Event};
        let mut effects = Vec::new();
        if let Event::Removed(_, Outcome::Applied(())) = &event {
            counter!(metric::WORKERS_LOST).increment(1);
        }
        self.recovery.handle(clock::wall(), event, &mut effects);
        show_orphaned(self.recovery.inboxes());
        let zk = &self.term.zk;
        let answer = WorkerRegistryMsg::Recovery;
        for effect in effects {
            match effect {
                Effect::List(worker) => report(myself, zk.children(path::inbox(worker)), move |names| {
                    let jobs = names.map(|names| {
                        names.map(|names| names.iter().filter_map(|n| JobId::new(n).ok()).collect())
                    });
                    answer(Event::Listed(worker, jobs.map_err(|_| ())))
                }),
                Effect::Read(worker, jobs) => {
                    let paths =
                        jobs.iter().flat_map(|job| [path::assignment(worker, job), path::record(job)]);
                    report(myself, zk.get_many(paths.collect()), move |nodes| {
                        answer(Event::Read(worker, nodes.map(|nodes| orphans(jobs, nodes)).map_err(|_| ())))
                    });
                }
                Effect::Commit(worker, batch) => {
                    report(myself, zk.commit_batch(batch), move |(batch, outcome)| {
                        answer(Event::Committed(worker, batch, note_unknown(outcome)))
                    })
                }
                Effect::Remove(worker, ops) => {
                    report(myself, zk.commit(ops), move |outcome| answer(Event::Removed(worker, outcome)));
                }
                Effect::FencedOut => self.fenced.tell(),
                Effect::Closed(item) => note(&item),
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats, and no count comes near 2^53")]
fn show_orphaned(inboxes: usize) {
    gauge!(metric::ORPHANED_INBOXES).set(inboxes as f64);
}

/// A node that does not lead sees nothing.
pub(super) fn clear_gauges() {
    show_orphaned(0);
}

async fn list(zk: Zk) -> Result<BTreeSet<WorkerId>, ReadError> {
    let paths = vec![path::WORKERS.to_owned(), path::ASSIGNMENTS.to_owned()];
    let lists = zk.children_many(paths).await?;
    Ok(lists.into_iter().flatten().flatten().filter_map(|name| WorkerId::parse(&name)).collect())
}

pub(super) fn stored<T: wire::Stored>(node: Option<Node>) -> Stored<T> {
    match node {
        None => Stored::Absent,
        Some(node) => match wire::decode(&node.data) {
            Ok(value) => Stored::Value(value, node.version),
            Err(error) => Stored::Unreadable(error.to_string()),
        },
    }
}

/// Pairs each job with its two nodes, in the order in which they were asked for.
fn orphans(jobs: Vec<JobId>, nodes: Vec<Option<Node>>) -> Vec<Orphan> {
    let mut nodes = nodes.into_iter();
    let orphans = jobs.into_iter().map(|job| {
        let (assignment, record) = (nodes.next().flatten(), nodes.next().flatten());
        Orphan { job, assignment: stored(assignment), record: stored(record) }
    });
    orphans.collect()
}

fn note_unknown(outcome: Outcome<()>) -> Outcome<()> {
    if outcome == Outcome::Unknown {
        tracing::info!("a recovery's outcome is unknown: the inbox is listed again");
    }
    outcome
}

fn note(item: &Item) {
    match &item.fate {
        Fate::Closed { kind, end } => {
            tracing::info!(job = %item.job, %kind, ?end, "recovered from a lost worker");
            counter!(metric::ORPHANS).increment(1);
            let kind = kind.to_string();
            match end {
                Recovered::Cancelled => counter!(metric::JOBS_CANCELLED, "kind" => kind).increment(1),
                Recovered::Queued => counter!(metric::JOBS_LOST, "kind" => kind).increment(1),
                Recovered::Dead => {
                    counter!(metric::JOBS_LOST, "kind" => kind.clone()).increment(1);
                    counter!(metric::JOBS_DEAD, "kind" => kind).increment(1);
                }
            }
        }
        Fate::Quarantined(why) => {
            tracing::error!(job = %item.job, why, "a job cannot be read and is set aside");
            counter!(metric::QUARANTINED).increment(1);
        }
        Fate::Stale => tracing::debug!(job = %item.job, "a stale assignment was removed"),
    }
}
