//! The job watcher: reports the jobs in `/queue` to the assigner.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::chain::chain;
use bellwether_core::job::QueueEntry;
use bellwether_core::machine::assigner;
use bellwether_core::machine::job_watcher::{self, Effect, Event};
use bellwether_core::machine::worker::Lookup;
use bellwether_core::name::JobId;
use bellwether_core::path::{self, Bucket, Place};
use bellwether_core::port::{Change, ChangeKind, Node, ReadResult};

use super::SWEEP;
use crate::unreadable::Unreadable;
use crate::{Concern, Context, Feed};

/// The watch and the timer of the job watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the queue.
    Queue,
    /// The periodic listing.
    Sweep,
}

/// Reports the waiting jobs to the assigner, in one term.
pub struct JobWatcher {
    machine: job_watcher::JobWatcher,
    unreadable: Unreadable,
}

/// Messages to the job watcher.
pub enum JobWatcherMsg {
    /// The term is active again.
    Resume,
    /// The periodic listing is due.
    Sweep,
    /// From the watch on the queue.
    Feed(Feed),
    /// The entries of some buckets, found by this round of listings.
    Listed(u32, ReadResult<Vec<(Bucket, Vec<JobId>)>>),
    /// The entries that the read with this ticket found, or the jobs whose read was not answered.
    Read(u64, Result<Vec<(JobId, Lookup<QueueEntry>)>, Vec<JobId>>),
}

kinds!(JobWatcherMsg { Resume, Sweep, Feed => Feed, Listed, Read });

/// Messages of the job watcher to its neighbours.
pub enum Tell {
    /// To the assigner.
    Assigner(assigner::Event),
}

impl Concern for JobWatcher {
    const NAME: &'static str = "job_watcher";
    type Msg = JobWatcherMsg;
    type Args = ();
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, (): ()) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, JobWatcherMsg::Sweep);
        Self { machine: job_watcher::JobWatcher::default(), unreadable: Unreadable::default() }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: JobWatcherMsg) {
        match msg {
            JobWatcherMsg::Resume => watch(cx),
            JobWatcherMsg::Sweep => {
                self.list(cx);
                cx.sweep(Key::Sweep, SWEEP, JobWatcherMsg::Sweep);
            }
            JobWatcherMsg::Feed(Feed::Watching) => {
                self.feed(cx, Event::Watched);
                self.list(cx);
            }
            JobWatcherMsg::Feed(Feed::Changes(changes)) => {
                changes.into_iter().filter_map(event).for_each(|event| self.feed(cx, event));
            }
            JobWatcherMsg::Listed(round, Ok(lists)) => {
                for (bucket, jobs) in lists {
                    self.feed(cx, Event::Listed { bucket, round, jobs });
                }
            }
            // The next reconnect or sweep lists again.
            JobWatcherMsg::Listed(_, Err(error)) => {
                tracing::debug!(error = %chain(&error), "cannot list the queue")
            }
            JobWatcherMsg::Read(ticket, Ok(looks)) => {
                let unreadable = &mut self.unreadable;
                let entry = |(job, look)| (unreadable.readable(|| path::queue_entry(&job), look), job);
                let entries = looks.into_iter().map(entry).map(|(entry, job)| (job, entry)).collect();
                self.feed(cx, Event::Read { ticket, entries });
            }
            JobWatcherMsg::Read(ticket, Err(jobs)) => self.feed(cx, Event::ReadFailed { ticket, jobs }),
        }
    }
}

fn watch(cx: &mut Context<'_, JobWatcher>) {
    cx.watch(Key::Queue, path::QUEUE.into(), JobWatcherMsg::Feed);
}

impl JobWatcher {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Read { ticket, jobs } => {
                    cx.get_many(jobs.iter().map(path::queue_entry).collect(), move |nodes| {
                        JobWatcherMsg::Read(
                            ticket,
                            match nodes {
                                Ok(nodes) => Ok(jobs.into_iter().zip(nodes.iter().map(Node::look)).collect()),
                                Err(_) => Err(jobs),
                            },
                        )
                    });
                }
                Effect::Queued(jobs) => cx.tell(Tell::Assigner(assigner::Event::Queued(jobs))),
                Effect::Unqueued(job) => cx.tell(Tell::Assigner(assigner::Event::Unqueued(job))),
            }
        }
    }

    fn list(&mut self, cx: &mut Context<'_, Self>) {
        self.feed(cx, Event::Resync);
        let round = self.machine.round();
        let all = Bucket::all().collect::<Vec<_>>();
        for buckets in all.chunks(MAX_READ_BATCH) {
            let buckets = buckets.to_vec();
            cx.children_many(buckets.iter().map(|bucket| bucket.queue()).collect(), move |lists| {
                let lists = lists.map(|lists| buckets.into_iter().zip(lists.into_iter().map(jobs)).collect());
                JobWatcherMsg::Listed(round, lists)
            });
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

fn jobs(names: Option<Vec<String>>) -> Vec<JobId> {
    names.iter().flatten().filter_map(|name| JobId::new(name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{Stage, watched};

    #[test]
    fn the_queue_is_watched_again_after_a_reconnect() {
        let (mut stage, started) = Stage::<JobWatcher>::start(());
        assert_eq!(watched(&started), [path::QUEUE]);
        assert_eq!(watched(&stage.handle(JobWatcherMsg::Resume)), [path::QUEUE]);
    }
}
