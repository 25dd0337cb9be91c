//! Gathers submissions into rounds.
//!
//! ```text
//!  submit ──inbox──▶ pending ──take a round──▶ in flight (≤ WINDOW) ──▶ answers
//!                      ▲                            │
//!                      └────── to be sent again ────┘
//! ```
//!
//! A round is sent when nothing is in flight, or when it is full. So a single job is not delayed, and under load the
//! rounds grow automatically: the slower ZooKeeper is, the larger they are.
//!
//! Jobs of one lane are in one round at a time. Later jobs of the lane are *held* until that round is answered, so
//! that a round that is sent again (a lost reply, a lane that had to be created) does not fall behind a later one.
//!
//! A round packs its plain jobs into segments. Those that may have been sent come back whole, and are sent first in the next
//! round.
//!
//! The inbox and the pending jobs are not bounded. Every submission has a caller that awaits it and would otherwise
//! own it, so the number of callers is the bound. Waiting for capacity instead would need a fair queue of callers,
//! and a caller that is not polled could block the others. Abandoned submissions are dropped whenever the number of
//! pending ones has doubled, so there are never more of them than awaited ones, or than [`ABANDONED`].

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bellwether_core::budget::MAX_TXN_BYTES;
use bellwether_core::name::Lane;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::super::session::Session;
use super::Submission;
use super::capacity::Capacity;
use super::load::Load;
use super::packed::Packed;
use super::round::round;

/// Jobs in one multi: beyond 50 to 100 a larger multi is not faster, and more jobs are in doubt if its reply is lost.
pub(super) const BATCH_JOBS: usize = 100;

/// Payload bytes in one multi; the rest of the budget is for records, entries and paths.
const BATCH_PAYLOAD_BYTES: usize = MAX_TXN_BYTES / 2;

/// Rounds in flight: enough to hide a round trip, far below the session's limit of 64 requests.
pub(super) const WINDOW: usize = 8;

/// Number of pending submissions at which abandoned ones are first searched. Two rounds: 13 MB with the largest
/// payloads.
const ABANDONED: usize = 2 * BATCH_JOBS;

/// The channel for submissions.
pub(in crate::client) type Inbox = mpsc::UnboundedSender<Submission>;

/// Starts the batcher. It ends when the inbox is closed and every submission is answered.
pub(in crate::client) fn start(session: Session) -> Inbox {
    let (inbox, submissions) = mpsc::unbounded_channel();
    session.clone().spawn(Box::pin(run(session, submissions)));
    inbox
}

async fn run(session: Session, mut submissions: mpsc::UnboundedReceiver<Submission>) {
    let capacity = Arc::new(Capacity::default());
    let mut pending = Pending::default();
    let mut in_flight = FuturesUnordered::new();
    let mut open = true;
    loop {
        if in_flight.is_empty() && pending.is_empty() && !open {
            return;
        }
        let idle = in_flight.is_empty() && !pending.is_empty();
        if idle || (pending.fills_a_round() && in_flight.len() < WINDOW) {
            let (load, lanes) = pending.take();
            let round = round(session.clone(), Arc::clone(&capacity), load);
            in_flight.push(async move { (round.await, lanes) });
            continue;
        }
        let mut gathered = Vec::new();
        // Replies come first: there are few, and callers wait for them.
        tokio::select! {
            biased;
            Some((again, lanes)) = in_flight.next(), if !in_flight.is_empty() => pending.put_back(again, lanes),
            count = submissions.recv_many(&mut gathered, BATCH_JOBS), if open => {
                open = count > 0;
                pending.gathered(gathered);
            }
        }
    }
}

/// Submissions that wait for a round, in order.
#[derive(Debug, Default)]
struct Pending {
    /// Segments that may have been sent. Few: each was in one of the rounds in flight, and they come first.
    segments: VecDeque<Packed>,
    jobs: VecDeque<Submission>,
    /// Bytes of the payloads of `jobs`.
    bytes: usize,
    /// Jobs of lanes that have a round in flight.
    held: VecDeque<Submission>,
    busy: BTreeSet<Lane>,
    /// At most the number of submissions after the last search for abandoned ones.
    waited_for: usize,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.jobs.is_empty()
    }

    fn fills_a_round(&self) -> bool {
        self.jobs.len() >= BATCH_JOBS || self.bytes >= BATCH_PAYLOAD_BYTES
    }

    /// Adds new submissions.
    fn gathered(&mut self, jobs: Vec<Submission>) {
        self.extend(jobs);
        if self.len() >= ABANDONED.max(2 * self.waited_for) {
            self.jobs.retain(Submission::is_waited_for);
            self.held.retain(Submission::is_waited_for);
            self.bytes = self.jobs.iter().map(bytes).sum();
            self.waited_for = self.len();
        }
    }

    fn len(&self) -> usize {
        self.jobs.len() + self.held.len()
    }

    fn extend(&mut self, jobs: impl IntoIterator<Item = Submission>) {
        for job in jobs {
            if lane(&job).is_some_and(|lane| self.busy.contains(lane)) {
                self.held.push_back(job);
            } else {
                self.bytes += bytes(&job);
                self.jobs.push_back(job);
            }
        }
    }

    /// Ends a round: its unanswered jobs are sent again, and the held jobs of its lanes come after them.
    fn put_back(&mut self, Load { segments, jobs }: Load, lanes: BTreeSet<Lane>) {
        self.segments.extend(segments);
        if !lanes.is_empty() {
            self.busy.retain(|lane| !lanes.contains(lane));
            let held = std::mem::take(&mut self.held);
            self.extend(held);
        }
        self.bytes += jobs.iter().map(bytes).sum::<usize>();
        for job in jobs.into_iter().rev() {
            self.jobs.push_front(job);
        }
    }

    /// Takes at least one job, and at most as many as fit a multi. Returns them with their lanes.
    fn take(&mut self) -> (Load, BTreeSet<Lane>) {
        let (mut segments, mut taken) = (Vec::new(), Vec::new());
        let (mut count, mut size) = (0, 0);
        while let Some(segment) = self.segments.front() {
            count += segment.jobs().len();
            size += segment.jobs().iter().map(bytes).sum::<usize>();
            if !segments.is_empty() && (count > BATCH_JOBS || size > BATCH_PAYLOAD_BYTES) {
                return (Load { segments, jobs: Vec::new() }, BTreeSet::new());
            }
            segments.extend(self.segments.pop_front());
        }
        while let Some(job) = self.jobs.front() {
            (count, size) = (count + 1, size + bytes(job));
            if count > 1 && (count > BATCH_JOBS || size > BATCH_PAYLOAD_BYTES) {
                break;
            }
            self.bytes -= bytes(job);
            taken.extend(self.jobs.pop_front());
        }
        let lanes = taken.iter().filter_map(lane).cloned().collect::<BTreeSet<_>>();
        if !lanes.is_empty() {
            self.busy.extend(lanes.iter().cloned());
            let left = std::mem::take(&mut self.jobs);
            self.bytes = 0;
            self.extend(left);
        }
        self.waited_for = self.waited_for.min(self.len());
        (Load { segments, jobs: taken }, lanes)
    }
}

fn lane(job: &Submission) -> Option<&Lane> {
    job.record.placement.lane.as_ref()
}

fn bytes(job: &Submission) -> usize {
    job.record.payload.bytes().len()
}

#[cfg(test)]
mod tests;
