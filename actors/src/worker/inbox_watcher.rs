//! The inbox watcher: watches and reads the worker's inbox, as the [`inbox_watcher::InboxWatcher`] machine decides.
//!
//! The watch is requested first and the listing right behind it on the same session, so nothing falls between. Both are
//! repeated at every reconnection, and the listing every 30 s, because watches are hints.

use std::time::Duration;

use bellwether_core::machine::worker::executor_pool::Event as ToExecutor;
use bellwether_core::machine::worker::inbox_watcher::{self, Effect, Event, Requeue};
use bellwether_core::machine::worker::{Found, Start};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Place};
use bellwether_core::port::{Change, ChangeKind, Node, ReadError, ReadResult};
use bellwether_core::{metric, txn};
use metrics::counter;

use crate::{Concern, Context, Feed};

/// How long a hint that was lost while connected can delay a job.
const RELIST: Duration = Duration::from_secs(30);

/// Until a watch or a listing that ZooKeeper refused is asked for again.
const RETRY: Duration = Duration::from_secs(1);

/// The watch and the timers of the inbox watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the inbox.
    Inbox,
    /// The periodic listing.
    Sweep,
    /// The next try after a refusal.
    Retry,
}

/// Watches and reads the inbox of one incarnation.
pub struct InboxWatcher {
    worker: WorkerId,
    machine: inbox_watcher::InboxWatcher,
    up: bool,
    /// The timer of the next try is under way. It stays, so that refusals in a row cannot put it off.
    trying: bool,
}

/// Messages to the inbox watcher.
pub enum InboxWatcherMsg {
    /// The connection is lost.
    Hold,
    /// It is back.
    Resume,
    /// List everything now.
    Relist,
    /// From the executor.
    Closed(Vec<JobId>),
    /// From the executor.
    Recheck(Vec<JobId>),
    /// From the watch.
    Feed(Feed),
    /// The names in the inbox; nothing when it is gone.
    Listed(ReadResult<Option<Vec<JobId>>>),
    /// What was read.
    Read(Vec<(JobId, Found)>),
    /// What was not.
    Unread(Vec<JobId>, ReadError),
    /// A hand-back was rejected, and this goes instead.
    Refused(Box<Requeue>),
    /// What was to be set aside has been before: only its assignment goes.
    SetAside(JobId, String),
    /// The time for the periodic listing, or for another try.
    Again(Again),
}

/// For what it is time.
#[derive(Clone, Copy)]
pub enum Again {
    /// The periodic listing.
    Periodic,
    /// Another try.
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
    Unread,
    Refused,
    SetAside,
    Again => Again,
});

/// What it tells.
pub enum Tell {
    /// To the executor.
    Executor(ToExecutor),
    /// To the wing.
    InboxGone,
    /// To the wing: somebody closed an attempt of ours.
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
            InboxWatcherMsg::Feed(Feed::Watching) => {}
            InboxWatcherMsg::Feed(Feed::Changes(changes)) => self.changed(cx, changes),
            InboxWatcherMsg::Listed(Ok(None)) => cx.tell(Tell::InboxGone),
            InboxWatcherMsg::Listed(Ok(Some(jobs))) => self.feed(cx, Event::Listed(jobs)),
            InboxWatcherMsg::Listed(Err(error)) => self.refused(cx, &error),
            InboxWatcherMsg::Read(found) => self.feed(cx, Event::Read(found)),
            InboxWatcherMsg::Unread(jobs, error) => {
                tracing::debug!(%error, "jobs of the inbox could not be read");
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
    /// Asks for a watch, then for a listing.
    fn watch(&mut self, cx: &mut Context<'_, Self>) {
        self.trying = false;
        cx.disarm(Key::Retry);
        cx.watch(Key::Inbox, path::inbox(self.worker), InboxWatcherMsg::Feed);
        self.list(cx);
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

    /// A lost connection is followed by a Resume; a refusal by nothing.
    fn refused(&mut self, cx: &mut Context<'_, Self>, error: &ReadError) {
        match error {
            ReadError::Disconnected => {}
            ReadError::Refused(_) => {
                tracing::error!(%error, "ZooKeeper refuses to show the inbox");
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
                // The inbox itself: retired, or taken away.
                Place::Inbox(_) if kind == ChangeKind::Deleted => {
                    self.list(cx);
                    continue;
                }
                _ => continue,
            };
            debug_assert_eq!(worker, self.worker, "only our inbox is watched");
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
                Effect::Start(start) => starts.push(*start),
                Effect::Vanished(job) => vanished.push(job),
                Effect::Cancel { job, attempt, assignment, version } => {
                    cx.tell(Tell::Executor(ToExecutor::Cancel { job, attempt, assignment, version }));
                }
                Effect::Zombie(job, attempt) => cx.tell(Tell::Executor(ToExecutor::Zombie(job, attempt))),
                Effect::Missed(job) => {
                    tracing::warn!(%job, "taken away before it was read");
                    cx.tell(Tell::TakenForHung);
                }
                Effect::Quarantine { job, note } => {
                    tracing::error!(%job, %note, "set aside: its stored bytes cannot be used");
                    cx.commit(txn::quarantine(&job, self.worker, &note), |_, outcome| match outcome {
                        // It was set aside before, retried, and is as unreadable as it was.
                        Outcome::Rejected(Rejection { reason: Reason::NodeExists, .. }) => {
                            Some(InboxWatcherMsg::SetAside(job, note))
                        }
                        outcome => set_aside(&job, &outcome),
                    });
                }
                Effect::Requeue(requeue) => self.hand_back(cx, requeue),
                Effect::Discard { job, assignment, record } => {
                    tracing::warn!(%job, "an assignment that stands for nothing is removed");
                    cx.commit(txn::discard(&job, self.worker, assignment, record), move |_, outcome| {
                        tracing::debug!(%job, ?outcome, "the next listing tells what became of it");
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
            "assigned by what the leader knew of old: queued again, or ended if it is cancelled"
        );
        cx.commit(requeue.ops(self.worker, cx.wall), move |ops, outcome| {
            tracing::debug!(job = %requeue.job(), ?outcome, "the next listing tells what became of it");
            requeue.answered(&ops, &outcome).map(InboxWatcherMsg::Refused)
        });
    }

    fn read(&self, cx: &mut Context<'_, Self>, jobs: Vec<JobId>) {
        cx.get_many(paths(self.worker, jobs.iter()), move |nodes| match nodes {
            Ok(nodes) => InboxWatcherMsg::Read(jobs.into_iter().zip(found(&nodes)).collect()),
            Err(error) => InboxWatcherMsg::Unread(jobs, error),
        });
    }
}

fn job(name: &String) -> Option<JobId> {
    JobId::new(name)
        .inspect_err(|error| tracing::warn!(%error, "a foreign znode in the inbox is left alone"))
        .ok()
}

/// What is not applied is found again by the next listing.
fn set_aside(job: &JobId, outcome: &Outcome<()>) -> Option<InboxWatcherMsg> {
    match outcome {
        Outcome::Applied(()) => counter!(metric::QUARANTINED).increment(1),
        Outcome::Rejected(_) | Outcome::Unknown => tracing::debug!(%job, ?outcome, "not set aside yet"),
    }
    None
}

/// The paths of each job's assignment and record, in the order that [`Found`] asks for.
pub fn paths<'a>(worker: WorkerId, jobs: impl Iterator<Item = &'a JobId>) -> Vec<String> {
    jobs.flat_map(|job| [path::assignment(worker, job), path::record(job)]).collect()
}

/// What was read at [`paths`].
pub fn found(nodes: &[Option<Node>]) -> impl Iterator<Item = Found> {
    nodes.chunks_exact(2).map(|pair| Found { assignment: Node::look(&pair[0]), record: Node::look(&pair[1]) })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::stage::{Stage, watched};

    #[test]
    fn the_inbox_is_watched_again_when_the_connection_is_back() {
        let worker = WorkerId::new(Uuid::nil());
        let (mut stage, started) = Stage::<InboxWatcher>::start(worker);
        assert_eq!(watched(&started), [path::inbox(worker)]);
        assert_eq!(watched(&stage.handle(InboxWatcherMsg::Resume)), [path::inbox(worker)]);
    }

    #[test]
    fn refusals_in_a_row_are_followed_by_one_try() {
        use crate::Out;
        let (mut stage, _) = Stage::<InboxWatcher>::start(WorkerId::new(Uuid::nil()));
        let mut tries = |msg| {
            let out = stage.handle(msg);
            out.iter().filter(|out| matches!(out, Out::After(Key::Retry, ..))).count()
        };
        let refused = || InboxWatcherMsg::Listed(Err(ReadError::Refused(Reason::NoAuth)));
        assert_eq!([tries(refused()), tries(refused())], [1, 0]);
        assert_eq!(tries(InboxWatcherMsg::Again(Again::Watch)), 0);
        assert_eq!(tries(refused()), 1, "the try was made");
    }
}
