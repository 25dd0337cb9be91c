//! The job watcher: feeds core's [`Backlog`], as `actors/host/src/leader/job_watcher.rs` does.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::machine::assigner;
use bellwether_core::machine::backlog::{Backlog, Effect, Event};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, Bucket, Place as ZnodePlace};
use bellwether_core::wire;
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::{AssignerMsg, Place, SWEEP};
use crate::node::context::{Context, Route};
use crate::zk::{ReadResult, Znode};

pub(crate) enum JobWatcherMsg {
    Resume,
    Sweep,
    Watching(bool),
    Changed(WatchedEvent),
    Listed { round: u32, buckets: Vec<Bucket>, lists: ReadResult<Vec<Option<Vec<String>>>> },
    Read { ticket: u64, jobs: Vec<JobId>, nodes: ReadResult<Vec<Option<Znode>>> },
}

pub(super) struct JobWatcher {
    place: Place,
    machine: Backlog,
}

impl JobWatcher {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let watcher = Self { place, machine: Backlog::default() };
        watcher.watch(cx);
        watcher.sweep(cx);
        watcher
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.term.zk,
            path::QUEUE,
            move |set| place.job_watcher(JobWatcherMsg::Watching(set)),
            move |event| place.job_watcher(JobWatcherMsg::Changed(event.clone())),
        );
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.job_watcher(JobWatcherMsg::Sweep));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: JobWatcherMsg) {
        match msg {
            JobWatcherMsg::Resume => self.watch(cx),
            JobWatcherMsg::Sweep => {
                self.list(cx);
                self.sweep(cx);
            }
            JobWatcherMsg::Watching(false) => {}
            JobWatcherMsg::Watching(true) => {
                self.feed(cx, Event::Watched);
                self.list(cx);
            }
            JobWatcherMsg::Changed(event) => {
                let ZnodePlace::QueueEntry(job) = path::parse(&event.path) else { return };
                match event.kind {
                    EventKind::NodeCreated | EventKind::NodeDataChanged => self.feed(cx, Event::Created(job)),
                    EventKind::NodeDeleted => self.feed(cx, Event::Deleted(job)),
                    EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved => {}
                }
            }
            JobWatcherMsg::Listed { round, buckets, lists: Ok(lists) } => {
                for (bucket, names) in buckets.into_iter().zip(lists) {
                    let names = names.unwrap_or_default();
                    let jobs = names.iter().filter_map(|name| JobId::new(name).ok()).collect();
                    self.feed(cx, Event::Listed { bucket, round, jobs });
                }
            }
            // The session's return, or the next sweep, lists again.
            JobWatcherMsg::Listed { lists: Err(_), .. } => {}
            JobWatcherMsg::Read { ticket, jobs, nodes: Ok(nodes) } => {
                let entry = |node: Option<Znode>| wire::decode(&node?.data).ok();
                let entries = jobs.into_iter().zip(nodes).map(|(job, node)| (job, entry(node))).collect();
                self.feed(cx, Event::Read { ticket, entries });
            }
            JobWatcherMsg::Read { ticket, jobs, nodes: Err(_) } => {
                self.feed(cx, Event::ReadFailed { ticket, jobs });
            }
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let place = self.place;
        let mut effects = Vec::new();
        self.machine.handle(event, &mut effects);
        for effect in effects {
            let told = match effect {
                Effect::Read { ticket, jobs } => {
                    let paths: Vec<_> = jobs.iter().map(path::queue_entry).collect();
                    cx.get_many(place.term.zk, paths, move |nodes| {
                        place.job_watcher(JobWatcherMsg::Read { ticket, jobs, nodes })
                    });
                    continue;
                }
                Effect::Queued(jobs) => assigner::Event::Queued(jobs),
                Effect::Unqueued(job) => assigner::Event::Unqueued(job),
            };
            cx.tell(Route::JobWatcherToAssigner, place.assigner(AssignerMsg::Event(told)));
        }
    }

    fn list(&mut self, cx: &mut Context<'_>) {
        self.feed(cx, Event::Resync);
        let (place, round) = (self.place, self.machine.round());
        let all: Vec<_> = Bucket::all().collect();
        for buckets in all.chunks(MAX_READ_BATCH) {
            let buckets = buckets.to_vec();
            let paths: Vec<_> = buckets.iter().map(|bucket| bucket.queue()).collect();
            cx.children_many(place.term.zk, paths, move |lists| {
                place.job_watcher(JobWatcherMsg::Listed { round, buckets, lists })
            });
        }
    }
}
