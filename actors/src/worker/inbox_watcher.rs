//! The inbox watcher: watches and reads the worker's inbox, as the [`inbox_watcher::InboxWatcher`] machine decides.
//!
//! The inbox is listed when the watch is set, so no change is missed between the two: a watch that ZooKeeper refused at first
//! may be set long after it was requested. Both are repeated at every reconnection, and the listing every 30 s, because
//! watches are hints. Messages of a replaced watch are dropped by their stamps (`mail`), and the listing that
//! follows the new watch shows what they reported.

use std::time::Duration;

use bellwether_core::chain::chain;
use bellwether_core::job::Assignment;
use bellwether_core::machine::worker::executor_pool::Event as ToExecutor;
use bellwether_core::machine::worker::inbox_watcher::{self, Effect, Event, Requeue};
use bellwether_core::machine::worker::{Found, Lookup, Start};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Place};
use bellwether_core::port::{Change, ChangeKind, Node, ReadError, ReadResult};
use bellwether_core::segment::Segment;
use bellwether_core::{metric, txn};
use metrics::counter;

use crate::{Concern, Context, Feed};

/// The longest delay of a job whose hint was lost while the session was connected.
const RELIST: Duration = Duration::from_secs(30);

/// The wait before a watch or a listing that ZooKeeper refused is requested again.
const RETRY: Duration = Duration::from_secs(1);

/// The watch and the timers of the inbox watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the inbox.
    Inbox,
    /// The periodic listing.
    Sweep,
    /// The next attempt after a refusal.
    Retry,
}

/// Watches and reads the inbox of one incarnation.
pub struct InboxWatcher {
    worker: WorkerId,
    machine: inbox_watcher::InboxWatcher,
    up: bool,
    /// Whether the retry timer is set. It is not set again, so repeated refusals cannot postpone the retry.
    trying: bool,
}

/// Messages to the inbox watcher.
pub enum InboxWatcherMsg {
    /// The connection is lost.
    Hold,
    /// The connection is back.
    Resume,
    /// List the inbox now.
    Relist,
    /// From the executor: these attempts are closed.
    Closed(Vec<JobId>),
    /// From the executor: read these jobs again.
    Recheck(Vec<JobId>),
    /// From the watch on the inbox.
    Feed(Feed),
    /// The jobs in the inbox; `None` when the inbox does not exist.
    Listed(ReadResult<Option<Vec<JobId>>>),
    /// The jobs that were read.
    Read(Vec<(JobId, Found)>),
    /// The segments that were read.
    SegmentsRead(Vec<(JobId, Lookup<Assignment>, Lookup<Segment>)>),
    /// The jobs whose read failed.
    Unread(Vec<JobId>, ReadError),
    /// A requeue was rejected; this one replaces it.
    Refused(Box<Requeue>),
    /// The job already has a quarantine note: delete only its assignment.
    SetAside(JobId, String),
    /// The periodic listing or a retry is due.
    Again(Again),
}

/// The action that is due.
#[derive(Clone, Copy)]
pub enum Again {
    /// The periodic listing.
    Periodic,
    /// Another attempt to watch and list.
    Watch,
}

kinds!(Again { Periodic, Watch });
kinds!(InboxWatcherMsg {
    Hold,
    Resume,
    Relist,
    Closed,
    Recheck,
    Feed => Feed,
    Listed,
    Read,
    SegmentsRead,
    Unread,
    Refused,
    SetAside,
    Again => Again,
});

/// Messages of the inbox watcher to its neighbours.
pub enum Tell {
    /// To the executor.
    Executor(ToExecutor),
    /// To the wing: the inbox does not exist.
    InboxGone,
    /// To the wing: another node closed an attempt of this worker.
    TakenForHung,
}

impl Concern for InboxWatcher {
    const NAME: &'static str = "inbox_watcher";
    type Msg = InboxWatcherMsg;
    type Args = WorkerId;
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, worker: WorkerId) -> Self {
        let mut inbox = Self { worker, machine: inbox_watcher::InboxWatcher::new(), up: true, trying: false };
        inbox.watch(cx);
        cx.sweep(Key::Sweep, RELIST, InboxWatcherMsg::Again(Again::Periodic));
        inbox
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: InboxWatcherMsg) {
        match msg {
            InboxWatcherMsg::Hold => {
                self.up = false;
                self.feed(cx, Event::Hold);
            }
            InboxWatcherMsg::Resume => {
                self.up = true;
                self.feed(cx, Event::Resume);
                self.watch(cx);
            }
            InboxWatcherMsg::Relist => self.list(cx),
            InboxWatcherMsg::Closed(jobs) => self.feed(cx, Event::Closed(jobs)),
            InboxWatcherMsg::Recheck(jobs) => {
                jobs.into_iter().for_each(|job| self.feed(cx, Event::Recheck(job)))
            }
            InboxWatcherMsg::Feed(Feed::Watching) => self.list(cx),
            InboxWatcherMsg::Feed(Feed::Changes(changes)) => self.changed(cx, changes),
            InboxWatcherMsg::Listed(Ok(None)) => cx.tell(Tell::InboxGone),
            InboxWatcherMsg::Listed(Ok(Some(jobs))) => self.feed(cx, Event::Listed(jobs)),
            InboxWatcherMsg::Listed(Err(error)) => self.refused(cx, &error),
            InboxWatcherMsg::Read(found) => self.feed(cx, Event::Read(found)),
            InboxWatcherMsg::SegmentsRead(found) => self.feed(cx, Event::SegmentsRead(found)),
            InboxWatcherMsg::Unread(jobs, error) => {
                tracing::debug!(error = %chain(&error), "the worker cannot read jobs of its inbox");
                self.feed(cx, Event::ReadFailed(jobs));
                self.refused(cx, &error);
            }
            InboxWatcherMsg::Refused(requeue) => self.feed(cx, Event::Refused(requeue)),
            InboxWatcherMsg::SetAside(job, note) => {
                let assignment = txn::quarantine(&job, self.worker, &note).drain(..1).collect();
                cx.commit(assignment, move |_, outcome| set_aside(&job, &outcome));
            }
            InboxWatcherMsg::Again(Again::Periodic) => {
                self.list(cx);
                cx.sweep(Key::Sweep, RELIST, InboxWatcherMsg::Again(Again::Periodic));
            }
            InboxWatcherMsg::Again(Again::Watch) => self.watch(cx),
        }
    }
}

impl InboxWatcher {
    /// Requests the watch. A listing follows when it is set.
    fn watch(&mut self, cx: &mut Context<'_, Self>) {
        self.trying = false;
        cx.disarm(Key::Retry);
        cx.watch(Key::Inbox, path::inbox(self.worker), InboxWatcherMsg::Feed);
    }

    fn list(&self, cx: &mut Context<'_, Self>) {
        if self.up {
            cx.children(path::inbox(self.worker), |listed| {
                InboxWatcherMsg::Listed(
                    listed.map(|names| names.map(|names| names.iter().filter_map(job).collect())),
                )
            });
        }
    }

    /// Sets the retry timer after a refusal. After a lost connection no timer is needed, because a `Resume` follows.
    fn refused(&mut self, cx: &mut Context<'_, Self>, error: &ReadError) {
        match error {
            ReadError::Disconnected => {}
            ReadError::Refused(_) => {
                tracing::error!(worker = %self.worker, error = %chain(&error), "ZooKeeper refused to list or read the inbox");
                if !std::mem::replace(&mut self.trying, true) {
                    cx.after(Key::Retry, RETRY, InboxWatcherMsg::Again(Again::Watch));
                }
            }
        }
    }

    fn changed(&mut self, cx: &mut Context<'_, Self>, changes: Vec<Change>) {
        let (mut created, mut changed, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for Change { place, kind } in changes {
            let (worker, job) = match place {
                Place::Assignment(worker, job) => (worker, job),
                // The inbox itself was deleted: the worker has retired, or an operator deleted it.
                Place::Inbox(_) if kind == ChangeKind::Deleted => {
                    self.list(cx);
                    continue;
                }
                _ => continue,
            };
            debug_assert_eq!(worker, self.worker, "only this worker's inbox is watched");
            match kind {
                ChangeKind::Created => created.push(job),
                ChangeKind::DataChanged => changed.push(job),
                ChangeKind::Deleted => deleted.push(job),
            }
        }
        let events = [Event::Created(created), Event::Changed(changed), Event::Deleted(deleted)];
        events.into_iter().for_each(|event| self.feed(cx, event));
    }

    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.now, event, &mut effects);
        let (mut starts, mut vanished): (Vec<Start>, _) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Read(jobs) => self.read(cx, jobs),
                Effect::ReadSegments(jobs) => self.read_segments(cx, jobs),
                Effect::StartSegment(packed) => starts.extend(packed.starts()),
                Effect::Start(start) => starts.push(*start),
                Effect::Vanished(job) => vanished.push(job),
                Effect::Cancel { job, attempt, assignment, version } => {
                    cx.tell(Tell::Executor(ToExecutor::Cancel { job, attempt, assignment, version }));
                }
                Effect::Zombie(job, attempt) => cx.tell(Tell::Executor(ToExecutor::Zombie(job, attempt))),
                Effect::Missed(job) => {
                    tracing::warn!(%job, "an assignment was removed before this worker read it");
                    cx.tell(Tell::TakenForHung);
                }
                Effect::Quarantine { job, note } => {
                    tracing::error!(%job, %note, "the job is quarantined: its stored bytes cannot be used");
                    cx.commit(txn::quarantine(&job, self.worker, &note), |_, outcome| match outcome {
                        // The job was quarantined and retried before, and is still unreadable.
                        Outcome::Rejected(Rejection { reason: Reason::NodeExists, .. }) => {
                            Some(InboxWatcherMsg::SetAside(job, note))
                        }
                        outcome => set_aside(&job, &outcome),
                    });
                }
                Effect::Requeue(requeue) => self.hand_back(cx, requeue),
                Effect::Discard { job, assignment, record } => {
                    tracing::warn!(%job, "the worker removes an assignment without an open attempt");
                    cx.commit(txn::discard(&job, self.worker, assignment, record), move |_, outcome| {
                        tracing::debug!(%job, ?outcome, "ZooKeeper answered the removal of an assignment; the next listing verifies it");
                        None
                    });
                }
            }
        }
        if !starts.is_empty() {
            cx.tell(Tell::Executor(ToExecutor::Start(starts)));
        }
        if !vanished.is_empty() {
            cx.tell(Tell::Executor(ToExecutor::Vanished(vanished)));
        }
    }

    fn hand_back(&self, cx: &mut Context<'_, Self>, requeue: Box<Requeue>) {
        let Start { job, assignment, record, .. } = requeue.start();
        tracing::warn!(
            %job, assigned = assignment.attempt, closed = record.attempts,
            "the assignment was made from an outdated record: the worker requeues the job, or ends it if it is cancelled"
        );
        cx.commit(requeue.ops(self.worker, cx.wall), move |ops, outcome| {
            tracing::debug!(job = %requeue.job(), ?outcome, "the worker sent the requeue of a job; the next listing verifies it");
            requeue.answered(&ops, &outcome).map(InboxWatcherMsg::Refused)
        });
    }

    fn read(&self, cx: &mut Context<'_, Self>, jobs: Vec<JobId>) {
        cx.get_many(paths(self.worker, jobs.iter()), move |nodes| match nodes {
            Ok(nodes) => InboxWatcherMsg::Read(jobs.into_iter().zip(found(&nodes)).collect()),
            Err(error) => InboxWatcherMsg::Unread(jobs, error),
        });
    }

    fn read_segments(&self, cx: &mut Context<'_, Self>, jobs: Vec<JobId>) {
        cx.get_many(paths(self.worker, jobs.iter()), move |nodes| match nodes {
            Ok(nodes) => {
                let found = |(job, pair): (JobId, &[_])| (job, Node::look(&pair[0]), Node::look(&pair[1]));
                InboxWatcherMsg::SegmentsRead(
                    jobs.into_iter().zip(nodes.chunks_exact(2)).map(found).collect(),
                )
            }
            Err(error) => InboxWatcherMsg::Unread(jobs, error),
        });
    }
}

fn job(name: &String) -> Option<JobId> {
    JobId::new(name)
        .inspect_err(|error| tracing::warn!(%error, "the worker ignores a foreign znode in its inbox"))
        .ok()
}

/// Counts a job that was quarantined. The next listing finds it again if the transaction was not applied.
fn set_aside(job: &JobId, outcome: &Outcome<()>) -> Option<InboxWatcherMsg> {
    match outcome {
        Outcome::Applied(()) => counter!(metric::ZNODES_QUARANTINED).increment(1),
        Outcome::Rejected(_) | Outcome::Unknown => {
            tracing::debug!(%job, ?outcome, "ZooKeeper did not confirm the quarantine of the job: the next listing verifies it")
        }
    }
    None
}

/// The paths of each job's assignment and record, in the order that [`Found`] asks for.
pub fn paths<'a>(worker: WorkerId, jobs: impl Iterator<Item = &'a JobId>) -> Vec<String> {
    jobs.flat_map(|job| [path::assignment(worker, job), path::record(job)]).collect()
}

/// Pairs the nodes that were read at [`paths`].
pub fn found(nodes: &[Option<Node>]) -> impl Iterator<Item = Found> {
    nodes.chunks_exact(2).map(|pair| Found { assignment: Node::look(&pair[0]), record: Node::look(&pair[1]) })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::stage::{Stage, watched};

    #[test]
    fn the_inbox_is_watched_again_after_a_reconnect() {
        let worker = WorkerId::new(Uuid::nil());
        let (mut stage, started) = Stage::<InboxWatcher>::start(worker);
        assert_eq!(watched(&started), [path::inbox(worker)]);
        assert_eq!(watched(&stage.handle(InboxWatcherMsg::Resume)), [path::inbox(worker)]);
    }

    /// ZooKeeper refused the watch at first and set it a second later: a listing from before misses changes in between.
    #[test]
    fn the_inbox_is_listed_when_its_watch_is_set() {
        use crate::{Ask, Out};
        let (mut stage, started) = Stage::<InboxWatcher>::start(WorkerId::new(Uuid::nil()));
        let lists = |out: Vec<Out<InboxWatcher>>| {
            out.iter().filter(|out| matches!(out, Out::Ask(Ask::Children(..)))).count()
        };
        assert_eq!(lists(started), 0, "the watch is not set yet");
        assert_eq!(lists(stage.handle(InboxWatcherMsg::Feed(Feed::Watching))), 1);
        assert_eq!(lists(stage.handle(InboxWatcherMsg::Resume)), 0);
        assert_eq!(lists(stage.handle(InboxWatcherMsg::Listed(Ok(Some(Vec::new()))))), 0);
        assert_eq!(lists(stage.handle(InboxWatcherMsg::Feed(Feed::Watching))), 1, "after each watch");
    }

    /// A reconnection replaces the watch. The earlier one may still have reported a change that is in the mailbox: it is
    /// dropped, and the listing that follows the new watch shows the job.
    #[test]
    fn a_job_that_only_the_replaced_watch_reported_is_read_after_the_new_watch_is_set() {
        use crate::{Ask, Out, Source, Sources};
        let worker = WorkerId::new(Uuid::nil());
        let (mut stage, started) = Stage::<InboxWatcher>::start(worker);
        let mut sources = Sources::default();
        let mut set = |out: &[Out<InboxWatcher>]| {
            assert_eq!(watched(out), [path::inbox(worker)]);
            let stamp = sources.stamp(Source::Watch(Key::Inbox));
            sources.set(stamp.clone(), ());
            stamp
        };
        let (first, second) = (set(&started), set(&stage.handle(InboxWatcherMsg::Resume)));
        assert!(!sources.accepts(Some(&first)), "a change that the first watch reported is not handled");
        assert!(sources.accepts(Some(&second)));
        let listed = stage.handle(InboxWatcherMsg::Feed(Feed::Watching));
        assert!(matches!(&listed[..], [Out::Ask(Ask::Children(inbox, _))] if *inbox == path::inbox(worker)));
        let job = JobId::new("between").unwrap();
        let read = stage.handle(InboxWatcherMsg::Listed(Ok(Some(vec![job.clone()]))));
        let asked = paths(worker, [&job].into_iter());
        assert!(matches!(&read[..], [Out::Ask(Ask::GetMany(paths, _))] if *paths == asked));
    }

    #[test]
    fn repeated_refusals_are_followed_by_one_retry() {
        use crate::Out;
        let (mut stage, _) = Stage::<InboxWatcher>::start(WorkerId::new(Uuid::nil()));
        let mut tries = |msg| {
            let out = stage.handle(msg);
            out.iter().filter(|out| matches!(out, Out::After(Key::Retry, ..))).count()
        };
        let refused = || InboxWatcherMsg::Listed(Err(ReadError::Refused(Reason::NoAuth)));
        assert_eq!([tries(refused()), tries(refused())], [1, 0]);
        assert_eq!(tries(InboxWatcherMsg::Again(Again::Watch)), 0);
        assert_eq!(tries(refused()), 1, "the retry was sent");
    }
}
