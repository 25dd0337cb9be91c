//! The job watcher: keeps the assigner told of what waits in `/queue`.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::QueueEntry;
use bellwether_core::machine::assigner;
use bellwether_core::machine::backlog::{Backlog, Effect, Event};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, Bucket, Place};
use bellwether_core::wire;
use bellwether_zk::{Change, ChangeKind, Node, ReadError};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::assigner::AssignerMsg;
use super::{SWEEP, Term};
use crate::feed::{self, Feed};
use crate::spawn::actor;
use crate::task::{Owned, report, sweep, tell};
use crate::unreadable::Unreadable;

pub(super) struct JobWatcher;

pub(super) enum JobWatcherMsg {
    Resume,
    Sweep,
    Feed(Feed),
    Listed { round: u32, buckets: Vec<Bucket>, lists: Result<Vec<Option<Vec<String>>>, ReadError> },
    Read { ticket: u64, jobs: Vec<JobId>, nodes: Result<Vec<Option<Node>>, ReadError> },
}

actor!(JobWatcher, "job_watcher", JobWatcherMsg { Resume, Sweep, Feed => Feed, Listed, Read });

pub(super) struct State {
    term: Term,
    assigner: ActorRef<AssignerMsg>,
    machine: Backlog,
    unreadable: Unreadable,
    _feed: Owned,
    _sweep: Owned,
}

impl Actor for JobWatcher {
    type Msg = JobWatcherMsg;
    type State = State;
    type Arguments = (Term, ActorRef<AssignerMsg>);

    async fn pre_start(
        &self,
        myself: ActorRef<JobWatcherMsg>,
        (term, assigner): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let _feed = feed::watch(&term.zk, path::QUEUE.into(), &myself, JobWatcherMsg::Feed);
        let _sweep = sweep(&myself, SWEEP, || JobWatcherMsg::Sweep);
        let (machine, unreadable) = (Backlog::default(), Unreadable::default());
        Ok(State { term, assigner, machine, unreadable, _feed, _sweep })
    }

    async fn handle(
        &self,
        myself: ActorRef<JobWatcherMsg>,
        message: JobWatcherMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            JobWatcherMsg::Resume => {
                state._feed = feed::watch(&state.term.zk, path::QUEUE.into(), &myself, JobWatcherMsg::Feed);
            }
            JobWatcherMsg::Sweep => {
                state.list(&myself);
                state._sweep = sweep(&myself, SWEEP, || JobWatcherMsg::Sweep);
            }
            JobWatcherMsg::Feed(Feed::Watching) => {
                state.feed(&myself, Event::Watched);
                state.list(&myself);
            }
            JobWatcherMsg::Feed(Feed::Changes(changes)) => {
                for event in changes.into_iter().filter_map(event) {
                    state.feed(&myself, event);
                }
            }
            JobWatcherMsg::Listed { round, buckets, lists: Ok(lists) } => {
                for (bucket, names) in buckets.into_iter().zip(lists) {
                    let names = names.unwrap_or_default();
                    let jobs = names.iter().filter_map(|name| JobId::new(name).ok()).collect();
                    state.feed(&myself, Event::Listed { bucket, round, jobs });
                }
            }
            // The session's return, or the next sweep, lists again.
            JobWatcherMsg::Listed { lists: Err(error), .. } => {
                tracing::debug!(%error, "the queue was not listed")
            }
            JobWatcherMsg::Read { ticket, jobs, nodes: Ok(nodes) } => {
                let entries = jobs.into_iter().zip(nodes).map(|(job, node)| {
                    let entry = node.and_then(|node| decode(&job, &node, &mut state.unreadable));
                    (job, entry)
                });
                let event = Event::Read { ticket, entries: entries.collect() };
                state.feed(&myself, event);
            }
            JobWatcherMsg::Read { ticket, jobs, nodes: Err(_) } => {
                state.feed(&myself, Event::ReadFailed { ticket, jobs });
            }
        }
        Ok(())
    }
}

impl State {
    fn feed(&mut self, myself: &ActorRef<JobWatcherMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Read { ticket, jobs } => {
                    let nodes = self.term.zk.get_many(jobs.iter().map(path::queue_entry).collect());
                    report(myself, nodes, move |nodes| JobWatcherMsg::Read { ticket, jobs, nodes });
                }
                Effect::Queued(jobs) => {
                    tell(&self.assigner, AssignerMsg::Event(assigner::Event::Queued(jobs)))
                }
                Effect::Unqueued(job) => {
                    tell(&self.assigner, AssignerMsg::Event(assigner::Event::Unqueued(job)))
                }
            }
        }
    }

    fn list(&mut self, myself: &ActorRef<JobWatcherMsg>) {
        self.feed(myself, Event::Resync);
        let round = self.machine.round();
        let all = Bucket::all().collect::<Vec<_>>();
        for buckets in all.chunks(MAX_READ_BATCH) {
            let buckets = buckets.to_vec();
            let lists = self.term.zk.children_many(buckets.iter().map(|bucket| bucket.queue()).collect());
            report(myself, lists, move |lists| JobWatcherMsg::Listed { round, buckets, lists });
        }
    }
}

fn event(change: Change) -> Option<Event> {
    let Place::QueueEntry(job) = change.place else { return None };
    Some(match change.kind {
        // An operator may have repaired an entry in place.
        ChangeKind::Created | ChangeKind::DataChanged => Event::Created(job),
        ChangeKind::Deleted => Event::Deleted(job),
    })
}

fn decode(job: &JobId, node: &Node, unreadable: &mut Unreadable) -> Option<QueueEntry> {
    wire::decode(&node.data)
        .inspect_err(|error| unreadable.tell(path::queue_entry(job), node.version, error))
        .ok()
}
