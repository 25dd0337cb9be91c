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
use bellwether_core::segment::{ChunkEnd, ChunkName, MemberId, Results, Segment, SegmentId};
use bellwether_core::time::Millis;
use bellwether_core::wire::{self, WireError};
use futures::future::{AbortHandle, BoxFuture, Fuse, FusedFuture, abortable};
use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::sync::{broadcast, watch};

use super::{EVENT_BACKLOG, EVENT_BUFFER, Event, Notification};
use crate::client::attempts::PastAttemptView;
use crate::client::runtime::Zk;
use crate::client::segments::jobs_of;
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
            Err(error) => {
                tracing::debug!(error = %chain(&error), "the client cannot watch the events: it retries")
            }
        }
        session.sleep(RETRY).await;
    }
    tell(&to, Sent::End);
}

/// The subjects to read, in the order of their first changes.
#[derive(Debug, Default)]
struct Pending {
    order: VecDeque<Subject>,
    /// The last seen place of each job and segment.
    seen: HashMap<JobId, Seen>,
    /// The number of their jobs.
    jobs: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    /// A job; or a segment under [its own id](SegmentId::job), whose members are where it is.
    Job(JobId),
    /// Members of a segment that have succeeded.
    Chunk(SegmentId, ChunkName),
}

impl Subject {
    fn jobs(&self) -> usize {
        match self {
            Self::Job(id) => jobs_of(id),
            Self::Chunk(_, chunk) => chunk.members.len() as usize,
        }
    }

    /// The paths that are read for it.
    fn paths(&self) -> Vec<String> {
        match self {
            // The path of a segment is that of the record of its id.
            Self::Job(id) => vec![path::record(id)],
            Self::Chunk(id, chunk) => vec![path::segment(*id), path::segment_chunk(*id, *chunk)],
        }
    }
}

/// A subject, and where it was last seen.
type Item = (Subject, Seen);

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
            // An extraction comes with changes of the places of the members.
            (
                Place::SegmentChunk(id, chunk @ ChunkName { end: ChunkEnd::Succeeded, .. }),
                ChangeKind::Created,
            ) => {
                return self.push(Subject::Chunk(*id, *chunk));
            }
            // A data change is about a lease or a flag. Other changes are not about a job, or come with changes of
            // its places.
            (_, ChangeKind::Created | ChangeKind::Deleted | ChangeKind::DataChanged) => return true,
        };
        match self.seen.insert(job.clone(), seen) {
            None => self.push(Subject::Job(job.clone())),
            Some(_) => true,
        }
    }

    fn push(&mut self, subject: Subject) -> bool {
        self.jobs += subject.jobs();
        self.order.push_back(subject);
        self.jobs <= EVENT_BACKLOG
    }

    fn fills_a_batch(&self) -> bool {
        self.order.len() >= MAX_READ_BATCH
    }

    /// Returns what the next batched read reads.
    fn take(&mut self) -> Vec<Item> {
        let (mut few, mut paths, mut jobs) = (Vec::new(), 0, 0);
        while let Some(next) = self.order.pop_front() {
            // A segment that left a place says nothing about its members.
            if self.is_left_segment(&next) {
                self.forget(&next);
                continue;
            }
            paths += next.paths().len();
            jobs += next.jobs();
            if paths > MAX_READ_BATCH || (jobs > EVENTS_AT_ONCE && !few.is_empty()) {
                self.order.push_front(next);
                break;
            }
            let seen = self.forget(&next);
            few.push((next, seen));
        }
        few
    }

    fn is_left_segment(&self, subject: &Subject) -> bool {
        let Subject::Job(job) = subject else { return false };
        self.seen.get(job) == Some(&Seen::Left) && SegmentId::of_job(job).is_some()
    }

    /// The subject is not pending any more. Returns where it was last seen.
    fn forget(&mut self, subject: &Subject) -> Seen {
        self.jobs -= subject.jobs();
        match subject {
            Subject::Job(job) => self.seen.remove(job).unwrap_or(Seen::Left),
            Subject::Chunk(..) => Seen::Left,
        }
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

/// Events of one read, of which a segment or a chunk may cause a hundred: a part of the ring, so that a follower that keeps pace misses
/// none.
const EVENTS_AT_ONCE: usize = EVENT_BUFFER / 4;

type Read = (Vec<Item>, ReadResult<Vec<Option<Node>>>);

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
            let items = pending.take();
            if !items.is_empty() {
                let asked = zk.get_many(items.iter().flat_map(|(subject, _)| subject.paths()).collect());
                reading.push(async move { (items, asked.await) }.boxed());
                collecting.set(session.sleep(READ_EVERY).fuse());
            }
        }
        // Replies come first: there is one read at a time, and the waiting changes are one message.
        tokio::select! {
            biased;
            Some((items, read)) = reading.next(), if !reading.is_empty() => {
                // Lost with the connection: the watch ends too, and all followers hear of a gap.
                let Ok(nodes) = read else { return };
                let mut nodes = nodes.into_iter();
                for (subject, seen) in items {
                    let nodes = nodes.by_ref().take(subject.paths().len()).collect::<Vec<_>>();
                    for event in events(subject, seen, nodes) {
                        if ends.is_new(session.now(), &event) {
                            tell(to, Sent::Notification(Notification::Event(Arc::new(event))));
                        }
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

/// Returns the events of the jobs of a subject, whose znodes were read.
fn events(subject: Subject, seen: Seen, nodes: Vec<Option<Node>>) -> Vec<Event> {
    let mut nodes = nodes.into_iter();
    // Absent: removed since.
    let Some(node) = nodes.next().flatten() else { return Vec::new() };
    let (id, members, results) = match subject {
        Subject::Job(job) => match SegmentId::of_job(&job) {
            None => return event(job, seen, wire::decode(&node.data)).into_iter().collect(),
            Some(id) => (id, id.members(), None),
        },
        Subject::Chunk(id, chunk) => {
            let Some(node) = nodes.next().flatten() else { return Vec::new() };
            (id, chunk.members, Some(wire::decode::<Results>(&node.data)))
        }
    };
    let segment = wire::decode::<Segment>(&node.data);
    let record = |number| {
        let segment = segment.as_ref().map_err(WireError::clone)?;
        let record = match &results {
            None => segment.record(number),
            Some(results) => segment.succeeded(number, results.as_ref().map_err(WireError::clone)?),
        };
        record.ok_or_else(|| {
            WireError::Value(format!("the segment has no member {number}, or no result of it"))
        })
    };
    let event = |number| event(MemberId { segment: id, number }.job(), seen, record(number));
    members.iter().filter_map(event).collect()
}

/// Combines a job's record with its place. Returns `None` while the job moves between places.
fn event(job: JobId, seen: Seen, record: Result<JobRecord, WireError>) -> Option<Event> {
    let view = match record {
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
