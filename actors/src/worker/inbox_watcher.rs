//! Watches and reads the inbox: feeds the [`Inbox`] machine and carries out its effects.
//!
//! The watch is asked for first and the listing right behind it on the same session, so nothing falls between.
//! Both are repeated at every reconnection; the listing also every [`RELIST`], because watches are hints.

use std::time::Duration;

use bellwether_core::machine::worker::inbox::{Effect, Event, Inbox, Requeue};
use bellwether_core::machine::worker::{Found, Look, Start};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Place};
use bellwether_core::{metric, txn};
use bellwether_zk::{Change, ChangeKind, Node, ReadError, ReadResult, Watch, Zk};
use metrics::counter;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::executor_pool::ExecutorMsg;
use super::{Term, WorkerMsg};
use crate::clock;
use crate::spawn::{actor, kinds};
use crate::task::{Owned, report, sweep, tell};
use bellwether_core::machine::worker::executor::Event as ToExecutor;

/// How long a hint that was lost while connected can delay a job.
const RELIST: Duration = Duration::from_secs(30);

/// Until a watch or a listing that ZooKeeper refused is asked for again.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct InboxWatcher;

pub(super) struct Args {
    pub(super) zk: Zk,
    pub(super) worker: WorkerId,
    pub(super) term: Term,
    pub(super) executor: ActorRef<ExecutorMsg>,
    pub(super) wing: ActorRef<WorkerMsg>,
}

pub(super) enum InboxMsg {
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
    Watching(ReadResult<Watch>),
    Changed(Vec<Change>),
    Listed(ReadResult<Option<Vec<String>>>),
    Read(Vec<(JobId, Found)>),
    Unread(Vec<JobId>, ReadError),
    /// A hand-back was rejected, and this goes instead.
    Refused(Box<Requeue>),
    /// The time for the periodic listing, or for another try.
    Again(Again),
}

#[derive(Clone, Copy)]
pub(super) enum Again {
    Periodic,
    Watch,
}

kinds!(Again { Periodic, Watch });
actor!(InboxWatcher, "inbox_watcher", InboxMsg {
    Hold,
    Resume,
    Relist,
    Closed,
    Recheck,
    Watching,
    Changed,
    Listed,
    Read,
    Unread,
    Refused,
    Again => Again,
});

pub(super) struct State {
    args: Args,
    machine: Inbox,
    watch: Option<Owned>,
    _relist: Owned,
    retry: Retry,
    link: Link,
}

/// The timer of the next try: one at most, because a try asks for the watch and the listing, and each of them
/// may be refused. The one that is under way stays, so that refusals in a row cannot put it off.
#[derive(Default)]
struct Retry(Option<Owned>);

impl Retry {
    fn arm(&mut self, after: Duration, then: impl FnOnce() + Send + 'static) {
        self.0.get_or_insert_with(|| {
            Owned::spawn(async move {
                tokio::time::sleep(after).await;
                then();
            })
        });
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

#[derive(PartialEq, Eq)]
enum Link {
    Up,
    Down,
}

impl Actor for InboxWatcher {
    type Msg = InboxMsg;
    type State = State;
    type Arguments = Args;

    async fn pre_start(&self, me: ActorRef<InboxMsg>, args: Args) -> Result<State, ActorProcessingErr> {
        let (machine, retry) = (Inbox::new(), Retry::default());
        let _relist = list_later(&me);
        let mut state = State { args, machine, watch: None, _relist, retry, link: Link::Up };
        state.watch(&me);
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<InboxMsg>,
        message: InboxMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            InboxMsg::Hold => {
                state.link = Link::Down;
                state.feed(&me, Event::Hold);
            }
            InboxMsg::Resume => {
                state.link = Link::Up;
                state.feed(&me, Event::Resume);
                state.watch(&me);
            }
            InboxMsg::Relist => state.list(&me),
            InboxMsg::Closed(jobs) => state.feed(&me, Event::Closed(jobs)),
            InboxMsg::Recheck(jobs) => {
                jobs.into_iter().for_each(|job| state.feed(&me, Event::Recheck(job)));
            }
            InboxMsg::Watching(watch) => state.watching(&me, watch),
            InboxMsg::Changed(changes) => state.changed(&me, changes),
            InboxMsg::Listed(listed) => state.listed(&me, listed),
            InboxMsg::Read(found) => state.feed(&me, Event::Read(found)),
            InboxMsg::Unread(jobs, error) => {
                tracing::debug!(%error, "jobs of the inbox could not be read");
                state.feed(&me, Event::ReadFailed(jobs));
                state.refused(&me, &error);
            }
            InboxMsg::Refused(requeue) => state.feed(&me, Event::Refused(requeue)),
            InboxMsg::Again(Again::Periodic) => {
                state.list(&me);
                state._relist = list_later(&me);
            }
            InboxMsg::Again(Again::Watch) => state.watch(&me),
        }
        Ok(())
    }
}

impl State {
    /// Asks for a watch, then for a listing.
    fn watch(&mut self, me: &ActorRef<InboxMsg>) {
        self.retry.disarm();
        report(me, self.args.zk.watch_path(path::inbox(self.args.worker)), InboxMsg::Watching);
        self.list(me);
    }

    fn list(&self, me: &ActorRef<InboxMsg>) {
        if self.link == Link::Up {
            report(me, self.args.zk.children(path::inbox(self.args.worker)), InboxMsg::Listed);
        }
    }

    /// A lost connection is followed by a Resume; a refusal by nothing.
    fn refused(&mut self, me: &ActorRef<InboxMsg>, error: &ReadError) {
        match error {
            ReadError::Disconnected => {}
            ReadError::Refused(_) => {
                tracing::error!(%error, "ZooKeeper refuses to show the inbox");
                let me = me.clone();
                self.retry.arm(RETRY, move || tell(&me, InboxMsg::Again(Again::Watch)));
            }
        }
    }

    fn watching(&mut self, me: &ActorRef<InboxMsg>, watch: ReadResult<Watch>) {
        match watch {
            Ok(mut watch) => {
                let me = me.clone();
                // The new watch is there: the old one, if any, may go.
                self.watch = Some(Owned::spawn(async move {
                    while let Some(changes) = watch.changes().await {
                        tell(&me, InboxMsg::Changed(changes));
                    }
                }));
            }
            Err(error) => self.refused(me, &error),
        }
    }

    fn changed(&mut self, me: &ActorRef<InboxMsg>, changes: Vec<Change>) {
        let (mut created, mut changed, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for Change { place, kind } in changes {
            let (worker, job) = match place {
                Place::Assignment(worker, job) => (worker, job),
                // The inbox itself: retired, or taken away.
                Place::Inbox(_) if kind == ChangeKind::Deleted => {
                    self.list(me);
                    continue;
                }
                _ => continue,
            };
            debug_assert_eq!(worker, self.args.worker, "only our inbox is watched");
            match kind {
                ChangeKind::Created => created.push(job),
                ChangeKind::DataChanged => changed.push(job),
                ChangeKind::Deleted => deleted.push(job),
            }
        }
        let events = [Event::Created(created), Event::Changed(changed), Event::Deleted(deleted)];
        events.into_iter().for_each(|event| self.feed(me, event));
    }

    fn listed(&mut self, me: &ActorRef<InboxMsg>, listed: ReadResult<Option<Vec<String>>>) {
        match listed {
            Ok(None) => tell(&self.args.wing, WorkerMsg::InboxGone(self.args.term)),
            Ok(Some(children)) => {
                let name = |child: &String| match JobId::new(child) {
                    Ok(job) => Some(job),
                    Err(error) => {
                        tracing::warn!(%error, "a foreign znode in the inbox is left alone");
                        None
                    }
                };
                let jobs = children.iter().filter_map(name).collect();
                self.feed(me, Event::Listed(jobs));
            }
            Err(error) => self.refused(me, &error),
        }
    }

    fn feed(&mut self, me: &ActorRef<InboxMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::now(), event, &mut effects);
        let (mut starts, mut vanished): (Vec<Start>, _) = (Vec::new(), Vec::new());
        for effect in effects {
            match effect {
                Effect::Read(jobs) => self.read(me, jobs),
                Effect::Start(start) => starts.push(*start),
                Effect::Vanished(job) => vanished.push(job),
                Effect::Cancel { job, attempt, assignment, version } => {
                    self.tell(ToExecutor::Cancel { job, attempt, assignment, version });
                }
                Effect::Zombie(job, attempt) => self.tell(ToExecutor::Zombie(job, attempt)),
                Effect::Missed(job) => {
                    tracing::warn!(%job, "taken away before it was read");
                    tell(&self.args.wing, WorkerMsg::TakenForHung(self.args.term));
                }
                Effect::Quarantine { job, note } => {
                    tracing::error!(%job, %note, "set aside: its stored bytes cannot be used");
                    tokio::spawn(set_aside(self.args.zk.clone(), self.args.worker, job, note));
                }
                Effect::Requeue(requeue) => self.hand_back(me, requeue),
                Effect::Discard { job, assignment, record } => {
                    tracing::warn!(%job, "an assignment that stands for nothing is removed");
                    let discard = txn::discard(&job, self.args.worker, assignment, record);
                    let discarded = self.args.zk.commit(discard);
                    tokio::spawn(async move {
                        let outcome = discarded.await;
                        tracing::debug!(%job, ?outcome, "the next listing tells what became of it");
                    });
                }
            }
        }
        if !starts.is_empty() {
            tell(&self.args.executor, ExecutorMsg::Start(starts, me.clone()));
        }
        if !vanished.is_empty() {
            self.tell(ToExecutor::Vanished(vanished));
        }
    }

    fn hand_back(&self, me: &ActorRef<InboxMsg>, requeue: Box<Requeue>) {
        let Start { job, assignment, record, .. } = requeue.start();
        tracing::warn!(
            %job, assigned = assignment.attempt, closed = record.attempts,
            "assigned by what the leader knew of old: queued again, or ended if it is cancelled"
        );
        let ops = requeue.ops(self.args.worker, clock::wall());
        let handed_back = self.args.zk.commit(ops.clone());
        let me = me.clone();
        tokio::spawn(async move {
            let outcome = handed_back.await;
            tracing::debug!(job = %requeue.job(), ?outcome, "the next listing tells what became of it");
            if let Some(instead) = requeue.answered(&ops, &outcome) {
                tell(&me, InboxMsg::Refused(instead));
            }
        });
    }

    fn tell(&self, event: ToExecutor) {
        tell(&self.args.executor, ExecutorMsg::Tell(event));
    }

    fn read(&self, me: &ActorRef<InboxMsg>, jobs: Vec<JobId>) {
        let read = self.args.zk.get_many(paths(self.args.worker, jobs.iter()));
        let read = async move {
            match read.await {
                Ok(nodes) => InboxMsg::Read(jobs.into_iter().zip(found(&nodes)).collect()),
                Err(error) => InboxMsg::Unread(jobs, error),
            }
        };
        report(me, read, |message| message);
    }
}

/// The paths of each job's assignment and record, in the order that [`Found`] asks for.
pub(super) fn paths<'a>(worker: WorkerId, jobs: impl Iterator<Item = &'a JobId>) -> Vec<String> {
    jobs.flat_map(|job| [path::assignment(worker, job), path::record(job)]).collect()
}

/// What was read at [`paths`].
pub(super) fn found(nodes: &[Option<Node>]) -> impl Iterator<Item = Found> {
    fn znode(node: &Option<Node>) -> Option<(&[u8], i32)> {
        node.as_ref().map(|node| (node.data.as_slice(), node.version))
    }
    nodes
        .chunks_exact(2)
        .map(|pair| Found { assignment: Look::of(znode(&pair[0])), record: Look::of(znode(&pair[1])) })
}

fn list_later(me: &ActorRef<InboxMsg>) -> Owned {
    sweep(me, RELIST, || InboxMsg::Again(Again::Periodic))
}

/// What is not applied is found again by the next listing.
async fn set_aside(zk: Zk, worker: WorkerId, job: JobId, note: String) {
    let quarantine = txn::quarantine(&job, worker, &note);
    let assignment = quarantine[..1].to_vec();
    let mut outcome = zk.commit(quarantine).await;
    if matches!(outcome, Outcome::Rejected(Rejection { reason: Reason::NodeExists, .. })) {
        // It was set aside before, retried, and is as unreadable as it was.
        outcome = zk.commit(assignment).await;
    }
    match outcome {
        Outcome::Applied(()) => counter!(metric::QUARANTINED).increment(1),
        Outcome::Rejected(_) | Outcome::Unknown => tracing::debug!(%job, ?outcome, "not set aside yet"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn refusals_in_a_row_are_followed_by_one_try() {
        let (to, mut tries) = unbounded_channel();
        let mut retry = Retry::default();
        for round in 1..=2 {
            for refusal in 0..3 {
                let to = to.clone();
                retry.arm(Duration::from_millis(1), move || to.send((round, refusal)).unwrap());
            }
            assert_eq!(tries.recv().await, Some((round, 0)));
            retry.disarm();
        }
        let last = to.clone();
        retry.arm(Duration::from_millis(2), move || last.send((3, 0)).unwrap());
        assert_eq!(tries.recv().await, Some((3, 0)), "no other try was under way");
    }
}
