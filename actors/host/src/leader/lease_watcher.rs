//! The lease watcher: takes attempts from workers that live and give no sign of it.

use std::time::Duration;

use bellwether_actors::leader::assigner::{Assigner, AssignerMsg};
use bellwether_core::job::Assignment;
use bellwether_core::machine::assigner;
use bellwether_core::machine::lease::{Case, Effect, Event, Leases, Place, Revocation, Stand};
use bellwether_core::machine::recovery::Recovered;
use bellwether_core::metric;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::Millis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{ChangeKind, Node, ReadError};
use metrics::counter;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::worker_registry::stored;
use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::feed::{self, Feed};
use crate::host::{self, Ref};
use crate::spawn::actor;
use crate::task::{Owned, after, report, sweep};

pub(super) struct LeaseWatcher;

pub(super) enum LeaseWatcherMsg {
    Resume,
    Tick,
    Feed(Feed),
    Inboxes(Result<Option<Vec<String>>, ReadError>),
    Listed(WorkerId, Result<Option<Vec<String>>, ReadError>),
    Looked(Vec<Place>, Result<Vec<Option<Node>>, ReadError>),
    Judged(Vec<Place>, Result<Vec<Option<Node>>, ReadError>),
    Committed(Batch<Revocation>, Outcome<()>),
    Sweep,
}

actor!(LeaseWatcher, "lease_watcher", LeaseWatcherMsg {
    Resume,
    Tick,
    Feed => Feed,
    Inboxes,
    Listed,
    Looked,
    Judged,
    Committed,
    Sweep,
});

pub(super) struct State {
    term: Term,
    assigner: Ref<Assigner>,
    fenced: Fenced,
    machine: Leases,
    timer: Timer,
    _feed: Owned,
    _sweep: Owned,
}

/// One timer, for the earliest of what is due.
#[derive(Default)]
struct Timer(Option<(Millis, Owned)>);

impl Actor for LeaseWatcher {
    type Msg = LeaseWatcherMsg;
    type State = State;
    type Arguments = (Term, Ref<Assigner>, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<LeaseWatcherMsg>,
        (term, assigner, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let _feed = watch(&term, &myself);
        let _sweep = sweep(&myself, SWEEP, || LeaseWatcherMsg::Sweep);
        let machine = Leases::new(term.epoch);
        Ok(State { term, assigner, fenced, machine, timer: Timer::default(), _feed, _sweep })
    }

    async fn handle(
        &self,
        myself: ActorRef<LeaseWatcherMsg>,
        message: LeaseWatcherMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LeaseWatcherMsg::Resume => state._feed = watch(&state.term, &myself),
            LeaseWatcherMsg::Sweep => {
                state.feed(&myself, Event::Resync);
                state._sweep = sweep(&myself, SWEEP, || LeaseWatcherMsg::Sweep);
            }
            LeaseWatcherMsg::Tick => {
                state.timer = Timer::default();
                state.feed(&myself, Event::Tick);
            }
            LeaseWatcherMsg::Feed(Feed::Watching) => state.feed(&myself, Event::Resync),
            LeaseWatcherMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let path::Place::Assignment(worker, job) = change.place else { continue };
                    let event = match change.kind {
                        ChangeKind::Created | ChangeKind::DataChanged => Event::Changed((worker, job)),
                        ChangeKind::Deleted => Event::Gone((worker, job)),
                    };
                    state.feed(&myself, event);
                }
            }
            LeaseWatcherMsg::Inboxes(Ok(names)) => {
                let workers = names.iter().flatten().filter_map(|name| WorkerId::parse(name)).collect();
                state.feed(&myself, Event::Inboxes(workers));
            }
            LeaseWatcherMsg::Listed(worker, Ok(names)) => {
                for job in names.iter().flatten().filter_map(|name| JobId::new(name).ok()) {
                    state.feed(&myself, Event::Seen((worker, job)));
                }
            }
            // The session's return, or the next sweep, lists again.
            LeaseWatcherMsg::Inboxes(Err(error)) | LeaseWatcherMsg::Listed(_, Err(error)) => {
                tracing::debug!(%error, "the inboxes were not listed");
            }
            LeaseWatcherMsg::Looked(places, Ok(nodes)) => {
                let looked = places.into_iter().zip(nodes.iter().map(|node| stand(node.as_ref())));
                state.feed(&myself, Event::Looked(looked.collect()));
            }
            LeaseWatcherMsg::Judged(places, Ok(nodes)) => {
                state.feed(&myself, Event::Judged(cases(places, nodes)))
            }
            LeaseWatcherMsg::Looked(places, Err(_)) | LeaseWatcherMsg::Judged(places, Err(_)) => {
                state.feed(&myself, Event::ReadFailed(places));
            }
            LeaseWatcherMsg::Committed(batch, outcome) => {
                state.feed(&myself, Event::Committed(batch, outcome))
            }
        }
        Ok(())
    }
}

fn watch(term: &Term, myself: &ActorRef<LeaseWatcherMsg>) -> Owned {
    feed::watch(&term.zk, path::ASSIGNMENTS.into(), myself, LeaseWatcherMsg::Feed)
}

impl State {
    fn feed(&mut self, myself: &ActorRef<LeaseWatcherMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), clock::wall(), event, &mut effects);
        let zk = &self.term.zk;
        for effect in effects {
            match effect {
                Effect::ListInboxes => {
                    report(myself, zk.children(path::ASSIGNMENTS.into()), LeaseWatcherMsg::Inboxes);
                }
                Effect::List(worker) => {
                    let listed = zk.children(path::inbox(worker));
                    report(myself, listed, move |listed| LeaseWatcherMsg::Listed(worker, listed));
                }
                Effect::Look(places) => {
                    let paths = places.iter().map(|(worker, job)| path::assignment(*worker, job)).collect();
                    report(myself, zk.get_many(paths), move |nodes| LeaseWatcherMsg::Looked(places, nodes));
                }
                Effect::Judge(places) => {
                    let of = |(worker, job): &Place| [path::assignment(*worker, job), path::record(job)];
                    let read = zk.get_many(places.iter().flat_map(of).collect());
                    report(myself, read, move |nodes| LeaseWatcherMsg::Judged(places, nodes));
                }
                Effect::Commit(batch) => {
                    let committed = zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| LeaseWatcherMsg::Committed(batch, outcome));
                }
                Effect::Revoked(revoked) => {
                    host::send(&self.assigner, AssignerMsg::Event(assigner::Event::Hangs(revoked.worker)));
                    note(&revoked);
                }
                Effect::FencedOut => self.fenced.tell(),
            }
        }
        self.arm(myself);
    }

    fn arm(&mut self, myself: &ActorRef<LeaseWatcherMsg>) {
        let now = clock::now();
        let Some(due) = self.machine.next_due() else { return };
        // What is due already waits for an answer, not for the time.
        if due > now && self.timer.0.as_ref().is_none_or(|(armed, _)| due < *armed) {
            let timer = after(myself, due.since(now), || LeaseWatcherMsg::Tick);
            self.timer = Timer(Some((due, timer)));
        }
    }
}

fn stand(node: Option<&Node>) -> Option<(Stand, Duration)> {
    let node = node?;
    // One that cannot be read is its worker's to set aside.
    let assignment = wire::decode::<Assignment>(&node.data).ok()?;
    Some((Stand { created: node.created, version: node.version }, assignment.lease))
}

/// Pairs each place with its two nodes, in the order in which they were asked for.
fn cases(places: Vec<Place>, nodes: Vec<Option<Node>>) -> Vec<Case> {
    let mut nodes = nodes.into_iter();
    let cases = places.into_iter().map(|place| {
        let (assignment, record) = (nodes.next().flatten(), nodes.next().flatten());
        let created = assignment.as_ref().map_or(0, |node| node.created);
        Case { place, created, assignment: stored(assignment), record: stored(record) }
    });
    cases.collect()
}

fn note(revoked: &Revocation) {
    let Revocation { worker, job, kind, attempt, end } = revoked;
    tracing::warn!(%job, %kind, %worker, attempt, ?end, "no sign of life within its lease: taken from its worker");
    let kind = kind.to_string();
    counter!(metric::LEASES_EXPIRED, "kind" => kind.clone()).increment(1);
    match end {
        Recovered::Cancelled => counter!(metric::JOBS_CANCELLED, "kind" => kind).increment(1),
        Recovered::Dead => counter!(metric::JOBS_DEAD, "kind" => kind).increment(1),
        Recovered::Queued => {}
    }
}
