//! The hub: turns changes of znodes into events for all followers of a client.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::chain::chain;
use bellwether_core::job::JobRecord;
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path::{self, Place};
use bellwether_core::port::{Change, ChangeKind, Node, ReadResult, Watch};
use bellwether_core::retention::KEPT_AT_LEAST;
use bellwether_core::time::Millis;
use bellwether_core::wire;
use futures::future::{AbortHandle, BoxFuture, Fuse, FusedFuture, abortable};
use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::{broadcast, watch};

use super::{EVENT_BACKLOG, EVENT_BUFFER, Event, Notification};
use crate::client::attempts::PastAttemptView;
use crate::client::runtime::Zk;
use crate::client::session::Session;
use crate::client::view::{JobView, State};

/// The pause before a watch is requested again that was refused or ended with its connection.
const RETRY: Duration = Duration::from_millis(200);

/// The shortest time between two reads of less than a full batch. Without it, each job of a busy namespace would cost two reads and
/// two events, and each follower two writes.
const READ_EVERY: Duration = Duration::from_millis(25);

/// The whole namespace: with one watch, changes of different places arrive in the order of their commits.
const ROOT: &str = "/";

#[derive(Debug, Clone)]
pub(super) enum Sent {
    Notification(Notification),
    End,
}

/// The hub's task. It ends when the last follower is dropped.
#[derive(Debug)]
pub(in crate::client) struct Hub {
    to: broadcast::Sender<Sent>,
    watching: watch::Receiver<bool>,
    task: AbortHandle,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hub {
    pub(super) fn start(session: Session) -> Self {
        let (to, _) = broadcast::channel(EVENT_BUFFER);
        let (set, watching) = watch::channel(false);
        let (run, task) = abortable(run(session.clone(), to.clone(), set));
        session.spawn(Box::pin(run.map(drop)));
        Self { to, watching, task }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Sent> {
        self.to.subscribe()
    }

    pub(super) fn has_ended(&self) -> bool {
        // The task owns the other end of the channel.
        self.watching.has_changed().is_err()
    }

    pub(super) async fn watching(&self) -> bool {
        self.watching.clone().wait_for(|watching| *watching).await.is_ok()
    }
}

/// Sends to all followers. Without followers it is dropped.
fn tell(to: &broadcast::Sender<Sent>, sent: Sent) {
    if to.send(sent).is_err() {
        tracing::trace!("the event has no followers");
    }
}

async fn run(session: Session, to: broadcast::Sender<Sent>, watching: watch::Sender<bool>) {
    let mut first = true;
    while let Ok(zk) = session.usable().await {
        match zk.watch(ROOT.to_owned()).await {
            Ok(watch) => {
                if !std::mem::take(&mut first) {
                    tell(&to, Sent::Notification(Notification::Gap));
                }
                watching.send_replace(true);
                tokio::select! {
                    biased;
                    // The handle would keep the session of a closed client alive.
                    () = session.over() => {}
                    () = follow(&session, &zk, watch, &to) => {}
                }
                watching.send_replace(false);
            }
            Err(error) => tracing::debug!(error = %chain(&error), "the watch was refused: retrying"),
        }
        session.sleep(RETRY).await;
    }
    tell(&to, Sent::End);
}

/// Jobs whose records are to be read, each with its last seen place, in the order in which they were first seen.
#[derive(Debug, Default)]
struct Pending {
    order: VecDeque<JobId>,
    seen: HashMap<JobId, Seen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Queued,
    Delayed,
    Running(WorkerId),
    /// It left a place and was not seen in another one yet: it has ended, or a later change shows its new place.
    Left,
}

impl Pending {
    /// Returns `false` when there are too many jobs.
    fn note(&mut self, change: &Change) -> bool {
        let (job, seen) = match (&change.place, change.kind) {
            (Place::Ready(entry), ChangeKind::Created) => (entry.job(), Seen::Queued),
            (Place::DelayedEntry(_, job), ChangeKind::Created) => (job, Seen::Delayed),
            (Place::Assignment(worker, job), ChangeKind::Created) => (job, Seen::Running(*worker)),
            (Place::Ready(entry), ChangeKind::Deleted) => (entry.job(), Seen::Left),
            (Place::DelayedEntry(_, job) | Place::Assignment(_, job), ChangeKind::Deleted) => {
                (job, Seen::Left)
            }
            // A data change is about a lease or a flag. Other changes are not about a job, or come with changes of
            // its places.
            (_, ChangeKind::Created | ChangeKind::Deleted | ChangeKind::DataChanged) => return true,
        };
        if self.seen.insert(job.clone(), seen).is_none() {
            self.order.push_back(job.clone());
        }
        self.order.len() <= EVENT_BACKLOG
    }

    fn fills_a_batch(&self) -> bool {
        self.order.len() >= MAX_READ_BATCH
    }

    fn take(&mut self) -> Vec<(JobId, Seen)> {
        let few = self.order.len().min(MAX_READ_BATCH);
        let few = self.order.drain(..few);
        few.filter_map(|job| self.seen.remove(&job).map(|seen| (job, seen))).collect()
    }
}

/// Ends that were reported, so that each is reported once: a job is read for each place that it leaves, and the first of these
/// reads may already find its end. An end is remembered for less than the time for which its record is kept, because the id of
/// a removed record can be used again.
#[derive(Debug, Default)]
struct Ends {
    order: VecDeque<(Millis, JobId)>,
    generations: HashMap<JobId, u32>,
}

impl Ends {
    /// Whether the event was not reported yet.
    fn is_new(&mut self, now: Millis, event: &Event) -> bool {
        let is_old = |(at, _): &(Millis, JobId)| now.since(*at) >= KEPT_AT_LEAST;
        while self.order.len() > EVENT_BACKLOG || self.order.front().is_some_and(is_old) {
            if let Some((_, job)) = self.order.pop_front() {
                self.generations.remove(&job);
            }
        }
        if !event.state.is_terminal() {
            return true;
        }
        if self.generations.insert(event.job.clone(), event.generation) == Some(event.generation) {
            return false;
        }
        self.order.push_back((now, event.job.clone()));
        true
    }
}

type Read = (Vec<(JobId, Seen)>, ReadResult<Vec<Option<Node>>>);

/// Forwards changes as events until the connection is lost.
///
/// The first change after a pause is read immediately. Then changes are collected for [`READ_EVERY`], unless a batch is full: the cost
/// of followers depends on the time and not on the number of changes.
async fn follow(session: &Session, zk: &Zk, mut watch: Box<dyn Watch>, to: &broadcast::Sender<Sent>) {
    let (mut pending, mut ends) = (Pending::default(), Ends::default());
    let mut reading: FuturesUnordered<BoxFuture<'static, Read>> = FuturesUnordered::new();
    let mut collecting = pin!(Fuse::terminated());
    loop {
        if reading.is_empty() && (collecting.is_terminated() || pending.fills_a_batch()) {
            let jobs = pending.take();
            if !jobs.is_empty() {
                let asked = zk.get_many(jobs.iter().map(|(job, _)| path::record(job)).collect());
                reading.push(async move { (jobs, asked.await) }.boxed());
                collecting.set(session.sleep(READ_EVERY).fuse());
            }
        }
        // Replies come first: there is one read at a time, and the waiting changes are one message.
        tokio::select! {
            biased;
            Some((jobs, read)) = reading.next(), if !reading.is_empty() => {
                // Lost with the connection: the watch ends too, and all followers hear of a gap.
                let Ok(nodes) = read else { return };
                for ((job, seen), node) in jobs.into_iter().zip(nodes) {
                    if let Some(event) = event(job, seen, node).filter(|event| ends.is_new(session.now(), event)) {
                        tell(to, Sent::Notification(Notification::Event(Arc::new(event))));
                    }
                }
            }
            () = collecting.as_mut(), if !collecting.is_terminated() => {}
            changes = watch.changes() => {
                let Some(changes) = changes else { return };
                for change in &changes {
                    if !pending.note(change) {
                        pending = Pending::default();
                        tell(to, Sent::Notification(Notification::Gap));
                    }
                }
            }
        }
    }
}

/// Combines a job's record with its place. Returns `None` while the job moves between places, or if it was removed.
fn event(job: JobId, seen: Seen, node: Option<Node>) -> Option<Event> {
    let view = match wire::decode::<JobRecord>(&node?.data) {
        Ok(record) => JobView::of(job, record),
        Err(reason) => JobView::unreadable(job, &reason),
    };
    let (state, worker) = match (view.state, seen) {
        (State::Queued, Seen::Queued) => (State::Queued, None),
        (State::Queued, Seen::Delayed) => (State::Delayed, None),
        (State::Queued, Seen::Running(worker)) => (State::Running, Some(worker)),
        (State::Queued, Seen::Left) => return None,
        (over, _) => (over, None),
    };
    let attempt = view.attempt + u32::from(state == State::Running);
    let last = view.attempts.last().filter(|_| state == State::Succeeded);
    let run_time = last.and_then(PastAttemptView::run_time);
    let error = view.error.filter(|_| state != State::Succeeded);
    let JobView { id, kind, generation, .. } = view;
    Some(Event { job: id, kind, state, worker, attempt, generation, error, run_time })
}

#[cfg(test)]
mod tests;
